//! Where the user of a search is, as two of the wires say it.

use serde::Serialize;

use crate::models::chat::tools::SearchLocation;

/// A place that is near enough to search for.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "approximate")]
pub(super) struct NearPlace<'a> {
    #[serde(flatten)]
    pub(super) location: &'a SearchLocation<'a>,
}
