//! The tokens of a call, and their cost.

use serde::{Deserialize, Serialize};

use crate::money::{BilledTokens, Cost, UnitCounts};

/// Completion tokens of a drawn image, for estimates. Source: docs/facts/model-gateway.md 8.2.
const DRAWN_IMAGE_TOKENS: u64 = 1120;

/// The tokens and the cost of a call.
#[derive(Clone, Debug)]
pub struct Settlement {
    pub usage: Usage,
    /// Their cost, where the price is known.
    pub cost: Option<Cost>,
}

impl Settlement {
    /// Returns what both took together. A cost that is not known counts as none beside one that is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.plus(&two)),
            (one, two) => one.or(two),
        };
        Self {
            usage: self.usage.plus(other.usage),
            cost,
        }
    }
}

/// Tokens of one call, in the words of the public convention.
///
/// `prompt` includes `cached` and `cache_write`, each once; `completion` includes `reasoning`. Decoders keep to
/// that whatever their provider reports (docs/facts/wire-formats.md R8).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Usage {
    /// All prompt tokens.
    pub prompt: u64,
    /// All completion tokens.
    pub completion: u64,
    /// Completion tokens spent on reasoning, where reported.
    pub reasoning: Option<u64>,
    /// The prompt tokens that are billed, where the provider bills others than all.
    #[serde(skip)]
    pub billed_prompt: Option<u64>,
    /// The completion tokens that are billed, likewise.
    #[serde(skip)]
    pub billed_completion: Option<u64>,
    /// Prompt tokens read from a provider's cache.
    pub cached: u64,
    /// Prompt tokens written to a provider's cache.
    pub cache_write: u64,
    /// Of those, written for five minutes, where the provider reports it.
    pub cache_write_5m: Option<u64>,
    /// Of those, written for an hour, where the provider reports it.
    pub cache_write_1h: Option<u64>,
    pub audio_prompt: u64,
    pub image_prompt: u64,
    pub video_prompt: u64,
    pub audio_completion: u64,
    pub image_completion: u64,
    /// Drawn images, as counted by the gateway.
    pub images: u64,
    /// Billable searches.
    pub web_searches: u64,
    /// What is billed beside tokens.
    pub units: UnitCounts,
    /// Whether the gateway estimated, because the provider did not report.
    pub estimated: bool,
    /// Whether its cost is not charged here, because the caller's own credential served the call.
    #[serde(skip)]
    pub is_api_equivalent: bool,
    /// What the report says in no number, until it is estimated.
    #[serde(skip)]
    pub unread: Unread,
    /// Reported tokens, searches and units that cannot be true, and are not billed.
    #[serde(skip)]
    pub set_aside: u64,
}

/// Counts that a report has not, or not as a number.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Unread {
    pub prompt: bool,
    pub completion: bool,
}

/// The most that a reply can take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UsageLimits {
    pub prompt: u64,
    pub completion: u64,
    pub searches: u64,
    /// Units, where any are asked for.
    pub units: UnitCounts,
}

impl Usage {
    /// Returns an estimate from bytes, four of them a token, and from the drawn images. Source: docs/decisions.md 14,
    /// docs/facts/model-gateway.md 2.10, 8.2.
    pub fn estimate(prompt_bytes: u64, completion_bytes: u64, images: u64) -> Self {
        let image_completion = images.saturating_mul(DRAWN_IMAGE_TOKENS);
        Self {
            prompt: prompt_bytes.div_ceil(4),
            completion: completion_bytes
                .div_ceil(4)
                .saturating_add(image_completion),
            image_completion,
            estimated: true,
            ..Self::default()
        }
    }

    /// Returns this report with estimates in place of what it says in no number.
    pub fn read(self, prompt_bytes: u64, completion_bytes: u64, images: u64) -> Self {
        let Unread { prompt, completion } = self.unread;
        if !prompt && !completion {
            return self;
        }
        let estimate = Self::estimate(prompt_bytes, completion_bytes, images);
        let either = |is_unread, estimate: u64, reported: u64| match is_unread {
            true => estimate.max(reported),
            false => reported,
        };
        Self {
            prompt: either(prompt, estimate.prompt, self.prompt),
            completion: either(completion, estimate.completion, self.completion),
            image_completion: either(completion, estimate.image_completion, self.image_completion),
            estimated: true,
            unread: Unread::default(),
            ..self
        }
    }

