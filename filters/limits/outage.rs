//! The limits of one process while the shared windows are unavailable.

/// Returns one process's share of a limit. Together the processes admit the limit, and at most one more each.
/// Source: docs/interface.md, `shared.on_outage`.
pub fn outage_share(limit: u64, processes: u64) -> u64 {
    limit.div_ceil(processes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_up_the_limit() {
        let shares = [(10, 0), (10, 1), (10, 3), (1, 5), (0, 2)];
        assert_eq!(
            shares.map(|(limit, processes)| outage_share(limit, processes)),
            [10, 10, 4, 1, 0]
        );
    }
}
