//! Batches: providers take fewer inputs or tokens at once than a request may have, so that several requests ask for them.

use std::ops::Range;

/// One input of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Input {
    pub place: Range<usize>,
    /// Bytes of its text; a token counts as four.
    pub bytes: u64,
    /// The tokens that it counts in a batch: exact where it is tokens, else one for two bytes, which is more than a text
    /// of nearly any language has.
    pub tokens: u64,
}

impl Input {
    /// An input that is a text of so many bytes.
    pub fn text(place: Range<usize>, bytes: u64) -> Self {
        let tokens = bytes.div_ceil(2);
        Self {
            place,
            bytes,
            tokens,
        }
    }

    /// An input that is so many tokens.
    pub fn tokens(place: Range<usize>, tokens: u64) -> Self {
        let bytes = tokens.saturating_mul(4);
        Self {
            place,
            bytes,
            tokens,
        }
    }
}

/// What a provider takes at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchLimits {
    pub inputs: u64,
    /// The most tokens of all of them; an input that alone has more is a batch of its own.
    pub tokens: u64,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self::NONE
    }
}

impl BatchLimits {
    /// No limits.
    pub const NONE: Self = Self {
        inputs: u64::MAX,
        tokens: u64::MAX,
    };

    /// Returns the narrower of both.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            inputs: self.inputs.min(other.inputs),
            tokens: self.tokens.min(other.tokens),
        }
    }

    /// Returns the batches of some inputs, in order: ranges that follow each other, none of them empty.
    ///
    /// Cost: one pass over the inputs.
    pub fn split<'i>(&self, inputs: &'i [Input]) -> impl Iterator<Item = Range<usize>> + use<'i> {
        let limits = *self;
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = inputs.get(start..).filter(|rest| !rest.is_empty())?;
            let mut tokens = 0_u64;
            let fitting = rest.iter().zip(0_u64..).take_while(|(input, at)| {
                tokens = tokens.saturating_add(input.tokens);
                *at < limits.inputs && tokens <= limits.tokens
            });
            let end = start + fitting.count().max(1);
            Some(std::mem::replace(&mut start, end)..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batches(tokens: &[u64], limits: BatchLimits) -> Vec<Range<usize>> {
        let inputs = tokens.iter().map(|count| Input::tokens(0..0, *count));
        let inputs: Vec<Input> = inputs.collect();
        limits.split(&inputs).collect()
    }

    #[test]
    fn a_batch_has_as_many_inputs_and_tokens_as_a_provider_takes() {
        let limits = |inputs, tokens| BatchLimits { inputs, tokens };
        let none: [Range<usize>; 0] = [];
        assert_eq!(batches(&[], BatchLimits::NONE), none);
        let whole = batches(&[1, 2, 3], BatchLimits::NONE);
        assert_eq!((whole.len(), &whole[0]), (1, &(0..3)));
        assert_eq!(batches(&[1; 5], limits(2, 99)), [0..2, 2..4, 4..5]);
        assert_eq!(batches(&[4, 5, 1, 9], limits(99, 9)), [0..2, 2..3, 3..4]);
        // One that is too long alone is judged by the provider.
        assert_eq!(batches(&[1, 100, 1], limits(99, 9)), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn a_text_counts_a_token_for_two_bytes() {
        assert_eq!(Input::text(0..5, 3).tokens, 2);
        assert_eq!(Input::tokens(0..5, 3).bytes, 12);
    }

    proptest! {
        #[test]
        fn batches_hold_all_inputs_in_order_and_no_two_of_them_would_fit_into_one(
            tokens in proptest::collection::vec(0_u64..20, 0..50), inputs in 1_u64..9, most in 1_u64..40
        ) {
            let all = batches(&tokens, BatchLimits { inputs, tokens: most });
            let joined: Vec<usize> = all.iter().cloned().flatten().collect();
            prop_assert_eq!(joined, (0..tokens.len()).collect::<Vec<_>>());
            let sum = |range: Range<usize>| tokens[range].iter().sum::<u64>();
            for batch in &all {
                prop_assert!(!batch.is_empty() && batch.len() as u64 <= inputs);
                prop_assert!(batch.len() == 1 || sum(batch.clone()) <= most);
            }
            for pair in all.windows(2) {
                let with_next = pair[0].start..pair[0].end + 1;
                prop_assert!(with_next.len() as u64 > inputs || sum(with_next) > most);
            }
        }
    }
}