    /// Returns this report without what cannot be true, which is set aside. Source: docs/promises-tests.md.
    #[must_use]
    pub fn within(self, most: &UsageLimits) -> Self {
        let (prompt, completion) = (
            self.prompt.min(most.prompt),
            self.completion.min(most.completion),
        );
        let web_searches = self.web_searches.min(most.searches);
        let units = self.units.at_most(most.units);
        let excess = [
            self.prompt - prompt,
            self.completion - completion,
            self.web_searches - web_searches,
            self.units.beyond(units),
        ];
        let set_aside = excess.into_iter().fold(0, u64::saturating_add);
        let cached = self.cached.min(prompt);
        Self {
            prompt,
            completion,
            billed_prompt: self.billed_prompt.map(|billed| billed.min(prompt)),
            billed_completion: self.billed_completion.map(|billed| billed.min(completion)),
            web_searches,
            units,
            cached,
            cache_write: self.cache_write.min(prompt - cached),
            reasoning: self.reasoning.map(|reasoning| reasoning.min(completion)),
            audio_prompt: self.audio_prompt.min(prompt),
            image_prompt: self.image_prompt.min(prompt),
            video_prompt: self.video_prompt.min(prompt),
            audio_completion: self.audio_completion.min(completion),
            image_completion: self.image_completion.min(completion),
            estimated: self.estimated || set_aside > 0,
            set_aside: self.set_aside.saturating_add(set_aside),
            ..self
        }
    }

    /// Returns this usage with tokens of reasoning that were not shown, up to the most tokens of an answer.
    #[must_use]
    pub fn with_hidden(self, tokens: u64, most: u64) -> Self {
        let room = most.saturating_sub(self.completion);
        let tokens = tokens.min(room);
        if tokens == 0 {
            return self;
        }
        Self {
            completion: self.completion.saturating_add(tokens),
            billed_completion: self
                .billed_completion
                .map(|billed| billed.saturating_add(tokens)),
            reasoning: Some(self.reasoning.unwrap_or(0).saturating_add(tokens)),
            estimated: true,
            ..self
        }
    }

    /// Returns this report as a lower bound, for an answer that was cut off after it: the completion is at least an
    /// estimate of the bytes that came, and a missing prompt is estimated.
    pub fn unfinished(self, prompt_bytes: u64, completion_bytes: u64, images: u64) -> Self {
        let estimate = Self::estimate(prompt_bytes, completion_bytes, images);
        let prompt = match self.prompt {
            0 => estimate.prompt,
            reported => reported,
        };
        let completion = self.completion.max(estimate.completion);
        Self {
            prompt,
            completion,
            image_completion: self.image_completion.max(estimate.image_completion),
            estimated: (prompt, completion) != (self.prompt, self.completion),
            unread: Unread::default(),
            ..self
        }
    }

    /// Returns this report with the tokens of the drawn images, where it does not tell them: they are part of the
    /// completion, but for its reasoning and its audio. Source: docs/facts/model-gateway.md 8.2.
    #[must_use]
    pub fn with_drawn(self, images: u64) -> Self {
        if self.image_completion > 0 {
            return self;
        }
        let others = self.reasoning.unwrap_or(0);
        let others = others.saturating_add(self.audio_completion);
        let rest = self.completion.saturating_sub(others);
        Self {
            image_completion: images.saturating_mul(DRAWN_IMAGE_TOKENS).min(rest),
            ..self
        }
    }

    /// Returns this report with the tokens of images that a tool has drawn, where the completion is that of the words
    /// alone. Source: docs/facts/model-gateway.md 8.2.
    #[must_use]
    pub fn with_drawn_apart(self, images: u64) -> Self {
        if images == 0 || self.image_completion > 0 {
            return self;
        }
        let drawn = images.saturating_mul(DRAWN_IMAGE_TOKENS);
        Self {
            completion: self.completion.saturating_add(drawn),
            image_completion: drawn,
            estimated: true,
            ..self
        }
    }

