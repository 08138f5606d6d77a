#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;

use super::cost::cost;
use super::max_cost::max_cost;
use super::tally::Tally;
use super::*;

fn vector() -> PriceSet {
    PriceSet {
        input: Price::per_million("2.5").unwrap(),
        output: Price::per_million("10").unwrap(),
        cached_input: Some(Price::per_million("1.25").unwrap()),
        ..PriceSet::default()
    }
}

#[test]
fn the_published_vector_holds_to_the_last_digit() {
    let tokens = BilledTokens {
        prompt: 1000,
        cached: 400,
        completion: 100,
        ..BilledTokens::default()
    };
    let cost = cost(&vector(), &tokens);
    assert_eq!(cost.total.to_string(), "0.003");
    let parts = [
        cost.details.input_cost,
        cost.details.cached_input_cost,
        cost.details.output_cost,
    ];
    assert_eq!(
        parts.map(|part| part.to_string()),
        ["0.0015", "0.0005", "0.001"]
    );
}

#[test]
fn a_fee_per_request_is_no_inference() {
    let prices = PriceSet {
        request: Price::per_call("0.01").unwrap(),
        ..vector()
    };
    let cost = cost(
        &prices,
        &BilledTokens {
            prompt: 1000,
            cached: 400,
            completion: 100,
            ..BilledTokens::default()
        },
    );
    assert_eq!(cost.total.to_string(), "0.013");
    assert_eq!(cost.details.upstream_inference_cost.to_string(), "0.003");
}

#[test]
fn amounts_beyond_float_precision_are_exact() {
    let price = Price::per_million("0.546875000001").unwrap();
    assert_eq!(price.to_decimal(), "0.000000546875000001");
    assert_eq!(price.times(3).to_string(), "0.000001640625000003");
}

