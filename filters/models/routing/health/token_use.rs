//! The tokens of calls whose prompts may be cached: which shares they have.

use super::TokenShares;

/// The time in which the weight of a call halves.
const HALF_LIFE_MS: f64 = 12.0 * 3_600_000.0;
/// The calls, and their prompt tokens, from which on their shares count.
const MIN_CALLS: f64 = 20.0;
const MIN_PROMPT_TOKENS: f64 = 20_000.0;

/// Decaying sums.
#[derive(Clone, Debug, Default)]
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

    /// Returns the sums at a time: calls, then tokens of prompts, cached, written, of completions.
    pub(super) fn sums(&self, now_ms: u64) -> [f32; 5] {
        let age_ms = now_ms.saturating_sub(self.at_ms) as f64;
        let kept = (-age_ms / HALF_LIFE_MS).exp2();
        let prompt = (self.prompt * kept) as f32;
        // Rounding must not make more of a part than of the whole.
        let part = |tokens: f64| ((tokens * kept) as f32).min(prompt);
        let (calls, completion) = ((self.calls * kept) as f32, (self.completion * kept) as f32);
        [
            calls,
            prompt,
            part(self.cached),
            part(self.written),
            completion,
        ]
    }

    /// Adds the sums of another process, of this long ago.
    pub(super) fn add_sums(&mut self, sums: [f32; 5], age_ms: u64) {
        let kept = (-(age_ms as f64) / HALF_LIFE_MS).exp2();
        let [calls, prompt, cached, written, completion] = sums.map(|sum| f64::from(sum) * kept);
        self.calls += calls;
        self.prompt += prompt;
        self.cached += cached;
        self.written += written;
        self.completion += completion;
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
