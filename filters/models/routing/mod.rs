//! The providers that are tried for a request, and their order.
//!
//! [`catalog`] holds the models, [`resolve`] reads a model string, [`allowed`] drops the candidates that the caller may
//! not use and [`capable`] those that cannot serve the request, [`score`] and `order` order the rest, [`plan`] combines
//! these steps; [`hedge`] decides which of the attempts runs beside a silent one; [`health`] and [`affinity`] remember outcomes. Random numbers and time are passed in. No provider is named
//! here.

pub mod affinity;
mod alias;
pub mod alias_move;
pub mod allowed;
mod capability;
pub mod capable;
pub mod catalog;
mod catalog_file;
pub mod ending;
pub mod expected_price;
pub mod explanation;
pub mod health;
pub mod hedge;
mod identity;
pub mod input_lengths;
mod order;
pub mod parameters;
mod parameters_file;
pub mod places;
pub mod plan;
mod prices;
mod prices_file;
pub mod providers;
pub mod resolve;
pub mod score;
pub mod search;
pub mod thinking;
pub mod usage_limits;
pub mod wire_limits;

#[cfg(test)]
mod alias_tests;
#[cfg(test)]
mod allowed_tests;
#[cfg(test)]
mod prices_tests;
#[cfg(test)]
mod tests;

pub use alias::matches as matches_alias;
pub use catalog_file::{CatalogFile, Date, MappingWire, WrittenMapping, WrittenModel};
pub use parameters_file::{Outside, ParameterProblem, WrittenBounds, WrittenParameters};
pub use prices_file::TOKEN_PRICE_KEYS;
