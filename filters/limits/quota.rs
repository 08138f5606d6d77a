//! Quotas of the model gateway: requests per minute of an organization, for each group of endpoints.

use std::sync::Arc;

use super::headers::{Quota, retry_after_s};
use super::key::{RowId, Subject, WindowKey};
use crate::fault::{Fault, FaultKind};

/// The length of its windows.
pub const MINUTE_MS: u64 = 60_000;

/// Endpoints that share a quota. Source: docs/interface.md, `limits.requests_per_minute`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum QuotaGroup {
    /// Chat completions and its sisters.
    Chat,
    /// Embeddings.
    Embeddings,
    /// Images, made and edited.
    Images,
    /// Speech and transcription.
    Audio,
    /// Videos.
    Video,
    /// Moderation.
    Moderation,
    /// Text from images.
    Ocr,
    /// Reranking.
    Rerank,
    /// Search.
    Search,
    /// Flag decisions.
    Decision,
}

impl QuotaGroup {
    /// All of them.
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

    /// The word for it, in the configuration and in metrics.
    pub fn word(self) -> &'static str {
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

/// No group has this name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownGroup(pub String);

/// The quota of each group.
#[derive(Clone, Debug, Default)]
pub struct Quotas(Vec<(QuotaGroup, u64, RowId)>);

impl Quotas {
    /// Reads groups and their requests per minute; 0 is no quota. Errors: [`UnknownGroup`].
    pub fn parse<'a>(
        per_minute: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, UnknownGroup> {
        let mut quotas = Vec::new();
        for (word, limit) in per_minute {
            let group = QuotaGroup::ALL
                .into_iter()
                .find(|group| group.word() == word);
            let group = group.ok_or_else(|| UnknownGroup(word.to_owned()))?;
            if limit > 0 {
                // The prefix keeps it apart from every operation, whose name begins with a method.
                quotas.push((group, limit, RowId::of(&format!("quota {word}"))));
            }
        }
        Ok(Self(quotas))
    }

    /// The window of a minute that a request counts in, and its limit; none where its group has no quota.
    ///
    /// Only admitted requests count. Source: docs/model-gateway.md 8.1; docs/decisions.md 9.
    pub fn of(&self, organization: &Arc<str>, group: QuotaGroup) -> Option<(WindowKey, u64)> {
        let &(_, limit, row) = self.0.iter().find(|(known, ..)| *known == group)?;
        let who = Subject::Named(Arc::clone(organization));
        Some((WindowKey { who, row }, limit))
    }
}

/// A quota that refuses. Source: docs/model-gateway.md 7, 8.3.
impl From<&Quota> for Fault {
    fn from(quota: &Quota) -> Self {
        let window_s = retry_after_s(quota.window_ms);
        let wait_s = retry_after_s(quota.verdict.reset_ms);
        let limit = quota.verdict.limit;
        let message = format!(
            "the organization has used its {limit} requests of {window_s} seconds: \
             try again in {wait_s} seconds"
        );
        let mut fault = Self::new(FaultKind::RateLimited, message);
        fault.retry_after_s = Some(u32::try_from(wait_s).unwrap_or(u32::MAX));
        fault
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
        let (key, limit) = quotas().of(&organization.into(), group)?;
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
