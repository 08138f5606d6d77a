//! All prices of a mapping. Which of them hold depends on a call's tier, its start and the length of its prompt.
//!
//! Every combination is computed once, exactly, so that a call only chooses. Source: docs/facts/model-gateway.md 8.1.

use super::cost::{BilledTokens, Cost, cost};
use super::max_cost::{CostInputs, TokenBounds, max_cost};
use super::prices::{PriceSet, TokenPrices, Unscalable};
use super::schedule::Schedule;
use super::tier::ServiceTier;
use super::usd::{Factor, Usd};

/// The prices of a tier at a time, for short and for longer prompts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rates {
    short: PriceSet,
    /// The prices of longer prompts, map_sets with the prompt tokens above which they hold, in ascending order.
    long: Vec<(u64, PriceSet)>,
}

/// The difference between the prices of some calls and the usual ones.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceChange {
    /// The factor on all token prices.
    pub factor: Factor,
    pub own: TokenPrices,
    /// The prices of long prompts, which replace all usual steps. Without them the usual steps hold, times the
    /// factor, and no price of a step is below the price of short prompts. Our choice: an unknown price of long
    /// prompts is not guessed too low.
    pub long: Option<Vec<(u64, TokenPrices)>>,
}

impl Default for PriceChange {
    fn default() -> Self {
        Self {
            factor: Factor::ONE,
            own: TokenPrices::default(),
            long: None,
        }
    }
}

/// The parts of which a price list is made.
#[derive(Clone, Debug, Default)]
pub struct PriceListParts {
    /// The usual prices.
    pub base: PriceSet,
    /// The prices of longer prompts: the tokens above which they hold, and the prices that they replace.
    pub long: Vec<(u64, TokenPrices)>,
    pub tiers: Vec<(ServiceTier, PriceChange)>,
    /// The hours with other prices, and those prices.
    pub off_peak: Option<(Schedule, PriceChange)>,
    /// The share of all prices that is not billed.
    pub discount: Option<Factor>,
}

/// The prices of all tiers. A tier without its own prices has the usual ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct TierRates {
    usual: Rates,
    own: Vec<(ServiceTier, Rates)>,
}

/// All prices of a mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    peak: TierRates,
    off_peak: Option<(Schedule, TierRates)>,
    discount: Option<Factor>,
    is_premium: bool,
}

/// The facts of a call that decide its prices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PricePoint {
    pub tier: ServiceTier,
    /// Units: unix seconds.
    pub start_s: u64,
}

impl Rates {
    /// Makes the prices of a tier. `long` has the prices that change above numbers of prompt tokens.
    pub fn new(short: PriceSet, long: &[(u64, TokenPrices)]) -> Self {
        let steps = long.iter();
        let mut long: Vec<_> = steps
            .map(|(above, own)| (*above, short.with(own)))
            .collect();
        long.sort_by_key(|(above, _)| *above);
        Self { short, long }
    }

    /// Returns the prices of short prompts.
    pub fn short(&self) -> &PriceSet {
        &self.short
    }

    /// Returns the prices of longer prompts, map_sets with the tokens above which they hold, in ascending order.
    pub fn long(&self) -> &[(u64, PriceSet)] {
        &self.long
    }

    /// Returns the prices of a call with this many prompt tokens.
    pub fn for_prompt(&self, tokens: u64) -> &PriceSet {
        let mut steps = self.long.iter().rev();
        let step = steps.find(|(above, _)| tokens > *above);
        step.map_or(&self.short, |(_, prices)| prices)
    }

    /// Returns all prices that a call with at most this many prompt tokens may have.
    pub(super) fn up_to(&self, tokens: u64) -> impl Iterator<Item = &PriceSet> {
        let steps = self
            .long
            .iter()
            .take_while(move |(above, _)| tokens > *above);
        std::iter::once(&self.short).chain(steps.map(|(_, prices)| prices))
    }

    /// Returns the cost of a call, without rounding.
    pub fn cost(&self, tokens: &BilledTokens) -> Cost {
        cost(self.for_prompt(tokens.prompt), tokens)
    }

    fn map_sets(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let long = self.long.iter();
        Ok(Self {
            short: change(&self.short)?,
            long: long
                .map(|(above, prices)| {
                    let apply_change = change(prices).map_err(|bad| Unscalable {
                        above: Some(*above),
                        ..bad
                    });
                    Ok((*above, apply_change?))
                })
                .collect::<Result<_, _>>()?,
        })
    }

    fn apply_change(&self, change: &PriceChange) -> Result<Self, Unscalable> {
        let scaled = self.map_sets(|prices| prices.scaled(change.factor))?;
        let short = scaled.short.with(&change.own);
        Ok(match &change.long {
            Some(long) => Self::new(short, long),
            None => {
                let steps = scaled.long.iter();
                let step = |(above, step): &(u64, PriceSet)| {
                    (*above, step.with_higher(&change.own, &scaled.short))
                };
                Self {
                    short,
                    long: steps.map(step).collect(),
                }
            }
        })
    }
}

