//! Members of completions. Source: docs/completions.md.

use super::{GATEWAY_MEMBERS, NamedMember, keys_of};
use crate::models::parameter::Parameter;

/// Members, each with the parameter that it asks for; `None`: no mapping's table treats it.
pub const MEMBERS: [(&str, Option<Parameter>); 18] = [
    ("model", None),
    ("prompt", None),
    ("suffix", Some(Parameter::Suffix)),
    ("max_tokens", Some(Parameter::MaxTokens)),
    ("temperature", Some(Parameter::Temperature)),
    ("top_p", Some(Parameter::TopP)),
    ("n", None),
    ("stream", None),
    ("stream_options", None),
    ("logprobs", Some(Parameter::Logprobs)),
    ("echo", Some(Parameter::Echo)),
    ("stop", Some(Parameter::Stop)),
    ("presence_penalty", Some(Parameter::PresencePenalty)),
    ("frequency_penalty", Some(Parameter::FrequencyPenalty)),
    ("best_of", Some(Parameter::BestOf)),
    ("logit_bias", Some(Parameter::LogitBias)),
    ("user", Some(Parameter::User)),
    ("seed", Some(Parameter::Seed)),
];

/// The keys of [`MEMBERS`].
pub const KEYS: [&str; MEMBERS.len()] = keys_of(&MEMBERS);

/// Returns whether a member is one of the gateway, however it is spelled: some servers read names in any case.
pub fn is_gateways(key: &str) -> bool {
    let mut members = GATEWAY_MEMBERS.iter();
    members.any(|known| known.eq_ignore_ascii_case(key))
}

/// Returns the parameter that a member asks for.
pub fn find_parameter(key: &str) -> Option<Parameter> {
    let mut members = MEMBERS.iter();
    members.find(|(known, _)| *known == key)?.1
}

/// Returns what faults call a member.
pub(super) fn name_of(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Model => "model",
        NamedMember::Stream => "stream",
        NamedMember::Choices => "n",
        NamedMember::Routing => "routing",
        NamedMember::Parameter(parameter) => {
            let mut members = MEMBERS.iter();
            let member = members.find(|(_, asked)| *asked == Some(parameter));
            member.map_or("prompt", |(key, _)| key)
        }
        // A text has no other parts.
        _ => "prompt",
    }
}
