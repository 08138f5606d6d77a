#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// Budgets as a kind of provider has them.
const KIND: ThinkingDefaults = ThinkingDefaults {
    control: ThinkingControl::Budget,
    budgets: [
        None,
        Some(512),
        Some(2048),
        Some(8192),
        Some(24_576),
        Some(65_536),
        None,
    ],
    bounds: (None, None),
    can_switch_off: false,
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
    lack.map(|(field, reason)| format!("{field}: {reason}"))
}

#[test]
fn efforts_of_budgets_are_those_inside_the_bounds_and_the_highest_is_the_bound() {
    use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
    for (min, max, efforts) in [
        (0, 24_576, vec![None, Minimal, Low, Medium, High]),
        (128, 32_768, vec![Minimal, Low, Medium, High, Max]),
        (1024, 100_000, vec![Low, Medium, High, Xhigh, Max]),
    ] {
        let thinking = thinking(&within(min, max));
        assert_eq!(thinking.efforts, efforts);
        let budgets = efforts.iter().filter_map(|effort| thinking.budget(*effort));
        assert!(
            budgets.clone().is_sorted_by(|a, b| a < b),
            "none is lowered to another"
        );
        assert!(budgets.clone().all(|budget| (min..=max).contains(&budget)));
    }
    assert_eq!(thinking(&within(128, 32_768)).budget(Max), Some(32_768));
}

#[test]
fn an_effort_without_a_budget_inside_the_bounds_is_a_configuration_error() {
    let efforts = [Effort::Low, Effort::Xhigh];
    let written = WrittenThinking {
        efforts: &efforts,
        ..within(0, 24_576)
    };
    let (key, problem) = Thinking::new(&written, &KIND).unwrap_err();
    assert_eq!(key, "reasoning_efforts");
    assert!(
        problem.contains("`xhigh`") && problem.contains("from 0 to 24576"),
        "{problem}"
    );
    let (key, problem) = Thinking::new(&within(9, 8), &KIND).unwrap_err();
    assert_eq!(key, "budget_min");
    assert!(problem.contains("`budget_min` is 9"), "{problem}");
}

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

#[test]
fn no_reasoning_reaches_only_models_that_can_be_told_so_or_do_not_reason() {
    let off = asks(Some(Effort::None), None);
    let with = |control, efforts: &'static [Effort], reasons| {
        thinking(&WrittenThinking {
            control: Some(control),
            efforts,
            reasons,
            ..WrittenThinking::default()
        })
    };
    let levels = with(
        ThinkingControl::Levels,
        &[Effort::Low, Effort::High],
        Some(true),
    );
    assert_eq!(
        lack(&levels, &off).unwrap(),
        "reasoning_effort: takes the efforts low, high, not none"
    );
    let fixed = with(ThinkingControl::Fixed, &[], Some(true));
    assert_eq!(
        lack(&fixed, &off).unwrap(),
        "reasoning_effort: reasons always, and takes no effort"
    );
    assert!(fixed.is_on(&asks(None, None)));
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
        assert_eq!(lack(&able, &off), None);
        assert!(!able.is_on(&off));
    }
    assert!(lack(&thinking(&within(128, 1000)), &off).is_some());
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
