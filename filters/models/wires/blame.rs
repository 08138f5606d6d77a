//! Whether a refusal says that our credential is bad or our account empty: the provider's fault towards the caller,
//! whatever the status.
//!
//! A provider may quote the caller's words, and a key must not rest because of them. So only codes count, and messages
//! that begin with one of these phrases: what a provider quotes stands behind words of its own, or in quotation marks.

/// Codes, types and reasons of providers, in any case.
const CODES: [&str; 12] = [
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "exceeded_current_quota_error",
    "billing_error",
    "billing_not_active",
    "billing_hard_limit_reached",
    "account_deactivated",
    "arrearage",
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
];

/// The beginnings of messages, in any case.
const PHRASES: [&str; 17] = [
    "your credit balance is too low",
    "insufficient_quota",
    "insufficient quota",
    "you exceeded your current quota",
    "you have exceeded your current quota",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credit",
    "billing hard limit",
    "billing limit",
    "spend limit",
    "you have reached your specified api usage limits",
    "this organization has been disabled",
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "api_key_invalid",
];

/// Returns whether a code, a type or a reason blames the credential or its account.
pub(super) fn by_code(code: &str) -> bool {
    CODES.iter().any(|word| code.eq_ignore_ascii_case(word))
}

/// Returns whether a message blames the credential or its account.
pub(super) fn by_message(message: &str) -> bool {
    let message = message.trim_start();
    let message = strip_prefix(message, "error:").unwrap_or(message);
    begins_with(message, &PHRASES)
}

/// Returns whether a message begins with one of these phrases, in any case.
pub(super) fn begins_with(message: &str, phrases: &[&str]) -> bool {
    let message = message.trim_start();
    phrases
        .iter()
        .any(|phrase| strip_prefix(message, phrase).is_some_and(is_end_of_word))
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Returns whether the word before `rest` ends there; a plural counts as its end.
fn is_end_of_word(rest: &str) -> bool {
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_blames_the_key_by_its_first_words_alone() {
        for message in [
            "Your credit balance is too low to access the API",
            "API key not valid. Please pass a valid API key.",
            "Incorrect API key provided: x***y",
            "  You exceeded your current quota, please check your plan",
            "Error: Insufficient Balance",
            "Insufficient credits",
        ] {
            assert!(by_message(message), "{message}");
        }
    }

    #[test]
    fn what_a_message_quotes_blames_nothing() {
        for message in [
            "Invalid value: 'invalid api key'. Supported values are: 'text'",
            "\"insufficient_quota\" is not one of the enum values",
            "Unknown parameter: insufficient balance",
            "'billing limit' is too long",
            "`api_key_invalid`",
            "messages.0: exceeded your current quota",
            "Invalid API keyword",
            "billing",
        ] {
            assert!(!by_message(message), "{message}");
        }
    }

    #[test]
    fn a_code_blames_the_key_as_a_whole() {
        assert!(by_code("API_KEY_INVALID") && by_code("insufficient_quota"));
        assert!(!by_code("not_insufficient_quota") && !by_code("invalid_value"));
    }
}
