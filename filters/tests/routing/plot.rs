//! Draws a day: which provider answered the streams of the large model, for each strategy.

use std::fmt::Write;

use crate::day::{DAY_MS, EVENTS, PROVIDERS, Trouble};
use crate::report::{SLICE_MS, Shares, Summary, above};

const COLOURS: [&str; PROVIDERS.len()] = ["#3b6ea8", "#c9822b", "#5c9a54", "#8d6bb0"];
const LEFT: f64 = 40.0;
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 110.0;
/// From one strategy to the next.
const STEP: f64 = 196.0;
const TOP: f64 = 64.0;

fn x(at_ms: u64) -> f64 {
    LEFT + WIDTH * at_ms as f64 / DAY_MS as f64
}

/// Returns the drawing as SVG.
pub(crate) fn draw(days: &[(&str, Summary)]) -> String {
    let height = TOP + STEP * days.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"900\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (at, name) in PROVIDERS.iter().enumerate() {
        let x = LEFT + 90.0 * at as f64;
        _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"12\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"22\">{name}</text>",
            COLOURS[at],
            x + 18.0
        );
    }
    _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"42\" fill=\"#555\">share of the streams of one model; percentages beside an oracle that knows the future</text>"
    );
    for (at, (name, day)) in days.iter().enumerate() {
        draw_day(&mut svg, name, day, TOP + STEP * at as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_day(svg: &mut String, name: &str, day: &Summary, top: f64) {
    let bottom = top + HEIGHT;
    _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\"><tspan font-weight=\"bold\">{name}</tspan>: cost {}, first content {}, throughput {}; {} of {} calls failed, {} failed attempts</text>",
        top - 6.0,
        above(day.cost),
        above(day.latency_ms),
        above(day.rate),
        day.failed_calls,
        day.calls,
        day.failed_attempts
    );
    let mut below = vec![0.0; day.shares.len()];
    for (provider, colour) in COLOURS.iter().enumerate() {
        let path = band(&day.shares, &mut below, provider, bottom);
        _ = writeln!(svg, "<path d=\"{path}\" fill=\"{colour}\"/>");
    }
    for hour in (0..=24).step_by(4) {
        let x = x(hour * 3_600_000);
        _ = writeln!(
            svg,
            "<text x=\"{x:.0}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{hour}:00</text>",
            bottom + 44.0
        );
    }
    for (at, event) in EVENTS.iter().enumerate() {
        let (from, until) = (x(event.from_ms), x(event.until_ms));
        let provider = PROVIDERS.iter().position(|it| *it == event.provider);
        let y = bottom + 4.0 + 9.0 * (at % 3) as f64;
        _ = writeln!(
            svg,
            "<rect x=\"{from:.0}\" y=\"{y}\" width=\"{:.0}\" height=\"7\" fill=\"{}\"><title>{} {}</title></rect>",
            (until - from).max(3.0),
            COLOURS[provider.unwrap_or_default()],
            event.provider,
            word(event.trouble)
        );
    }
}

/// Returns the path of one provider's share on top of those before it.
fn band(shares: &[Shares], below: &mut [f64], provider: usize, bottom: f64) -> String {
    let y = |share: f64| bottom - HEIGHT * share;
    let (mut upper, mut lower) = (String::from("M"), Vec::new());
    for (slice, base) in below.iter_mut().enumerate() {
        let (from, until) = (x(slice as u64 * SLICE_MS), x((slice as u64 + 1) * SLICE_MS));
        lower.push(format!("{from:.0} {0:.0}", y(*base)));
        lower.push(format!("{until:.0} {0:.0}", y(*base)));
        *base += shares[slice][provider];
        _ = write!(upper, "{from:.0} {0:.0} {until:.0} {0:.0} ", y(*base));
    }
    // Steps back along the lower edge.
    let back: Vec<String> = lower.into_iter().rev().collect();
    format!("{upper}L{}Z", back.join(" "))
}

fn word(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Refuses => "refuses connections",
        Trouble::Hangs => "says nothing",
        Trouble::BrownsOut => "fails three of ten",
        Trouble::IsSlow => "is six times as slow",
        Trouble::Throttles(_) => "answers six calls a minute",
    }
}
