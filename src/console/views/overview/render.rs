//! The overview as a page.

use filters::money::Price;
use maud::{Markup, html};

use super::data::{Live, Overview, ProviderRow};
use super::{DIVISIONS, PERIODS};
use crate::console::parts::{
    self, Plot, PlotSeries, Tone, badge, count, duration, figure, number, text,
};
use crate::console::store_answers::LongAnswer;
use crate::console::views::links::link;
use crate::console::views::spend_limits::{key_link, nearest, organization_link};
use crate::console::views::spending::{self, Look, LookBack, percent, spender_name};
use crate::control::status::{ProcessStatus, SERVES};
use crate::models::planner::PriceSpan;
use crate::store::ledger::{NearLimit, SpendBy, SpendQuery, Spender, Spending};
use crate::telemetry::load::{Durations, LoadPeriod, MinuteLoad, SAMPLE_INTERVAL_MS};
use crate::telemetry::reload::ReloadResult;

/// How many seconds calls may wait for the store before that is no more as usual.
const USUAL_LAG_S: f64 = 10.0;

/// The minutes of a plot of the last hour.
const MINUTES: usize = 60;

/// The whole page.
pub(super) fn page(overview: &Overview) -> Markup {
    html! {
        (live(&overview.live))
        (hour(&overview.live.hour))
        (spend(overview))
        h2 { "What is near its end" }
        (near(&overview.nearest))
        (process(&overview.live))
    }
}

/// How it is now. It is asked for again while the page is open.
pub(super) fn live(live: &Live) -> Markup {
    html! {
        div #live hx-get="/console?part=live" hx-trigger="every 5s" hx-swap="outerHTML" {
            (well(live))
            (providers(live))
            (waiting(live))
        }
    }
}

/// Is it well?
fn well(live: &Live) -> Markup {
    let status = &live.status;
    let tone = match status.state.as_str() {
        SERVES => Tone::Good,
        _ => Tone::Bad,
    };
    let load = &status.load;
    let whole = |number: i64| html! { (count(number.unsigned_abs())) };
    html! {
        dl.figures {
            (figure("State", &badge(tone, &status.state), None))
            (figure("Running requests", &whole(load.in_flight), None))
            (figure("Open streams", &whole(load.streams), None))
            (figure("Client connections", &whole(load.connections), None))
            (figure("Requests", &html! { (count(load.requests)) }, Some("since the start of this process")))
        }
    }
}

/// The last hour of this process. It is asked for again as each minute ends.
pub(super) fn hour(hour: &LoadPeriod) -> Markup {
    let all = hour.load.all_routes();
    let providers = hour.load.all_providers();
    let minutes = (hour.until_ms - hour.since_ms) as f64 / 60_000.0;
    let rate = match minutes > 0.0 {
        true => format!("{:.1} a minute", all.requests() as f64 / minutes),
        false => "counting has just begun".to_owned(),
    };
    let whole = |number: u64| html! { (count(number)) };
    let of_all = |part: u64| percent(part as f64, all.requests() as f64);
    html! {
      div #hour hx-get="/console?part=hour" hx-trigger="every 60s" hx-swap="outerHTML" {
        h2 { "The last hour of this process" }
        p.muted { "Counted since " (parts::time(hour.since_ms)) " UTC. Percentiles are as exact as the steps of the histograms." }
        dl.figures {
            (figure("Requests", &whole(all.requests()), Some(&rate)))
            (figure("Failed (5xx)", &whole(all.failed()), Some(&of_all(all.failed()))))
            (figure("Refused (4xx)", &whole(all.refused()), Some(&of_all(all.refused()))))
            (quantiles("To the first content", &providers.first_content))
            (quantiles("To a provider's first byte", &providers.first_byte))
        }
        div.plots {
            (parts::plot("Requests in each minute", &requests_plot(&hour.minutes)))
            (parts::plot("Time to the first content, in milliseconds", &latency_plot(&hour.minutes)))
        }
        (routes(hour))
      }
    }
}

