//! Which parameters a request asks for, of its top-level members.
//!
//! A member that is null, or that says what holds without it, asks for nothing: no provider is left out because of it.

use super::Findings;
use crate::json::Walker;
use crate::models::dialects::chat::find_parameter;
use crate::models::parameter::Parameter;
use crate::models::request::RequestMember;

/// Notes the parameters among the members of a checked body.
pub(super) fn note_asked(body: &[u8], found: &mut Findings) {
    let members = std::mem::take(&mut found.members);
    for RequestMember { key, value, .. } in &members {
        if let Some(parameter) = find_parameter(key)
            && let Some(value) = body.get(value.clone())
            && let Ok(value) = std::str::from_utf8(value)
            && value != "null"
        {
            note(parameter, value, found);
        }
    }
    found.members = members;
    let limit = found.max_completion_tokens.as_ref();
    if let Some(limit) = limit.or(found.max_tokens.as_ref()) {
        found.asked.add_number(Parameter::MaxTokens, limit.number);
    }
}

fn note(parameter: Parameter, value: &str, found: &mut Findings) {
    let is_asked = match parameter {
        Parameter::Temperature
        | Parameter::TopP
        | Parameter::FrequencyPenalty
        | Parameter::PresencePenalty
        | Parameter::TopLogprobs => {
            return match value.parse() {
                Ok(number) => found.asked.add_number(parameter, number),
                Err(_) => found.asked.set.insert(parameter),
            };
        }
        // The limit that counts is noted once.
        Parameter::MaxTokens => return,
        Parameter::Stop => return note_stop(value, found),
        Parameter::VendorSafeguards => true,
        // A search is noted once flag, tool and choice are known, the others where they stand.
        other if !other.is_member() => return,
        Parameter::Logprobs | Parameter::Store => value != "false",
        Parameter::ParallelToolCalls => value == "false" && found.needs.tools,
        Parameter::User | Parameter::SafetyIdentifier | Parameter::PromptCacheKey => {
            value != "\"\""
        }
        Parameter::Tools => found.needs.tools,
        Parameter::ToolChoice => found.needs.forced_tools,
        Parameter::ResponseFormat => found.needs.json_object || found.needs.json_schema,
        Parameter::Functions => !is_plain_list(value),
        Parameter::Modalities => return note_modalities(value, found),
        Parameter::Metadata | Parameter::LogitBias => !is_empty(value),
        _ => true,
    };
    if is_asked {
        found.asked.set.insert(parameter);
    }
}

/// Notes how many stop sequences there are, and whether one is blank.
fn note_stop(value: &str, found: &mut Findings) {
    let is_blank = |text: &str| text.trim().is_empty();
    let mut walk = Walker::over(value);
    let (mut count, mut has_blank) = (0_u32, false);
    if value.starts_with('[') {
        let walked = walk.array(|walk, _| {
            let text = walk.string()?.unescaped();
            count += 1;
            has_blank |= is_blank(&text);
            Ok::<(), crate::json::Error>(())
        });
        count = if walked.is_ok() { count } else { 0 };
    } else if let Ok(text) = walk.string() {
        count = 1;
        has_blank = is_blank(&text.unescaped());
    }
    found.needs.blank_stop = has_blank;
    if count > 0 {
        found.asked.add_number(Parameter::Stop, f64::from(count));
    }
}

/// Notes whether the answer shall hold images, and whether anything beyond text and images.
fn note_modalities(value: &str, found: &mut Findings) {
    let (mut has_image, mut has_text, mut has_other) = (false, false, !value.starts_with('['));
    let walked = Walker::over(value).array(|walk, _| {
        match walk.skip()? {
            "\"image\"" => has_image = true,
            "\"text\"" => has_text = true,
            _ => has_other = true,
        }
        Ok::<(), crate::json::Error>(())
    });
    if has_other || walked.is_err() {
        found.asked.set.insert(Parameter::Modalities);
    }
    // `image_config` asks for images whatever stands here.
    if has_image || has_text {
        found.needs.image_output.get_or_insert(has_image);
    }
}

/// Returns whether a list is empty.
fn is_plain_list(value: &str) -> bool {
    let inner = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Returns whether an object has no members.
fn is_empty(value: &str) -> bool {
    let inner = value
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}
