//! The peculiarities of one provider, as data.
//!
//! The default is the plain convention. The shipped configuration holds the rows of known providers; no code
//! asks for a provider's name. Source: docs/facts/wire-formats.md 5.3 and 5.4.

/// Members by which aggregating servers choose another model, provider, account or price than the caller was admitted for.
/// They are unknown to the convention, and reach a provider only if `pass_members` lists them.
const REROUTING: [&str; 20] = [
    "models",
    "model_list",
    "route",
    "router",
    "provider",
    "providers",
    "preset",
    "fallbacks",
    "fallback_models",
    "context_window_fallback_dict",
    "transforms",
    "api_base",
    "api_key",
    "base_url",
    "user_config",
    "search_parameters",
    "search_options",
    "web_search_options",
    "enable_search",
    "mock_response",
];

/// Where a provider reports usage on a stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StreamUsage {
    /// Only when asked by `stream_options.include_usage`.
    #[default]
    Ask,
    /// Always; the question is refused or superfluous.
    Always,
    Never,
}

/// How reasoning text of earlier turns goes back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReasoningReplay {
    #[default]
    None,
    ReasoningContent,
    Reasoning,
    /// As `reasoning_content`, and empty where a turn with tool calls has lost it.
    ReasoningContentRequired,
    /// As the provider's own `reasoning_details`, and as `reasoning` where a turn has none of them.
    ReasoningDetails,
}

/// The peculiarities of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Quirks {
    /// Path behind the base URL.
    pub chat_path: String,
    /// The header of the credential; `authorization` carries `Bearer `.
    pub auth_header: http::HeaderName,
    /// Where usage of a stream stands.
    pub stream_usage: StreamUsage,
    pub reasoning_replay: ReasoningReplay,
    /// Reported completion tokens leave reasoning out.
    pub reasoning_excluded_from_completion: bool,
    /// Message members beyond the convention are refused, so they are left out.
    pub strict_messages: bool,
    /// Unknown top-level fields of the caller are left out.
    pub drop_unknown_fields: bool,
    /// Unknown top-level fields that pass all the same.
    pub pass_members: Vec<String>,
    /// Tool call ids must be nine letters or digits.
    pub tool_call_ids_of_nine: bool,
    /// `content: null` is refused, so it becomes an empty string.
    pub null_content_is_empty: bool,
    /// `json_schema` is understood.
    pub json_schema: bool,
    /// A forced tool choice is honoured.
    pub forced_tools: bool,
    /// Schemas must be strict and closed at every object.
    pub strict_schema: bool,
    /// `developer` messages are called `system`.
    pub developer_is_system: bool,
    /// Instructions between messages are taken. Where they are not, those of other dialects become the user's words.
    pub late_instructions: bool,
    /// Images have to be in the request, not named by address.
    pub inline_images: bool,
    /// What is likely to be read again is marked for its cache, where a request marks nothing.
    pub cache_breakpoints: bool,
    /// The provider bills a call after the client has disconnected.
    pub bills_after_disconnect: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            chat_path: "/chat/completions".to_owned(),
            auth_header: http::header::AUTHORIZATION,
            stream_usage: StreamUsage::default(),
            reasoning_replay: ReasoningReplay::default(),
            reasoning_excluded_from_completion: false,
            strict_messages: false,
            drop_unknown_fields: false,
            pass_members: Vec::new(),
            tool_call_ids_of_nine: false,
            null_content_is_empty: false,
            json_schema: true,
            forced_tools: true,
            strict_schema: false,
            developer_is_system: false,
            late_instructions: true,
            inline_images: false,
            cache_breakpoints: true,
            bills_after_disconnect: false,
        }
    }
}

impl Quirks {
    /// Returns whether a top-level member reaches the provider, which takes the `known` ones.
    pub(super) fn passes(&self, key: &str, known: &[&str]) -> bool {
        known.contains(&key) || self.passes_unknown(key, known)
    }

    /// Returns whether a top-level member that is not of the `known` ones reaches the provider.
    ///
    /// Some servers read names in any case, so another spelling of a known name, or of one that chooses a model, is left
    /// out even where unknown members pass.
    pub(super) fn passes_unknown(&self, key: &str, known: &[&str]) -> bool {
        if self.pass_members.iter().any(|listed| listed == key) {
            return true;
        }
        let mut names = known.iter().chain(&REROUTING);
        !self.drop_unknown_fields && !names.any(|name| name.eq_ignore_ascii_case(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 1] = ["model"];

    #[test]
    fn what_chooses_another_model_passes_only_if_listed() {
        let open = Quirks::default();
        assert!(open.passes_unknown("top_k", &KNOWN));
        for key in ["models", "Models", "search_parameters", "api_base", "MODEL"] {
            assert!(!open.passes_unknown(key, &KNOWN), "{key}");
        }
        let listed = Quirks {
            pass_members: vec!["models".to_owned()],
            ..Quirks::default()
        };
        assert!(listed.passes_unknown("models", &KNOWN));
        assert!(!listed.passes_unknown("route", &KNOWN));
    }

    #[test]
    fn a_closed_provider_gets_what_is_listed_and_no_more() {
        let closed = Quirks {
            drop_unknown_fields: true,
            pass_members: vec!["top_k".to_owned()],
            ..Quirks::default()
        };
        assert!(closed.passes_unknown("top_k", &KNOWN));
        assert!(!closed.passes_unknown("min_p", &KNOWN));
    }
}
