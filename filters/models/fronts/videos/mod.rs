//! Videos: the 400 rules of an order, and the job that answers it. Source: docs/model-gateway.md 2.17.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::check::describe::describe;
use crate::models::check::form::to_json;
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::metadata::Metadata;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Reported, Sink, Writer};
use crate::models::request::ModelRequest;
use crate::models::usage::{Settlement, Usage};
use crate::models::videos::VideoFacts;
use crate::models::videos::job::write_job;
use crate::models::videos::order::{JobState, VideoOrder};

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/videos`.
#[derive(Debug)]
pub struct Videos;

impl Front for Videos {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(("videos", "/v1/videos"), Operation::Videos, || {
            describe(include_str!("description.json"), &[&check::FIELDS])
        });
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn read_form(&self, body: &Bytes, boundary: &str) -> Result<Received, Fault> {
        let json = to_json((body, boundary), &[&check::FIELDS], &[])?;
        self.read(&ClientHead::silent(), json)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        Box::new(JobWriter {
            ordered: request.payload.video().cloned().unwrap_or_default(),
            identity,
            job: None,
            out: Vec::new(),
        })
    }
}

/// Writes the job that a provider has begun. Nothing of it goes out before the store has it.
#[derive(Debug)]
struct JobWriter {
    ordered: VideoFacts,
    identity: ReplyIdentity,
    /// The provider's id of the job.
    job: Option<Box<str>>,
    out: Vec<u8>,
}

impl Sink for JobWriter {
    fn identity(&mut self, id: Option<&str>, _: Option<u64>) {
        self.job = id.map(Into::into);
    }

    fn usage(&mut self, _: Usage) {}
}

impl Writer for JobWriter {
    fn has_content(&self) -> bool {
        !self.out.is_empty()
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: Some(Usage::default()),
            ..Reported::default()
        }
    }

    fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    fn lack(&self) -> Option<&'static str> {
        let has_job = self.job.as_ref().is_some_and(|job| !job.is_empty());
        (!has_job).then_some("the provider's reply names no job")
    }

    fn complete(&mut self, _: &Settlement, metadata: &Metadata<'_>) {
        let id = metadata.log_id.unwrap_or_default().replace('-', "");
        let order = VideoOrder {
            used_model: self.identity.model.as_ref().into(),
            seconds: self.ordered.seconds,
            size: self.ordered.size,
            created_ms: self.identity.created.saturating_mul(1000),
            ..VideoOrder::default()
        };
        write_job(&id, &order, &JobState::default(), &mut self.out);
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
