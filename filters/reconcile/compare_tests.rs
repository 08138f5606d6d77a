//! Planted differences, and the causes that they get.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::money::Usd;

const DAY: Date = date(2026, 11, 1);

fn names() -> ModelNames {
    let catalog = json!({"models": [
        {"id": "m", "providers": [{"provider": "p", "name": "m-1"}]},
        {"id": "n", "providers": [{"provider": "p", "name": "n-1"}]},
        {"id": "paint", "type": "image", "providers": [{"provider": "p", "name": "paint-1"}]},
    ]});
    let catalog = serde_json::from_value(catalog).unwrap();
    ModelNames::new(&catalog, "p", Some(&["chat"]))
}

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

/// 100 calls of the model `m`, as the ledger has them.
fn own() -> LedgerLine {
    LedgerLine {
        day: DAY,
        model: "m".into(),
        requests: 100,
        attempts: Some(104),
        input: 10_000,
        cached: 2_000,
        cache_write: 500,
        output: 4_000,
        reasoning: 1_000,
        cost: usd("10"),
        search_cost: Usd::ZERO,
        unpriced: 0,
        may_have_own_keys: false,
    }
}

/// The same calls, as the provider has them.
fn billed() -> BillLine {
    BillLine {
        day: DAY,
        model: Some("m-1".into()),
        tier: None,
        amounts: Amounts {
            requests: Some(100),
            input: Some(10_000),
            cached: Some(2_000),
            cache_write: Some(500),
            output: Some(4_000),
            cost: Some(usd("10")),
        },
    }
}

fn compared(ledger: &[LedgerLine], bill: &[BillLine]) -> Vec<ReconciledRow> {
    compare(ledger, bill, &names(), Tolerance::parse("1%").unwrap())
}

/// The causes of the only row, which is empty if it agrees.
fn causes(ledger: &[LedgerLine], bill: &[BillLine]) -> Vec<&'static str> {
    let rows = compared(ledger, bill);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].agrees, rows[0].causes.is_empty(), "{rows:?}");
    rows[0].causes.iter().map(|cause| cause.as_str()).collect()
}

fn with(change: impl Fn(&mut LedgerLine, &mut BillLine)) -> Vec<&'static str> {
    let (mut own, mut billed) = (own(), billed());
    change(&mut own, &mut billed);
    causes(&[own], &[billed])
}

#[test]
fn what_agrees_has_no_cause() {
    assert!(with(|_, _| {}).is_empty());
    // Within a hundredth.
    assert!(with(|_, bill| bill.amounts.cost = Some(usd("10.1"))).is_empty());
    assert!(with(|_, bill| bill.amounts.output = Some(4_040)).is_empty());
    // A bill that says little is compared in what it says.
    assert!(
        with(|_, bill| bill.amounts = Amounts {
            cost: Some(usd("9.95")),
            ..Amounts::default()
        })
        .is_empty()
    );
    let rows = compared(&[own()], &[billed()]);
    assert_eq!(
        (rows[0].model.as_deref(), rows[0].difference),
        (Some("m"), 0)
    );
    assert!(compared(&[], &[]).is_empty());
}

#[test]
fn each_planted_difference_gets_its_cause() {
    let past = with(|_, bill| bill.amounts.requests = Some(150));
    assert_eq!(past, ["past_gateway"]);
    assert_eq!(
        with(|_, bill| bill.amounts.requests = Some(104)),
        ["given_up"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.requests = Some(90)),
        ["fewer_calls"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.cached = Some(500)),
        ["cached_share"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.cache_write = Some(0)),
        ["cache_writes"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.output = Some(5_000)),
        ["reasoning"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.output = Some(3_000)),
        ["reasoning"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.output = Some(6_000)),
        ["tokens"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.input = Some(11_000)),
        ["tokens"]
    );
    assert_eq!(
        with(|_, bill| bill.amounts.cost = Some(usd("12"))),
        ["price"]
    );
    let tier = with(|_, bill| {
        bill.tier = Some("priority".into());
        bill.amounts.cost = Some(usd("20"));
    });
    assert_eq!(tier, ["tier"]);
    let unknown = with(|own, _| {
        own.cost = usd("9");
        own.unpriced = 10;
    });
    assert_eq!(unknown, ["unknown_price"]);
    let keys = with(|own, bill| {
        own.may_have_own_keys = true;
        bill.amounts.requests = Some(50);
    });
    assert_eq!(keys, ["fewer_calls", "own_keys"]);
    let cached = with(|_, bill| {
        bill.amounts.cached = Some(8_000);
        bill.amounts.cost = Some(usd("7"));
    });
    assert_eq!(cached, ["cached_share"]);
}

#[test]
fn a_bill_without_calls_tells_those_past_the_gateway_by_their_tokens() {
    let more = with(|_, bill| {
        bill.amounts.requests = None;
        bill.amounts.input = Some(15_000);
        bill.amounts.output = Some(6_000);
    });
    assert_eq!(more, ["past_gateway"]);
    let fewer = with(|_, bill| {
        bill.amounts.requests = None;
        bill.amounts.input = Some(15_000);
        bill.amounts.output = Some(3_500);
    });
    assert_eq!(fewer, ["tokens"]);
}

#[test]
fn models_of_one_side_alone_are_named() {
    let mut stranger = billed();
    stranger.model = Some("stranger".into());
    assert_eq!(causes(&[], &[stranger.clone()]), ["unknown_model"]);
    assert_eq!(causes(&[], &[billed()]), ["past_gateway"]);
    assert_eq!(causes(&[own()], &[]), ["not_billed"]);
    // A model that has left the catalogue has its name in the ledger.
    let mut gone = own();
    gone.model = "stranger".into();
    assert!(causes(&[gone], &[stranger]).is_empty());
    // The day of the release stands in the bill, and tiers are lines of their own.
    let mut parts = [billed(), billed()];
    for part in &mut parts {
        part.model = Some("m-1-2026-05-01".into());
        part.amounts = Amounts {
            requests: Some(50),
            ..Amounts::default()
        };
    }
    assert!(causes(&[own()], &parts).is_empty());
}

