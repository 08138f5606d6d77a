//! The names of models: those of the catalogue, in which the ledger counts, and those of a provider, in which it bills.

use std::collections::{HashMap, HashSet};

use crate::models::routing::CatalogFile;

/// The models of a provider by all names.
#[derive(Clone, Debug, Default)]
pub struct ModelNames {
    /// The first id of the catalogue that stands for one of the provider's names.
    by_name: HashMap<Box<str>, Box<str>>,
    /// The same by names without the day of their release, for bills that leave it out.
    by_undated: HashMap<Box<str>, Box<str>>,
    /// Of each id of the catalogue the first one with the same name at the provider.
    first_ids: HashMap<Box<str>, Box<str>>,
    /// The ids of models of which the bill does not tell, because of their type.
    untold: HashSet<Box<str>>,
}

impl ModelNames {
    /// Gathers the names of a provider's models. `types` are those of which its bill tells by model; `None`: all.
    pub fn new(catalog: &CatalogFile, provider: &str, types: Option<&[&str]>) -> Self {
        let mut names = Self::default();
        for model in &catalog.models {
            let id: Box<str> = model.id.as_str().into();
            let model_type = model.model_type.as_deref().unwrap_or("chat");
            let is_told = types.is_none_or(|types| types.contains(&model_type));
            for mapping in model.providers.iter().filter(|it| it.provider == provider) {
                let name: Box<str> = mapping.name.as_str().into();
                let first = names.by_name.entry(name).or_insert_with(|| id.clone());
                let first = first.clone();
                let undated: Box<str> = undated(&mapping.name).into();
                names
                    .by_undated
                    .entry(undated)
                    .or_insert_with(|| first.clone());
                if !is_told {
                    names.untold.insert(first.clone());
                }
                names.first_ids.entry(id.clone()).or_insert(first);
            }
        }
        names
    }

    /// Returns the id of a model that a bill names. The day of a release may stand on one side alone.
    pub fn of_bill(&self, name: &str) -> Option<&str> {
        let found = self.by_name.get(name);
        let found = found.or_else(|| self.by_name.get(undated(name)));
        let found = found.or_else(|| self.by_undated.get(name));
        found.map(|id| &**id)
    }

    /// Returns the id under which calls of a model are compared.
    pub fn of_ledger<'n>(&'n self, id: &'n str) -> &'n str {
        let found = self.first_ids.get(id).or_else(|| self.by_name.get(id));
        found.map_or(id, |id| id)
    }

    /// Returns whether a bill tells of this model by itself.
    pub fn is_told(&self, id: &str) -> bool {
        !self.untold.contains(id)
    }
}

/// Returns a name without the day of a release behind it: `-2025-08-07` or `-20250807`.
fn undated(name: &str) -> &str {
    const FORMS: [&str; 2] = ["-0000-00-00", "-00000000"];
    let has_form = |end: &str, form: &str| {
        end.bytes()
            .zip(form.bytes())
            .all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                wanted => byte == wanted,
            })
    };
    for form in FORMS {
        let split = name.len().checked_sub(form.len());
        let parts = split.and_then(|split| name.split_at_checked(split));
        if let Some((rest, _)) = parts.filter(|(rest, end)| !rest.is_empty() && has_form(end, form))
        {
            return rest;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn names_meet_with_and_without_their_day() {
        let mapping = |name: &str| json!({"provider": "p", "name": name});
        let catalog = json!({"models": [
            {"id": "four", "providers": [mapping("gpt-4"), {"provider": "q", "name": "other"}]},
            {"id": "four-of-may", "providers": [mapping("gpt-4-2026-05-01")]},
            {"id": "sonnet", "providers": [mapping("sonnet-4-20250929")]},
            {"id": "twin", "providers": [mapping("gpt-4")]},
            {"id": "painter", "type": "image", "providers": [mapping("paint-1")]},
        ]});
        let catalog: CatalogFile = serde_json::from_value(catalog).unwrap();
        let names = ModelNames::new(&catalog, "p", Some(&["chat"]));
        for (name, id) in [
            ("gpt-4", Some("four")),
            ("gpt-4-2026-05-01", Some("four-of-may")),
            ("gpt-4-2026-07-01", Some("four")),
            ("sonnet-4", Some("sonnet")),
            ("sonnet-4-20260101", None),
            ("other", None),
            ("-2026-05-01", None),
            ("gpt-4-2026-05-0é", None),
            ("", None),
        ] {
            assert_eq!(names.of_bill(name), id, "{name}");
        }
        let of_ledger = ["twin", "four", "gone", "gpt-4"].map(|id| names.of_ledger(id));
        assert_eq!(of_ledger, ["four", "four", "gone", "four"]);
        assert!(names.is_told("four") && !names.is_told("painter") && names.is_told("gone"));
        let all = ModelNames::new(&catalog, "p", None);
        assert!(all.is_told("painter"));
    }
}
