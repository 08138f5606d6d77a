//! What all attempts of a call share: the request, the plan, and what is known of the attempts that have ended.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::models::metadata::{AnswerMembers, AttemptRecord, Metadata, UsedNames};
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::explanation::Explanation;
use filters::models::routing::plan::LeftOut;
use filters::models::wires::{BodySlice, Failure};
use filters::money::PricePoint;
use tokio::time::Instant;

use super::billing::Billing;
use super::caching::Caching;
use super::images::Images;
use super::planned_attempt::PlannedAttempt;
use crate::models::experiments::SendImpression;
use crate::models::retry_budget::RunningCall;
use crate::proxy::context::RequestInfo;
use crate::proxy::upload::{BodyPiece, Upload};

/// See the module.
pub(super) struct Call {
    pub(super) request: ModelRequest,
    /// The file of its form, if it is one.
    pub(super) upload: Option<Arc<Upload>>,
    /// What decides its prices: the tier it asks for, and when it started.
    pub(super) price_point: PricePoint,
    /// The provider that the model string named.
    pub(super) requested_provider: Option<Arc<str>>,
    /// Best first; never empty.
    pub(super) attempts: Vec<PlannedAttempt>,
    /// A forced tool call has to be lowered to `auto`.
    pub(super) lower_tool_choice: bool,
    /// The id of the caller's API key.
    pub(super) key_id: Option<Arc<str>>,
    /// Binds the session to the provider that answers.
    pub(super) affinity_key: Option<SessionKey>,
    /// What was fetched of the images that the request names by address.
    pub(super) images: Images,
    /// The request cannot be encoded for any attempt.
    pub(super) fault: Option<Fault>,
    /// Candidates that cannot serve the request, as the plan or their wires say.
    pub(super) left_out: Vec<LeftOut>,
    /// Why the plan is what it is, if the client wants to know.
    pub(super) explanation: Option<Box<Explanation>>,
    pub(super) caching: Caching,
    /// The impression of its experiment, until a model is asked or a stored reply is replayed.
    pub(super) impression: Option<SendImpression>,
    pub(super) log: AttemptLog,
    pub(super) billing: Billing,
    pub(super) timing: Timing,
    /// Permits second and later fallbacks.
    pub(super) budget: RunningCall,
}

/// The attempts that have ended.
#[derive(Default)]
pub(super) struct AttemptLog {
    pub(super) records: Vec<AttemptRecord>,
    pub(super) failures: Vec<Failure>,
    /// Why a hook aborted the running attempt.
    pub(super) aborted: Option<Failure>,
}

impl AttemptLog {
    /// Returns how many attempts have ended.
    pub(super) fn ended(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// Returns how many attempts have begun. The running one is listed only once it has ended.
    pub(super) fn begun(&self) -> u32 {
        let has_ended = self.records.last().is_some_and(|last| last.succeeded);
        self.ended().saturating_add(u32::from(!has_ended))
    }
}

/// When things happened.
#[derive(Default)]
pub(super) struct Timing {
    /// When content first went to the client.
    pub(super) first_content: Option<Instant>,
    /// When the reply was complete. A slow client may get its end later.
    pub(super) completed: Option<Instant>,
}

impl Call {
    /// Adds to a fault why the plan is what it is, if the client wants to know.
    pub(super) fn explain(&self, fault: Fault) -> Fault {
        match &self.explanation {
            Some(explanation) => explanation.add_to(fault, &self.left_out),
            None => fault,
        }
    }

    /// Returns why the plan is what it is, as JSON, if the client wants to know.
    pub(super) fn route(&self) -> Option<Vec<u8>> {
        let explanation = self.explanation.as_ref()?;
        let mut out = Vec::new();
        explanation.write(&self.left_out, &mut out);
        Some(out)
    }

    /// Sends the impression of its experiment, once.
    pub(super) fn send_impression(&mut self) {
        if let Some(send) = self.impression.take() {
            send();
        }
    }

    /// Returns a piece of the body of a request, as the buffered session sends it.
    ///
    /// Errors: the piece is of an upload, and nothing was uploaded.
    pub(super) fn body_piece(&self, slice: BodySlice) -> Result<BodyPiece, Fault> {
        match (slice, &self.upload) {
            (BodySlice::Bytes(bytes), _) => Ok(BodyPiece::Bytes(bytes)),
            (BodySlice::Upload(range), Some(upload)) => {
                Ok(BodyPiece::Upload(Arc::clone(upload), range))
            }
            (BodySlice::Upload(_), None) => {
                Err(Fault::new(FaultKind::Internal, "nothing was uploaded"))
            }
        }
    }

    /// Returns the members of a fresh answer's metadata.
    pub(super) fn answer_members<'c>(&'c self, used: &'c UsedNames) -> AnswerMembers<'c> {
        AnswerMembers::Fresh {
            used,
            price: self.billing.price_notes(),
            routing: &self.log.records,
        }
    }

    /// Calls `write` with the metadata of the answer.
    pub(super) fn with_metadata(
        &self,
        info: &RequestInfo,
        answer: AnswerMembers<'_>,
        write: impl FnOnce(&Metadata<'_>),
    ) {
        let caller = info.caller.as_deref();
        let (request, route) = (&self.request, self.route());
        self.billing.with_log_id(|log_id| {
            write(&Metadata {
                request_id: info.id.as_str(),
                requested_model: request.requested_model(),
                managed: request.managed.as_ref().map(|managed| &*managed.members),
                requested_provider: self.requested_provider.as_deref(),
                organization_id: caller.map_or("", |caller| &caller.organization_id),
                project_id: caller.map_or("", |caller| &caller.project_id),
                log_id,
                answer,
                route: route.as_deref(),
            });
        });
    }
}
