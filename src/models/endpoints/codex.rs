//! Models as Codex reads them: what `GET /v1/models` tells beside its list, and what `weirgate clients codex` prints.
//! Source: docs/clients/codex.md.

use filters::models::operation::Operation;
use filters::models::request::Effort;
use filters::models::routing::MappingWire;
use filters::models::routing::catalog::{Capability, Mapping, Model};
use filters::models::routing::resolve::AUTO;
use serde_json::{Value, json};

/// What the model is told at the start of a session. A model without instructions voids the whole list.
const INSTRUCTIONS: &str = include_str!("codex_instructions.txt");
/// How many tokens of the result of a command the model sees. Our choice: what Codex has for models that it does not know.
const RESULT_TOKENS: u64 = 10_000;
/// Words with which the names of models begin that Codex knows itself: its own facts of them are better than these.
const KNOWN: [&str; 2] = ["gpt-", "codex-"];

/// Returns whether Codex may know a model itself, by the name with which it asks for it.
pub fn is_known(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or_default();
    KNOWN.iter().any(|known| name.starts_with(known))
}

/// Returns whether a mapping could serve Codex, which streams and needs tools.
pub fn can_serve(mapping: &Mapping) -> bool {
    let completes = mapping.wire == Some(MappingWire::Completions);
    !completes && mapping.can(Capability::Tools) && mapping.can(Capability::Streaming)
}

/// Returns the list of models in the words of Codex, of these models with the mappings that the caller may use.
pub fn list<'m>(models: impl IntoIterator<Item = (&'m Model, Vec<&'m Mapping>)>) -> Value {
    let serving = models.into_iter().filter_map(|(model, mut mappings)| {
        mappings.retain(|mapping| can_serve(mapping));
        let is_listed = model.operations.contains(&Operation::Chat) && !is_known(&model.id);
        (is_listed && !mappings.is_empty()).then_some((model, mappings))
    });
    // Old versions know no `max`, and one word that they do not know voids the whole list.
    let told = serving.enumerate().map(|(place, (model, mappings))| {
        entry(&model.id, (model, place), &mappings, Effort::Xhigh)
    });
    told.collect()
}

/// Returns the entry of a model that is asked for by `slug`, at this place of the list, with efforts up to this one.
pub fn entry(
    slug: &str,
    (model, place): (&Model, usize),
    mappings: &[&Mapping],
    most: Effort,
) -> Value {
    let any = |capability| mappings.iter().any(|mapping| mapping.can(capability));
    // Whichever provider answers, the history has to fit.
    let window = mappings.iter().filter_map(|mapping| mapping.context_size);
    let efforts = mappings.iter().flat_map(|it| &it.thinking.efforts);
    let mut efforts: Vec<Effort> = efforts.copied().filter(|effort| *effort <= most).collect();
    efforts.sort_unstable();
    efforts.dedup();
    let levels = efforts
        .iter()
        .map(|effort| json!({"effort": effort.as_str(), "description": describe(*effort)}));
    let (name, description) = match slug == AUTO {
        true => ("The gateway's choice", None),
        false => (&*model.name, model.description.as_deref()),
    };
    let mut inputs = vec!["text"];
    inputs.extend(any(Capability::Vision).then_some("image"));
    json!({
        "slug": slug,
        "display_name": name,
        "description": description,
        "default_reasoning_level": usual(&efforts).map(Effort::as_str),
        "supported_reasoning_levels": levels.collect::<Value>(),
        "shell_type": "default",
        "visibility": "list",
        "supported_in_api": true,
        "priority": place,
        "upgrade": null,
        "base_instructions": INSTRUCTIONS,
        "supports_reasoning_summaries": mappings.iter().any(|mapping| mapping.reasons()),
        "support_verbosity": any(Capability::Verbosity),
        "default_verbosity": null,
        "apply_patch_tool_type": null,
        "truncation_policy": {"mode": "tokens", "limit": RESULT_TOKENS},
        "supports_parallel_tool_calls": any(Capability::ParallelTools),
        "context_window": window.min(),
        "experimental_supported_tools": [],
        "input_modalities": inputs,
    })
}

