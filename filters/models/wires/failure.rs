//! The failure of an attempt at a provider, and whether the next provider may try.

use std::borrow::Cow;

/// How many bytes of an upstream's message reach a caller.
const MAX_MESSAGE_BYTES: usize = 500;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// No reply: refused, reset, TLS.
    Connect,
    /// No reply, or no next event, in time.
    Timeout,
    /// A reply of this status, or an error inside a 200 that amounts to it.
    Status(u16),
    /// A 200 that is not what the wire says.
    Malformed,
    /// The reply ended before its end.
    Truncated,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// Whether the next provider may try. Source: docs/decisions.md 5.
    pub is_retryable: bool,
    /// Whether its words say that the key is bad or its account empty.
    pub blames_key: bool,
    /// The upstream's message, scrubbed of secrets and cut; empty where there was none.
    pub message: Cow<'static, str>,
    /// The upstream's `code` or error type word, where it gave one that is harmless to pass on.
    pub code: Option<Box<str>>,
    /// The parameter the upstream complained of.
    pub param: Option<Box<str>>,
}

impl Failure {
    /// A failure without a reply, or with a reply that cannot be read. Always retryable.
    pub fn new(kind: FailureKind) -> Self {
        Self {
            kind,
            is_retryable: true,
            blames_key: false,
            message: Cow::Borrowed(""),
            code: None,
            param: None,
        }
    }

    /// A 200 that is not what the wire says; `detail` is ours, never the upstream's body.
    pub fn malformed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: detail.into(),
            ..Self::new(FailureKind::Malformed)
        }
    }

    /// A refusal of this status with the upstream's message.
    ///
    /// Retryable: 401, 402, 403, 404, 405, 408, 425, 429, 5xx, and any 4xx whose wording says bad credential or
    /// empty account. Source: docs/decisions.md 5.
    pub fn refused(status: u16, message: &str) -> Self {
        let by_status = matches!(status, 401..=405 | 408 | 425 | 429 | 500..=599);
        let is_ours = (400..500).contains(&status);
        let blames_key = is_ours && blames_the_account(message);
        Self {
            kind: FailureKind::Status(status),
            is_retryable: by_status || !is_ours || blames_key,
            blames_key,
            message: Cow::Owned(scrub(message)),
            code: None,
            param: None,
        }
    }

    /// Returns whether another key of the same provider may succeed.
    pub fn is_about_the_key(&self) -> bool {
        self.blames_key || matches!(self.kind, FailureKind::Status(401..=403 | 429))
    }

    /// The status to report in `metadata.routing`; 0 where no reply came.
    pub fn status(&self) -> u16 {
        match self.kind {
            FailureKind::Connect | FailureKind::Timeout => 0,
            FailureKind::Status(status) => status,
            FailureKind::Malformed | FailureKind::Truncated => 200,
        }
    }

    /// The word for `metadata.routing[].error_type`. Source: docs/decisions.md 3.
    pub fn error_type(&self) -> &'static str {
        match self.kind {
            FailureKind::Connect | FailureKind::Timeout => "network_error",
            FailureKind::Status(429) => "rate_limited",
            FailureKind::Status(401 | 403) => "gateway_error",
            _ => "upstream_error",
        }
    }
}

/// Whether a message says that our credential is bad or our account empty: the provider's fault towards the
/// caller, whatever the status.
fn blames_the_account(message: &str) -> bool {
    const WORDS: [&str; 12] = [
        "credit balance is too low",
        "insufficient_quota",
        "insufficient quota",
        "exceeded your current quota",
        "insufficient balance",
        "insufficient credit",
        "billing",
        "spend limit",
        "api key not valid",
        "invalid api key",
        "incorrect api key",
        "api_key_invalid",
    ];
    let message = message.to_ascii_lowercase();
    WORDS.iter().any(|word| message.contains(word))
}

/// A message without what looks like a secret or an address, cut to [`MAX_MESSAGE_BYTES`].
///
/// Source: docs/promises.md, docs/facts/wire-formats.md R15.
pub fn scrub(message: &str) -> String {
    let mut clean = String::with_capacity(message.len().min(MAX_MESSAGE_BYTES));
    for word in message
        .split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '(' | ')'))
    {
        let core = word.trim_end_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation());
        if looks_secret(core) {
            clean.push_str("[removed]");
            clean.push_str(word.get(core.len()..).unwrap_or_default());
        } else {
            clean.push_str(word);
        }
        if clean.len() > MAX_MESSAGE_BYTES {
            let end = (0..=MAX_MESSAGE_BYTES)
                .rev()
                .find(|&at| clean.is_char_boundary(at))
                .unwrap_or(0);
            clean.truncate(end);
            clean.push('…');
            break;
        }
    }
    clean
}

fn looks_secret(word: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "sk-", "sk_", "AIza", "gsk_", "xai-", "pplx-", "key-", "key=", "Bearer", "wg_", "r8_",
        "hf_", "fw_", "csk-",
    ];
    let word = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_address = word.contains("://");
    let is_account = ["org-", "proj_", "acct_"]
        .iter()
        .any(|prefix| word.starts_with(prefix));
    let opaque = word.len() >= 32
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'='))
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic());
    // Masked keys, as providers like to quote them: `sk-…abcd`, `****abcd`.
    let masked = word.contains("***");
    is_address
        || is_account
        || opaque
        || masked
        || PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_blames_the_request_is_not_retryable() {
        for status in [400, 409, 413, 422] {
            assert!(
                !Failure::refused(status, "max_tokens is too large").is_retryable,
                "{status}"
            );
        }
    }

    #[test]
    fn a_refusal_that_blames_our_account_is_retryable_whatever_its_status() {
        assert!(
            Failure::refused(400, "Your credit balance is too low to access the API").is_retryable
        );
        assert!(
            Failure::refused(400, "API key not valid. Please pass a valid API key.").is_retryable
        );
    }

    #[test]
    fn a_failure_is_about_the_key_by_its_status_or_its_words() {
        for (status, message, is_it) in [
            (401, "", true),
            (402, "", true),
            (403, "", true),
            (429, "", true),
            (400, "Your credit balance is too low", true),
            (400, "API key not valid.", true),
            (400, "max_tokens is too large", false),
            (404, "", false),
            (500, "billing", false),
        ] {
            let failure = Failure::refused(status, message);
            assert_eq!(failure.is_about_the_key(), is_it, "{status} {message}");
        }
    }

    #[test]
    fn the_table_of_retryable_statuses_holds() {
        for status in [401, 402, 403, 404, 405, 408, 425, 429, 500, 502, 503, 529] {
            assert!(Failure::refused(status, "").is_retryable, "{status}");
        }
    }

    #[test]
    fn secrets_addresses_and_accounts_do_not_pass() {
        let scrubbed = scrub(
            "Incorrect API key provided: sk-proj-abc123. See https://a.example/x?key=1 (org-77aa) \
             AIzaSyA1234567890 Bearer abcdefghijklmnopqrstuvwxyz0123456789",
        );
        for secret in ["sk-proj", "example", "org-77aa", "AIza", "abcdefghijklmnop"] {
            assert!(!scrubbed.contains(secret), "{scrubbed}");
        }
        assert!(scrubbed.contains("Incorrect API key provided"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        assert!(scrub(&"é".repeat(5000)).len() < 520);
    }
}
