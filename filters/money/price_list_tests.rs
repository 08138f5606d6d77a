//! Which prices hold for a call.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn price(text: &str) -> Price {
    Price::per_million(text).unwrap()
}

fn tokens(input: &str, output: &str) -> TokenPrices {
    TokenPrices {
        input: Some(price(input)),
        output: Some(price(output)),
        ..TokenPrices::default()
    }
}

fn times(factor: &str) -> PriceChange {
    PriceChange {
        factor: Factor::parse(factor).unwrap(),
        ..PriceChange::default()
    }
}

/// Input 2.5, cached 1.25, output 10, a fee of 0.01; beyond 1000 and 2000 tokens input 5 and 8.
fn parts() -> PriceListParts {
    let base = PriceSet {
        input: price("2.5"),
        output: price("10"),
        cached_input: Some(price("1.25")),
        request: Price::per_call("0.01").unwrap(),
        ..PriceSet::default()
    };
    let step = |input: &str| TokenPrices {
        input: Some(price(input)),
        ..TokenPrices::default()
    };
    PriceListParts {
        base,
        long: vec![(2000, step("8")), (1000, step("5"))],
        ..PriceListParts::default()
    }
}

/// The cost of a call with 400 cached tokens of prompt and 100 of completion.
fn total(list: &PriceList, prompt: u64, tier: ServiceTier, start_s: u64) -> String {
    let tokens = BilledTokens {
        prompt,
        cached: 400,
        completion: 100,
        ..BilledTokens::default()
    };
    let cost = list.at(PricePoint { tier, start_s }).cost(&tokens);
    cost.total.to_string()
}

const STANDARD: ServiceTier = ServiceTier::Standard;

#[test]
fn each_step_of_a_long_prompt_has_its_price_up_to_the_next() {
    let list = PriceList::new(&parts()).unwrap();
    let at = |prompt| total(&list, prompt, STANDARD, 0);
    assert_eq!(at(1000), "0.013");
    // 601 × 5e-6 + 400 × 1.25e-6 + 100 × 10e-6 + 0.01
    assert_eq!(at(1001), "0.014505");
    assert_eq!(at(2000), "0.0195");
    // 1601 × 8e-6 + …
    assert_eq!(at(2001), "0.024308");
}

#[test]
fn a_reservation_holds_the_dearest_step_that_a_prompt_may_reach() {
    let mut parts = parts();
    // Beyond the second step tokens are cheap again.
    parts.long[0].1.input = Some(price("1"));
    let list = PriceList::new(&parts).unwrap();
    let most = |bytes| {
        let inputs = CostInputs {
            bytes,
            max_tokens: Some(0),
            ..CostInputs::default()
        };
        list.max_cost(PricePoint::default(), &TokenBounds::default(), &inputs)
            .to_string()
    };
    assert_eq!(most(1000), "0.0125");
    // 3000 × 5e-6 + 0.01
    assert_eq!(most(3000), "0.025");
}

#[test]
fn a_tier_multiplies_tokens_or_has_its_own_prices_and_fees_stay() {
    let own = PriceChange {
        own: tokens("5", "30"),
        long: Some(vec![(1500, tokens("9", "40"))]),
        ..PriceChange::default()
    };
    let list = PriceList::new(&PriceListParts {
        tiers: vec![
            (ServiceTier::Flex, times("0.5")),
            (ServiceTier::Priority, own),
        ],
        ..parts()
    });
    let list = list.unwrap();
    assert_eq!(total(&list, 1000, ServiceTier::Flex, 0), "0.0115");
    // The steps follow the multiplier: (601 × 5e-6 + 400 × 1.25e-6 + 1e-3) / 2 + 0.01
    assert_eq!(total(&list, 1001, ServiceTier::Flex, 0), "0.0122525");
    // 600 × 5e-6 + 400 × 1.25e-6 + 100 × 30e-6 + 0.01
    assert_eq!(total(&list, 1000, ServiceTier::Priority, 0), "0.0165");
    assert_eq!(total(&list, 1001, ServiceTier::Priority, 0), "0.016505");
    // 1101 × 9e-6 + 400 × 1.25e-6 + 100 × 40e-6 + 0.01
    assert_eq!(total(&list, 1501, ServiceTier::Priority, 0), "0.024409");
}

