//! What the span of a request says of its call.

use std::borrow::Cow;

use filters::models::dialects::chat;
use filters::models::request::ModelRequest;

use super::attempt::Attempt;
use super::caching::Caching;
use super::call::Call;
use crate::telemetry::traces::names;
use crate::telemetry::traces::span::SpanDraft;

impl Call {
    /// Says in the span of the request what the call was. `last` is the last of the attempts.
    pub(super) fn describe(&self, last: &Attempt, span: &mut SpanDraft) {
        let operation = self.request.payload.operation();
        span.text(names::OPERATION, names::operation(operation));
        span.text(names::REQUEST_MODEL, self.request.requested_model());
        span.flag(names::IS_STREAM, self.request.is_stream);
        if let Some(conversation) = &self.conversation {
            span.text(names::CONVERSATION, conversation);
        }
        if let Some(user) = user(&self.request) {
            span.text(names::USER_ID, &user);
        }
        if let Some(session) = &self.session_names {
            span.text(names::AGENT, &session.agent);
            span.text(names::PARENT_AGENT, &session.parent);
        }
        self.billing
            .with_log_id(|id| span.text(names::LOG_ID, id.unwrap_or_default()));
        let attempts = self.log.records.len();
        match (&self.caching, last.deployment(self)) {
            (Caching::Replayed(reply), _) => {
                span.flag(names::IS_CACHED, true);
                span.text(names::USED_MODEL, reply.used_model());
            }
            (_, Some(deployment)) if attempts > 0 => {
                span.text(names::USED_MODEL, &deployment.used.used_model);
                span.text(names::RESPONSE_MODEL, &deployment.model.id);
            }
            _ => {}
        }
        span.number(names::ATTEMPTS, attempts as u64);
        let total = self.billing.total();
        if let Some(cost) = total.as_ref().and_then(|total| total.cost.as_ref()) {
            span.text(names::COST_USD, &cost.total.to_string());
        }
    }
}

/// Returns the user whom a request names.
fn user(request: &ModelRequest) -> Option<Cow<'_, str>> {
    let source = &request.source;
    chat::named_user(|key| {
        let member = source.members.iter().find(|member| &*member.key == key)?;
        std::str::from_utf8(source.body.get(member.value.clone())?).ok()
    })
}