fn quantiles(name: &str, measured: &Durations) -> Markup {
    let shown = |share: f64| seconds(measured, share);
    let note = format!("median; 95 % within {}", shown(0.95));
    figure(name, &html! { (shown(0.5)) }, Some(&note))
}

fn seconds(measured: &Durations, share: f64) -> String {
    let quantile = measured.quantile(share);
    quantile.map_or_else(|| "–".to_owned(), |seconds| duration(seconds * 1000.0))
}

fn routes(hour: &LoadPeriod) -> Markup {
    let columns = [
        text("Route"),
        number("Requests"),
        number("Refused (4xx)"),
        number("Failed (5xx)"),
        number("Median"),
        number("95 % within"),
    ];
    let mut routes: Vec<_> = hour.load.routes.iter().collect();
    routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.requests()));
    let rows = routes.into_iter().map(|(name, route)| {
        vec![
            html! { code { (name) } },
            html! { (count(route.requests())) },
            html! { (count(route.refused())) },
            html! { (count(route.failed())) },
            html! { (seconds(&route.seconds, 0.5)) },
            html! { (seconds(&route.seconds, 0.95)) },
        ]
    });
    let rows: Vec<_> = rows.collect();
    parts::table(
        "Routes in the last hour",
        &columns,
        &rows,
        "No request has ended in this time.",
    )
}

fn requests_plot(minutes: &[MinuteLoad]) -> Plot {
    let answered = |it: &MinuteLoad| it.requests.saturating_sub(it.failed + it.refused);
    let count = |of: u64| Some(of as f64);
    minutes_plot(
        minutes,
        (true, ""),
        [
            ("answered", &|it| count(answered(it))),
            ("refused (4xx)", &|it| count(it.refused)),
            ("failed (5xx)", &|it| count(it.failed)),
        ],
    )
}

fn latency_plot(minutes: &[MinuteLoad]) -> Plot {
    let ms = |it: &MinuteLoad, share| it.first_content.quantile(share).map(|s: f64| s * 1000.0);
    minutes_plot(
        minutes,
        (false, "ms"),
        [
            ("median", &|it| ms(it, 0.5)),
            ("95 % within", &|it| ms(it, 0.95)),
        ],
    )
}

/// A line or a part of a bar: its name, and its value in a minute.
type MinuteSeries<'s> = (&'s str, &'s dyn Fn(&MinuteLoad) -> Option<f64>);

