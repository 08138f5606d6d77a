//! Holds the ledger against a bill: a row for each model and day, and one for what a bill says of a day alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use super::bill::{Amounts, BillLine, Measure, Tolerance, share};
use super::cause::Cause;
use super::names::ModelNames;
use crate::money::Usd;

/// The part of the tokens of reasoning by which completions may differ from them, and be called their cause: one of so many.
const REASONING_SHARE: u64 = 20;

/// What the ledger has of a model on a day.
#[derive(Clone, Debug)]
pub struct LedgerLine {
    /// The day in UTC on which the calls ended.
    pub day: Date,
    /// The model's id in the catalogue.
    pub model: Box<str>,
    pub requests: u64,
    /// Attempts of these calls; `None`: unknown.
    pub attempts: Option<u64>,
    pub input: u64,
    pub cached: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
    pub cost: Usd,
    /// The part of the cost that is for searches, which bills may list without a model.
    pub search_cost: Usd,
    /// The calls whose price is unknown.
    pub unpriced: u64,
    /// Whether calls with callers' own keys may be among these.
    pub may_have_own_keys: bool,
}

/// A comparison.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReconciledRow {
    pub day: Date,
    /// The id of the catalogue, or the provider's own name; `None`: what the bill says of the day alone.
    pub model: Option<Box<str>>,
    pub ledger: Amounts,
    pub bill: Amounts,
    /// The largest share by which a measure differs. Units: millionths.
    pub difference: u64,
    /// Whether all that both say agrees within the tolerance.
    pub agrees: bool,
    pub causes: Vec<Cause>,
}

/// The sums of a model on a day, on both sides.
#[derive(Default)]
struct Pair {
    lines: Vec<LedgerLine>,
    ledger: Amounts,
    bill: Amounts,
    tiers: bool,
    is_billed: bool,
    is_unknown: bool,
}

type Pairs = BTreeMap<(Box<str>, Date), Pair>;

/// Compares the ledger with a bill. The rows are in the order of days and models.
pub fn compare(
    ledger: &[LedgerLine],
    bill: &[BillLine],
    names: &ModelNames,
    tolerance: Tolerance,
) -> Vec<ReconciledRow> {
    let is_cost_by_model = bill
        .iter()
        .any(|line| line.model.is_some() && line.amounts.cost.is_some());
    let mut pairs = pair(ledger, bill, names);
    if !is_cost_by_model {
        pairs.values_mut().for_each(|pair| pair.ledger.cost = None);
    } else {
        pairs.values_mut().for_each(Pair::leave_out_searches);
    }
    let mut rows: Vec<ReconciledRow> = pairs
        .iter()
        .map(|((model, day), pair)| pair.judge(model, *day, tolerance))
        .collect();
    settle_midnights(&mut rows, tolerance);
    let days = days((ledger, bill), is_cost_by_model, &rows, tolerance);
    rows.extend(days);
    rows.sort_by(|a, b| (a.day, &a.model).cmp(&(b.day, &b.model)));
    rows
}

/// Brings the lines of both sides together.
fn pair(ledger: &[LedgerLine], bill: &[BillLine], names: &ModelNames) -> Pairs {
    let mut pairs = Pairs::new();
    for line in ledger {
        let id = names.of_ledger(&line.model);
        if names.is_told(id) {
            let pair = pairs.entry((id.into(), line.day)).or_default();
            pair.ledger.add(&line.amounts());
            pair.lines.push(line.clone());
        }
    }
    let known: BTreeSet<Box<str>> = pairs.keys().map(|(id, _)| id.clone()).collect();
    for line in bill {
        let Some(name) = &line.model else { continue };
        // A model that has left the catalogue is in the ledger under its id, which may be its name.
        let found = names.of_bill(name);
        let found = found.or_else(|| known.get(name).map(|id| &**id));
        let id = found.unwrap_or(name);
        if !names.is_told(id) {
            continue;
        }
        let pair = pairs.entry((id.into(), line.day)).or_default();
        pair.bill.add(&line.amounts);
        pair.tiers |= line.tier.is_some();
        pair.is_billed = true;
        pair.is_unknown |= found.is_none();
    }
    pairs
}

impl LedgerLine {
    fn amounts(&self) -> Amounts {
        Amounts {
            requests: Some(self.requests),
            input: Some(self.input),
            cached: Some(self.cached),
            cache_write: Some(self.cache_write),
            output: Some(self.output),
            cost: Some(self.cost),
        }
    }
}

impl Pair {
    /// Takes searches out of the cost of the model. The bill has lines of their own for them.
    fn leave_out_searches(&mut self) {
        let searches = self.lines.iter().map(|line| line.search_cost);
        let searches = searches.fold(Usd::ZERO, Usd::plus);
        self.ledger.cost = self.ledger.cost.map(|cost| cost.minus(searches));
    }

    fn sum(&self, count: impl Fn(&LedgerLine) -> u64) -> u64 {
        self.lines
            .iter()
            .map(count)
            .fold(0, |sum, more| sum.saturating_add(more))
    }

