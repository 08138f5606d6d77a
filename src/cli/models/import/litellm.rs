//! `LiteLLM`'s table: a flat object of models; prices are USD per token, as numbers.

mod prices;

use std::collections::{BTreeMap, BTreeSet};

use filters::models::routing::Date;
use serde_json::value::RawValue;

use super::decimal::parse_count;
use super::{ImportRow, Imported, Summary, list, to_toml};

/// The members of one model.
type LitellmEntry<'a> = BTreeMap<String, &'a RawValue>;

/// The modes that operations serve, and the types of their models.
const MODES: [(&str, Option<&str>); 7] = [
    ("chat", None),
    ("responses", None),
    ("embedding", Some("embedding")),
    ("rerank", Some("rerank")),
    ("moderation", Some("moderation")),
    ("ocr", Some("ocr")),
    ("search", Some("search")),
];

const SIZES: [(&str, &str); 2] = [
    ("max_input_tokens", "context_size"),
    ("max_output_tokens", "max_output"),
];

/// The flags of capabilities, and the capabilities that they stand for.
pub(in crate::cli) const CAPABILITIES: [(&str, &[&str]); 9] = [
    ("supports_function_calling", &["tools"]),
    ("supports_parallel_function_calling", &["parallel_tools"]),
    ("supports_tool_choice", &["forced_tools"]),
    ("supports_vision", &["vision"]),
    ("supports_pdf_input", &["documents"]),
    ("supports_audio_input", &["audio"]),
    ("supports_response_schema", &["json_object", "json_schema"]),
    ("supports_reasoning", &["reasoning"]),
    ("supports_web_search", &["web_search"]),
];

/// Efforts, and the flags of those that only some models take.
const EFFORTS: [(&str, &str); 7] = [
    ("none", "supports_none_reasoning_effort"),
    ("minimal", "supports_minimal_reasoning_effort"),
    ("low", ""),
    ("medium", ""),
    ("high", ""),
    ("xhigh", "supports_xhigh_reasoning_effort"),
    ("max", "supports_max_reasoning_effort"),
];

/// Imports the table. Errors: not JSON.
pub(in crate::cli::models) fn from_litellm(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut summary = Summary::default();
    let no_models = ["sample_spec", "fallback_generalizations"];
    for (key, raw) in table
        .iter()
        .filter(|(key, _)| !no_models.contains(&key.as_str()))
    {
        let Ok(entry) = serde_json::from_str::<LitellmEntry<'_>>(raw.get()) else {
            summary.skip("not of the table's shape");
            continue;
        };
        let mode = read_text(&entry, "mode");
        let mode = mode.and_then(|mode| MODES.into_iter().find(|(known, _)| *known == mode));
        let provider = read_text(&entry, "litellm_provider");
        let Some((mode, provider)) = mode.zip(provider) else {
            summary.skip("of a mode that no operation serves");
            continue;
        };
        let mut reader = EntryReader {
            entry: &entry,
            used: BTreeSet::from(["mode", "litellm_provider"].map(str::to_owned)),
            summary: &mut summary,
        };
        let row = reader.row(key, provider, mode);
        reader.count_unused();
        rows.push(row);
    }
    Ok(to_toml(rows, summary))
}

