//! The attempts of a call: in order, with why each failed, and on the axis of the call's time.

use maud::{Markup, html};

use crate::console::parts::{TableColumn, Tone, badge, duration, number, table, text};
use crate::telemetry::calls::{KeptAttempt, KeptCall};

/// The width of a drawing, in its own units, of which the whole call takes all.
const WIDTH: f64 = 1000.0;
/// A bar has at least this width, so that a short attempt is seen.
const LEAST: f64 = 4.0;

const COLUMNS: [TableColumn; 8] = [
    text("Provider"),
    text("Model there"),
    text("Outcome"),
    text("Key"),
    number("Began"),
    number("Answered"),
    number("Ended"),
    text("In the time of the call"),
];

/// A part of a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    class: &'static str,
    x: f64,
    width: f64,
}

pub(super) fn attempts(call: &KeptCall) -> Markup {
    let whole_ms = whole_ms(call);
    let rows: Vec<_> = call.attempts.iter().map(|it| row(it, whole_ms)).collect();
    let none = match call.cached {
        true => "None: a stored reply was replayed.",
        false => "None was begun.",
    };
    html! {
        (table("Attempts, first to last; times since the request began", &COLUMNS, &rows, none))
        @if !rows.is_empty() {
            p.muted { "A bar begins grey while the provider has not answered, and goes on in colour until the attempt ends." }
        }
    }
}

fn row(attempt: &KeptAttempt, whole_ms: f64) -> Vec<Markup> {
    let at = |ms: Option<f64>| match ms {
        Some(ms) => html! { (duration(ms)) },
        None => html! { span.muted { "–" } },
    };
    let region = (!attempt.region.is_empty()).then_some(&attempt.region);
    vec![
        html! { (attempt.provider) @if let Some(region) = region { " " span.muted { (region) } } },
        html! { (attempt.model) },
        outcome(attempt),
        html! { (attempt.credential_source) " " span.muted { (attempt.provider_key_label) } },
        at(attempt.begun_ms),
        at(attempt.answered_ms),
        at(attempt.ended_ms),
        drawing(attempt, whole_ms),
    ]
}

fn outcome(attempt: &KeptAttempt) -> Markup {
    if attempt.succeeded {
        return badge(Tone::Good, "succeeded");
    }
    let text = match attempt.status_code {
        0 => attempt.error_type.clone(),
        status => format!("{status} {}", attempt.error_type),
    };
    // One that was not made, or that another one has overtaken, has not failed.
    let tone = match attempt.begun_ms.is_some() && attempt.error_type != "cancelled" {
        true => Tone::Bad,
        false => Tone::Neutral,
    };
    html! { (badge(tone, &text)) @if !attempt.cause.is_empty() { br; (attempt.cause) } }
}

fn drawing(attempt: &KeptAttempt, whole_ms: f64) -> Markup {
    let bars = bars(attempt, whole_ms);
    if bars.is_empty() {
        return html! { span.muted { "not begun" } };
    }
    // The columns beside it have the numbers.
    html! {
        svg.waterfall viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true" {
            @for bar in bars {
                rect class=(bar.class) x=(bar.x) y="2" width=(bar.width) height="16" {}
            }
        }
    }
}

/// Returns the time that the drawings span.
fn whole_ms(call: &KeptCall) -> f64 {
    let ends = call.attempts.iter().filter_map(|attempt| attempt.ended_ms);
    ends.fold(call.duration_ms, f64::max).max(0.001)
}

fn bars(attempt: &KeptAttempt, whole_ms: f64) -> Vec<Bar> {
    let Some((begun, ended)) = attempt.begun_ms.zip(attempt.ended_ms) else {
        return Vec::new();
    };
    let bar = |class, from: f64, to: f64| {
        let x = scaled(from, whole_ms).min(WIDTH - LEAST);
        let width = (scaled(to, whole_ms) - x).max(LEAST);
        Bar { class, x, width }
    };
    let end = if attempt.succeeded {
        "stream"
    } else {
        "failed"
    };
    match attempt.answered_ms {
        Some(answered) => vec![bar("wait", begun, answered), bar(end, answered, ended)],
        None => vec![bar(end, begun, ended)],
    }
}

/// Returns the place of a time, to a tenth of a unit.
fn scaled(at_ms: f64, whole_ms: f64) -> f64 {
    ((at_ms / whole_ms).clamp(0.0, 1.0) * WIDTH * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(times: [Option<f64>; 3], succeeded: bool) -> KeptAttempt {
        let [begun_ms, answered_ms, ended_ms] = times;
        KeptAttempt {
            begun_ms,
            answered_ms,
            ended_ms,
            succeeded,
            ..KeptAttempt::default()
        }
    }

    #[test]
    fn an_attempt_stands_where_its_times_are() {
        let bar = |class, x, width| Bar { class, x, width };
        let whole = attempt([Some(50.0), Some(75.0), Some(100.0)], true);
        let expected = [bar("wait", 500.0, 250.0), bar("stream", 750.0, 250.0)];
        assert_eq!(bars(&whole, 100.0), expected);
        let failed = attempt([Some(0.0), None, Some(100.0)], false);
        assert_eq!(bars(&failed, 100.0), [bar("failed", 0.0, 1000.0)]);
        let short = attempt([Some(100.0), None, Some(100.0)], false);
        assert_eq!(bars(&short, 100.0), [bar("failed", 996.0, 4.0)]);
        assert!(bars(&attempt([None; 3], false), 100.0).is_empty());
    }

    #[test]
    fn times_outside_the_call_stay_inside_the_drawing() {
        for times in [[-5.0, -1.0, 1e300], [3.0, 2.0, 1.0], [f64::MAX; 3]] {
            for bar in bars(&attempt(times.map(Some), true), 0.001) {
                assert!(bar.x >= 0.0 && bar.width >= LEAST, "{bar:?}");
                assert!(bar.x + bar.width <= WIDTH + LEAST, "{bar:?}");
            }
        }
    }
}
