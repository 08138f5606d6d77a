//! Decides about hedges: a hedge is a second attempt beside one whose stream says nothing.

/// A planned attempt, as far as it matters for a hedge.
#[derive(Clone, Copy, Debug)]
pub struct HedgeCandidate<'a> {
    pub provider: &'a str,
    /// Its region, where one was named.
    pub region: Option<&'a str>,
    /// Whether a BYOK key pays for it.
    pub is_byok: bool,
    /// Whether it should be tried now: it neither cools down nor is at a limit.
    pub is_ready: bool,
}

/// Returns which of the later attempts may run beside the running one: the first that is ready, at another provider or in
/// another region.
///
/// Our choice: both have one payer. Who brought a key is not charged by the platform because the provider of that key is
/// slow, and the other way round.
pub fn find_hedge<'a>(
    running: &HedgeCandidate<'_>,
    later: impl IntoIterator<Item = HedgeCandidate<'a>>,
) -> Option<usize> {
    later.into_iter().position(|other| {
        let is_elsewhere = (other.provider, other.region) != (running.provider, running.region);
        is_elsewhere && other.is_ready && other.is_byok == running.is_byok
    })
}

/// Returns whether the caller owes a cancelled attempt: its provider has the whole request, and bills it although nobody
/// reads the reply.
pub fn is_owed(is_sent: bool, bills_after_disconnect: bool) -> bool {
    is_sent && bills_after_disconnect
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at<'a>(provider: &'a str, region: Option<&'a str>) -> HedgeCandidate<'a> {
        HedgeCandidate {
            provider,
            region,
            is_byok: false,
            is_ready: true,
        }
    }

    #[test]
    fn the_next_attempt_at_another_provider_or_region_is_the_hedge() {
        let running = at("a", Some("eu"));
        let later = [at("a", Some("eu")), at("a", Some("us")), at("b", None)];
        assert_eq!(find_hedge(&running, later), Some(1));
        let later = [at("a", Some("eu")), at("b", Some("eu"))];
        assert_eq!(find_hedge(&running, later), Some(1));
        assert_eq!(find_hedge(&running, [at("a", None)]), Some(0));
    }

    #[test]
    fn nothing_is_asked_twice_at_one_place() {
        let running = at("a", None);
        assert_eq!(find_hedge(&running, [at("a", None); 2]), None);
        assert_eq!(find_hedge(&running, []), None);
    }

    #[test]
    fn a_hedge_has_the_payer_of_the_attempt_beside_it() {
        let byok = HedgeCandidate {
            is_byok: true,
            ..at("b", None)
        };
        let platform = at("c", None);
        assert_eq!(find_hedge(&at("a", None), [byok, platform]), Some(1));
        assert_eq!(find_hedge(&byok, [platform]), None);
    }

    #[test]
    fn a_candidate_that_cools_down_is_no_hedge() {
        let cooling = HedgeCandidate {
            is_ready: false,
            ..at("b", None)
        };
        assert_eq!(
            find_hedge(&at("a", None), [cooling, at("c", None)]),
            Some(1)
        );
    }

    #[test]
    fn only_what_was_sent_and_is_billed_anyway_is_owed() {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        let owed = all.map(|(is_sent, bills)| is_owed(is_sent, bills));
        assert_eq!(owed, [true, false, false, false]);
    }
}
