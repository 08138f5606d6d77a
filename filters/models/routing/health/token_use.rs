//! The tokens of calls whose prompts may be cached: which shares they have.

use super::TokenShares;

/// The time in which the weight of a call halves.
const HALF_LIFE_MS: f64 = 12.0 * 3_600_000.0;
/// The calls, and their prompt tokens, from which on their shares count.
const MIN_CALLS: f64 = 20.0;
const MIN_PROMPT_TOKENS: f64 = 20_000.0;

/// Decaying sums.
#[derive(Debug, Default)]
pub(super) struct TokenUse {
    calls: f64,
    prompt: f64,
    cached: f64,
    written: f64,
    completion: f64,
    at_ms: u64,
}

impl TokenUse {
    /// Adds a call: its prompt tokens, those read from and written to a cache among them, and its completion tokens.
    pub(super) fn add(&mut self, [prompt, cached, written, completion]: [u64; 4], now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.at_ms) as f64;
        let kept = (-age_ms / HALF_LIFE_MS).exp2();
        let add = |sum: &mut f64, value: f64| *sum = *sum * kept + value;
        add(&mut self.calls, 1.0);
        add(&mut self.prompt, prompt as f64);
        add(&mut self.cached, cached.min(prompt) as f64);
        add(
            &mut self.written,
            written.min(prompt.saturating_sub(cached)) as f64,
        );
        add(&mut self.completion, completion as f64);
        self.at_ms = now_ms;
    }

    /// Returns the shares; `None`: too few calls have been seen.
    pub(super) fn shares(&self) -> Option<TokenShares> {
        let is_known = self.calls > MIN_CALLS - 0.5 && self.prompt >= MIN_PROMPT_TOKENS;
        is_known.then(|| TokenShares {
            cached: (self.cached / self.prompt) as f32,
            written: (self.written / self.prompt) as f32,
            output_ratio: (self.completion / self.prompt) as f32,
        })
    }
}
