//! The headers that tell a client what is left of the budget of its call.

use filters::models::fronts::messages::unified_limits::unified_headers;
use filters::money::Usd;
use filters::money::limit_use::LimitUse;
use http::{HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("x-budget-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-budget-remaining");
const RESET: HeaderName = HeaderName::from_static("x-budget-reset");
/// What is left of the budget that is nearest to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetHead {
    pub of: LimitUse,
    /// The time, in unix milliseconds.
    pub now_ms: i64,
    /// Whether the client speaks Messages, whose clients show warnings.
    pub is_messages: bool,
    /// Whether the call is refused for it.
    pub is_refused: bool,
}

impl BudgetHead {
    /// Returns in how many seconds the budget begins anew: 86,400 if it never does.
    pub fn reset_s(&self) -> u32 {
        const DAY_S: i64 = 86_400;
        let left_s = self
            .of
            .resets_ms
            .map(|at_ms| (at_ms - self.now_ms).max(0) / 1_000 + 1);
        u32::try_from(left_s.unwrap_or(DAY_S)).unwrap_or(u32::MAX)
    }

    /// Returns the headers. Amounts are in USD, `x-budget-reset` in seconds; one that never begins anew has none.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let usd = |usd: Usd| HeaderValue::try_from(usd.to_string()).ok();
        let mut headers = Vec::with_capacity(9);
        let mut add = |name: HeaderName, value: Option<HeaderValue>| {
            headers.extend(value.map(|value| (name, value)));
        };
        let reset_s = u64::from(self.reset_s());
        add(LIMIT, usd(self.of.limit));
        add(REMAINING, usd(self.of.left()));
        let resets = self.of.resets_ms.is_some();
        add(RESET, resets.then(|| HeaderValue::from(reset_s)));
        if self.is_messages {
            let now_s = u64::try_from(self.now_ms / 1_000).unwrap_or_default();
            let share = self.of.share();
            headers.extend(unified_headers(share, now_s + reset_s, self.is_refused));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::money::budgets::BudgetKind;
    use filters::money::limit_use::LimitName;

    use super::*;

    /// 2027-01-15T08:00:00Z.
    const NOW_MS: i64 = 1_800_000_000_000;

    fn head(used: &str, resets_ms: Option<i64>) -> BudgetHead {
        let usd = |text: &str| Usd::parse(text).unwrap();
        BudgetHead {
            of: LimitUse {
                name: LimitName::Of(BudgetKind::Session),
                limit: usd("2"),
                used: usd(used),
                resets_ms,
            },
            now_ms: NOW_MS,
            is_messages: false,
            is_refused: false,
        }
    }

    fn told(head: &BudgetHead) -> String {
        let headers = head.headers();
        let told = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()));
        let told: Vec<String> = told.collect();
        let told = told.join(" ");
        // Which names these are is known to their front alone.
        let (start, end) = ("x-budget", "ratelimit-unified-");
        let words = told.split(' ').map(|word| match word.split_once(end) {
            Some((_, rest)) if !word.starts_with(start) => format!("u-{rest}"),
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_left_is_told_and_when_there_is_more() {
        let lasting = head("0.5", None);
        assert_eq!(told(&lasting), "x-budget-limit=2 x-budget-remaining=1.5");
        assert_eq!(lasting.reset_s(), 86_400);
        let hourly = head("3", Some(NOW_MS + 59_000));
        assert_eq!(
            told(&hourly),
            "x-budget-limit=2 x-budget-remaining=0 x-budget-reset=60"
        );
    }

    #[test]
    fn clients_of_messages_are_warned_from_three_quarters_on() {
        let of = |used, is_refused| BudgetHead {
            is_messages: true,
            is_refused,
            ..head(used, Some(NOW_MS + 9_000))
        };
        assert!(!told(&of("1.49", false)).contains("u-"));
        let warned = "x-budget-limit=2 x-budget-remaining=0.5 x-budget-reset=10 u-status=allowed_warning u-reset=1800000010 \
                      u-representative-claim=five_hour u-5h-status=allowed_warning u-5h-reset=1800000010 u-5h-utilization=0.7500";
        assert_eq!(told(&of("1.5", false)), warned);
        assert!(told(&of("2", true)).contains("u-status=rejected"));
        assert!(told(&of("1.9", false)).contains("u-5h-utilization=0.9500"));
    }
}