#[test]
fn calls_over_midnight_make_up_for_each_other() {
    let on = |day, own_requests, requests| {
        let (mut own, mut billed) = (own(), billed());
        (own.day, billed.day) = (day, day);
        own.requests = own_requests;
        billed.amounts = Amounts {
            requests: Some(requests),
            ..Amounts::default()
        };
        (own, billed)
    };
    let next = DAY.tomorrow().unwrap();
    let judge = |one: (LedgerLine, BillLine), two: (LedgerLine, BillLine)| {
        let rows = compared(&[one.0, two.0], &[one.1, two.1]);
        let told = rows.iter().map(|row| (row.agrees, row.causes[0].as_str()));
        told.collect::<Vec<_>>()
    };
    let made_up = judge(on(DAY, 100, 110), on(next, 100, 90));
    assert_eq!(made_up, [(true, "day_boundary"); 2]);
    // The larger day must not hide the smaller one.
    let hidden = judge(on(DAY, 100, 110), on(next, 10_000, 9_800));
    assert_eq!(hidden, [(false, "past_gateway"), (false, "fewer_calls")]);
    let later = next.tomorrow().unwrap();
    let apart = judge(on(DAY, 100, 110), on(later, 100, 90));
    assert_eq!(apart, [(false, "past_gateway"), (false, "fewer_calls")]);
}

#[test]
fn money_of_a_day_is_compared_with_all_that_the_day_has_cost() {
    let mut billed = billed();
    billed.amounts.cost = None;
    let of_day = |cost: &str| BillLine {
        day: DAY,
        model: None,
        tier: None,
        amounts: Amounts {
            cost: Some(usd(cost)),
            ..Amounts::default()
        },
    };
    let mut painted = own();
    painted.model = "paint".into();
    painted.cost = usd("5");
    let ledger = [own(), painted];
    let rows = compared(&ledger, &[billed.clone(), of_day("9"), of_day("6")]);
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].model.as_deref(), rows[0].ledger.cost),
        (None, Some(usd("15")))
    );
    assert!(rows.iter().all(|row| row.agrees), "{rows:?}");
    let rows = compared(&ledger, &[billed.clone(), of_day("20")]);
    assert_eq!(
        (rows[0].agrees, &rows[0].causes[..]),
        (false, &[Cause::Price][..])
    );
    assert!(rows[1].agrees && rows[1].ledger.cost.is_none());
    billed.amounts.requests = Some(200);
    let rows = compared(&ledger, &[billed, of_day("20")]);
    assert_eq!(rows[0].causes, [Cause::Usage]);
}

#[test]
fn searches_are_compared_with_the_lines_without_a_model() {
    let mut own = own();
    own.cost = usd("12");
    own.search_cost = usd("2");
    let searches = |cost: &str| BillLine {
        day: DAY,
        model: None,
        tier: None,
        amounts: Amounts {
            cost: Some(usd(cost)),
            ..Amounts::default()
        },
    };
    let rows = compared(std::slice::from_ref(&own), &[billed(), searches("2")]);
    assert!(
        rows.len() == 2 && rows.iter().all(|row| row.agrees),
        "{rows:?}"
    );
    let rows = compared(&[own], &[billed(), searches("3")]);
    assert_eq!((rows[0].model.as_deref(), rows[0].agrees), (None, false));
    assert!(rows[1].agrees);
}

fn any_line() -> impl Strategy<Value = (LedgerLine, BillLine)> {
    let numbers = proptest::array::uniform6(any::<u64>());
    (0_i64..3, 0_usize..3, numbers, numbers_of(), any::<bool>()).prop_map(
        |(days, model, a, b, told)| {
            let day = DAY.checked_add(jiff::Span::new().days(days)).unwrap();
            let cost = |units: u64| Usd::from_units(i128::from(units));
            let own = LedgerLine {
                day,
                model: ["m", "n", "paint"][model].into(),
                requests: a[0],
                attempts: told.then_some(a[1]),
                input: a[2],
                cached: a[3],
                cache_write: a[4],
                output: a[5],
                reasoning: a[1],
                cost: cost(a[2]),
                search_cost: cost(a[0]),
                unpriced: a[5] % 2,
                may_have_own_keys: !told,
            };
            let billed = BillLine {
                day,
                model: [Some("m-1"), Some("other"), None][model].map(Into::into),
                tier: told.then(|| "flex".into()),
                amounts: Amounts {
                    requests: b[0],
                    input: b[1],
                    cached: b[2],
                    cache_write: b[3],
                    output: b[4],
                    cost: b[5].map(cost),
                },
            };
            (own, billed)
        },
    )
}

fn numbers_of() -> impl Strategy<Value = [Option<u64>; 6]> {
    proptest::array::uniform6(proptest::option::of(any::<u64>()))
}

proptest! {
    /// Whatever the numbers are, a row agrees or has a cause, and no two rows are of the same model and day.
    #[test]
    fn every_difference_has_a_cause(lines in proptest::collection::vec(any_line(), 0..6)) {
        let (ledger, bill): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let rows = compared(&ledger, &bill);
        for row in &rows {
            prop_assert!(row.agrees || !row.causes.is_empty(), "{row:?}");
        }
        let mut keys: Vec<_> = rows.iter().map(|row| (row.day, &row.model)).collect();
        keys.dedup();
        prop_assert_eq!(keys.len(), rows.len());
    }
}