    /// Returns the tokens of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = u64::saturating_add;
        let either = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            _ => Some(sum(one.unwrap_or(0), two.unwrap_or(0))),
        };
        let billed = |one: Option<u64>, all: u64, other: Option<u64>, all_others: u64| {
            let is_told = one.is_some() || other.is_some();
            is_told.then(|| sum(one.unwrap_or(all), other.unwrap_or(all_others)))
        };
        Self {
            prompt: sum(self.prompt, other.prompt),
            completion: sum(self.completion, other.completion),
            billed_prompt: billed(
                self.billed_prompt,
                self.prompt,
                other.billed_prompt,
                other.prompt,
            ),
            billed_completion: billed(
                self.billed_completion,
                self.completion,
                other.billed_completion,
                other.completion,
            ),
            reasoning: either(self.reasoning, other.reasoning),
            cached: sum(self.cached, other.cached),
            cache_write: sum(self.cache_write, other.cache_write),
            cache_write_5m: either(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: either(self.cache_write_1h, other.cache_write_1h),
            audio_prompt: sum(self.audio_prompt, other.audio_prompt),
            image_prompt: sum(self.image_prompt, other.image_prompt),
            video_prompt: sum(self.video_prompt, other.video_prompt),
            audio_completion: sum(self.audio_completion, other.audio_completion),
            image_completion: sum(self.image_completion, other.image_completion),
            images: sum(self.images, other.images),
            web_searches: sum(self.web_searches, other.web_searches),
            units: self.units.plus(other.units),
            estimated: self.estimated || other.estimated,
            is_api_equivalent: self.is_api_equivalent || other.is_api_equivalent,
            unread: Unread::default(),
            set_aside: sum(self.set_aside, other.set_aside),
        }
    }

    /// Returns the tokens as they are billed.
    pub fn billed(&self) -> BilledTokens {
        let written_1h = self.cache_write_1h.unwrap_or(0).min(self.cache_write);
        let prompt = self.billed_prompt.unwrap_or(self.prompt);
        let completion = self.billed_completion.unwrap_or(self.completion);
        BilledTokens {
            prompt,
            cached: self.cached.min(prompt),
            written_5m: self.cache_write - written_1h,
            written_1h,
            audio_prompt: self.audio_prompt,
            image_prompt: self.image_prompt,
            completion,
            audio_completion: self.audio_completion,
            image_completion: self.image_completion,
            reasoning: self.reasoning.unwrap_or(0).min(completion),
            images: self.images,
            web_searches: self.web_searches,
            units: self.units,
            annotates: false,
        }
    }

    /// Returns whether every count is zero. An intermediate report of zeros is not a report (docs/decisions.md 14).
    pub fn is_zero(&self) -> bool {
        self.prompt == 0 && self.completion == 0
    }

    /// Returns all tokens.
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_of_a_cut_answer_stays_and_the_rest_is_estimated() {
        let begun = Usage {
            prompt: 1000,
            cached: 900,
            completion: 1,
            ..Usage::default()
        };
        let cut = begun.unfinished(8, 41, 0);
        assert_eq!((cut.prompt, cut.cached, cut.completion), (1000, 900, 11));
        assert!(cut.estimated);
        assert_eq!(begun.unfinished(8, 4, 0), begun);
        let promptless = Usage { prompt: 0, ..begun };
        assert_eq!(promptless.unfinished(8, 4, 0).prompt, 2);
    }

    #[test]
    fn what_a_report_says_in_no_number_is_estimated() {
        let reported = Usage {
            completion: 3,
            unread: Unread {
                prompt: true,
                completion: false,
            },
            ..Usage::default()
        };
        let read = reported.read(40, 400, 0);
        assert_eq!((read.prompt, read.completion), (10, 3));
        assert!(read.estimated && read.unread == Unread::default());
        let unread = Unread {
            prompt: false,
            completion: true,
        };
        let read = Usage { unread, ..reported }.read(40, 400, 0);
        assert_eq!((read.prompt, read.completion), (0, 100));
        let known = Usage {
            unread: Unread::default(),
            ..reported
        };
        assert_eq!(known.read(40, 400, 0), known);
    }

    #[test]
    fn what_cannot_be_true_is_set_aside() {
        use crate::money::Unit;
        let most = UsageLimits {
            prompt: 100,
            completion: 50,
            searches: 2,
            units: UnitCounts::ZERO.with(Unit::Page, 4),
        };
        let reported = Usage {
            prompt: 100,
            cached: 90,
            completion: 50,
            web_searches: 2,
            units: UnitCounts::ZERO.with(Unit::Page, 4).with(Unit::Search, 9),
            ..Usage::default()
        };
        assert_eq!(reported.within(&most), reported);
        let nonsense = Usage {
            prompt: 101,
            cached: u64::MAX,
            cache_write: u64::MAX,
            completion: 4_294_967_295,
            reasoning: Some(u64::MAX),
            image_completion: u64::MAX,
            audio_prompt: u64::MAX,
            web_searches: 5,
            units: UnitCounts::ZERO.with(Unit::Page, 6),
            ..Usage::default()
        };
        let within = nonsense.within(&most);
        assert_eq!((within.prompt, within.completion), (100, 50));
        assert_eq!((within.cached, within.cache_write), (100, 0));
        assert_eq!((within.reasoning, within.image_completion), (Some(50), 50));
        assert_eq!((within.audio_prompt, within.web_searches), (100, 2));
        assert_eq!(within.units.get(Unit::Page), 4);
        assert_eq!(within.set_aside, 1 + 4_294_967_245 + 3 + 2);
        assert!(within.estimated);
    }

    #[test]
    fn reasoning_that_nobody_has_seen_has_the_room_of_the_answer() {
        let seen = Usage {
            completion: 10,
            ..Usage::default()
        };
        let with = seen.with_hidden(30, 100);
        assert_eq!((with.completion, with.reasoning), (40, Some(30)));
        let full = seen.with_hidden(1_000, 100);
        assert_eq!((full.completion, full.reasoning), (100, Some(90)));
        assert!(full.estimated);
        assert_eq!(seen.with_hidden(30, 10), seen);
        assert_eq!(seen.with_hidden(30, 5), seen);
    }

    #[test]
    fn what_is_billed_may_be_less_than_what_was_used() {
        let report = Usage {
            prompt: 507,
            completion: 10,
            cached: 448,
            billed_prompt: Some(12),
            billed_completion: Some(7),
            ..Usage::default()
        };
        let billed = report.billed();
        assert_eq!((billed.prompt, billed.completion), (12, 7));
        assert_eq!((billed.cached, report.total()), (12, 517));
        let other = Usage {
            prompt: 3,
            completion: 2,
            ..Usage::default()
        };
        let both = report.plus(other).billed();
        assert_eq!((both.prompt, both.completion), (15, 9));
        assert_eq!(other.plus(other).billed_prompt, None);
        let most = UsageLimits {
            prompt: 10,
            completion: 5,
            searches: 0,
            units: UnitCounts::ZERO,
        };
        let within = report.within(&most).billed();
        assert_eq!((within.prompt, within.completion), (10, 5));
    }

    #[test]
    fn what_two_parts_took_is_added_up() {
        let one = Usage {
            prompt: 3,
            cached: 1,
            reasoning: Some(2),
            ..Usage::default()
        };
        let two = Usage::estimate(8, 4, 1);
        let both = one.plus(two);
        assert_eq!((both.prompt, both.cached, both.images), (5, 1, 0));
        assert_eq!(both.completion, two.completion);
        assert_eq!((both.reasoning, both.cache_write_1h), (Some(2), None));
        assert!(both.estimated && !one.plus(one).estimated);
    }

    #[test]
    fn drawn_images_that_a_report_does_not_tell_are_part_of_the_completion() {
        let usage = |completion, reasoning, image_completion| Usage {
            completion,
            reasoning,
            image_completion,
            ..Usage::default()
        };
        for (reported, images, expected) in [
            (usage(3000, None, 0), 2, 2240),
            (usage(1000, None, 0), 2, 1000),
            (usage(1000, Some(300), 0), 1, 700),
            (usage(3000, None, 1290), 2, 1290),
            (usage(3000, None, 0), 0, 0),
        ] {
            let with = reported.with_drawn(images);
            assert_eq!(with.image_completion, expected, "{reported:?}");
            assert_eq!(with.completion, reported.completion);
        }
        let apart = usage(30, None, 0).with_drawn_apart(2);
        assert_eq!((apart.completion, apart.image_completion), (2270, 2240));
        assert!(apart.estimated);
        let told = usage(1300, None, 1290);
        assert_eq!(told.with_drawn_apart(1), told);
    }
}
