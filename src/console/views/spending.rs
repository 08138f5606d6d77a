//! What was spent in a time, as a plot and as a table.

use filters::ledger::usage_query::{Granularity, UsageHours};
use maud::{Markup, html};

use super::links::{link, one_of};
use crate::console::parts::{self, Plot, PlotSeries, number, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::store_answers::LongAnswer;
use crate::store::ledger::{SpendBy, SpendQuery, Spender, Spending, Usage};

const HOUR_MS: i64 = 3_600_000;
const DAY_HOURS: i64 = 24;
/// The days of a month, the present one included.
const MONTH_DAYS: i64 = 30;

/// How far back one looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LookBack {
    /// The hour that runs, and the one before.
    Hour,
    Day,
    Month,
}

/// How far back one looks, and by what spending is divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Look {
    pub(super) back: LookBack,
    pub(super) by: SpendBy,
}

impl LookBack {
    pub(super) const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns its time in words.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Hour => "This hour and the one before",
            Self::Day => "The last 24 hours",
            Self::Month => "The last 30 days",
        }
    }

    /// Returns the hours, and how they are told.
    pub(super) fn hours(self, now_ms: i64) -> (UsageHours, Granularity) {
        let hour = now_ms.div_euclid(HOUR_MS);
        let midnight = hour - hour.rem_euclid(DAY_HOURS);
        let (from, granularity) = match self {
            Self::Hour => (hour - 1, Granularity::Hour),
            Self::Day => (hour - DAY_HOURS + 1, Granularity::Hour),
            Self::Month => (midnight - (MONTH_DAYS - 1) * DAY_HOURS, Granularity::Day),
        };
        let until = hour + 1;
        (UsageHours { from, until }, granularity)
    }
}

impl Look {
    /// Reads `period` and `by` of the address.
    pub(super) fn parse(
        request: &ConsoleRequest,
        periods: &[LookBack],
        divisions: &[SpendBy],
    ) -> Result<Self, Box<ConsoleReply>> {
        let periods: Vec<_> = periods.iter().map(|it| (it.as_str(), *it)).collect();
        let divisions: Vec<_> = divisions.iter().map(|it| (it.as_str(), *it)).collect();
        Ok(Self {
            back: one_of("period", request.query("period").as_deref(), &periods)?,
            by: one_of("by", request.query("by").as_deref(), &divisions)?,
        })
    }

    /// Returns the question to the store. `None`: about all organizations.
    pub(super) fn query(self, organization_id: Option<&str>, now_ms: i64) -> SpendQuery {
        let (hours, granularity) = self.back.hours(now_ms);
        SpendQuery {
            organization_id: organization_id.map(Into::into),
            hours,
            granularity,
            by: self.by,
        }
    }

    /// Links to the same page for other times and divisions. `kept` are the parameters of the page that stay.
    pub(super) fn choices(
        self,
        path: &str,
        kept: &[(&str, &str)],
        (periods, divisions): (&[LookBack], &[SpendBy]),
    ) -> Markup {
        let to = |back: LookBack, by: SpendBy| {
            let own = [("period", back.as_str()), ("by", by.as_str())];
            link(path, &[kept, &own].concat())
        };
        html! {
            nav.choices aria-label="Time and division" {
                p {
                    "Time: "
                    @for back in periods.iter().copied() {
                        a href=(to(back, self.by)) aria-current=[(back == self.back).then_some("true")] { (back.as_str()) }
                        " "
                    }
                }
                p {
                    "By: "
                    @for by in divisions.iter().copied() {
                        a href=(to(self.back, by)) aria-current=[(by == self.by).then_some("true")] { (by.as_str()) }
                        " "
                    }
                }
            }
        }
    }
}

/// Returns what a part of spending is called.
pub(super) fn spender_name(spender: &Spender) -> String {
    let (name, label) = (&spender.usage.name, spender.label.as_deref());
    match label {
        Some(label) if !label.is_empty() => label.to_owned(),
        _ if name.is_empty() => "(none)".to_owned(),
        _ => name.clone(),
    }
}

/// Returns the names of the parts of a plot. Two keys of one label are told apart by their ids.
fn series_names(by: SpendBy, spending: &Spending) -> Vec<String> {
    let spenders = spending.spenders.iter();
    let names = spenders.map(|spender| {
        let name = spender_name(spender);
        let end = spender.usage.name.char_indices().rev().nth(3);
        let end = end.and_then(|(at, _)| spender.usage.name.get(at..));
        match (by, end) {
            (SpendBy::Key, Some(end)) if spender.label.is_some() => format!("{name} (…{end})"),
            _ => name,
        }
    });
    names.collect()
}

