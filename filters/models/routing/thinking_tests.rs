#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::models::dialects::Dialect;

/// Budgets as a kind of provider has them.
const KIND: ThinkingDefaults = ThinkingDefaults {
    control: ThinkingControl::Budget,
    can_switch_off: false,
    says_none: false,
    ..ThinkingDefaults::LEVELS
};

fn thinking(written: &WrittenThinking<'_>) -> Thinking {
    Thinking::new(written, &KIND).unwrap()
}

fn within(budget_min: u64, budget_max: u64) -> WrittenThinking<'static> {
    WrittenThinking {
        budget_min: Some(budget_min),
        budget_max: Some(budget_max),
        reasons: Some(true),
        ..WrittenThinking::default()
    }
}

fn asks(effort: Option<Effort>, reasoning_tokens: Option<u64>) -> Needs {
    Needs {
        effort,
        reasoning_tokens,
        ..Needs::default()
    }
}

fn lack(thinking: &Thinking, needs: &Needs) -> Option<String> {
    let lack = thinking.check(needs).err();
    lack.map(|(field, reason)| format!("{}: {reason}", Dialect::Chat.name_of(field)))
}

/// The budgets of all efforts, in order.
fn budgets(thinking: &Thinking) -> [Option<u64>; 7] {
    Effort::ALL.map(|effort| thinking.budget(effort))
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 3
/// Contract: model-gateway 2.1 reasoning_effort 2
#[test]
fn every_effort_has_the_nearest_budget_and_none_is_off_or_the_least() {
    let (off, some) = (None, Some);
    for (min, max, expected) in [
        // Gemini 2.5 Flash, whose budgets begin at 0.
        (
            0,
            24_576,
            [
                off,
                some(512),
                some(2048),
                some(8192),
                some(24_576),
                some(24_576),
                some(24_576),
            ],
        ),
        // Gemini 2.5 Pro, which cannot be switched off.
        (
            128,
            32_768,
            [
                some(128),
                some(512),
                some(2048),
                some(8192),
                some(24_576),
                some(32_768),
                some(32_768),
            ],
        ),
        // `max` is above `xhigh` wherever there is room.
        (
            1024,
            100_000,
            [
                some(1024),
                some(1024),
                some(2048),
                some(8192),
                some(24_576),
                some(65_536),
                some(100_000),
            ],
        ),
        (
            30_000,
            40_000,
            [
                some(30_000),
                some(30_000),
                some(30_000),
                some(30_000),
                some(30_000),
                some(40_000),
                some(40_000),
            ],
        ),
    ] {
        let thinking = thinking(&within(min, max));
        assert_eq!(budgets(&thinking), expected);
        assert_eq!(thinking.efforts, Effort::ALL, "all are taken");
        for effort in Effort::ALL {
            assert_eq!(lack(&thinking, &asks(Some(effort), None)), None);
        }
        assert_eq!(thinking.is_on(&asks(Some(Effort::None), None)), min > 0);
    }
    let listed = WrittenThinking {
        efforts: &[Effort::None, Effort::High],
        ..within(512, 24_576)
    };
    assert_eq!(
        budgets(&thinking(&listed))[..3],
        [None, Some(512), Some(2048)]
    );
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 3
#[test]
fn a_budget_that_nobody_bounds_leaves_room_for_an_answer() {
    let small = thinking(&WrittenThinking {
        max_output: Some(8192),
        reasons: Some(true),
        ..WrittenThinking::default()
    });
    assert_eq!(budgets(&small)[4..], [Some(7192); 3]);
    let tiny = WrittenThinking {
        max_output: Some(500),
        ..within(1024, 2048)
    };
    assert_eq!(budgets(&thinking(&tiny))[4..], [Some(2048); 3]);
}

#[test]
fn bounds_that_do_not_bound_are_a_configuration_error() {
    let (key, problem) = Thinking::new(&within(9, 8), &KIND).unwrap_err();
    assert_eq!(key, "budget_min");
    assert!(problem.contains("`budget_min` is 9"), "{problem}");
}

/// Contract: model-gateway 2.1 reasoning
#[test]
fn an_exact_budget_is_taken_inside_the_bounds_and_nowhere_else() {
    let budgets = thinking(&within(128, 1000));
    assert_eq!(lack(&budgets, &asks(None, Some(128))), None);
    assert_eq!(
        budgets.asked_budget(&asks(Some(Effort::High), Some(128))),
        Some(128)
    );
    for budget in [127, 1001] {
        assert_eq!(
            lack(&budgets, &asks(None, Some(budget))).unwrap(),
            "reasoning.max_tokens: takes budgets from 128 to 1000"
        );
    }
    let levels = WrittenThinking {
        control: Some(ThinkingControl::Levels),
        reasons: Some(true),
        ..WrittenThinking::default()
    };
    assert_eq!(
        lack(&thinking(&levels), &asks(None, Some(500))).unwrap(),
        "reasoning.max_tokens: takes efforts, not budgets"
    );
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 1 and 3
#[test]
fn an_effort_that_is_not_listed_is_a_wish_and_no_lack() {
    let with = |control, efforts: &'static [Effort], reasons| {
        thinking(&WrittenThinking {
            control: Some(control),
            efforts,
            reasons,
            ..WrittenThinking::default()
        })
    };
    let wish = |thinking: &Thinking, effort| {
        let needs = asks(Some(effort), None);
        assert_eq!(lack(thinking, &needs), None);
        thinking.check_listed(&needs).err()
    };
    let levels = with(
        ThinkingControl::Levels,
        &[Effort::Low, Effort::High],
        Some(true),
    );
    assert_eq!(wish(&levels, Effort::High), None);
    let xhigh = wish(&levels, Effort::Xhigh).unwrap();
    assert_eq!(xhigh, "takes the efforts low, high, not xhigh");
    assert!(wish(&levels, Effort::None).is_some());
    let off = asks(Some(Effort::None), None);
    assert_eq!(
        levels.asked_word(&off),
        Some(Effort::Low),
        "it cannot be switched off"
    );
    assert!(levels.is_on(&off));
    for able in [
        with(
            ThinkingControl::Levels,
            &[Effort::None, Effort::High],
            Some(true),
        ),
        with(ThinkingControl::Levels, &[], Some(false)),
        with(ThinkingControl::Levels, &[], None),
        thinking(&within(0, 100)),
    ] {
        assert_eq!(wish(&able, Effort::None), None);
        assert!(!able.is_on(&off));
    }
    assert!(wish(&thinking(&within(128, 1000)), Effort::None).is_some());
    let fixed = with(ThinkingControl::Fixed, &[], Some(true));
    assert_eq!(
        lack(&fixed, &off).unwrap(),
        "reasoning_effort: reasons always, and takes no effort"
    );
    assert!(fixed.is_on(&asks(None, None)));
}

#[test]
fn a_model_reasons_if_it_is_asked_to_or_does_so_by_default() {
    let by_default = thinking(&WrittenThinking {
        by_default: true,
        ..within(0, 100)
    });
    assert!(by_default.is_on(&asks(None, None)));
    assert!(!by_default.is_on(&asks(Some(Effort::None), None)));
    let asked = thinking(&within(0, 100_000));
    assert!(!asked.is_on(&asks(None, None)));
    assert!(asked.is_on(&asks(Some(Effort::Low), None)));
    assert!(asked.is_on(&asks(None, Some(5))));
    let never = thinking(&WrittenThinking {
        reasons: Some(false),
        ..WrittenThinking::default()
    });
    assert!(!never.is_on(&asks(Some(Effort::Low), None)));
    assert_eq!(
        lack(&never, &asks(Some(Effort::Low), None)).unwrap(),
        "reasoning_effort: does not reason"
    );
}
