//! Hashes of the models and mappings of a catalogue, by which two catalogues are compared.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::elements;

/// The most differences of two catalogues that are listed.
const MAX_LISTED: usize = 20;

/// The models of a catalogue by id. Comments, and the order of the file, are no part of it.
#[derive(Debug, Default, Eq, PartialEq)]
pub(in crate::config) struct CatalogDigest(BTreeMap<String, ModelDigest>);

#[derive(Debug, Default, Eq, PartialEq)]
struct ModelDigest {
    /// The hash of all but the mappings.
    own: [u8; 32],
    /// The hashes of the mappings by provider and name.
    mappings: BTreeMap<String, [u8; 32]>,
}

impl CatalogDigest {
    /// Hashes the models of a checked catalogue.
    pub(super) fn new(catalog: &Json) -> Self {
        let models = elements(catalog, "models");
        let digests = models.map(|model| (text(model, "id").to_owned(), ModelDigest::new(model)));
        Self(digests.collect())
    }

    /// Lists what another catalogue has added, removed and changed: at most 20 lines, and the number of the others.
    pub(in crate::config) fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (id, model) in &self.0 {
            match after.0.get(id) {
                None => found.push(format!("model {id} removed")),
                Some(other) => model.differences(id, other, &mut found),
            }
        }
        let added = after.0.keys().filter(|id| !self.0.contains_key(*id));
        found.extend(added.map(|id| format!("model {id} added")));
        let others = found.len().saturating_sub(MAX_LISTED);
        found.truncate(MAX_LISTED);
        if others > 0 {
            found.push(format!("and {others} more"));
        }
        found
    }

    /// Returns the hash of the catalogue.
    pub(in crate::config) fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (id, model) in &self.0 {
            hash.update((id.len() as u64).to_be_bytes());
            hash.update(id);
            hash.update(model.own);
            hash.update((model.mappings.len() as u64).to_be_bytes());
            // The name is hashed with the rest of a mapping.
            for mapping in model.mappings.values() {
                hash.update(mapping);
            }
        }
        hash.finalize().into()
    }
}

impl ModelDigest {
    fn new(model: &Json) -> Self {
        let mut own = model.clone();
        if let Some(members) = own.as_object_mut() {
            members.remove("providers");
        }
        let mut digest = Self {
            own: hash(&own),
            mappings: BTreeMap::new(),
        };
        for mapping in elements(model, "providers") {
            let name = format!("{}/{}", text(mapping, "provider"), text(mapping, "name"));
            // A provider may have a model twice, for example under two conditions.
            let mut key = name.clone();
            let mut number = 1;
            while digest.mappings.contains_key(&key) {
                number += 1;
                key = format!("{name} ({number})");
            }
            digest.mappings.insert(key, hash(mapping));
        }
        digest
    }

    fn differences(&self, id: &str, after: &Self, found: &mut Vec<String>) {
        if self.own != after.own {
            found.push(format!("model {id} changed"));
        }
        for (name, mapping) in &self.mappings {
            match after.mappings.get(name) {
                None => found.push(format!("mapping {name} of model {id} removed")),
                Some(other) if other != mapping => {
                    found.push(format!("mapping {name} of model {id} changed"));
                }
                Some(_) => {}
            }
        }
        let names = after.mappings.keys();
        let added = names.filter(|name| !self.mappings.contains_key(*name));
        found.extend(added.map(|name| format!("mapping {name} of model {id} added")));
    }
}

/// Hashes a value whose tables are sorted, as those of a checked document are.
fn hash(value: &Json) -> [u8; 32] {
    Sha256::digest(value.to_string()).into()
}

fn text<'j>(of: &'j Json, name: &str) -> &'j str {
    of.get(name).and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn model(id: &str, name: &str, price: u32) -> Json {
        json!({ "id": id, "providers": [{ "provider": "p", "name": name, "input": price }] })
    }

    fn digest(models: &[Json]) -> CatalogDigest {
        CatalogDigest::new(&json!({ "models": models }))
    }

    #[test]
    fn models_and_mappings_that_were_added_removed_and_changed_are_named() {
        let before = digest(&[model("a", "x", 1), model("b", "x", 1), model("c", "x", 1)]);
        let after = digest(&[model("d", "x", 1), model("b", "x", 2), model("c", "y", 1)]);
        assert_eq!(
            before.differences(&after),
            [
                "model a removed",
                "mapping p/x of model b changed",
                "mapping p/x of model c removed",
                "mapping p/y of model c added",
                "model d added",
            ]
        );
    }

    #[test]
    fn a_model_that_is_renamed_for_people_is_changed() {
        let mut named = model("a", "x", 1);
        named["name"] = "A".into();
        let (before, after) = (digest(&[model("a", "x", 1)]), digest(&[named]));
        assert_eq!(before.differences(&after), ["model a changed"]);
    }

    #[test]
    fn the_order_of_models_is_no_difference() {
        let (a, b) = (model("a", "x", 1), model("b", "x", 1));
        let (before, after) = (digest(&[a.clone(), b.clone()]), digest(&[b, a]));
        assert_eq!(before, after);
        assert_eq!(before.hash(), after.hash());
        assert_ne!(before.hash(), digest(&[]).hash());
    }

    #[test]
    fn of_many_differences_the_first_are_listed() {
        let models: Vec<_> = (0..50).map(|n| model(&format!("m{n}"), "x", 1)).collect();
        let found = digest(&[]).differences(&digest(&models));
        assert_eq!(found.len(), MAX_LISTED + 1);
        assert_eq!(found.last().map(String::as_str), Some("and 30 more"));
    }

    #[test]
    fn a_provider_that_has_a_model_twice_has_two_mappings() {
        let twice = |price: u32| {
            let mut model = model("a", "x", 1);
            let second = json!({ "provider": "p", "name": "x", "input": price });
            let mappings = model["providers"].as_array_mut();
            mappings.unwrap().push(second);
            model
        };
        let found = digest(&[twice(2)]).differences(&digest(&[twice(3)]));
        assert_eq!(found, ["mapping p/x (2) of model a changed"]);
    }
}
