//! All prices of a mapping: which of them hold depends on a call's tier, on when it starts and on its prompt.
//!
//! Every combination is computed once, exactly, so that a call only chooses. Source: docs/facts/model-gateway.md 8.1.

use super::cost::{BilledTokens, Cost, cost};
use super::max_cost::{CostInputs, TokenBounds, max_cost};
use super::prices::{PriceSet, TokenPrices, Unscalable};
use super::schedule::Schedule;
use super::tier::ServiceTier;
use super::usd::{Factor, Usd};

/// The prices of a tier at a time: those of short prompts, and those of longer ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rates {
    short: PriceSet,
    /// The prompt tokens beyond which prices hold, in ascending order.
    long: Vec<(u64, PriceSet)>,
}

/// What some calls cost in place of others.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceChange {
    /// All prices of tokens times this,
    pub factor: Factor,
    pub own: TokenPrices,
    /// and for long prompts these, where they are given: in place of all steps that there are. Otherwise the steps are
    /// those that there are, times the factor, and no price there is below the own one. Our choice: a price of long
    /// prompts that nobody knows is not guessed too low.
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

/// What a price list is made of.
#[derive(Clone, Debug, Default)]
pub struct PriceListParts {
    /// The prices of a call that nothing else is said of.
    pub base: PriceSet,
    /// The prices of longer prompts: the tokens beyond which they hold, and what they change.
    pub long: Vec<(u64, TokenPrices)>,
    pub tiers: Vec<(ServiceTier, PriceChange)>,
    /// Of calls that start at certain hours.
    pub off_peak: Option<(Schedule, PriceChange)>,
    /// The share of all prices that is not billed.
    pub discount: Option<Factor>,
}

/// The prices of all tiers; a tier without its own has the usual ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct TierRates {
    usual: Rates,
    own: Vec<(ServiceTier, Rates)>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    peak: TierRates,
    off_peak: Option<(Schedule, TierRates)>,
    discount: Option<Factor>,
    is_premium: bool,
}

/// What of a call decides its prices: the tier, and the unix second in which it starts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PricePoint {
    pub tier: ServiceTier,
    /// Units: unix seconds.
    pub start_s: u64,
}

impl Rates {
    /// Makes the prices of a tier. `long` has what changes beyond numbers of prompt tokens.
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

    /// Returns the prices of longer prompts: the tokens beyond which they hold, in ascending order.
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

    fn each(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let long = self.long.iter();
        Ok(Self {
            short: change(&self.short)?,
            long: long
                .map(|(above, prices)| {
                    let changed = change(prices).map_err(|bad| Unscalable {
                        above: Some(*above),
                        ..bad
                    });
                    Ok((*above, changed?))
                })
                .collect::<Result<_, _>>()?,
        })
    }

    fn changed(&self, change: &PriceChange) -> Result<Self, Unscalable> {
        let scaled = self.each(|prices| prices.scaled(change.factor))?;
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
            .map(|(tier, change)| Ok((*tier, usual.changed(change)?)));
        Ok(Self {
            own: own.collect::<Result<_, _>>()?,
            usual,
        })
    }

    fn each(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let own = self.own.iter();
        Ok(Self {
            usual: self.usual.each(&change)?,
            own: own
                .map(|(tier, rates)| Ok((*tier, rates.each(&change)?)))
                .collect::<Result<_, _>>()?,
        })
    }

    fn tier(&self, tier: ServiceTier) -> &Rates {
        let mut own = self.own.iter();
        let found = own.find(|(known, _)| *known == tier);
        found.map_or(&self.usual, |(_, rates)| rates)
    }
}

impl PriceList {
    /// Computes all prices.
    ///
    /// Errors: a factor makes a price that cannot be billed without rounding, or the discount is more than all.
    pub fn new(parts: &PriceListParts) -> Result<Self, Unscalable> {
        let usual = Rates::new(parts.base, &parts.long);
        let off_peak = match &parts.off_peak {
            Some((schedule, change)) => {
                let rates = TierRates::new(usual.changed(change)?, &parts.tiers)?;
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
        full.each(|prices| prices.scaled(rest)?.with_fees_scaled(rest))
    }

    /// Returns the list with all prices of tokens times a factor. Errors: as [`PriceSet::scaled`].
    pub fn scaled(&self, factor: Factor) -> Result<Self, Unscalable> {
        self.each(|prices| prices.scaled(factor))
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
            Some((schedule, rates)) if schedule.holds_at(point.start_s) => rates,
            _ => &self.peak,
        };
        rates.tier(point.tier)
    }

    /// Returns the prices at other than off-peak hours.
    pub fn peak(&self, tier: ServiceTier) -> &Rates {
        self.peak.tier(tier)
    }

    /// Returns the hours that have prices of their own, and those of the usual tier then.
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

    /// Returns whether plans count the model as premium: by its usual price, whatever tier, hour, discount or region it is
    /// called with. Source: docs/facts/model-gateway.md 5.3.
    pub fn is_premium(&self) -> bool {
        self.is_premium
    }

    /// Returns whether a call that starts then has the prices of off-peak hours.
    pub fn is_off_peak(&self, start_s: u64) -> bool {
        let off_peak = self.off_peak.as_ref();
        off_peak.is_some_and(|(schedule, _)| schedule.holds_at(start_s))
    }

    /// Returns the maximum cost of a call. A provider that cannot serve the tier may serve the usual one, so the higher of
    /// both counts.
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

    fn each(
        &self,
        change: impl Fn(&PriceSet) -> Result<PriceSet, Unscalable>,
    ) -> Result<Self, Unscalable> {
        let off_peak = match &self.off_peak {
            Some((schedule, rates)) => Some((schedule.clone(), rates.each(&change)?)),
            None => None,
        };
        Ok(Self {
            peak: self.peak.each(&change)?,
            off_peak,
            discount: self.discount,
            is_premium: self.is_premium,
        })
    }
}
