//! The most that a reply of a mapping can have taken: what its provider reports beyond that is not billed. Source:
//! docs/decisions.md 14.

use super::catalog::Mapping;
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::UsageLimits;
use crate::money::{UNBOUNDED_OUTPUT_TOKENS, Unit, UnitCounts};

/// Tokens of a prompt and of an answer where the catalogue does not say. Our choice: more than any model has.
const MAX_CONTEXT: u64 = UNBOUNDED_OUTPUT_TOKENS;
/// Completion tokens of a drawn image, which providers need not count in the limit of tokens. Our choice: more than any takes.
const MAX_IMAGE_TOKENS: u64 = 16_384;
/// Searches of an answer, at least.
pub(super) const MAX_SEARCHES: u64 = 64;
/// How many times the units of a request may be reported that are not counted exactly: providers round up, and split
/// documents.
const UNIT_SLACK: u64 = 100;

/// Returns the most that a reply to a request can take. `searches` are those that it may make, `images` those that came.
pub fn usage_limits(
    mapping: &Mapping,
    request: &ModelRequest,
    (searches, images): (u64, u64),
) -> UsageLimits {
    // The inputs of other operations share a request, and no context.
    let is_chat = matches!(request.payload, Payload::Chat(_));
    let context = mapping.context_size.filter(|_| is_chat);
    let prompt = context.unwrap_or_else(|| {
        let bytes = request.cost_inputs.bytes.saturating_mul(UNIT_SLACK);
        MAX_CONTEXT.max(bytes)
    });
    let output = mapping.max_output.or(context).unwrap_or(MAX_CONTEXT);
    let answers = u64::from(request.needs.choices.max(1));
    UsageLimits {
        // A provider that searches counts the prompt of each of its turns.
        prompt: prompt.saturating_mul(searches.saturating_add(1)),
        completion: output
            .saturating_mul(answers)
            .saturating_add(images.saturating_mul(MAX_IMAGE_TOKENS)),
        searches: searches.max(MAX_SEARCHES),
        units: most_units(request.cost_inputs.units),
    }
}

fn most_units(asked: UnitCounts) -> UnitCounts {
    let most = |counts: UnitCounts, (unit, count): (Unit, u64)| {
        let slack = if unit == Unit::Page { 1 } else { UNIT_SLACK };
        counts.with(unit, count.saturating_mul(slack))
    };
    asked.set().fold(UnitCounts::ZERO, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_exactly_and_other_units_nearly() {
        let asked = UnitCounts::ZERO
            .with(Unit::Page, 3)
            .with(Unit::InputTime, 500);
        let most = most_units(asked);
        assert_eq!(most.get(Unit::Page), 3);
        assert_eq!(most.get(Unit::InputTime), 50_000);
        assert_eq!(most.get(Unit::Search), 0);
    }
}