/// Returns the effort to begin with: `medium`, or else the nearest below, or else the least that reasons.
fn usual(efforts: &[Effort]) -> Option<Effort> {
    let reasons = |effort: &Effort| *effort > Effort::None;
    let reasoning = || efforts.iter().copied().filter(reasons);
    let usual = reasoning().rfind(|effort| *effort <= Effort::Medium);
    usual
        .or_else(|| reasoning().next())
        .or(efforts.first().copied())
}

fn describe(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "Does not reason",
        Effort::Minimal => "Hardly reasons",
        Effort::Low => "Reasons briefly",
        Effort::Medium => "Reasons as much as most tasks need",
        Effort::High => "Reasons at length",
        Effort::Xhigh => "Reasons at great length",
        Effort::Max => "Reasons as long as it can",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::models::routing::catalog::Catalog;

    use super::*;

    fn told(models: Value) -> Value {
        let file = json!({ "models": models });
        let names = ["a", "b"].into_iter().collect();
        let catalog = Catalog::check(serde_json::from_value(file).unwrap(), names).unwrap();
        let models = catalog.models().iter();
        list(models.map(|model| (&**model, model.mappings.iter().map(|it| &**it).collect())))
    }

    #[test]
    fn an_entry_has_all_that_codex_demands() {
        let all = json!([{"id": "m", "name": "M", "description": "Small.", "providers": [
            {"provider": "a", "name": "m-1", "context_size": 200_000, "reasoning_efforts": ["low", "high", "max"],
             "capabilities": ["streaming", "tools", "vision", "reasoning", "parallel_tools"]},
            {"provider": "b", "name": "m-2", "context_size": 64_000, "capabilities": ["streaming", "tools"]},
            {"provider": "b", "name": "m-3", "context_size": 1000, "capabilities": ["streaming"]}]}]);
        let told = told(all);
        let mut entry = told[0].clone();
        let instructions = entry["base_instructions"].take();
        assert!(instructions.as_str().unwrap().len() > 500);
        let levels = json!([{"effort": "low", "description": "Reasons briefly"}, {"effort": "high", "description": "Reasons at length"}]);
        assert_eq!(
            entry,
            json!({
                "slug": "m", "display_name": "M", "description": "Small.", "default_reasoning_level": "low",
                "supported_reasoning_levels": levels, "shell_type": "default", "visibility": "list", "supported_in_api": true,
                "priority": 0, "upgrade": null, "base_instructions": null, "supports_reasoning_summaries": true,
                "support_verbosity": false, "default_verbosity": null, "apply_patch_tool_type": null,
                "truncation_policy": {"mode": "tokens", "limit": 10_000}, "supports_parallel_tool_calls": true,
                "context_window": 64_000, "experimental_supported_tools": [], "input_modalities": ["text", "image"],
            })
        );
        assert_eq!(told.as_array().unwrap().len(), 1);
    }

    #[test]
    fn only_models_that_could_serve_it_and_that_it_does_not_know_are_listed() {
        let provider = |more: Value| {
            let mut provider = json!({"provider": "a", "name": "up"});
            let more = more.as_object().unwrap().clone();
            provider.as_object_mut().unwrap().extend(more);
            json!([provider])
        };
        let told = told(json!([
            {"id": "open", "providers": provider(json!({}))},
            {"id": "mute", "providers": provider(json!({"capabilities": ["streaming"]}))},
            {"id": "base", "providers": provider(json!({"wire": "completions"}))},
            {"id": "vectors", "type": "embedding", "providers": provider(json!({}))},
            {"id": "gpt-5.5", "providers": provider(json!({}))},
            {"id": "last", "providers": provider(json!({}))},
        ]));
        let told: Vec<(&str, u64)> = told
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                (
                    it["slug"].as_str().unwrap(),
                    it["priority"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(told, [("open", 0), ("last", 1)]);
        assert!(is_known("openai/gpt-5.5") && !is_known("mygpt-5"));
    }

    #[test]
    fn the_usual_effort_is_the_nearest_to_medium() {
        use Effort::{High, Low, Max, Medium, None as Off};
        for (efforts, expected) in [
            (&[][..], None),
            (&[Off], Some(Off)),
            (&[Off, High, Max], Some(High)),
            (&[Low, High], Some(Low)),
            (&[Off, Low, Medium, High], Some(Medium)),
        ] {
            assert_eq!(usual(efforts), expected, "{efforts:?}");
        }
    }
}
