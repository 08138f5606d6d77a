//! `GET` and `DELETE /v1/responses/{id}`, `GET /v1/responses/{id}/input_items` and `POST /v1/responses/{id}/cancel`: the responses
//! that a key has asked to be kept. Those of other keys do not exist for it. Source: docs/stored-responses.md.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::json::Object;
use filters::models::stored_responses::items::{ItemPage, StoredTurn, write_page};
use filters::models::stored_responses::progress::{ResponseStatus, with_status};
use filters::models::stored_responses::stored_id;
use filters::proxy::normalise;
use futures::future::BoxFuture;

use super::list_page::{ListPage, refused};
use crate::models::Models;
use crate::models::stored_responses::{StoredResponses, unknown};
use crate::proxy::body;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;
use crate::store::StoredResponse;

/// `GET /v1/responses/{id}`.
pub struct GetResponse {
    pub models: Arc<Models>,
}

/// `DELETE /v1/responses/{id}`.
pub struct DeleteResponse {
    pub models: Arc<Models>,
}

/// `GET /v1/responses/{id}/input_items`.
pub struct ListInputItems {
    pub models: Arc<Models>,
}

/// `POST /v1/responses/{id}/cancel`.
pub struct CancelResponse {
    pub models: Arc<Models>,
}

impl Endpoint for GetResponse {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            check_not_streamed(&request)?;
            let named = NamedResponse::parse(&self.models, &request)?;
            let found = named.find(false).await?;
            Ok(Response::json(told(&found)?.into_bytes()))
        })
    }
}

impl Endpoint for DeleteResponse {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let named = NamedResponse::parse(&self.models, &request)?;
            let (stored, key_id) = (&named.stored, &named.key_id);
            if !stored.delete(&named.id, key_id).await? {
                // One that is there is still being made.
                named.find(false).await?;
                let message =
                    "the response is being made; accepted is one that has ended, or was cancelled";
                return Err(Fault::new(FaultKind::Invalid, message)
                    .with_code(FaultCode::ResponseNotFinished));
            }
            let mut out = Vec::with_capacity(96);
            let mut body = Object::open(&mut out);
            body.text("id", &named.public);
            body.text("object", "response");
            body.bool("deleted", true);
            body.close();
            Ok(Response::json(out))
        })
    }
}

impl Endpoint for ListInputItems {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let page = ListPage::parse(&request)?;
            let page = ItemPage {
                after: page.after.map(Into::into),
                limit: page.limit,
                is_ascending: page.is_ascending,
            };
            let named = NamedResponse::parse(&self.models, &request)?;
            let found = named.find(true).await?;
            let turn = StoredTurn {
                id: &named.id,
                input: &found.input,
                response: &found.response,
            };
            let written = body::off_worker(found.input.len(), || write_page(&turn, &page));
            let written = written.map_err(unreadable)?;
            let unknown_item = || {
                let after = page.after.as_deref().unwrap_or_default();
                refused(
                    "after",
                    after,
                    "the id of an item that the response answers",
                )
            };
            written.map(Response::json).ok_or_else(unknown_item)
        })
    }
}

impl Endpoint for CancelResponse {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let named = NamedResponse::parse(&self.models, &request)?;
            let cancelled = named.stored.cancel(&named.id, &named.key_id).await?;
            let found = named.find(false).await?;
            if !cancelled && found.status != ResponseStatus::Cancelled.as_str() {
                let message = match found.is_background {
                    true => format!(
                        "the response is `{}`; accepted is one that is `queued` or `in_progress`",
                        found.status
                    ),
                    false => {
                        "the response was not made in the background; accepted is one that is made with `background: true`"
                            .to_owned()
                    }
                };
                return Err(Fault::new(FaultKind::Invalid, message)
                    .with_code(FaultCode::ResponseNotCancellable));
            }
            Ok(Response::json(told(&found)?.into_bytes()))
        })
    }
}

/// The response that a path names, and whose key asks for it.
struct NamedResponse {
    stored: Arc<StoredResponses>,
    id: String,
    public: String,
    key_id: Arc<str>,
}

impl NamedResponse {
    /// Errors: 404 if no response can have the name.
    fn parse(models: &Models, request: &Request<'_>) -> Result<Self, Fault> {
        let nobody = || Fault::new(FaultKind::Internal, "nobody calls");
        let off = || {
            let message = "no responses are kept: `[responses] store` is false";
            Fault::new(FaultKind::NotFound, message)
        };
        let path = normalise(request.path)?;
        let mut segments = path.trim_start_matches('/').split('/').skip(2);
        let public = segments.next().unwrap_or_default();
        let stored = models.kept_responses().ok_or_else(off)?;
        let caller = request.caller.ok_or_else(nobody)?;
        Ok(Self {
            stored: Arc::clone(stored),
            id: stored_id(public).ok_or_else(|| unknown(public))?.to_owned(),
            public: public.to_owned(),
            key_id: Arc::clone(&caller.key_id),
        })
    }

    /// Errors: 404, 503.
    async fn find(&self, with_input: bool) -> Result<StoredResponse, Fault> {
        let found = self.stored.find(&self.id, &self.key_id, with_input);
        found.await?.ok_or_else(|| unknown(&self.public))
    }
}

/// Returns a response as it is by now.
fn told(found: &StoredResponse) -> Result<String, Fault> {
    let status = ResponseStatus::from_word(&found.status);
    let told = status.map(|status| with_status(&found.response, status));
    told.transpose()
        .map_err(unreadable)
        .map(|told| told.unwrap_or_else(|| found.response.clone()))
}

fn unreadable(error: filters::json::Error) -> Fault {
    let message = "the response cannot be read";
    Fault::new(FaultKind::Internal, message).with_detail(error.to_string())
}

/// Errors: 400 for a response that is to be streamed.
fn check_not_streamed(request: &Request<'_>) -> Result<(), Fault> {
    let message = |name: &str| {
        format!(
            "`{name}` asks for a stream of a kept response, which there is none of; accepted is the response itself"
        )
    };
    let is_set = |name: &str| request.values(name).last().is_some_and(|it| it != "false");
    for name in ["stream", "starting_after"] {
        if is_set(name) {
            return Err(Fault::invalid(name, message(name)).with_code(FaultCode::UnsupportedValue));
        }
    }
    Ok(())
}
