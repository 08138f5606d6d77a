//! What is shipped, for commands that make files of one's own of it.

use std::sync::LazyLock;

use toml::{Table, Value};

/// The configuration, with every option.
pub(super) const CONFIG: &str = include_str!("../../conf/weirgate.toml");
/// The catalogue of models and prices.
pub(super) const CATALOG: &str = include_str!("../../conf/models.toml");

/// The providers of the configuration, by name.
pub(super) static PROVIDERS: LazyLock<Table> = LazyLock::new(|| {
    let config: Table = toml::from_str(CONFIG).unwrap_or_default();
    match config.get("providers") {
        Some(Value::Table(providers)) => providers.clone(),
        _ => Table::new(),
    }
});

/// The models of the catalogue.
pub(super) static MODELS: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let catalog: Table = toml::from_str(CATALOG).unwrap_or_default();
    tables(&catalog, "models").cloned().collect()
});

/// Returns the tables of a list.
pub(super) fn tables<'t>(table: &'t Table, name: &str) -> impl Iterator<Item = &'t Table> {
    let list = table.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_table)
}