#[test]
fn the_reservation_of_a_tier_covers_the_usual_one_too() {
    let list = PriceList::new(&PriceListParts {
        tiers: vec![
            (ServiceTier::Flex, times("0.5")),
            (ServiceTier::Priority, times("2")),
        ],
        ..parts()
    });
    let list = list.unwrap();
    let most = |tier| {
        let inputs = CostInputs {
            bytes: 1000,
            max_tokens: Some(100),
            ..CostInputs::default()
        };
        let point = PricePoint { tier, start_s: 0 };
        list.max_cost(point, &TokenBounds::default(), &inputs)
            .to_string()
    };
    assert_eq!(most(STANDARD), "0.0135");
    assert_eq!(most(ServiceTier::Flex), "0.0135");
    assert_eq!(most(ServiceTier::Priority), "0.017");
}

#[test]
fn a_discount_takes_its_share_of_tokens_and_fees() {
    let list = PriceList::new(&PriceListParts {
        tiers: vec![(ServiceTier::Flex, times("0.5"))],
        discount: Some(Factor::parse("0.1").unwrap()),
        ..parts()
    });
    let list = list.unwrap();
    // The published vector: 0.0027 of tokens and 0.009 of the fee.
    assert_eq!(total(&list, 1000, STANDARD, 0), "0.0117");
    assert_eq!(total(&list, 1000, ServiceTier::Flex, 0), "0.01035");
    assert_eq!(list.discount().unwrap().to_decimal(), "0.1");
}

#[test]
fn what_cannot_be_billed_without_rounding_is_refused() {
    let mut fine = parts();
    fine.base.input = price("0.000000000001");
    fine.tiers = vec![(ServiceTier::Flex, times("0.5"))];
    let problem = PriceList::new(&fine).unwrap_err().to_string();
    assert!(
        problem.contains("0.5") && problem.contains("18 fraction digits"),
        "{problem}"
    );
    for (text, is_factor) in [
        ("0.5", true),
        ("1000", true),
        ("0", true),
        ("1000.000001", false),
        ("0.0000001", false),
        ("-1", false),
        ("1e3", false),
        ("", false),
        ("99999999999999999999", false),
    ] {
        assert_eq!(Factor::parse(text).is_ok(), is_factor, "{text}");
    }
    assert!(Factor::parse("1.1").unwrap().complement().is_err());
}

#[test]
fn windows_wrap_midnight_and_belong_to_the_day_on_which_they_start() {
    const MONDAY: u64 = 1_767_571_200; // 2026-01-05T00:00:00Z
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;
    let schedule =
        |text: &str, days: &[u8]| Schedule::new(vec![HoursWindow::parse(text, days).unwrap()]);
    let wrapping = schedule("16:30-00:30", &[1]);
    for (start_s, holds) in [
        (MONDAY + 16 * HOUR + 1799, false),
        (MONDAY + 16 * HOUR + 1800, true),
        (MONDAY + DAY, true),
        (MONDAY + DAY + 1799, true),
        (MONDAY + DAY + 1800, false),
        // Sunday has no window.
        (MONDAY, false),
        (MONDAY + DAY + 17 * HOUR, false),
    ] {
        assert_eq!(wrapping.is_active_at(start_s), holds, "{start_s}");
    }
    let weekend = schedule("00:00-00:00", &[6, 7]);
    let days: Vec<bool> = (0..7)
        .map(|day| weekend.is_active_at(MONDAY + day * DAY + 5))
        .collect();
    assert_eq!(days, [false, false, false, false, false, true, true]);
    let evening = schedule("10:00-24:00", &[]);
    let at = |hour| evening.is_active_at(MONDAY + hour * HOUR);
    assert_eq!((at(9), at(10), at(23), at(24)), (false, true, true, false));
    for bad in [
        "",
        "10",
        "10:00",
        "10:00-25:00",
        "10:60-11:00",
        "a-b",
        "10:00-11:00-12:00",
        "-1:00-2:00",
    ] {
        assert!(HoursWindow::parse(bad, &[]).is_err(), "{bad}");
    }
    assert!(
        HoursWindow::parse("10:00-11:00", &[0]).is_err()
            && HoursWindow::parse("10:00-11:00", &[8]).is_err()
    );
}

