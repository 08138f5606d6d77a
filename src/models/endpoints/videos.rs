//! `GET /v1/videos`, `GET` and `DELETE /v1/videos/{id}`, and `GET /v1/videos/{id}/content`: the jobs that a key has
//! ordered. The jobs of other keys do not exist for it. Source: docs/model-gateway.md 2.17.

use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind, quoted};
use filters::fault_code::FaultCode;
use filters::json::Object;
use filters::models::videos::job::{public_id, stored_id, write_job};
use filters::proxy::normalise;
use futures::future::BoxFuture;

use super::list_page::{ListPage, refused};
use crate::models::Models;
use crate::models::videos::{ReadJob, content, worker};
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;
use crate::store::ledger::{StoredJob, VideoJobPage};

/// `GET /v1/videos`.
pub struct ListVideos {
    pub models: Arc<Models>,
}

/// `GET /v1/videos/{id}`.
pub struct GetVideo {
    pub models: Arc<Models>,
}

/// `GET /v1/videos/{id}/content`.
pub struct VideoContent {
    pub models: Arc<Models>,
}

/// `DELETE /v1/videos/{id}`.
pub struct DeleteVideo {
    pub models: Arc<Models>,
}

impl Endpoint for ListVideos {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let page = ListPage::parse(&request)?;
            let after = page.after.unwrap_or_default();
            let id = stored_id(&after).filter(|_| !after.is_empty());
            if id.is_none() && !after.is_empty() {
                return Err(refused("after", &after, "the id of a video"));
            }
            let after = id.unwrap_or_default().to_owned();
            let key_id = Arc::clone(&caller(&request)?.key_id);
            let (most, is_ascending) = (page.limit, page.is_ascending);
            let listed = self.models.ledger.with_store(|store, _| async move {
                let page = VideoJobPage {
                    key_id: &key_id,
                    after: &after,
                    most: i64::try_from(most + 1).unwrap_or(i64::MAX),
                    is_ascending,
                };
                store.video_jobs(&page).await
            });
            let mut jobs = listed.await?;
            let has_more = jobs.len() > most;
            jobs.truncate(most);
            write_list(&jobs, has_more).map(Response::json)
        })
    }
}

impl Endpoint for GetVideo {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let job = find(&self.models, &request).await?;
            let mut out = Vec::with_capacity(512);
            write(&job, &mut out)?;
            Ok(Response::json(out))
        })
    }
}

impl Endpoint for VideoContent {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            if let Some(variant) = request.values("variant").last()
                && variant != "video"
            {
                let shown = quoted(&variant);
                let message = format!("`variant` is {shown:?}; accepted is `video`");
                return Err(Fault::invalid("variant", message));
            }
            let job = find(&self.models, &request).await?;
            let organization = &*job.owner.organization_id;
            let read = ReadJob::new(&job)?;
            content::open(&self.models, organization, &read, request.headers).await
        })
    }
}

impl Endpoint for DeleteVideo {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let job = find(&self.models, &request).await?;
            let unfinished = || {
                let message = "the video is being made; accepted is one that has ended";
                Fault::new(FaultKind::Invalid, message).with_code(FaultCode::VideoNotFinished)
            };
            if job.is_open {
                return Err(unfinished());
            }
            let (id, key_id) = (job.id.to_string(), Arc::clone(&job.owner.key_id));
            let deleted = self.models.ledger.with_store(|store, _| async move {
                let deleted = store.delete_video_job(&id, &key_id);
                deleted.await
            });
            if !deleted.await? {
                return Err(unknown());
            }
            worker::forget(&self.models, &job);
            let mut out = Vec::with_capacity(96);
            let mut body = Object::open(&mut out);
            body.text("id", &public_id(&job.id.to_string()));
            body.text("object", "video.deleted");
            body.bool("deleted", true);
            body.close();
            Ok(Response::json(out))
        })
    }
}

fn caller<'a>(request: &Request<'a>) -> Result<&'a Arc<Caller>, Fault> {
    let nobody = || Fault::new(FaultKind::Internal, "nobody calls");
    request.caller.ok_or_else(nobody)
}

fn unknown() -> Fault {
    let message = "there is no such video, or another key has ordered it";
    Fault::new(FaultKind::NotFound, message).with_code(FaultCode::VideoNotFound)
}

/// Finds the job that the path names among those of the calling key.
async fn find(models: &Models, request: &Request<'_>) -> Result<StoredJob, Fault> {
    let path = normalise(request.path)?;
    let mut segments = path.trim_start_matches('/').split('/').skip(2);
    let id = segments
        .next()
        .and_then(stored_id)
        .ok_or_else(unknown)?
        .to_owned();
    let key_id = Arc::clone(&caller(request)?.key_id);
    let found = models.ledger.with_store(|store, _| async move {
        let found = store.video_job(&id, &key_id);
        found.await
    });
    found.await?.ok_or_else(unknown)
}

fn write(job: &StoredJob, out: &mut Vec<u8>) -> Result<(), Fault> {
    let read = ReadJob::new(job)?;
    write_job(&job.id.to_string(), &read.order, &read.state, out);
    Ok(())
}

fn write_list(jobs: &[StoredJob], has_more: bool) -> Result<Vec<u8>, Fault> {
    let mut data = Vec::new();
    for job in jobs {
        data.push(if data.is_empty() { b'[' } else { b',' });
        write(job, &mut data)?;
    }
    if data.is_empty() {
        data.push(b'[');
    }
    data.push(b']');
    let mut out = Vec::with_capacity(data.len() + 128);
    let mut body = Object::open(&mut out);
    body.text("object", "list");
    body.value("data", |out| out.extend_from_slice(&data));
    let id = |job: Option<&StoredJob>| job.map(|job| public_id(&job.id.to_string()));
    body.text_or_null("first_id", id(jobs.first()).as_deref());
    body.text_or_null("last_id", id(jobs.last()).as_deref());
    body.bool("has_more", has_more);
    body.close();
    Ok(out)
}
