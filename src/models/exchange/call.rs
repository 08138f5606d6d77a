//! The state that all attempts of a call share: the request, the plan, and the ended attempts.

use std::sync::{Arc, OnceLock};

use filters::fault::{Fault, FaultKind};
use filters::ledger::SessionNames;
use filters::models::dialects::state::States;
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
use super::call_budgets::CallBudgets;
use super::images::Images;
use super::planned_attempt::PlannedAttempt;
use super::turns::AnswerTurns;
use crate::models::experiments::SendImpression;
use crate::models::retry_budget::RunningCall;
use crate::proxy::context::RequestInfo;
use crate::proxy::upload::{BodyPiece, Upload};

/// Why a response was not kept, once that is known.
pub(super) type Unkept = Arc<OnceLock<Fault>>;

/// The state that all attempts of a call share.
pub(super) struct Call {
    /// Boxed, because it is large and comes a long way.
    pub(super) request: Box<ModelRequest>,
    /// The uploaded file of a form.
    pub(super) upload: Option<Arc<Upload>>,
    /// The facts that decide the prices: the requested tier and the start.
    pub(super) price_point: PricePoint,
    /// The provider that the model string named.
    pub(super) requested_provider: Option<Arc<str>>,
    /// The attempts, best first. The list is never empty.
    pub(super) attempts: Vec<PlannedAttempt>,
    /// Whether a forced tool call has to be lowered to `auto`.
    pub(super) lower_tool_choice: bool,
    /// How the state of its answers is sealed.
    pub(super) states: States,
    /// The id of the caller's API key.
    pub(super) key_id: Option<Arc<str>>,
    /// Whether what is asked and answered is copied, for the export of logs or the calls in memory.
    pub(super) copies_content: bool,
    /// Who of the client's session makes it.
    pub(super) session_names: Option<Arc<SessionNames>>,
    /// The budgets in which it counts.
    pub(super) budgets: CallBudgets,
    /// The id of the conversation, if the call is traced and belongs to one.
    pub(super) conversation: Option<Box<str>>,
    /// The key under which the session is bound to the provider that responds.
    pub(super) affinity_key: Option<SessionKey>,
    /// The fetched images to which the request refers by address.
    pub(super) images: Images,
    /// The fault of a request that cannot be encoded for any attempt.
    pub(super) fault: Option<Fault>,
    /// The candidates that cannot serve the request, according to the plan or their wires.
    pub(super) left_out: Vec<LeftOut>,
    /// The reasons of the plan, if the client asks for them or an operator follows the calls.
    pub(super) explanation: Option<Box<Explanation>>,
    /// Whether the client asks for them.
    pub(super) tells_plan: bool,
    pub(super) caching: Caching,
    /// The impression of the experiment, until a model is asked or a stored reply is replayed.
    pub(super) impression: Option<SendImpression>,
    /// The turns of the answer, if there may be several or its calls are judged.
    pub(super) turns: Option<Box<AnswerTurns>>,
    /// Why its response was not kept.
    pub(super) unkept: Unkept,
    /// Whether it waits to be made in the background.
    pub(super) is_queued: bool,
    pub(super) log: AttemptLog,
    pub(super) billing: Billing,
    pub(super) timing: Timing,
    /// Permits second and later fallbacks.
    pub(super) budget: RunningCall,
}

/// The ended attempts.
#[derive(Default)]
pub(super) struct AttemptLog {
    pub(super) records: Vec<AttemptRecord>,
    pub(super) failures: Vec<Failure>,
    /// How many of the attempts were made for earlier turns and for searches.
    earlier: usize,
    /// The reason for which a hook aborted the running attempt.
    pub(super) aborted: Option<Failure>,
}

impl AttemptLog {
    /// Returns the number of ended attempts of this turn.
    pub(super) fn ended(&self) -> u32 {
        u32::try_from(self.records.len() - self.earlier).unwrap_or(u32::MAX)
    }

    /// Ends a turn.
    pub(super) fn end_turn(&mut self) {
        self.earlier = self.records.len();
    }

    /// Adds the attempt of a search between two turns, or candidates that were not asked.
    pub(super) fn add_earlier(&mut self, record: impl IntoIterator<Item = AttemptRecord>) {
        self.records.extend(record);
        self.end_turn();
    }

    /// Returns the number of attempts that have begun. The running attempt is only listed after its end.
    pub(super) fn begun(&self) -> u32 {
        let ended = self.records.get(self.earlier..).unwrap_or_default();
        let has_ended = ended.last().is_some_and(|last| last.succeeded);
        self.ended().saturating_add(u32::from(!has_ended))
    }
}

/// The times of events in a call.
#[derive(Default)]
pub(super) struct Timing {
    /// The time at which content was first sent to the client.
    pub(super) first_content: Option<Instant>,
    /// The time at which the reply was complete. A slow client may receive its end later.
    pub(super) completed: Option<Instant>,
}

impl Call {
    /// Adds the reasons of the plan to a fault, if the client asks for them.
    pub(super) fn explain(&self, fault: Fault) -> Fault {
        match self.explanation.as_ref().filter(|_| self.tells_plan) {
            Some(explanation) => explanation.add_to(fault, &self.left_out),
            None => fault,
        }
    }

    /// Returns the reasons of the plan as JSON, if the client asks for them.
    pub(super) fn route(&self) -> Option<Vec<u8>> {
        let explanation = self.explanation.as_ref().filter(|_| self.tells_plan)?;
        let mut out = Vec::new();
        explanation.write(&self.left_out, &mut out);
        Some(out)
    }

    /// Sends the impression of the experiment, once.
    pub(super) fn send_impression(&mut self) {
        if let Some(send) = self.impression.take() {
            send();
        }
    }

    /// Returns a piece of a request's body in the form that the buffered session sends.
    ///
    /// Errors: the piece belongs to an upload, but nothing was uploaded.
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

    /// Returns the members of a new response's metadata.
    pub(super) fn answer_members<'c>(&'c self, used: &'c UsedNames) -> AnswerMembers<'c> {
        AnswerMembers::Fresh {
            used,
            price: self.billing.price_notes(),
            routing: &self.log.records,
        }
    }

    /// Calls `write` with the metadata of the response.
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
