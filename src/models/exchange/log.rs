//! A call's members of the log line. Source: docs/interface.md, Logs.

use std::time::Duration;

use filters::json::Object;
use filters::models::exported_content;
use filters::models::metadata::{AttemptRun, write_usage};
use filters::models::routing::allowed::OUTSIDE_REGIONS;
use filters::models::routing::plan::LeftOut;
use filters::money::Cost;

use super::attempt::Attempt;
use super::billing::Billing;
use super::caching::Caching;
use super::call::{AttemptLog, Call};
use super::schema;
use crate::models::deployment::Deployment;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::log_ms;

impl Call {
    /// Writes the model, the attempts, and the usage of the call. `last` is the last of the attempts.
    pub(super) fn write_log(&self, last: &Attempt, info: &RequestInfo, line: &mut Object<'_>) {
        line.text("model", self.request.requested_model());
        if let Some(managed) = &self.request.managed {
            line.members(&managed.members);
        }
        self.billing
            .with_log_id(|id| line.optional_text("log_id", id));
        if let Some(names) = &self.session_names {
            let named = [
                ("session_id", &names.session),
                ("agent_id", &names.agent),
                ("parent_agent_id", &names.parent),
            ];
            for (key, name) in named {
                line.optional_text(key, Some(&**name).filter(|name| !name.is_empty()));
            }
        }
        match (&self.caching, last.deployment(self)) {
            (Caching::Replayed(reply), _) => line.members(reply.log()),
            (_, Some(deployment)) => {
                line.members(deployment.used.log());
                let deprecated_at = deployment.mapping.deprecated_at.as_ref();
                line.optional_text("deprecated_at", deprecated_at.map(|date| &*date.0));
            }
            (_, None) => line.members(r#""used_model":"","provider":"""#),
        }
        line.bool("stream", self.request.is_stream);
        if matches!(self.caching, Caching::Replayed(_)) {
            line.bool("cached", true);
        }
        line.value("attempts", |out| write_attempts(&self.log, out));
        if !self.left_out.is_empty() {
            line.array("left_out", &self.left_out, LeftOut::write);
        }
        if last.cursor.left_out_state > 0 {
            line.number("left_out_state", last.cursor.left_out_state.into());
        }
        let leaves_out = |at: &Deployment| at.served.leaves_out_form(&self.request);
        if last.deployment(self).is_some_and(leaves_out) {
            line.bool("left_out_format", true);
        }
        if last.cursor.parts.count > 1 {
            line.number("parts", last.cursor.parts.count.into());
        }
        match self.timing.first_content {
            Some(at) => log_ms(line, "first_event_ms", at.duration_since(info.started)),
            None => line.raw("first_event_ms", "null"),
        }
        if let Some(answer) = last.reader.structured() {
            line.text("healed", answer.outcome.as_str());
            if let Some(schema) = self.request.answer_schema() {
                match schema::fits(schema, answer.text) {
                    Some(fits) => line.bool("fits_schema", fits),
                    None => line.raw("fits_schema", "null"),
                }
            }
        }
        self.billing.write_log(line);
    }

    /// Writes tokens and cost by part.
    pub(super) fn write_details(&self, line: &mut Object<'_>) {
        if let Some(settled) = self.billing.total() {
            line.value("usage", |out| write_usage(&settled, out));
        }
    }

    /// Writes why its providers were chosen, if the plan has noted it.
    pub(super) fn write_plan(&self, line: &mut Object<'_>) {
        if let Some(explanation) = &self.explanation {
            line.value("plan", |out| explanation.write(&self.left_out, out));
        }
    }

    /// Writes what is asked and what is answered, if it is copied for the export of logs or the calls in memory.
    pub(super) fn write_content(&self, last: &Attempt, line: &mut Object<'_>) {
        if !self.copies_content {
            return;
        }
        let asked = exported_content::asked(&self.request.source);
        let answer = last.reader.answer_text();
        exported_content::write(&asked, &answer, line);
    }
}

impl Billing {
    fn write_log(&self, line: &mut Object<'_>) {
        let Some(settled) = self.total() else {
            return;
        };
        line.number("prompt_tokens", settled.usage.prompt);
        line.number("completion_tokens", settled.usage.completion);
        line.number("cached_tokens", settled.usage.cached);
        for (unit, count) in settled.usage.units.set() {
            line.number(unit.as_str(), count);
        }
        line.bool("estimated", settled.usage.estimated);
        self.price_notes().write(line);
        if let Some(abandoned) = self.abandoned() {
            write_cost("abandoned_cost", abandoned, line);
        }
        match &settled.cost {
            Some(cost) => write_cost("cost", cost, line),
            None => line.raw("cost", "null"),
        }
    }
}

fn write_cost(key: &'static str, cost: &Cost, line: &mut Object<'_>) {
    line.value(key, |out| {
        out.push(b'"');
        cost.total.write(out);
        out.push(b'"');
    });
}

/// Writes when an attempt ran, since the request began.
fn write_run(attempt: &mut Object<'_>, ran: AttemptRun) {
    log_ms(attempt, "begun_ms", Duration::from_micros(ran.begun_us));
    if let Some(answered_us) = ran.answered_us {
        log_ms(attempt, "answered_ms", Duration::from_micros(answered_us));
    }
    log_ms(attempt, "ended_ms", Duration::from_micros(ran.ended_us));
}

/// Writes the attempts: the entries of `metadata.routing`, when they ran, and the causes of the failed ones.
fn write_attempts(log: &AttemptLog, out: &mut Vec<u8>) {
    // Of the records without success, only the last may have no failure: the retry budget refused it.
    let mut failures = log.failures.iter();
    out.push(b'[');
    for (at, record) in log.records.iter().enumerate() {
        let has_failed = !record.succeeded && record.error_type != OUTSIDE_REGIONS;
        let failure = has_failed.then(|| failures.next()).flatten();
        if at > 0 {
            out.push(b',');
        }
        record.write_with(out, |attempt| {
            if let Some(ran) = record.ran {
                write_run(attempt, ran);
            }
            if let Some(failure) = failure {
                attempt.value("cause", |out| failure.write_cause(out));
            }
        });
    }
    out.push(b']');
}
