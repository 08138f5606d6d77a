//! Converts foreign price tables to a catalogue. Prices are read as decimal text and never become a float.

pub(in crate::cli) mod decimal;
mod litellm;
mod models_dev;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use filters::models::routing::CatalogFile;

pub(super) use litellm::from_litellm;
pub(in crate::cli) use litellm::{CAPABILITIES, read_entry_prices};
pub(super) use models_dev::from_models_dev;

/// The maximum fraction digits of a price that can be billed.
const PRICE_DIGITS: usize = 12;

/// The result of an import.
#[derive(Debug)]
pub(super) struct Imported {
    /// The catalogue.
    pub(super) toml: String,
    /// The parts of the table that the catalogue lacks.
    pub(super) summary: Summary,
}

/// The parts of a table that the catalogue lacks, counted by reason.
#[derive(Debug, Default)]
pub(super) struct Summary {
    skipped: BTreeMap<&'static str, usize>,
    dropped: BTreeMap<String, usize>,
    rounded: usize,
}

impl Summary {
    /// Counts a skipped entry.
    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Counts a member of an entry that has no place in the catalogue, or that the importer does not understand.
    fn drop_member(&mut self, name: &str) {
        // Lengths of prompts differ by model, but are one reason.
        let name = match name.split_once("_above_") {
            Some((price, _)) => format!("{price}_above_…"),
            None => name.to_owned(),
        };
        *self.dropped.entry(name).or_default() += 1;
    }

    /// Returns a price with at most the digits that can be billed, and counts prices with more.
    fn rounded(&mut self, price: String) -> String {
        let rounded = decimal::round_fraction(&price, PRICE_DIGITS);
        self.rounded += usize::from(rounded != price);
        rounded
    }

    /// Returns the number of entries that were skipped for a reason.
    #[cfg(test)]
    fn skipped(&self, reason: &str) -> usize {
        self.skipped.get(reason).copied().unwrap_or_default()
    }

    /// Returns a line for each reason.
    pub(super) fn lines(&self) -> Vec<String> {
        let skipped = self.skipped.iter();
        let mut lines: Vec<String> = skipped
            .map(|(reason, count)| format!("{count} entries left out: {reason}"))
            .collect();
        if self.rounded > 0 {
            let (count, digits) = (self.rounded, PRICE_DIGITS);
            lines.push(format!(
                "{count} prices rounded to {digits} fraction digits"
            ));
        }
        let dropped = self.dropped.iter();
        lines.extend(dropped.map(|(name, count)| {
            format!("{count} times left out, because the catalogue has no place for it: {name}")
        }));
        lines
    }
}

/// A mapping of the new catalogue.
#[derive(Default)]
struct ImportRow {
    id: String,
    title: Option<String>,
    /// The type of the model, unless it is chat.
    model_type: Option<&'static str>,
    created: Option<String>,
    provider: String,
    name: String,
    /// The members of the mapping, with their values in TOML.
    members: Vec<(&'static str, String)>,
}

impl ImportRow {
    fn add(&mut self, key: &'static str, toml: &str) {
        self.members.push((key, toml.to_owned()));
    }

    fn to_toml(&self) -> String {
        let mut out = format!(
            "[[models.providers]]\nprovider = {}\nname = {}\n",
            quote(&self.provider),
            quote(&self.name),
        );
        for (key, value) in &self.members {
            out.push_str(&format!("{key} = {value}\n"));
        }
        out
    }

    /// Returns whether the row is valid in the catalogue.
    fn is_accepted(&self) -> bool {
        let toml = format!("[[models]]\nid = \"m\"\n{}", self.to_toml());
        let read: Option<CatalogFile> = toml::from_str(&toml).ok();
        let models = read.into_iter().flat_map(|file| file.models);
        let mut mappings = models.flat_map(|model| model.providers);
        mappings
            .next()
            .is_some_and(|mapping| mapping.price_problem().is_none())
    }
}

/// Formats rows as TOML, one model per id with all its providers.
fn to_toml(rows: Vec<ImportRow>, mut summary: Summary) -> Imported {
    let mut models: BTreeMap<String, Vec<ImportRow>> = BTreeMap::new();
    for row in rows {
        if !row.is_accepted() {
            summary.skip("prices that cannot be billed, or members of another type");
            continue;
        }
        let served = models.entry(row.id.clone()).or_default();
        if served.iter().any(|known| known.provider == row.provider) {
            summary.skip("a second name of the same model at the same provider");
        } else {
            served.push(row);
        }
    }
    let mut toml = String::new();
    for (id, served) in models {
        toml.push_str(&format!("[[models]]\nid = {}\n", quote(&id)));
        let title = served.iter().find_map(|row| row.title.as_deref());
        toml.extend(title.map(|title| format!("name = {}\n", quote(title))));
        let kind = served.iter().find_map(|row| row.model_type);
        toml.extend(kind.map(|kind| format!("type = \"{kind}\"\n")));
        let created = served.iter().find_map(|row| row.created.as_deref());
        toml.extend(created.map(|created| format!("created = {created}\n")));
        toml.extend(served.iter().map(ImportRow::to_toml));
        toml.push('\n');
    }
    Imported { toml, summary }
}

/// Formats a TOML string.
fn quote(text: &str) -> String {
    // A JSON string is a TOML basic string except for an escaped slash, which serde_json never writes.
    serde_json::Value::from(text).to_string()
}

/// Formats a list of strings.
fn list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let texts: Vec<String> = texts.map(quote).collect();
    format!("[{}]", texts.join(", "))
}

/// Formats the prices of longer prompts: the tokens above which they hold, and members with their values.
fn steps_toml(steps: impl Iterator<Item = (u64, Vec<String>)>) -> String {
    let steps = steps.map(|(above, members)| {
        let members: String = members.iter().map(|member| format!(", {member}")).collect();
        format!("{{ above_tokens = {above}{members} }}")
    });
    let steps: Vec<String> = steps.collect();
    format!("[{}]", steps.join(", "))
}
