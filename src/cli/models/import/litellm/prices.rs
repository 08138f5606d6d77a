//! The prices of an entry.

use std::collections::{BTreeMap, BTreeSet};

use filters::money::Unit;
use serde_json::value::RawValue;

use super::{EntryReader, LitellmEntry};
use crate::cli::models::import::decimal::shift_point;
use crate::cli::models::import::{ImportRow, Summary, list};

/// The names of token prices in the table, and ours.
const PRICES: [(&str, &str); 10] = [
    ("input_cost_per_token", "input_price"),
    ("output_cost_per_token", "output_price"),
    ("cache_read_input_token_cost", "cached_input_price"),
    ("cache_creation_input_token_cost", "cache_write_price"),
    (
        "cache_creation_input_token_cost_above_1hr",
        "cache_write_1h_price",
    ),
    ("input_cost_per_audio_token", "input_audio_price"),
    ("output_cost_per_audio_token", "output_audio_price"),
    ("input_cost_per_image_token", "input_image_price"),
    ("output_cost_per_image_token", "output_image_price"),
    ("output_cost_per_reasoning_token", "output_reasoning_price"),
];

/// The names of unit prices in the table, ours, and the digits by which the point moves.
const UNIT_PRICES: [(&str, Unit, i64); 5] = [
    ("ocr_cost_per_page", Unit::Page, 0),
    ("input_cost_per_second", Unit::InputTime, 0),
    ("output_cost_per_second", Unit::OutputTime, 0),
    ("input_cost_per_character", Unit::Character, 6),
    ("input_cost_per_query", Unit::Search, 0),
];

/// The tiers that requests may name.
const TIERS: [&str; 2] = ["flex", "priority"];

impl EntryReader<'_, '_> {
    pub(super) fn add_mapping_prices(&mut self, row: &mut ImportRow) {
        let mut base = self.prices("");
        let mut long = self.steps("");
        if let Some(raw) = self.take("tiered_pricing") {
            let ranges: Vec<LitellmEntry<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
            for range in &ranges {
                let above = range.get("range").and_then(|range| {
                    let ends: Vec<f64> = serde_json::from_str(range.get()).ok()?;
                    Some(*ends.first()? as u64)
                });
                let prices = read_prices(range, "", self.summary);
                match above {
                    Some(0) | None => base = prices,
                    Some(above) => long.push((above, prices)),
                }
            }
        }
        for (key, price) in &base {
            row.add(key, price);
        }
        self.fee(row, ("input_cost_per_request", "request_price", 0));
        if row.model_type.is_some() {
            for (theirs, unit, places) in UNIT_PRICES {
                self.fee(row, (theirs, unit.price_key(), places));
            }
            let annotated = ("annotation_cost_per_page", "annotated_page_price", 0);
            self.fee(row, annotated);
        }
        if let Some(price) = self.search_price() {
            row.add("web_search_price", &format!("\"{price}\""));
        }
        if !long.is_empty() {
            row.add("long_context", &steps_toml(&long));
        }
        self.tiers(row);
        self.off_peak(row);
        self.regions(row);
    }

