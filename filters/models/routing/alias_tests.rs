#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::json;

use super::resolve::resolve;
use super::tests::{catalog, mapping};
use crate::fault::FaultKind;
use crate::models::operation::Operation;

#[test]
fn an_alias_with_a_star_stands_for_names_without_a_model() {
    let models = catalog(json!([
        {"id": "claude-opus", "providers": [mapping("off", "3", json!({}))]},
        {"id": "m", "aliases": ["claude-*"], "providers": [mapping("a", "2", json!({}))]},
        {"id": "small", "aliases": ["claude-*haiku*"], "providers": [mapping("b", "1", json!({}))]},
        {"id": "claude-sonnet", "providers": [mapping("b", "3", json!({}))]},
    ]));
    let found = |name: &str| models.find(name).map(|model| model.id.to_string());
    assert_eq!(found("claude-sonnet").as_deref(), Some("claude-sonnet"));
    assert_eq!(found("claude-haiku-4-5").as_deref(), Some("small"));
    // No provider of the model itself is on.
    assert_eq!(found("claude-opus").as_deref(), Some("m"));
    assert_eq!(found("gpt-5"), None);
    let providers = models.providers().set(["a", "b"]);
    let resolved = |name: &str| resolve(name, Operation::Chat, &models, &providers, &[], 0);
    let pinned = resolved("b/claude-haiku-4-5").unwrap();
    assert_eq!(&*pinned.candidates[0].model.id, "small");
    assert_eq!(
        resolved("b/claude-x").unwrap_err().kind,
        FaultKind::ModelNotFound
    );
}
