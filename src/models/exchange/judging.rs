//! Verdicts on the calls of an answer, by the operator's own model. Source: docs/decisions.md 67.
//!
//! The answer is complete when the judge is asked, and charged. What the judge says is the last part of the response, so the
//! end waits for it; a judge that fails leaves the calls without verdicts.

use std::sync::Arc;

use filters::fault::FaultKind;
use filters::models::chat::piece::Piece;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;

use super::ModelExchange;
use super::own_request::{self, MODEL_SILENCE};
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Asks the judge about the calls of a whole answer, and tells the client what it says.
    pub(super) async fn judge(&mut self, info: &RequestInfo, answer: &[u8]) {
        let judge = self
            .call
            .turns
            .as_ref()
            .and_then(|turns| turns.judge.clone());
        let Some(judge) = judge else {
            return;
        };
        let question = judge
            .words
            .question(&self.call.request, answer, &judge.model);
        let Some(question) = question else {
            return;
        };
        let models = Arc::clone(&self.models);
        let question = ChatCompletions.parse(question.into());
        let behalf = (info, self.call.session_names.as_ref());
        let asked = own_request::ask(&models, behalf, question, MODEL_SILENCE).await;
        let said = match &asked {
            Ok(reply) => Ok(&*reply.body),
            Err(fault) if fault.kind == FaultKind::UpstreamTimeout => Err("timeout"),
            Err(_) => Err("error"),
        };
        let verdicts = judge.words.verdicts(answer, said);
        if let Ok(reply) = asked {
            if let Some(cost) = reply.settlement.and_then(|settlement| settlement.cost) {
                self.call.billing.add_cost(cost);
            }
            self.call.log.add_earlier(reply.record);
        }
        if let Some(writer) = self.running.reader.writer_mut() {
            writer.pieces(0, &[Piece::Verdicts(&verdicts)]);
        }
    }
}
