//! Small parts that views are made of.

use std::fmt::Display;

use jiff::Timestamp;
use maud::{Markup, html};
use serde::Serialize;

/// How well something is. It is always said in words too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tone {
    Good,
    Warning,
    Bad,
    Neutral,
}

/// A word about how well something is.
pub fn badge(tone: Tone, text: &str) -> Markup {
    let class = match tone {
        Tone::Good => "badge good",
        Tone::Warning => "badge warning",
        Tone::Bad => "badge bad",
        Tone::Neutral => "badge",
    };
    html! { span class=(class) { (text) } }
}

/// The column of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableColumn {
    title: &'static str,
    is_number: bool,
}

/// A column of texts.
pub const fn text(title: &'static str) -> TableColumn {
    TableColumn {
        title,
        is_number: false,
    }
}

/// A column of numbers, which stand at its right edge.
pub const fn number(title: &'static str) -> TableColumn {
    TableColumn {
        title,
        is_number: true,
    }
}

/// A table, which scrolls by itself where it is too wide. The first cell of a row is its header. `empty` is said in place of a
/// table without rows.
pub fn table(caption: &str, columns: &[TableColumn], rows: &[Vec<Markup>], empty: &str) -> Markup {
    let cells = rows
        .iter()
        .map(|row| html! { tr { (cells(columns, row)) } });
    let body = html! { @for row in cells { (row) } };
    match rows.is_empty() {
        true => html! { p.muted { (empty) } },
        false => table_of(caption, columns, &body, None),
    }
}

/// The cells of one row.
pub fn cells(columns: &[TableColumn], row: &[Markup]) -> Markup {
    html! {
        @for (at, cell) in row.iter().enumerate() {
            @let class = columns.get(at).filter(|column| column.is_number).map(|_| "number");
            @if at == 0 {
                th scope="row" class=[class] { (cell) }
            } @else {
                td class=[class] { (cell) }
            }
        }
    }
}

/// A table around rows that are made already; `id` is that of its body.
pub fn table_of(caption: &str, columns: &[TableColumn], rows: &Markup, id: Option<&str>) -> Markup {
    around_body(caption, columns, &html! { tbody id=[id] { (rows) } })
}

/// A table whose body, with this id, follows the events of an address: new rows come to the top, and it keeps the first 200.
pub fn followed_table(
    caption: &str,
    columns: &[TableColumn],
    rows: &Markup,
    (id, address): (&str, &str),
) -> Markup {
    let body = html! { tbody id=(id) data-follow=(address) data-max="200" { (rows) } };
    around_body(caption, columns, &body)
}

fn around_body(caption: &str, columns: &[TableColumn], body: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for column in columns {
                            th scope="col" class=[column.is_number.then_some("number")] { (column.title) }
                        }
                    }
                }
                (body)
            }
        }
    }
}

/// A figure with its name.
pub fn figure(name: &str, value: &Markup, note: Option<&str>) -> Markup {
    html! {
        div.figure {
            dt { (name) }
            dd {
                (value)
                @if let Some(note) = note {
                    span.muted { (note) }
                }
            }
        }
    }
}

/// A time in UTC, from milliseconds of Unix time.
pub fn time(unix_ms: i64) -> Markup {
    let Ok(at) = Timestamp::from_millisecond(unix_ms) else {
        return html! { span.muted { "unknown" } };
    };
    let text = at.strftime("%Y-%m-%d %H:%M:%S").to_string();
    html! { time datetime=(at.to_string()) { (text) } }
}

/// A duration in words that suit its size.
pub fn duration(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "–".to_owned(),
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1000.0),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.1} min", ms / 60_000.0),
    }
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// An amount of dollars that is shown as a decimal: at least two digits behind the point, and no more zeros than that.
pub fn money(amount: impl Display) -> String {
    let amount = amount.to_string();
    let (whole, behind) = amount.split_once('.').unwrap_or((&amount, ""));
    let behind = behind.trim_end_matches('0');
    format!("${whole}.{behind:0<2}")
}

/// The way to the next page of a list, whose key is a parameter of the query.
pub fn pager(next: Option<&str>) -> Markup {
    html! {
        @if let Some(next) = next {
            nav.pager aria-label="Pages" { a href=(next) rel="next" { "Next page" } }
        }
    }
}

/// A plot over time.
#[derive(Debug, Serialize)]
pub struct Plot {
    /// Whether the series stand on each other as bars, or are lines.
    pub is_stacked: bool,
    /// `usd`, `ms` or empty.
    pub unit: &'static str,
    /// Seconds of Unix time.
    pub at: Vec<i64>,
    pub series: Vec<PlotSeries>,
}

/// A line or a colour of a plot.
#[derive(Debug, Serialize)]
pub struct PlotSeries {
    pub name: String,
    /// One for each time.
    pub values: Vec<Option<f64>>,
}

/// A plot with its title. Its numbers are a table beneath it, for those who cannot see it.
pub fn plot(title: &str, plot: &Plot) -> Markup {
    let data = serde_json::to_string(plot).unwrap_or_default();
    html! {
        figure.plot {
            figcaption { (title) }
            div.canvas data-plot=(data) role="img" aria-label=(title) {}
            details {
                summary { "The numbers" }
                div.scroll tabindex="0" role="region" aria-label={ (title) ": the numbers" } {
                    table {
                        caption { (title) }
                        thead {
                            tr {
                                th scope="col" { "Time" }
                                @for series in &plot.series {
                                    th.number scope="col" { (series.name) }
                                }
                            }
                        }
                        tbody {
                            @for (row, at) in plot.at.iter().enumerate() {
                                tr {
                                    th scope="row" { (time(at.saturating_mul(1000))) }
                                    @for series in &plot.series {
                                        td.number { (series.values.get(row).copied().flatten().map_or_else(|| "–".to_owned(), |value| value.to_string())) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(money("3"), "$3.00");
        assert_eq!(money("0.000120"), "$0.00012");
        assert_eq!(duration(0.25), "250 µs");
        assert_eq!(duration(90_000.0), "1.5 min");
    }

    #[test]
    fn data_are_text_wherever_they_stand() {
        let hostile = "\"><script>alert(1)</script>";
        let series = vec![PlotSeries {
            name: hostile.to_owned(),
            values: vec![Some(1.0)],
        }];
        let data = Plot {
            is_stacked: true,
            unit: "usd",
            at: vec![0],
            series,
        };
        let row = vec![html! { (hostile) }];
        for markup in [
            plot(hostile, &data),
            table(hostile, &[text("Name")], &[row], ""),
            badge(Tone::Bad, hostile),
            pager(Some(hostile)),
        ] {
            assert!(!markup.0.contains("<script>"), "{}", markup.0);
        }
    }
}