/// Returns the prices of an entry, as members of a mapping with their values in TOML, and the names that prices have, which are
/// understood. `is_chat`: its model answers chats, and has no prices of pages, seconds and the like.
pub(in crate::cli) fn read_entry_prices(
    entry: &LitellmEntry<'_>,
    is_chat: bool,
) -> (Vec<(&'static str, String)>, BTreeSet<String>) {
    let mut summary = Summary::default();
    let mut reader = EntryReader {
        entry,
        used: BTreeSet::new(),
        summary: &mut summary,
    };
    let mut row = ImportRow {
        model_type: (!is_chat).then_some(""),
        ..ImportRow::default()
    };
    reader.add_mapping_prices(&mut row);
    (row.members, reader.used)
}

/// Reads an entry, and remembers which of its members were used.
struct EntryReader<'a, 's> {
    entry: &'a LitellmEntry<'a>,
    used: BTreeSet<String>,
    summary: &'s mut Summary,
}

impl<'a> EntryReader<'a, '_> {
    fn row(
        &mut self,
        key: &str,
        provider: String,
        (mode, model_type): (&str, Option<&'static str>),
    ) -> ImportRow {
        let name = key
            .strip_prefix(&format!("{provider}/"))
            .unwrap_or(key)
            .to_owned();
        let mut row = ImportRow {
            id: name.rsplit('/').next().unwrap_or(&name).to_owned(),
            model_type,
            provider,
            name,
            ..ImportRow::default()
        };
        if mode == "responses" {
            row.add("wire", "\"responses\"");
        }
        self.add_mapping_prices(&mut row);
        for (theirs, ours) in SIZES {
            if let Some(size) = self.take(theirs).and_then(|raw| parse_count(Some(raw))) {
                row.add(ours, &size.to_string());
            }
        }
        if model_type.is_none() {
            self.abilities(&mut row);
        }
        let retired = self.text("deprecation_date").map(Date);
        let retired = retired.filter(|date| date.0.len() == 10 && date.unix_s().is_some());
        if let Some(date) = retired {
            row.add("deactivated_at", &date.0);
        }
        row
    }

    /// Adds the abilities of the model that the table states.
    fn abilities(&mut self, row: &mut ImportRow) {
        let mut can = vec!["streaming", "cancellation"];
        let mut is_known = false;
        for (flag, capabilities) in CAPABILITIES {
            let value = self.flag(flag);
            is_known |= value.is_some();
            can.extend(capabilities.iter().filter(|_| value == Some(true)));
        }
        if self.flag("supports_forced_tool_use") == Some(false) {
            can.retain(|capability| *capability != "forced_tools");
        }
        if is_known {
            row.add("capabilities", &list(can.into_iter()));
        }
        if self.flag("supports_sampling_params") == Some(false) {
            row.add("parameters", r#"{ refuse = ["temperature", "top_p"] }"#);
        }
        let is_adaptive = self.flag("supports_adaptive_thinking") == Some(true);
        let efforts = self.efforts();
        if !efforts.is_empty() {
            let control = if is_adaptive {
                "\"adaptive\""
            } else {
                "\"levels\""
            };
            row.add("thinking", control);
            row.add("reasoning_efforts", &list(efforts.iter().copied()));
        }
        let by_default = self.text("default_reasoning_effort");
        let is_on = by_default.is_some_and(|effort| effort != "none");
        if self.flag("thinking_always_on") == Some(true) || is_on {
            row.add("reasons_by_default", "true");
        }
        let modes = self.take("reasoning_modes");
        let modes: Vec<String> = modes
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        if !modes.is_empty() {
            row.add("reasoning_modes", &list(modes.iter().map(String::as_str)));
        }
    }

    /// Returns the efforts of the model, or an empty list if the table states none.
    fn efforts(&mut self) -> Vec<&'static str> {
        let levels = self.take("reasoning_effort_levels");
        let levels: Option<Vec<String>> =
            levels.and_then(|raw| serde_json::from_str(raw.get()).ok());
        if let Some(levels) = levels {
            let known = EFFORTS.iter().map(|(effort, _)| *effort);
            return known
                .filter(|effort| levels.iter().any(|level| level == effort))
                .collect();
        }
        let flags = EFFORTS.map(|(_, flag)| self.flag(flag));
        if flags.iter().all(Option::is_none) {
            return Vec::new();
        }
        let pairs = EFFORTS.iter().zip(flags);
        let taken = pairs.filter(|((_, name), flag)| name.is_empty() || *flag == Some(true));
        taken.map(|((effort, _), _)| *effort).collect()
    }

    fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        self.used.insert(key.to_owned());
        self.entry.get(key).copied()
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        serde_json::from_str(self.take(key)?.get()).ok()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        serde_json::from_str(self.take(key)?.get()).ok()
    }

    /// Counts the unused members.
    fn count_unused(&mut self) {
        for key in self.entry.keys().filter(|key| !self.used.contains(*key)) {
            self.summary.drop_member(key);
        }
    }
}

fn read_text(entry: &LitellmEntry<'_>, key: &str) -> Option<String> {
    serde_json::from_str(entry.get(key)?.get()).ok()
}