#[test]
fn off_peak_prices_hold_for_calls_that_start_then() {
    let window = HoursWindow::parse("01:00-02:00", &[]).unwrap();
    let list = PriceList::new(&PriceListParts {
        tiers: vec![(ServiceTier::Priority, times("2"))],
        off_peak: Some((Schedule::new(vec![window]), times("0.25"))),
        ..parts()
    });
    let list = list.unwrap();
    assert_eq!(total(&list, 1000, STANDARD, 3599), "0.013");
    assert_eq!(total(&list, 1000, STANDARD, 3600), "0.01075");
    assert_eq!(total(&list, 1000, ServiceTier::Priority, 3600), "0.0115");
    assert!(list.is_off_peak(3600) && !list.is_off_peak(7200));
}

#[test]
fn reasoning_has_a_price_of_its_own_where_one_is_given() {
    let prices = PriceSet {
        output_reasoning: Some(price("40")),
        ..parts().base
    };
    let tokens = BilledTokens {
        completion: 100,
        reasoning: 60,
        ..BilledTokens::default()
    };
    let cost = |prices| {
        PriceList::fixed(prices)
            .at(PricePoint::default())
            .cost(&tokens)
    };
    // 40 × 10e-6 + 60 × 40e-6
    assert_eq!(cost(prices).details.output_cost.to_string(), "0.0028");
    assert_eq!(cost(parts().base).details.output_cost.to_string(), "0.001");
}

#[test]
fn a_price_is_free_or_premium_as_it_is_at_the_time() {
    let window = HoursWindow::parse("01:00-02:00", &[]).unwrap();
    let base = PriceSet {
        input: price("5"),
        output: price("1"),
        ..PriceSet::default()
    };
    let list = PriceList::new(&PriceListParts {
        base,
        off_peak: Some((Schedule::new(vec![window]), times("0"))),
        ..PriceListParts::default()
    });
    let list = list.unwrap();
    let at = |start_s| {
        let prices = list
            .at(PricePoint {
                tier: STANDARD,
                start_s,
            })
            .short();
        (prices.is_premium(), prices.is_free())
    };
    assert_eq!((at(0), at(3600)), ((true, false), (false, true)));
}

#[test]
fn plans_judge_a_model_by_its_usual_price_alone() {
    // Output 10 and input 4.5: not premium, though priority, the other hours and a region are dearer.
    let mut parts = parts();
    parts.base.input = price("4.5");
    let schedule = Schedule::new(vec![HoursWindow::parse("00:00-00:00", &[]).unwrap()]);
    parts.off_peak = Some((schedule, times("3")));
    parts.tiers = vec![(ServiceTier::Priority, times("2"))];
    let list = PriceList::new(&parts).unwrap();
    assert!(!list.is_premium());
    assert!(
        !list
            .scaled(Factor::parse("2").unwrap())
            .unwrap()
            .is_premium()
    );
    parts.base.output = price("15");
    parts.discount = Some(Factor::parse("0.5").unwrap());
    parts.off_peak = None;
    assert!(PriceList::new(&parts).unwrap().is_premium());
    assert!(PriceList::fixed(parts.base).is_premium());
}

#[test]
fn a_tier_without_steps_of_its_own_is_never_cheaper_beyond_one_than_before_it() {
    // The steps have input 5 and 8. Then for each tier: its own prices, and its input, cached and output beyond both
    // steps.
    let own = |input: &str, cached: &str, output: &str| TokenPrices {
        input: Some(price(input)),
        cached_input: Some(price(cached)),
        output: Some(price(output)),
        ..TokenPrices::default()
    };
    for (factor, own, steps) in [
        (
            "1",
            own("6", "2", "20"),
            [("6", "2", "20"), ("8", "2", "20")],
        ),
        (
            "1",
            own("1", "0.5", "4"),
            [("5", "0.5", "4"), ("8", "0.5", "4")],
        ),
        (
            "2",
            own("6", "2", "20"),
            [("10", "2", "20"), ("16", "2", "20")],
        ),
    ] {
        let change = PriceChange {
            own,
            ..times(factor)
        };
        let list = PriceList::new(&PriceListParts {
            tiers: vec![(ServiceTier::Priority, change)],
            ..parts()
        });
        let list = list.unwrap();
        for (prompt, (input, cached, output)) in [1001, 2001].into_iter().zip(steps) {
            let found = list.peak(ServiceTier::Priority).for_prompt(prompt);
            assert_eq!(
                (found.input, found.cached_input, found.output),
                (price(input), Some(price(cached)), price(output)),
                "{factor} {prompt}"
            );
        }
    }
}