    fn judge(&self, model: &str, day: Date, tolerance: Tolerance) -> ReconciledRow {
        let (ledger, mut bill) = (self.ledger, self.bill);
        let mut own = ledger;
        if self.lines.is_empty() {
            own = zeros(&bill);
        }
        if !self.is_billed {
            bill = zeros(&own);
        }
        let difference = largest_share(&own, &bill);
        let agrees = agrees(&own, &bill, tolerance);
        let causes = match agrees {
            true => Vec::new(),
            false => self.causes(&own, &bill, tolerance),
        };
        ReconciledRow {
            day,
            model: Some(model.into()),
            ledger: own,
            bill,
            difference,
            agrees,
            causes,
        }
    }

    fn causes(&self, own: &Amounts, bill: &Amounts, tolerance: Tolerance) -> Vec<Cause> {
        let mut causes = Vec::new();
        if !self.is_billed {
            causes.push(Cause::NotBilled);
        } else if self.is_unknown {
            causes.push(Cause::UnknownModel);
        } else {
            self.find_counts(own, bill, tolerance, &mut causes);
            self.find_prices(own, bill, tolerance, &mut causes);
        }
        if self.lines.iter().any(|line| line.may_have_own_keys) {
            causes.push(Cause::OwnKeys);
        }
        causes
    }

    /// Finds why requests and tokens differ.
    fn find_counts(
        &self,
        own: &Amounts,
        bill: &Amounts,
        tolerance: Tolerance,
        causes: &mut Vec<Cause>,
    ) {
        let agrees = |measure| agree_in(own, bill, measure, tolerance);
        let calls = self.compare_calls(own, bill, tolerance);
        causes.extend(calls);
        if calls.is_some() {
            return;
        }
        let input = own.measured(Measure::Input).unwrap_or_default();
        let shifts = |measure| {
            let pair = own.measured(measure).zip(bill.measured(measure));
            pair.is_some_and(|(own, bill)| !tolerance.allows_difference(own - bill, input))
        };
        if agrees(Measure::Input) && shifts(Measure::Cached) {
            causes.push(Cause::CachedShare);
        }
        if agrees(Measure::Input) && shifts(Measure::CacheWrite) {
            causes.push(Cause::CacheWrites);
        }
        let reasoning = self.sum(|line| line.reasoning);
        if !agrees(Measure::Output) && is_reasoning(own.output, bill.output, reasoning) {
            causes.push(Cause::Reasoning);
        }
        let differs = Measure::COUNTS.iter().any(|measure| !agrees(*measure));
        if differs && causes.is_empty() {
            causes.push(Cause::Tokens);
        }
    }

    /// Returns why the numbers of calls differ. A bill without them says it by its tokens, if it has more of both kinds.
    fn compare_calls(&self, own: &Amounts, bill: &Amounts, tolerance: Tolerance) -> Option<Cause> {
        let Some(billed) = bill.requests else {
            let more = |measure| {
                let differs = !agree_in(own, bill, measure, tolerance);
                differs && bill.measured(measure) > own.measured(measure)
            };
            let is_more = more(Measure::Input) && more(Measure::Output);
            return is_more.then_some(Cause::PastGateway);
        };
        if agree_in(own, bill, Measure::Requests, tolerance) {
            return None;
        }
        let requests = own.requests.unwrap_or_default();
        if billed < requests {
            return Some(Cause::FewerCalls);
        }
        let attempts = self.sum(|line| line.attempts.unwrap_or(line.requests));
        Some(match billed <= attempts {
            true => Cause::GivenUp,
            false => Cause::PastGateway,
        })
    }

    /// Finds why money differs where counts agree.
    fn find_prices(
        &self,
        own: &Amounts,
        bill: &Amounts,
        tolerance: Tolerance,
        causes: &mut Vec<Cause>,
    ) {
        if agree_in(own, bill, Measure::Cost, tolerance) {
            return;
        }
        if self.tiers {
            causes.push(Cause::Tier);
        }
        if self.lines.iter().any(|line| line.unpriced > 0) {
            causes.push(Cause::UnknownPrice);
        }
        if causes.is_empty() {
            causes.push(Cause::Price);
        }
    }
}

/// Returns whether completions differ by the tokens of reasoning.
fn is_reasoning(own: Option<u64>, bill: Option<u64>, reasoning: u64) -> bool {
    let Some((own, bill)) = own.zip(bill).filter(|_| reasoning > 0) else {
        return false;
    };
    let difference = own.abs_diff(bill);
    difference.abs_diff(reasoning) <= reasoning / REASONING_SHARE
}

/// Returns zeros for what another one says.
fn zeros(of: &Amounts) -> Amounts {
    let count = |count: Option<u64>| count.map(|_| 0);
    Amounts {
        requests: count(of.requests),
        input: count(of.input),
        cached: count(of.cached),
        cache_write: count(of.cache_write),
        output: count(of.output),
        cost: of.cost.map(|_| Usd::ZERO),
    }
}