    /// Adds a price of something other than tokens: the table's name, our name, and the digits by which the point
    /// moves.
    fn fee(&mut self, row: &mut ImportRow, (theirs, ours, places): (&str, &'static str, i64)) {
        let price = self.take(theirs);
        if let Some(price) = price.and_then(|raw| shift_point(raw.get(), places)) {
            row.add(ours, &format!("\"{price}\""));
        }
    }

    /// Adds the tiers that requests may name, with their own prices.
    fn tiers(&mut self, row: &mut ImportRow) {
        let mut tiers = Vec::new();
        for tier in TIERS {
            let suffix = format!("_{tier}");
            let prices = self.prices(&suffix);
            let long = self.steps(&suffix);
            if prices.is_empty() {
                continue;
            }
            let mut members = members_toml(&prices);
            if !long.is_empty() {
                members.push(format!("long_context = {}", steps_toml(&long)));
            }
            tiers.push((tier, members.join(", ")));
        }
        if tiers.is_empty() {
            return;
        }
        row.add("service_tiers", &list(tiers.iter().map(|(tier, _)| *tier)));
        let tables = tiers
            .iter()
            .map(|(tier, members)| format!("{tier} = {{ {members} }}"));
        let tables: Vec<String> = tables.collect();
        row.add("tier_prices", &format!("{{ {} }}", tables.join(", ")));
    }

    fn off_peak(&mut self, row: &mut ImportRow) {
        let Some(raw) = self.take("off_peak_pricing") else {
            return;
        };
        let own: LitellmEntry<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        if own.contains_key("weekday_timezone") {
            return self
                .summary
                .drop_member("off_peak_pricing with weekdays of a time zone");
        }
        let windows = match own.get("windows") {
            Some(windows) => {
                serde_json::from_str::<Vec<LitellmEntry<'_>>>(windows.get()).unwrap_or_default()
            }
            None => vec![own.clone()],
        };
        let windows: Vec<String> = windows.iter().filter_map(window_toml).collect();
        let prices = read_prices(&own, "", self.summary);
        if windows.is_empty() || prices.is_empty() {
            return self
                .summary
                .drop_member("off_peak_pricing that is not understood");
        }
        let members = members_toml(&prices).join(", ");
        row.add(
            "off_peak",
            &format!("{{ windows = [{}], {members} }}", windows.join(", ")),
        );
    }

    /// Adds the regions with multiplied prices.
    fn regions(&mut self, row: &mut ImportRow) {
        const PREFIX: &str = "regional_processing_uplift_multiplier_";
        let mut regions: BTreeMap<String, String> = BTreeMap::new();
        let keys: Vec<String> = self
            .entry
            .keys()
            .filter(|key| key.starts_with(PREFIX))
            .cloned()
            .collect();
        for key in keys {
            let factor = self.take(&key).and_then(|raw| shift_point(raw.get(), 0));
            regions.extend(factor.map(|factor| (key.replace(PREFIX, ""), factor)));
        }
        let special = self.entry.get("provider_specific_entry");
        let special =
            special.and_then(|raw| serde_json::from_str::<LitellmEntry<'_>>(raw.get()).ok());
        if let Some(us) = special.and_then(|special| shift_point(special.get("us")?.get(), 0)) {
            self.used.insert("provider_specific_entry".to_owned());
            regions.insert("us".to_owned(), us);
        }
        if regions.is_empty() {
            return;
        }
        row.add("regions", &list(regions.keys().map(String::as_str)));
        let tables = regions
            .iter()
            .map(|(region, factor)| format!("{region} = {{ multiplier = \"{factor}\" }}"));
        let tables: Vec<String> = tables.collect();
        row.add("region_prices", &format!("{{ {} }}", tables.join(", ")));
    }

    /// Returns the price of a search of the most expensive size. Sizes are only listed if they all cost the same.
    fn search_price(&mut self) -> Option<String> {
        let raw = self.take("search_context_cost_per_query")?;
        let sizes: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
        let prices = sizes.values().filter_map(|price| {
            let decimal = shift_point(price.get(), 0)?;
            let price = filters::money::Price::per_call(&decimal).ok()?;
            Some((price, decimal))
        });
        let highest = prices.max_by_key(|(price, _)| *price);
        highest.map(|(_, decimal)| decimal)
    }

    fn prices(&mut self, suffix: &str) -> Vec<(&'static str, String)> {
        self.used
            .extend(PRICES.iter().map(|(theirs, _)| format!("{theirs}{suffix}")));
        read_prices(self.entry, suffix, self.summary)
    }

    /// Returns the prices of longer prompts, by the tokens above which they hold.
    fn steps(&mut self, suffix: &str) -> Vec<(u64, Vec<(&'static str, String)>)> {
        let thousands = |key: &String| {
            PRICES.iter().find_map(|(theirs, _)| {
                let step = key.strip_prefix(theirs)?.strip_prefix("_above_")?;
                step.strip_suffix(suffix)?
                    .strip_suffix("k_tokens")?
                    .parse::<u64>()
                    .ok()
            })
        };
        let steps: BTreeSet<u64> = self.entry.keys().filter_map(thousands).collect();
        let steps = steps.into_iter();
        let read = steps.map(|step| {
            (
                step * 1000,
                self.prices(&format!("_above_{step}k_tokens{suffix}")),
            )
        });
        read.filter(|(_, prices)| !prices.is_empty()).collect()
    }
}

fn read_prices(
    entry: &LitellmEntry<'_>,
    suffix: &str,
    summary: &mut Summary,
) -> Vec<(&'static str, String)> {
    let mut prices = Vec::new();
    for (theirs, ours) in PRICES {
        let Some(raw) = entry.get(&format!("{theirs}{suffix}")) else {
            continue;
        };
        match shift_point(raw.get(), 6) {
            Some(price) => prices.push((ours, format!("\"{}\"", summary.rounded(price)))),
            None => summary.drop_member(theirs),
        }
    }
    prices
}

fn members_toml(prices: &[(&'static str, String)]) -> Vec<String> {
    prices
        .iter()
        .map(|(key, price)| format!("{key} = {price}"))
        .collect()
}

fn steps_toml(steps: &[(u64, Vec<(&'static str, String)>)]) -> String {
    crate::cli::models::import::steps_toml(
        steps
            .iter()
            .map(|(above, prices)| (*above, members_toml(prices))),
    )
}

/// Returns a window of hours and weekdays, or `None` if it cannot be read.
fn window_toml(window: &LitellmEntry<'_>) -> Option<String> {
    let hours = window.get("hours_utc")?.get();
    let hours: Vec<String> = match serde_json::from_str::<String>(hours) {
        Ok(only) => vec![only],
        Err(_) => serde_json::from_str(hours).ok()?,
    };
    let days: Vec<u8> = match window.get("weekdays") {
        Some(days) => serde_json::from_str(days.get()).ok()?,
        None => Vec::new(),
    };
    let hours = list(hours.iter().map(String::as_str));
    Some(match days.is_empty() {
        true => format!("{{ hours_utc = {hours} }}"),
        false => format!("{{ hours_utc = {hours}, weekdays = {days:?} }}"),
    })
}