/// Makes a plot of an hour. Of minutes before the first one that was counted nothing is known.
fn minutes_plot<const N: usize>(
    minutes: &[MinuteLoad],
    (is_stacked, unit): (bool, &'static str),
    series: [MinuteSeries<'_>; N],
) -> Plot {
    let first_ms = minutes.first().map_or(0, |it| it.until_ms);
    let missing = MINUTES.saturating_sub(minutes.len());
    let missing = (1..=missing).rev().filter_map(|n| i64::try_from(n).ok());
    let before: Vec<i64> = missing.map(|n| first_ms - n * SAMPLE_INTERVAL_MS).collect();
    let ends = minutes.iter().map(|it| it.until_ms);
    let ends = before.iter().copied().chain(ends);
    let series = series.into_iter().map(|(name, of)| {
        let unknown = before.iter().map(|_| None);
        PlotSeries {
            name: name.to_owned(),
            values: unknown.chain(minutes.iter().map(of)).collect(),
        }
    });
    Plot {
        is_stacked,
        unit,
        series: series.collect(),
        at: ends.map(|ms| ms / 1000).collect(),
    }
}

fn providers(live: &Live) -> Markup {
    let columns = [
        text("Provider"),
        text("Health"),
        number("Attempts"),
        number("Share"),
        number("Failed"),
        number("a minute"),
        number("First content, median"),
        number("Tokens a second"),
        number("Input, USD per million"),
        number("Output, USD per million"),
    ];
    let minutes = (live.hour.until_ms - live.hour.since_ms).max(1) as f64 / 60_000.0;
    let all = live.hour.load.all_providers().attempts;
    let rows = live.providers.iter().map(|row| {
        let (standing, load) = (&row.standing, &row.load);
        let throughput = standing
            .stats
            .map(|stats| format!("{:.0}", stats.throughput));
        vec![
            html! { (standing.name) @if standing.is_sandbox { " " span.muted { "(built in)" } } },
            health(row),
            html! { (count(load.attempts)) },
            html! { (percent(load.attempts as f64, all as f64)) },
            html! { (count(load.failed)) },
            html! { (format!("{:.1}", load.attempts as f64 / minutes)) },
            html! { (seconds(&load.first_content, 0.5)) },
            html! { (throughput.as_deref().unwrap_or("–")) },
            html! { (prices(standing.input)) },
            html! { (prices(standing.output)) },
        ]
    });
    let rows: Vec<_> = rows.collect();
    html! {
        h2 { "Providers" }
        p.muted {
            "Health and speed are the measurements by which calls are routed; attempts are those of the last hour of this process."
        }
        (parts::table("Providers", &columns, &rows, "No provider is configured."))
    }
}

/// Whether a provider is asked.
fn health(row: &ProviderRow) -> Markup {
    let standing = &row.standing;
    let uptime = standing
        .stats
        .map(|stats| format!("{:.1} % answered", stats.uptime));
    let uptime = uptime.unwrap_or_else(|| "not measured".to_owned());
    let (tone, word) = match (standing.candidates, standing.resting) {
        (0, _) => (Tone::Neutral, "any model".to_owned()),
        (_, 0) => (Tone::Good, "ready".to_owned()),
        (all, resting) if resting >= all => (Tone::Bad, "rests: asked last".to_owned()),
        (all, resting) => (Tone::Warning, format!("{resting} of {all} rest")),
    };
    html! { (badge(tone, &word)) " " span.muted { (uptime) } }
}

fn prices(span: Option<PriceSpan>) -> String {
    let per_million = |price: Price| parts::money(price.times(1_000_000));
    match span {
        None => "–".to_owned(),
        Some(span) if span.least == span.greatest => per_million(span.least),
        Some(span) => format!(
            "{} to {}",
            per_million(span.least),
            per_million(span.greatest)
        ),
    }
}

/// What waits for the store and for others.
fn waiting(live: &Live) -> Markup {
    let ProcessStatus {
        store,
        journal,
        redis,
        leases,
        ..
    } = &live.status;
    let store_tone = match store.state.as_str() {
        "answers" => Tone::Good,
        _ => Tone::Bad,
    };
    let lag_tone = match journal.lag_s <= USUAL_LAG_S {
        true => Tone::Good,
        false => Tone::Warning,
    };
    let (export_bytes, export_s) = live.waiting.log_export;
    html! {
        h2 { "What waits" }
        dl.pairs {
            dt { "Store" }
            dd { (badge(store_tone, &store.state)) " " (store.url) ", confirmed " (store.confirmed_s) " s ago" }
            dt { "Calls for the store" }
            dd {
                (badge(lag_tone, &format!("the oldest waits {:.1} s", journal.lag_s)))
                " journal of " (count(journal.bytes.unsigned_abs())) " bytes"
                @if journal.refused > 0 { ", " (badge(Tone::Bad, &format!("{} refused", count(journal.refused)))) }
            }
            dt { "Running calls" }
            dd { "may cost at most " (parts::money(format!("{:.4}", live.waiting.reserved))) ", of credit " (parts::money(&leases.reserved)) }
            @if let Some(redis) = redis {
                dt { "Redis" }
                dd { (badge(if redis == "answers" { Tone::Good } else { Tone::Bad }, redis)) }
            }
            dt { "Lines for the log export" }
            dd { (count(export_bytes.unsigned_abs())) " bytes" @if export_bytes > 0 { ", the oldest waits " (export_s) " s" } }
        }
    }
}

/// What was spent, from the store: by all processes.
fn spend(overview: &Overview) -> Markup {
    let look = overview.look;
    html! {
        h2 { "Calls and spend: " (look.back.in_words().to_lowercase()) }
        (look.choices("/console", &[], (&PERIODS, &DIVISIONS)))
        @if look.back == LookBack::Hour {
            p.muted { "Whole hours are summed, so that the sums are those of " code { "weirgate usage" } "." }
        }
        (spend_section(look, &overview.asked, &overview.spending))
    }
}

/// The sums of [`spend`].
pub(super) fn spend_section(
    look: Look,
    asked: &SpendQuery,
    answer: &LongAnswer<Spending>,
) -> Markup {
    let own = [
        ("part", "spend"),
        ("period", look.back.as_str()),
        ("by", look.by.as_str()),
    ];
    let address = link("/console", &own);
    spending::section(asked, answer, &address, |it| spender(look.by, it))
}

/// The limits that are nearest to their end.
pub(super) fn near(limits: &LongAnswer<Vec<NearLimit>>) -> Markup {
    let caption = "The limits of which the greatest shares are used";
    html! {
        @match limits {
            Err(error) => { p.notice role="alert" { "The store does not tell which limits are near their end: " (error) } }
            Ok(None) => { (spending::coming("/console?part=nearest", "Limits are being compared.")) }
            Ok(Some(kept)) => { (nearest(caption, &kept.answer)) }
        }
    }
}

fn spender(by: SpendBy, spender: &Spender) -> Markup {
    match (by, &spender.label) {
        (SpendBy::Organization, Some(name)) => organization_link(name),
        (SpendBy::Key, Some(label)) => key_link(&spender.usage.name, label),
        _ => html! { (spender_name(spender)) },
    }
}

/// This process and its configuration.
fn process(live: &Live) -> Markup {
    let status = &live.status;
    let configuration = &live.configuration;
    let uptime = duration(status.uptime_s as f64 * 1000.0);
    let memory = status
        .load
        .memory_bytes
        .map(|bytes| format!("{} MB", bytes / 1_000_000));
    html! {
        h2 { "This process" }
        dl.pairs {
            dt { "Version" }
            dd { (status.version) ", process " (status.process) }
            dt { "Since" }
            dd { (status.started_at) " (" (uptime) ")" }
            dt { "Listens on" }
            dd { @for (at, address) in status.listeners.iter().enumerate() { @if at > 0 { ", admin " } (address) } }
            @if let Some(memory) = memory {
                dt { "Memory" }
                dd { (memory) }
            }
            dt { "Configuration" }
            dd { code { (configuration.hash) } " since " (parts::time(configuration.loaded_at.as_millisecond())) " UTC" }
            dt { "Last reload" }
            dd {
                @match &configuration.last {
                    None => { "none since the start" }
                    Some(last) => {
                        (badge(reload_tone(last.result), last.result.as_str())) " "
                        (parts::time(last.at.as_millisecond())) " UTC"
                        @if !last.problems.is_empty() {
                            ul { @for problem in &last.problems { li { (problem) } } }
                        }
                    }
                }
            }
        }
    }
}

fn reload_tone(result: ReloadResult) -> Tone {
    match result {
        ReloadResult::Ok | ReloadResult::Unchanged => Tone::Good,
        ReloadResult::Refused => Tone::Warning,
        ReloadResult::Failed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn a_plot_of_minutes_is_of_an_hour_however_few_were_counted() {
        let minute = |n: i64| MinuteLoad {
            until_ms: n * SAMPLE_INTERVAL_MS,
            requests: 5,
            failed: 2,
            ..MinuteLoad::default()
        };
        let drawn = requests_plot(&[minute(100), minute(101)]);
        assert_eq!(drawn.at.len(), MINUTES);
        assert_eq!((drawn.at[0], drawn.at[59]), (42 * 60, 101 * 60));
        let answered = &drawn.series[0].values;
        assert_eq!(
            (answered[57], answered[58], answered[59]),
            (None, Some(3.0), Some(3.0))
        );
        let many: Vec<_> = (0..61).map(minute).collect();
        assert_eq!(latency_plot(&many).at.len(), 61);
        assert_eq!(requests_plot(&[]).series.len(), 3);
    }
}