/// Returns whether a measure agrees, or one side does not say it. Prompt tokens of caches are a part of all prompt tokens, so
/// they are measured by these.
fn agree_in(own: &Amounts, bill: &Amounts, measure: Measure, tolerance: Tolerance) -> bool {
    let Some((one, other)) = own.measured(measure).zip(bill.measured(measure)) else {
        return true;
    };
    match measure {
        Measure::Cached | Measure::CacheWrite => {
            let input = own
                .measured(Measure::Input)
                .max(bill.measured(Measure::Input));
            let larger = one.max(other);
            tolerance.allows_difference(one - other, input.unwrap_or(larger).max(larger))
        }
        _ => tolerance.allows(one, other),
    }
}

fn agrees(own: &Amounts, bill: &Amounts, tolerance: Tolerance) -> bool {
    let mut all = Measure::ALL.iter();
    all.all(|measure| agree_in(own, bill, *measure, tolerance))
}

/// Returns the largest share by which a measure differs that both say.
fn largest_share(own: &Amounts, bill: &Amounts) -> u64 {
    let all = Measure::ALL.iter();
    let shares = all.filter_map(|measure| {
        let (one, other) = own.measured(*measure).zip(bill.measured(*measure))?;
        Some(share(one, other))
    });
    shares.max().unwrap_or_default()
}

/// Accepts days whose difference the day before or after makes up for: what is left of both is none of the smaller day.
fn settle_midnights(rows: &mut [ReconciledRow], tolerance: Tolerance) {
    for at in 1..rows.len() {
        let Some([one, two]) = rows.get_mut(at - 1..=at) else {
            continue;
        };
        let is_next = one.model == two.model && one.day.tomorrow().is_ok_and(|day| day == two.day);
        let is_open = !one.agrees && !two.agrees;
        if !is_next || !is_open || !makes_up(one, two, tolerance) {
            continue;
        }
        for row in [one, two] {
            row.agrees = true;
            row.causes = vec![Cause::DayBoundary];
        }
    }
}

fn makes_up(one: &ReconciledRow, two: &ReconciledRow, tolerance: Tolerance) -> bool {
    let mut all = Measure::ALL.iter();
    all.all(|measure| {
        let sides = |row: &ReconciledRow| {
            row.ledger
                .measured(*measure)
                .zip(row.bill.measured(*measure))
        };
        let Some(((own, bill), (own_next, bill_next))) = sides(one).zip(sides(two)) else {
            return true;
        };
        let left = (own - bill) + (own_next - bill_next);
        let smaller = own.max(bill).min(own_next.max(bill_next));
        tolerance.allows_difference(left, smaller)
    })
}

/// Returns a row for each day of which the bill says something without a model: what searches cost if other lines have models, else
/// all that the day has cost.
fn days(
    (ledger, bill): (&[LedgerLine], &[BillLine]),
    is_cost_by_model: bool,
    rows: &[ReconciledRow],
    tolerance: Tolerance,
) -> Vec<ReconciledRow> {
    let mut sums: BTreeMap<Date, (Usd, Usd)> = BTreeMap::new();
    let of_days = bill.iter().filter(|line| line.model.is_none());
    let of_days = of_days.filter_map(|line| Some((line.day, line.amounts.cost?)));
    for (day, cost) in of_days {
        let sum = &mut sums.entry(day).or_default().1;
        *sum = sum.plus(cost);
    }
    if sums.is_empty() {
        return Vec::new();
    }
    for line in ledger {
        let cost = match is_cost_by_model {
            true => line.search_cost,
            false => line.cost,
        };
        let sum = &mut sums.entry(line.day).or_default().0;
        *sum = sum.plus(cost);
    }
    sums.retain(|_, (own, billed)| !own.is_zero() || !billed.is_zero());
    let row = |(day, (own, billed)): (Date, (Usd, Usd))| {
        let agrees = tolerance.allows(own.units(), billed.units());
        let has_open = |row: &ReconciledRow| row.day == day && !row.agrees;
        let is_usage = !is_cost_by_model && rows.iter().any(has_open);
        let causes = match agrees {
            true => Vec::new(),
            false => day_causes((ledger, bill), day, is_usage),
        };
        let money = |cost| Amounts {
            cost: Some(cost),
            ..Amounts::default()
        };
        ReconciledRow {
            day,
            model: None,
            ledger: money(own),
            bill: money(billed),
            difference: share(own.units(), billed.units()),
            agrees,
            causes,
        }
    };
    sums.into_iter().map(row).collect()
}

/// Returns why the money of a day differs.
fn day_causes(
    (ledger, bill): (&[LedgerLine], &[BillLine]),
    day: Date,
    is_usage: bool,
) -> Vec<Cause> {
    let of_day = || ledger.iter().filter(|line| line.day == day);
    let has_tier = |line: &BillLine| line.day == day && line.tier.is_some();
    let found = [
        (Cause::Usage, is_usage),
        (Cause::Tier, bill.iter().any(has_tier)),
        (Cause::UnknownPrice, of_day().any(|line| line.unpriced > 0)),
        (Cause::OwnKeys, of_day().any(|line| line.may_have_own_keys)),
    ];
    let found = found.into_iter().filter(|(_, holds)| *holds);
    let mut causes: Vec<Cause> = found.map(|(cause, _)| cause).collect();
    if causes.is_empty() {
        causes.push(Cause::Price);
    }
    causes
}