#[test]
fn amounts_that_are_not_plain_decimals_are_refused() {
    for bad in [
        "",
        "-1",
        "+1",
        "1e3",
        "1.",
        ".5",
        "0x1",
        " 1",
        "1,5",
        "0.0000000000001",
        "123456789012345678901234567890",
        "NaN",
    ] {
        assert!(Price::per_million(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        Price::per_million("1.2500000000000000").unwrap(),
        Price::per_million("1.25").unwrap()
    );
}

#[test]
fn an_amount_is_a_plain_decimal_below_a_trillion() {
    for (text, shown) in [
        ("0", "0"),
        ("1.00", "1"),
        (
            "999999999999.999999999999999999",
            "999999999999.999999999999999999",
        ),
        ("0.000000000000000001", "0.000000000000000001"),
    ] {
        assert_eq!(Usd::parse(text).unwrap().to_string(), shown);
    }
    for bad in [
        "",
        "-1",
        "-0",
        "+1",
        "1e3",
        "1000000000000",
        "123456789012345678901234567890",
        "0.0000000000000000001",
        "NaN",
        "1,00",
        "1.",
    ] {
        assert!(Usd::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_share_is_rounded_down_and_never_overflows() {
    let usd = |text| Usd::parse_signed(text).unwrap();
    assert_eq!(usd("537").share(150_000_000), usd("80.55"));
    assert_eq!(usd("0.000000000000000001").share(500_000_000), Usd::ZERO);
    assert_eq!(
        usd("999999999999").share(1_000_000_000),
        usd("999999999999")
    );
}

proptest! {
    #[test]
    fn written_amounts_are_parsed_back(units in any::<i64>(), times in 1..1_000_000_u64) {
        let price = Price::per_call("0.000000000000000001").unwrap();
        let amount = price.times(units.unsigned_abs());
        let amount = if units < 0 { Usd::ZERO.minus(amount) } else { amount };
        prop_assert_eq!(Usd::parse_signed(&amount.to_string()).unwrap(), amount);
        let more = price.times(times);
        prop_assert_eq!(amount.plus(more).minus(more), amount);
    }

    #[test]
    fn a_tally_needs_no_calendar_while_its_periods_last(
        start in 1..4_102_444_800_000_i64, steps in prop::collection::vec(0..40_000_000_i64, 1..200),
    ) {
        let mut tally = Tally::default();
        let mut at_ms = start;
        let mut charges = Vec::new();
        for step in steps {
            at_ms += step;
            charges.push(at_ms);
            tally.charge(Usd::from_units(1), at_ms);
            let since = |period: Period| {
                let start_ms = period.start_ms(at_ms);
                Usd::from_units(charges.iter().filter(|at| **at >= start_ms).count() as i128)
            };
            prop_assert_eq!(tally.spent(at_ms).periods, Period::ALL.map(since));
        }
    }

    #[test]
    fn the_parts_sum_to_the_total(
        prompt in 0..1u64 << 53, cached in 0..1u64 << 53, written in 0..1u64 << 53, completion in 0..1u64 << 53,
        media in proptest::array::uniform4(0..1u64 << 53), media_prices in proptest::array::uniform4(proptest::option::of(0..1000u64)),
        above in proptest::option::of(0..1u64 << 53),
        input in 0..1000u64, output in 0..1000u64, read in proptest::option::of(0..1000u64), fee in 0..1000u64,
    ) {
        let per_million = |price: u64| Price::per_million(&format!("{price}.000000000001")).unwrap();
        let prices = PriceSet {
            input: per_million(input), output: per_million(output), cached_input: read.map(per_million),
            request: per_million(fee), input_image: media_prices[0].map(per_million),
            input_audio: media_prices[1].map(per_million), output_image: media_prices[2].map(per_million),
            output_audio: media_prices[3].map(per_million),
            ..PriceSet::default()
        };
        let tokens = BilledTokens {
            prompt, cached, written_5m: written, completion, image_prompt: media[0], audio_prompt: media[1],
            image_completion: media[2], audio_completion: media[3], ..BilledTokens::default()
        };
        let dear = TokenPrices { input: Some(per_million(output)), ..TokenPrices::default() };
        let long: Vec<_> = above.iter().map(|above| (*above, dear)).collect();
        let cost = Rates::new(prices, &long).cost(&tokens);
        let d = cost.details;
        let sum = [d.input_cost, d.cached_input_cost, d.cache_write_input_cost, d.output_cost, d.request_cost, d.web_search_cost,
            d.image_input_cost, d.image_output_cost, d.audio_input_cost]
            .into_iter().fold(Usd::ZERO, Usd::plus);
        prop_assert_eq!(sum, cost.total);
        prop_assert_eq!(d.total_cost, cost.total);
        prop_assert_eq!(d.upstream_inference_prompt_cost.plus(d.upstream_inference_completions_cost), d.upstream_inference_cost);
    }
}

#[test]
fn tokens_of_pictures_and_sound_have_their_own_prices_and_count_once() {
    let price = |text| Some(Price::per_million(text).unwrap());
    let prices = PriceSet {
        input_audio: price("100"),
        input_image: price("1000"),
        output_audio: price("20"),
        output_image: price("30"),
        ..vector()
    };
    let tokens = BilledTokens {
        prompt: 1000,
        cached: 400,
        audio_prompt: 100,
        image_prompt: 200,
        completion: 100,
        audio_completion: 10,
        image_completion: 50,
        ..BilledTokens::default()
    };
    let parts = |cost: Cost| {
        let d = cost.details;
        let parts = [
            d.input_cost,
            d.cached_input_cost,
            d.audio_input_cost,
            d.image_input_cost,
            d.output_cost,
            d.image_output_cost,
            d.total_cost,
        ];
        parts.map(|part| part.to_string())
    };
    let expected = [
        "0.00075", "0.0005", "0.01", "0.2", "0.0006", "0.0015", "0.21335",
    ];
    assert_eq!(parts(cost(&prices, &tokens)), expected);
    // Without prices of their own they cost as the others.
    let plain = cost(&vector(), &tokens).total;
    assert_eq!(plain.to_string(), "0.003");
    // A report of more of them than there are tokens is no charge for more.
    let most = BilledTokens {
        audio_prompt: u64::MAX,
        image_prompt: u64::MAX,
        audio_completion: u64::MAX,
        image_completion: u64::MAX,
        ..tokens
    };
    let expected = ["0", "0.0005", "0", "0.6", "0", "0.003", "0.6035"];
    assert_eq!(parts(cost(&prices, &most)), expected);
}

#[test]
fn a_long_prompt_changes_the_price_of_every_token() {
    let long = TokenPrices {
        input: Some(Price::per_million("5").unwrap()),
        output: Some(Price::per_million("15").unwrap()),
        ..TokenPrices::default()
    };
    let prices = Rates::new(vector(), &[(1000, long)]);
    let at = |prompt| {
        let tokens = BilledTokens {
            prompt,
            cached: 400,
            completion: 100,
            ..BilledTokens::default()
        };
        prices.cost(&tokens).total.to_string()
    };
    assert_eq!(at(1000), "0.003");
    // 601 × 5e-6 + 400 × 1.25e-6 + 100 × 15e-6
    assert_eq!(at(1001), "0.005005");
    let reserved = |bytes| {
        let inputs = CostInputs {
            bytes,
            max_tokens: Some(100),
            ..CostInputs::default()
        };
        max_cost(&prices, &TokenBounds::default(), &inputs).to_string()
    };
    assert_eq!(
        (reserved(1000), reserved(1001)),
        ("0.0035".to_owned(), "0.006505".to_owned())
    );
}

#[test]
fn the_worst_case_draws_and_speaks_where_that_costs_more() {
    let price = |text| Some(Price::per_million(text).unwrap());
    let prices = PriceSet {
        input_audio: price("100"),
        output_image: price("30"),
        ..vector()
    };
    let inputs = CostInputs {
        bytes: 1000,
        audio: 1,
        max_tokens: Some(100),
        draws: Some(false),
        ..CostInputs::default()
    };
    let bounds = TokenBounds {
        audio_tokens: Some(10),
        ..TokenBounds::default()
    };
    // 1000 × 2.5e-6 + 10 × 100e-6 + 100 × 30e-6
    assert_eq!(
        max_cost(&Rates::new(prices, &[]), &bounds, &inputs).to_string(),
        "0.0065"
    );
}

#[test]
fn a_price_per_image_stands_in_place_of_that_of_its_tokens() {
    let prices = PriceSet {
        image: Some(Price::per_call("0.039000000001").unwrap()),
        output_image: Some(Price::per_million("30").unwrap()),
        ..vector()
    };
    let tokens = BilledTokens {
        completion: 1300,
        image_completion: 1290,
        images: 3,
        ..BilledTokens::default()
    };
    let cost = cost(&prices, &tokens);
    let details = cost.details;
    assert_eq!(details.image_output_cost.to_string(), "0.117000000003");
    assert_eq!(details.output_cost.to_string(), "0.0001");
    assert_eq!(cost.total.to_string(), "0.117100000003");
}

#[test]
fn the_worst_case_draws_as_many_images_as_an_answer_may_hold() {
    let prices = PriceSet {
        image: Some(Price::per_call("0.5").unwrap()),
        ..PriceSet::default()
    };
    let most = |drawn_images, wanted_images, choices, draws| {
        let inputs = CostInputs {
            wanted_images,
            choices,
            draws,
            ..CostInputs::default()
        };
        let bounds = TokenBounds {
            drawn_images,
            ..TokenBounds::default()
        };
        max_cost(&Rates::new(prices, &[]), &bounds, &inputs).to_string()
    };
    assert_eq!(most(None, 0, 1, Some(true)), "5");
    assert_eq!(most(Some(2), 0, 3, Some(true)), "3");
    assert_eq!(most(Some(2), 4, 1, Some(true)), "2");
    assert_eq!(most(Some(2), 4, 1, Some(false)), "0");
    // It is unknown whether it draws, but its images have a price.
    assert_eq!(most(Some(2), 0, 1, None), "1");
}

#[test]
fn the_worst_case_of_images_by_the_token_holds_their_tokens_whatever_the_limit() {
    let most = |output_image: Option<&str>, drawn_images, wanted_images, draws| {
        let prices = PriceSet {
            output: Price::per_million("10").unwrap(),
            output_image: output_image.map(|price| Price::per_million(price).unwrap()),
            ..PriceSet::default()
        };
        let inputs = CostInputs {
            max_tokens: Some(100),
            wanted_images,
            choices: 2,
            draws,
            ..CostInputs::default()
        };
        let bounds = TokenBounds {
            drawn_images,
            ..TokenBounds::default()
        };
        max_cost(&Rates::new(prices, &[]), &bounds, &inputs).to_string()
    };
    // 2 × 100 × 10e-6, and 2 × 2000 × 10e-6.
    assert_eq!(most(None, None, 0, Some(false)), "0.002");
    assert_eq!(most(None, None, 0, None), "0.002");
    assert_eq!(most(None, None, 0, Some(true)), "0.04");
    assert_eq!(most(None, Some(3), 0, Some(true)), "0.12");
    assert_eq!(most(None, None, 4, Some(true)), "0.16");
    assert_eq!(most(Some("30"), None, 0, None), "0.12");
}

#[test]
fn the_worst_case_counts_bytes_media_and_all_answers() {
    let inputs = CostInputs {
        bytes: 1000,
        images: 2,
        max_tokens: Some(500),
        choices: 3,
        ..CostInputs::default()
    };
    let bounds = TokenBounds {
        max_output: Some(200),
        image_tokens: Some(100),
        ..TokenBounds::default()
    };
    let prices = PriceSet {
        input: Price::per_million("1").unwrap(),
        cache_write: Some(Price::per_million("2").unwrap()),
        output: Price::per_million("10").unwrap(),
        request: Price::per_call("0.5").unwrap(),
        ..PriceSet::default()
    };
    // (1000 + 2 × 100) × 2e-6 + 3 × 200 × 1e-5 + 0.5
    assert_eq!(
        max_cost(&Rates::new(prices, &[]), &bounds, &inputs).to_string(),
        "0.5084"
    );
}

#[test]
fn the_windows_of_a_plan_are_a_week_and_a_day() {
    assert_eq!(tally::PREMIUM_WINDOW_MS, 604_800_000);
    assert_eq!(tally::DAILY_WINDOW_MS, 86_400_000);
}