/// Makes the stacked bars of what was spent in each period, also of those without calls.
pub(super) fn plot(asked: &SpendQuery, spending: &Spending) -> Plot {
    let step = asked.granularity.hours();
    let first = spending.periods.first().map(|it| it.first_hour);
    let from = asked.hours.from - asked.hours.from.rem_euclid(step);
    let from = first.map_or(from, |first| first.min(from));
    let times = (from..asked.hours.until).step_by(usize::try_from(step).unwrap_or(1));
    let times: Vec<i64> = times.collect();
    let mut names = series_names(asked.by, spending);
    if spending.others != Usage::default() {
        names.push("all others".to_owned());
    }
    let series = names.into_iter().enumerate().map(|(place, name)| {
        let value = |hour: &i64| {
            let at = spending
                .periods
                .binary_search_by_key(hour, |it| it.first_hour);
            let period = at.ok().and_then(|at| spending.periods.get(at));
            let cost = period.and_then(|period| period.costs.get(place));
            Some(cost.map_or(0.0, |cost| cost.to_f64_for_metrics()))
        };
        PlotSeries {
            name,
            values: times.iter().map(value).collect(),
        }
    });
    Plot {
        is_stacked: true,
        unit: "usd",
        series: series.collect(),
        at: times
            .iter()
            .map(|hour| hour.saturating_mul(HOUR_MS / 1000))
            .collect(),
    }
}

/// The table of what was spent. `name` renders the name of a part.
pub(super) fn table(
    caption: &str,
    by: SpendBy,
    spending: &Spending,
    name: impl Fn(&Spender) -> Markup,
) -> Markup {
    let title = match by {
        SpendBy::Organization => "Organization",
        SpendBy::Model => "Model",
        SpendBy::Provider => "Provider",
        SpendBy::Key => "Key",
    };
    let columns = [
        text(title),
        number("Calls"),
        number("Prompt tokens"),
        number("of these cached"),
        number("Completion tokens"),
        number("Cost"),
        number("Share"),
    ];
    let total = &spending.total;
    let row = |name: Markup, usage: &Usage| {
        let share = share(usage, total);
        let [calls, prompt, cached, completion] = [
            usage.requests,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
        ]
        .map(|count| html! { (parts::count(count.unsigned_abs())) });
        let cost = html! { (parts::money(usage.cost)) };
        vec![
            name,
            calls,
            prompt,
            cached,
            completion,
            cost,
            html! { (share) },
        ]
    };
    let spenders = spending.spenders.iter();
    let mut rows: Vec<_> = spenders.map(|it| row(name(it), &it.usage)).collect();
    if spending.others != Usage::default() {
        rows.push(row(html! { "All others" }, &spending.others));
    }
    if !rows.is_empty() {
        rows.push(row(html! { strong { "All" } }, total));
    }
    parts::table(caption, &columns, &rows, "Nothing was spent in this time.")
}

/// Returns the share of the cost, or of the calls where all of them cost nothing.
fn share(part: &Usage, whole: &Usage) -> String {
    let (part, whole) = match whole.cost.is_zero() {
        true => (part.requests as f64, whole.requests as f64),
        false => (
            part.cost.to_f64_for_metrics(),
            whole.cost.to_f64_for_metrics(),
        ),
    };
    percent(part, whole)
}

/// Returns a share as percent.
pub(super) fn percent(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1} %", part * 100.0 / whole),
        false => "–".to_owned(),
    }
}

/// The figures of a sum.
pub(super) fn figures(usage: &Usage) -> Markup {
    let count = |count: i64| html! { (parts::count(count.unsigned_abs())) };
    let cached = percent(usage.cached_tokens as f64, usage.prompt_tokens as f64);
    let cached = format!("{cached} read from a cache");
    html! {
        dl.figures {
            (parts::figure("Calls", &count(usage.requests), Some("without those that failed")))
            (parts::figure("Spend", &html! { (parts::money(usage.cost)) }, None))
            (parts::figure("Prompt tokens", &count(usage.prompt_tokens), Some(&cached)))
            (parts::figure("Completion tokens", &count(usage.completion_tokens), None))
        }
    }
}

