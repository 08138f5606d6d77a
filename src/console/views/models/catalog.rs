//! The catalogue: models, who serves them, at which price, and how that goes.

use filters::models::routing::catalog::{Mapping, Model};
use filters::models::routing::health::Readiness;
use filters::money::{Price, PriceSet, ServiceTier};
use jiff::Timestamp;
use maud::{Markup, html};

use super::{PATH, ROUTE};
use crate::console::Console;
use crate::console::parts::{
    TableColumn, Tone, badge, count, duration, money, number, pager, table, text,
};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::models::Models;

/// The models on one page.
const PAGE_MODELS: usize = 50;
/// Prices are for so many tokens.
const PRICED_TOKENS: u64 = 1_000_000;

const LIST: [TableColumn; 6] = [
    text("Model"),
    text("Type"),
    text("Providers"),
    number("Input, million tokens"),
    number("Output, million tokens"),
    number("Context"),
];
const MAPPINGS: [TableColumn; 10] = [
    text("Provider"),
    text("Region"),
    text("Its name"),
    text("State"),
    number("Input"),
    number("Cached"),
    number("Output"),
    number("Context"),
    number("Uptime"),
    number("Latency"),
];

/// A page of the models whose id or family has the text that was looked for.
pub(super) fn list(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let app = console.app();
    let wanted = request.query("q").unwrap_or_default().to_lowercase();
    let from: usize = request
        .query("from")
        .and_then(|from| from.parse().ok())
        .unwrap_or(0);
    let catalog = app.models.planner.catalog();
    let is_wanted = |model: &&Model| {
        let texts = [&*model.id, &*model.name, &*model.family];
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&wanted))
    };
    let models = catalog.models().iter().map(AsRef::as_ref);
    let found: Vec<&Model> = models.filter(is_wanted).collect();
    let rows = found.iter().skip(from).take(PAGE_MODELS);
    let rows: Vec<Vec<Markup>> = rows.map(|model| row(model)).collect();
    let next = from.saturating_add(PAGE_MODELS);
    let next = (next < found.len()).then(|| {
        let kept = request.query_without(&["from"]);
        format!("{PATH}?{kept}&from={next}")
    });
    ConsoleReply::page(
        "Models",
        html! {
            p {
                a href={ (PATH) "/" (ROUTE) } { "Why would a request go where?" }
                " · "
                a href={ (PATH) "/day" } { "A day of outages, simulated" }
            }
            form.filters method="get" action=(PATH) {
                div {
                    label for="q" { "Model or family" }
                    input #q name="q" value=(request.query("q").unwrap_or_default());
                }
                button type="submit" { "Find" }
            }
            (table(&format!("{} models", found.len()), &LIST, &rows, "No model has this in its name."))
            (pager(next.as_deref()))
        },
    )
}

fn row(model: &Model) -> Vec<Markup> {
    let mut providers: Vec<&str> = model.mappings.iter().map(|it| &*it.provider).collect();
    providers.dedup();
    let prices = model.mappings.iter().filter_map(|it| usual(it));
    let cheapest = prices.min_by_key(|prices| {
        (
            prices.input.times(PRICED_TOKENS),
            prices.output.times(PRICED_TOKENS),
        )
    });
    let context = model.mappings.iter().filter_map(|it| it.context_size).max();
    vec![
        html! { a href={ (PATH) "/" (model.id) } { (model.id) } },
        html! { (model.model_type) },
        html! { (providers.join(", ")) },
        price(cheapest.map(|it| it.input)),
        price(cheapest.map(|it| it.output)),
        html! { @if let Some(context) = context { (count(context)) } @else { "–" } },
    ]
}

/// The page of one model, which may be named by an alias.
pub(super) fn model(console: &Console, id: &str) -> ConsoleReply {
    let app = console.app();
    let catalog = app.models.planner.catalog();
    let mut models = catalog.models().iter().map(AsRef::as_ref);
    let is_named =
        |model: &&Model| *model.id == *id || model.aliases.iter().any(|alias| **alias == *id);
    let Some(model) = models.find(is_named) else {
        return ConsoleReply::not_found(&format!("The catalogue has no model {id:?}."));
    };
    let now_ms = app.proxy.clock.now_ms();
    let rows: Vec<Vec<Markup>> = mapping_rows(&app.models, model, now_ms);
    let body = html! {
        @if let Some(description) = &model.description {
            p { (description) }
        }
        dl.pairs {
            dt { "Name" } dd { (model.name) }
            dt { "Family" } dd { (model.family) }
            @if !model.aliases.is_empty() {
                dt { "Other names" } dd { (model.aliases.join(", ")) }
            }
            @if let Some(successor) = &model.successor {
                dt { "Successor" } dd { (successor) }
            }
        }
        (table("Who serves it. Prices are for a million tokens, at peak hours and for short prompts; measurements are of the last hour.", &MAPPINGS, &rows, "No provider that is on serves it."))
    };
    ConsoleReply::page(format!("Model {}", model.id), body)
}

fn mapping_rows(models: &Models, model: &Model, now_ms: u64) -> Vec<Vec<Markup>> {
    let candidates = models.planner.catalog().candidates().iter();
    let own = candidates.filter(|candidate| candidate.model.id == model.id);
    let rows = own.map(|candidate| {
        let mapping = &candidate.mapping;
        let standing = models.planner.health().standing(candidate.index, now_ms);
        let stats = standing.stats;
        let prices = usual(mapping);
        vec![
            html! { (mapping.provider) },
            html! { (candidate.region.as_deref().unwrap_or("–")) },
            html! { (mapping.name) },
            state(mapping, standing.readiness),
            price(prices.map(|it| it.input)),
            price(prices.and_then(|it| it.cached_input)),
            price(prices.map(|it| it.output)),
            html! { @if let Some(size) = mapping.context_size { (count(size)) } @else { "–" } },
            html! { @if let Some(stats) = &stats { (format!("{:.1} %", stats.uptime)) } @else { "–" } },
            html! { @if let Some(stats) = &stats { (duration(stats.latency_ms)) } @else { "–" } },
        ]
    });
    rows.collect()
}

fn state(mapping: &Mapping, readiness: Readiness) -> Markup {
    let now_s = Timestamp::now().as_second().unsigned_abs();
    match readiness {
        _ if mapping.is_retired(now_s) => badge(Tone::Bad, "retired"),
        Readiness::Ready if mapping.is_deprecated(now_s) => badge(Tone::Warning, "deprecated"),
        Readiness::Ready => badge(Tone::Good, "ready"),
        _ => badge(Tone::Bad, "rests"),
    }
}

fn usual(mapping: &Mapping) -> Option<&PriceSet> {
    let prices = mapping.prices.as_deref()?;
    Some(prices.peak(ServiceTier::Standard).short())
}

/// The price of a million tokens.
fn price(price: Option<Price>) -> Markup {
    match price {
        Some(price) => html! { (money(price.times(PRICED_TOKENS))) },
        None => html! { "–" },
    }
}