impl TierRates {
    fn new(usual: Rates, tiers: &[(ServiceTier, PriceChange)]) -> Result<Self, Unscalable> {
        let own = tiers
            .iter()
            .map(|(tier, change)| Ok((*tier, usual.apply_change(change)?)));
        Ok(Self {
            own: own.collect::<Result<_, _>>()?,
            usual,
        })
    }

    fn map_sets(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let own = self.own.iter();
        Ok(Self {
            usual: self.usual.map_sets(&change)?,
            own: own
                .map(|(tier, rates)| Ok((*tier, rates.map_sets(&change)?)))
                .collect::<Result<_, _>>()?,
        })
    }

    fn tier_rates(&self, tier: ServiceTier) -> &Rates {
        let mut own = self.own.iter();
        let found = own.find(|(known, _)| *known == tier);
        found.map_or(&self.usual, |(_, rates)| rates)
    }
}

impl PriceList {
    /// Computes all prices.
    ///
    /// Errors: a factor makes a price that cannot be billed without rounding, or the discount is more than the whole
    /// price.
    pub fn new(parts: &PriceListParts) -> Result<Self, Unscalable> {
        let usual = Rates::new(parts.base, &parts.long);
        let off_peak = match &parts.off_peak {
            Some((schedule, change)) => {
                let rates = TierRates::new(usual.apply_change(change)?, &parts.tiers)?;
                Some((schedule.clone(), rates))
            }
            None => None,
        };
        let full = Self {
            peak: TierRates::new(usual, &parts.tiers)?,
            off_peak,
            discount: parts.discount,
            is_premium: parts.base.is_premium(),
        };
        let Some(discount) = parts.discount else {
            return Ok(full);
        };
        let rest = discount.complement().map_err(|why| Unscalable {
            key: "discount",
            above: None,
            why,
        })?;
        full.map_sets(|prices| prices.scaled(rest)?.with_fees_scaled(rest))
    }

    /// Returns the list with all token prices times a factor. Errors: as [`PriceSet::scaled`].
    pub fn scaled(&self, factor: Factor) -> Result<Self, Unscalable> {
        self.map_sets(|prices| prices.scaled(factor))
    }

    /// Makes the list of prices that never change.
    pub fn fixed(prices: PriceSet) -> Self {
        Self {
            peak: TierRates {
                usual: Rates::new(prices, &[]),
                own: Vec::new(),
            },
            is_premium: prices.is_premium(),
            ..Self::default()
        }
    }

    /// Returns the prices of a call. Cost: no allocation.
    pub fn at(&self, point: PricePoint) -> &Rates {
        let rates = match &self.off_peak {
            Some((schedule, rates)) if schedule.is_active_at(point.start_s) => rates,
            _ => &self.peak,
        };
        rates.tier_rates(point.tier)
    }

    /// Returns the prices outside of the off-peak hours.
    pub fn peak(&self, tier: ServiceTier) -> &Rates {
        self.peak.tier_rates(tier)
    }

    /// Returns the off-peak hours, and the prices of the usual tier in them.
    pub fn off_peak(&self) -> Option<(&Schedule, &Rates)> {
        let (schedule, rates) = self.off_peak.as_ref()?;
        Some((schedule, &rates.usual))
    }

    /// Returns the tiers that have prices of their own.
    pub fn own_tiers(&self) -> impl Iterator<Item = ServiceTier> {
        self.peak.own.iter().map(|(tier, _)| *tier)
    }

    /// Returns the share of all prices that is not billed.
    pub fn discount(&self) -> Option<Factor> {
        self.discount
    }

    /// Returns whether plans count the model as premium. Its usual price decides, and not the tier, hour, discount or
    /// region of a call. Source: docs/facts/model-gateway.md 5.3.
    pub fn is_premium(&self) -> bool {
        self.is_premium
    }

    /// Returns whether a call that starts at `start_s` has off-peak prices.
    pub fn is_off_peak(&self, start_s: u64) -> bool {
        let off_peak = self.off_peak.as_ref();
        off_peak.is_some_and(|(schedule, _)| schedule.is_active_at(start_s))
    }

    /// Returns the maximum cost of a call. A provider that cannot serve the tier may serve the usual one, so the
    /// higher cost of both counts.
    pub fn max_cost(&self, point: PricePoint, bounds: &TokenBounds, inputs: &CostInputs) -> Usd {
        let usual = PricePoint {
            tier: ServiceTier::Standard,
            ..point
        };
        let at = |point| max_cost(self.at(point), bounds, inputs);
        match point == usual {
            true => at(usual),
            false => at(point).max(at(usual)),
        }
    }

    fn map_sets(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let off_peak = match &self.off_peak {
            Some((schedule, rates)) => Some((schedule.clone(), rates.map_sets(&change)?)),
            None => None,
        };
        Ok(Self {
            peak: self.peak.map_sets(&change)?,
            off_peak,
            discount: self.discount,
            is_premium: self.is_premium,
        })
    }
}