/// What was spent in a time: figures, plot and table. Where the answer has not come yet, the page asks for it at `address`, which
/// returns this part alone.
pub(super) fn section(
    asked: &SpendQuery,
    answer: &LongAnswer<Spending>,
    address: &str,
    name: impl Fn(&Spender) -> Markup,
) -> Markup {
    let title = format!("Spend by {}", asked.by.as_str());
    html! {
        @match answer {
            Err(error) => { p.notice role="alert" { "The store does not tell what was spent: " (error) } }
            Ok(None) => { (coming(address, "What was spent is being summed.")) }
            Ok(Some(kept)) => {
                div {
                    p.muted { "All processes on this store, as of " (parts::time(kept.at_ms)) " UTC. Days are those of UTC." }
                    (figures(&kept.answer.total))
                    (parts::plot(&title, &plot(asked, &kept.answer)))
                    (table(&title, asked.by, &kept.answer, name))
                }
            }
        }
    }
}

/// Stands for a part that has not come yet, and asks for it.
pub(super) fn coming(address: &str, what: &str) -> Markup {
    html! {
        p.muted hx-get=(address) hx-trigger="load" hx-swap="outerHTML" {
            (what) " " a href="" { "Reload the page to see it." }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::money::Usd;

    use super::*;
    use crate::store::ledger::SpendingPeriod;

    /// 2027-01-15T08:00:00Z.
    const NOW_MS: i64 = 1_800_000_000_000;
    const NOW_HOUR: i64 = NOW_MS / HOUR_MS;

    fn usage(name: &str, requests: i64, cost: &str) -> Usage {
        Usage {
            name: name.to_owned(),
            requests,
            prompt_tokens: 200,
            cached_tokens: 50,
            cost: Usd::parse(cost).unwrap(),
            ..Usage::default()
        }
    }

    fn spending() -> Spending {
        let spender = |name: &str, label: Option<&str>, cost: &str| Spender {
            usage: usage(name, 1, cost),
            label: label.map(str::to_owned),
        };
        let costs = |costs: &[&str]| costs.iter().map(|it| Usd::parse(it).unwrap()).collect();
        Spending {
            total: usage("", 4, "4"),
            spenders: vec![
                spender("key_0001", Some("<i>ci"), "3"),
                spender("key_0002", None, "1"),
            ],
            others: Usage::default(),
            periods: vec![SpendingPeriod {
                first_hour: NOW_HOUR - 2,
                requests: 4,
                costs: costs(&["3", "1", "0"]),
            }],
        }
    }

    #[test]
    fn hours_are_whole_and_end_with_the_one_that_runs() {
        let hours = |back: LookBack| {
            let (hours, _) = back.hours(NOW_MS + 1);
            (hours.from - NOW_HOUR, hours.until - NOW_HOUR)
        };
        assert_eq!(hours(LookBack::Hour), (-1, 1));
        assert_eq!(hours(LookBack::Day), (-23, 1));
        assert_eq!(hours(LookBack::Month), (-8 - 29 * 24, 1));
    }

    #[test]
    fn a_plot_has_a_place_for_each_period_and_a_name_for_each_part() {
        let look = Look {
            back: LookBack::Day,
            by: SpendBy::Key,
        };
        let drawn = plot(&look.query(None, NOW_MS), &spending());
        assert_eq!(drawn.at.len(), 24);
        assert_eq!(*drawn.at.last().unwrap(), NOW_MS / 1000);
        let names: Vec<_> = drawn.series.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["<i>ci (…0001)", "key_0002"]);
        let values = &drawn.series[0].values;
        assert_eq!((values[21], values[22]), (Some(3.0), Some(0.0)));
        assert!(values.iter().all(Option::is_some));
    }

    #[test]
    fn a_table_ends_with_the_sum_and_names_are_text() {
        let shown = table(
            "Keys",
            SpendBy::Key,
            &spending(),
            |it| html! { (spender_name(it)) },
        );
        assert!(shown.0.contains("&lt;i&gt;ci") && !shown.0.contains("<i>ci"));
        assert!(shown.0.contains("75.0 %") && shown.0.contains("<strong>All</strong>"));
        let none = table("Keys", SpendBy::Key, &Spending::default(), |_| html! {});
        assert!(none.0.contains("Nothing was spent"));
    }

    #[test]
    fn shares_are_of_calls_where_nothing_costs_anything() {
        assert_eq!(share(&usage("", 1, "0"), &usage("", 4, "0")), "25.0 %");
        assert_eq!(share(&Usage::default(), &Usage::default()), "–");
    }
}
