//! Quotas of the model gateway: requests per minute by organization and group of endpoints.

use std::sync::Arc;

use super::headers::{Quota, retry_after_s};
use super::key::{RowId, Subject, WindowKey};
use crate::fault::{ExceededLimit, Fault};

/// The length of a quota's window.
pub const MINUTE_MS: u64 = 60_000;

/// Endpoints that share a quota. Source: docs/interface.md, `limits.requests_per_minute`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum QuotaGroup {
    /// Chat completions and the endpoints that stand for them.
    Chat,
    /// Embeddings.
    Embeddings,
    /// Image generation and editing.
    Images,
    /// Speech and transcription.
    Audio,
    /// Videos.
    Video,
    /// Moderation.
    Moderation,
    /// Text recognition in images.
    Ocr,
    /// Reranking.
    Rerank,
    /// Search.
    Search,
    /// Flag decisions.
    Decision,
}

impl QuotaGroup {
    /// All groups.
    pub const ALL: [Self; 10] = [
        Self::Chat,
        Self::Embeddings,
        Self::Images,
        Self::Audio,
        Self::Video,
        Self::Moderation,
        Self::Ocr,
        Self::Rerank,
        Self::Search,
        Self::Decision,
    ];

    /// Returns the group's name in the configuration and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
            Self::Images => "images",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Moderation => "moderation",
            Self::Ocr => "ocr",
            Self::Rerank => "rerank",
            Self::Search => "search",
            Self::Decision => "decision",
        }
    }
}

/// The name of a group that does not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownGroup(pub String);

/// The quota of each group that has one.
#[derive(Clone, Debug, Default)]
pub struct Quotas(Vec<(QuotaGroup, u64, RowId)>);

impl Quotas {
    /// Parses groups and their requests per minute; 0 means no quota. Errors: [`UnknownGroup`].
    pub fn parse<'a>(
        per_minute: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, UnknownGroup> {
        let mut quotas = Vec::new();
        for (name, limit) in per_minute {
            let group = QuotaGroup::ALL
                .into_iter()
                .find(|group| group.as_str() == name);
            let group = group.ok_or_else(|| UnknownGroup(name.to_owned()))?;
            if limit > 0 {
                // The prefix separates quotas from operations, because an operation's name starts with a method.
                quotas.push((group, limit, RowId::from_name(&format!("quota {name}"))));
            }
        }
        Ok(Self(quotas))
    }

    /// Returns the window in which a request counts and its limit, or `None` if the group has no quota.
    ///
    /// Only admitted requests count. Source: docs/model-gateway.md 8.1; docs/decisions.md 9.
    pub fn find(&self, organization: &Arc<str>, group: QuotaGroup) -> Option<(WindowKey, u64)> {
        let &(_, limit, row) = self.0.iter().find(|(known, ..)| *known == group)?;
        let subject = Subject::Named(Arc::clone(organization));
        Some((WindowKey { subject, row }, limit))
    }
}

/// The error of a quota that refuses a request. Source: docs/model-gateway.md 7, 8.3.
impl From<&Quota> for Fault {
    fn from(quota: &Quota) -> Self {
        let window_s = retry_after_s(quota.window_ms);
        let wait_s = retry_after_s(quota.verdict.reset_ms);
        let limit = quota.verdict.limit;
        let message = format!(
            "the organization has used its {limit} requests of {window_s} seconds: \
             try again in {wait_s} seconds"
        );
        let exceeded = ExceededLimit {
            limit,
            window_ms: quota.window_ms,
            reset_ms: quota.verdict.reset_ms,
        };
        Self::over_limit(exceeded, message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::window::{Algorithm, Windows};
    use super::*;

    fn windows() -> Windows {
        Windows::new(Algorithm::Fixed, MINUTE_MS)
    }

    fn quotas() -> Quotas {
        Quotas::parse([("chat", 2), ("embeddings", 1), ("images", 0)]).unwrap()
    }

    fn admit(
        windows: &Windows,
        organization: &str,
        group: QuotaGroup,
        now_ms: u64,
    ) -> Option<Quota> {
        let (key, limit) = quotas().find(&organization.into(), group)?;
        Some(Quota {
            verdict: windows.admit(&key, limit, now_ms),
            window_ms: windows.window_ms(),
        })
    }

    fn admits(
        windows: &Windows,
        organization: &str,
        group: QuotaGroup,
        now_ms: u64,
    ) -> Option<bool> {
        admit(windows, organization, group, now_ms).map(|quota| quota.verdict.is_allowed)
    }

    #[test]
    fn a_quota_is_of_an_organization_and_a_group() {
        let windows = windows();
        let chat = |organization| admits(&windows, organization, QuotaGroup::Chat, 0);
        assert_eq!(
            [chat("a"), chat("a"), chat("a")],
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!(chat("b"), Some(true));
        assert_eq!(admits(&windows, "a", QuotaGroup::Embeddings, 0), Some(true));
        assert_eq!(
            admits(&windows, "a", QuotaGroup::Chat, MINUTE_MS),
            Some(true)
        );
    }

    #[test]
    fn a_group_without_a_quota_is_not_checked() {
        assert_eq!(admits(&windows(), "a", QuotaGroup::Images, 0), None);
        assert_eq!(admits(&windows(), "a", QuotaGroup::Ocr, 0), None);
    }

    #[test]
    fn a_group_that_is_none_is_refused() {
        let refused = Quotas::parse([("cats", 1)]).err();
        assert_eq!(refused, Some(UnknownGroup("cats".to_owned())));
    }

    #[test]
    fn a_refusal_is_a_429_that_says_when() {
        let windows = windows();
        let admit = || admit(&windows, "a", QuotaGroup::Embeddings, 1).unwrap();
        admit();
        let fault = Fault::from(&admit());
        assert_eq!((fault.status(), fault.retry_after_s), (429, Some(60)));
    }
}
