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
    Embeddings,
    Images,
    ImageEdits,
    /// Speech.
    Audio,
    Transcriptions,
    Translations,
    Video,
    Moderation,
    /// Text recognition in images.
    Ocr,
    Rerank,
    Search,
    /// Typed decisions.
    Decision,
}

impl QuotaGroup {
    /// All groups.
    pub const ALL: [Self; 13] = [
        Self::Chat,
        Self::Embeddings,
        Self::Images,
        Self::ImageEdits,
        Self::Audio,
        Self::Transcriptions,
        Self::Translations,
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
            Self::ImageEdits => "image_edits",
            Self::Audio => "audio",
            Self::Transcriptions => "transcriptions",
            Self::Translations => "translations",
            Self::Video => "video",
            Self::Moderation => "moderation",
            Self::Ocr => "ocr",
            Self::Rerank => "rerank",
            Self::Search => "search",
            Self::Decision => "decision",
        }
    }

    /// Returns the requests per minute of an organization where no operator has set a limit.
    ///
    /// Source: docs/interface.md, `limits.requests_per_minute`. Our choice: a person or a service at work stays below
    /// this limit; a client in an endless loop does not.
    pub fn built_in_limit(self) -> u64 {
        match self {
            Self::Chat | Self::Decision => 600,
            Self::Embeddings | Self::Moderation | Self::Rerank => 1200,
            Self::Images
            | Self::ImageEdits
            | Self::Audio
            | Self::Transcriptions
            | Self::Translations
            | Self::Ocr
            | Self::Search => 300,
            Self::Video => 60,
        }
    }

    /// Returns the group that this one was once a part of. Configurations from that time set only the limit of the
    /// older group, so it also holds for this one.
    fn parent_group(self) -> Option<Self> {
        match self {
            Self::ImageEdits => Some(Self::Images),
            Self::Transcriptions | Self::Translations => Some(Self::Audio),
            Self::Decision => Some(Self::Chat),
            _ => None,
        }
    }

    /// Returns the limit in force. `set` returns the limits that an operator has set.
    pub fn limit(self, set: impl Fn(Self) -> Option<u64>) -> QuotaLimit {
        let own = set(self).or_else(|| set(self.parent_group()?));
        QuotaLimit {
            per_minute: own.unwrap_or_else(|| self.built_in_limit()),
            is_built_in: own.is_none(),
        }
    }
}

/// The limit of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuotaLimit {
    /// Requests per minute; 0 means no limit.
    pub per_minute: u64,
    /// Whether no operator has set another limit.
    pub is_built_in: bool,
}

/// The organization whose requests a quota counts.
#[derive(Clone, Copy, Debug)]
pub struct Payer<'a> {
    pub organization: &'a Arc<str>,
    /// Whether the key is the one made at the first run. Built-in limits do not hold for it.
    pub is_first_run: bool,
}

/// The quota of each group that has one.
#[derive(Clone, Debug, Default)]
pub struct Quotas(Vec<(QuotaGroup, QuotaLimit, RowId)>);

impl Quotas {
    /// Makes the quotas of these limits.
    pub fn new(limits: impl IntoIterator<Item = (QuotaGroup, QuotaLimit)>) -> Self {
        let limits = limits.into_iter();
        let limited = limits.filter(|(_, limit)| limit.per_minute > 0);
        // The prefix separates quotas from operations, because an operation's name starts with a method.
        let row = |group: QuotaGroup| RowId::from_name(&format!("quota {}", group.as_str()));
        Self(
            limited
                .map(|(group, limit)| (group, limit, row(group)))
                .collect(),
        )
    }

    /// Returns the window in which a request counts and its limit, or `None` if the group has no quota.
    ///
    /// Only admitted requests count. Source: docs/model-gateway.md 8.1; docs/decisions.md 9.
    pub fn find(&self, payer: Payer<'_>, group: QuotaGroup) -> Option<(WindowKey, u64)> {
        let &(_, limit, row) = self.0.iter().find(|(known, ..)| *known == group)?;
        if limit.is_built_in && payer.is_first_run {
            return None;
        }
        let subject = Subject::Named(Arc::clone(payer.organization));
        Some((WindowKey { subject, row }, limit.per_minute))
    }

    /// Returns the group whose requests count in windows of this row.
    pub fn find_group(&self, row: RowId) -> Option<QuotaGroup> {
        let found = self.0.iter().find(|(.., known)| *known == row);
        found.map(|(group, ..)| *group)
    }

    /// Returns the requests per minute that a window of this row admits.
    pub fn find_limit(&self, row: RowId) -> Option<u64> {
        let found = self.0.iter().find(|(.., known)| *known == row);
        found.map(|(_, limit, _)| limit.per_minute)
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

    /// What an operator has set: chat and embeddings are limited, images are not.
    fn set(group: QuotaGroup) -> Option<u64> {
        match group {
            QuotaGroup::Chat => Some(2),
            QuotaGroup::Embeddings => Some(1),
            QuotaGroup::Images => Some(0),
            _ => None,
        }
    }

    fn quotas() -> Quotas {
        Quotas::new(QuotaGroup::ALL.map(|group| (group, group.limit(set))))
    }

    fn find(group: QuotaGroup, is_first_run: bool) -> Option<u64> {
        let organization = &"a".into();
        let payer = Payer {
            organization,
            is_first_run,
        };
        quotas().find(payer, group).map(|(_, limit)| limit)
    }

    fn admit(
        windows: &Windows,
        organization: &str,
        group: QuotaGroup,
        now_ms: u64,
    ) -> Option<Quota> {
        let payer = Payer {
            organization: &organization.into(),
            is_first_run: false,
        };
        let (key, limit) = quotas().find(payer, group)?;
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
    fn a_limit_of_zero_is_not_checked() {
        assert_eq!(admits(&windows(), "a", QuotaGroup::Images, 0), None);
    }

    /// Source: model-gateway 8.1
    #[test]
    fn a_group_of_its_own_keeps_the_limit_that_was_set_for_it_and_others() {
        assert_eq!(find(QuotaGroup::ImageEdits, false), None, "as images");
        assert_eq!(find(QuotaGroup::Decision, false), Some(2), "as chat");
        let audio = |group| (group == QuotaGroup::Audio).then_some(7);
        let limit = |group: QuotaGroup| group.limit(audio).per_minute;
        let spoken = [QuotaGroup::Transcriptions, QuotaGroup::Translations];
        assert_eq!(spoken.map(limit), [7, 7]);
        let own = |group| (group != QuotaGroup::Audio).then_some(8).or(audio(group));
        assert_eq!(QuotaGroup::Translations.limit(own).per_minute, 8);
    }

    /// Source: model-gateway 8.1
    #[test]
    fn what_nobody_has_set_has_a_limit_but_for_the_key_of_the_first_run() {
        for group in QuotaGroup::ALL {
            let limit = group.limit(|_| None);
            assert!(limit.is_built_in && limit.per_minute > 0, "{group:?}");
        }
        assert_eq!(find(QuotaGroup::Ocr, false), Some(300));
        assert_eq!(find(QuotaGroup::Ocr, true), None);
        let set = [QuotaGroup::Chat, QuotaGroup::Decision];
        assert_eq!(set.map(|group| find(group, true)), [Some(2), Some(2)]);
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
