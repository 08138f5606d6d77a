//! Whether the clock of this machine is wrong, by the date in a server's reply.

use jiff::fmt::rfc2822;

/// Signatures and assertions are valid for this time around the server's clock.
const MAX_SKEW_S: u64 = 240;

/// Describes by how much this machine's clock differs from the date of a reply; `None`: not by so much that credentials are
/// refused for it.
pub fn describe(date: &str, now_s: u64) -> Option<String> {
    let theirs = rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    let theirs = u64::try_from(theirs.as_second()).ok()?;
    let apart = now_s.abs_diff(theirs);
    let side = if now_s > theirs { "ahead of" } else { "behind" };
    let minutes = apart.div_ceil(60);
    (apart > MAX_SKEW_S).then(|| {
        format!("the clock of this machine is {minutes} minutes {side} that of the server")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_minutes_off_is_described() {
        // 2 January 2026, 03:04:05.
        let date = "Fri, 02 Jan 2026 03:04:05 GMT";
        let at = |seconds: i64| describe(date, 1_767_323_045_u64.saturating_add_signed(seconds));
        assert_eq!(at(200), None);
        let ahead = "the clock of this machine is 10 minutes ahead of that of the server";
        assert_eq!(at(600).as_deref(), Some(ahead));
        let behind = "the clock of this machine is 10 minutes behind that of the server";
        assert_eq!(at(-600).as_deref(), Some(behind));
        assert_eq!(describe("soon", 0), None);
    }
}
