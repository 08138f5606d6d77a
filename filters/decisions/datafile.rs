//! The members of a datafile as written, version 4. Source: docs/facts/decision-engine.md A.
//!
//! null counts as absent, unknown members are ignored, and a wrong type anywhere makes the whole file invalid.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Datafile {
    #[serde(deserialize_with = "some")]
    pub(super) version: String,
    #[serde(deserialize_with = "some")]
    pub(super) account_id: String,
    #[serde(deserialize_with = "some")]
    pub(super) project_id: String,
    #[serde(deserialize_with = "some")]
    pub(super) revision: String,
    #[serde(deserialize_with = "some")]
    pub(super) sdk_key: String,
    #[serde(deserialize_with = "some")]
    pub(super) environment_key: String,
    #[serde(deserialize_with = "some")]
    pub(super) region: String,
    #[serde(rename = "anonymizeIP", deserialize_with = "some")]
    pub(super) anonymize_ip: bool,
    #[serde(deserialize_with = "some")]
    pub(super) bot_filtering: bool,
    #[serde(deserialize_with = "some")]
    pub(super) send_flag_decisions: bool,
    #[serde(deserialize_with = "some")]
    pub(super) attributes: Vec<DatafileNamed>,
    #[serde(deserialize_with = "some")]
    pub(super) events: Vec<DatafileEvent>,
    #[serde(deserialize_with = "some")]
    pub(super) audiences: Vec<DatafileAudience>,
    #[serde(deserialize_with = "some")]
    pub(super) typed_audiences: Vec<DatafileAudience>,
    #[serde(deserialize_with = "some")]
    pub(super) experiments: Vec<DatafileExperiment>,
    #[serde(deserialize_with = "some")]
    pub(super) groups: Vec<DatafileGroup>,
    #[serde(deserialize_with = "some")]
    pub(super) feature_flags: Vec<DatafileFlag>,
    #[serde(deserialize_with = "some")]
    pub(super) rollouts: Vec<Rollout>,
    #[serde(deserialize_with = "some")]
    pub(super) holdouts: Vec<DatafileExperiment>,
    #[serde(deserialize_with = "some")]
    pub(super) local_holdouts: Vec<DatafileExperiment>,
    #[serde(deserialize_with = "some")]
    pub(super) integrations: Vec<DatafileIntegration>,
}

/// Reads a value, or null as the default.
fn some<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DatafileNamed {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileEvent {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
    #[serde(deserialize_with = "some")]
    pub(super) experiment_ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DatafileAudience {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) name: String,
    /// A list, an object, or a string that contains one of them.
    pub(super) conditions: Value,
}

/// An experiment, a rule of a rollout, or a holdout.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileExperiment {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
    #[serde(deserialize_with = "some")]
    pub(super) layer_id: String,
    #[serde(deserialize_with = "some")]
    pub(super) status: String,
    #[serde(deserialize_with = "some")]
    pub(super) audience_ids: Vec<String>,
    pub(super) audience_conditions: Value,
    #[serde(deserialize_with = "some")]
    pub(super) forced_variations: serde_json::Map<String, Value>,
    #[serde(deserialize_with = "some")]
    pub(super) traffic_allocation: Vec<DatafileRange>,
    #[serde(deserialize_with = "some")]
    pub(super) variations: Vec<DatafileVariation>,
    pub(super) cmab: Option<DatafileCmab>,
    #[serde(rename = "type", deserialize_with = "some")]
    pub(super) kind: String,
    #[serde(deserialize_with = "some")]
    pub(super) included_flags: Vec<String>,
    #[serde(deserialize_with = "some")]
    pub(super) excluded_flags: Vec<String>,
    pub(super) included_rules: Option<Vec<String>>,
    #[serde(deserialize_with = "some")]
    pub(super) exclude_targeted_deliveries: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileRange {
    #[serde(deserialize_with = "some")]
    pub(super) entity_id: String,
    #[serde(deserialize_with = "some")]
    pub(super) end_of_range: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileVariation {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
    #[serde(deserialize_with = "some")]
    pub(super) feature_enabled: bool,
    #[serde(deserialize_with = "some")]
    pub(super) variables: Vec<VariableValue>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct VariableValue {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) value: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileCmab {
    #[serde(deserialize_with = "some")]
    pub(super) attribute_ids: Vec<String>,
    #[serde(deserialize_with = "some")]
    pub(super) traffic_allocation: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileGroup {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) policy: String,
    #[serde(deserialize_with = "some")]
    pub(super) traffic_allocation: Vec<DatafileRange>,
    #[serde(deserialize_with = "some")]
    pub(super) experiments: Vec<DatafileExperiment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileFlag {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
    #[serde(deserialize_with = "some")]
    pub(super) rollout_id: String,
    #[serde(deserialize_with = "some")]
    pub(super) experiment_ids: Vec<String>,
    #[serde(deserialize_with = "some")]
    pub(super) variables: Vec<DatafileVariable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileVariable {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) key: String,
    #[serde(rename = "type", deserialize_with = "some")]
    pub(super) kind: String,
    #[serde(deserialize_with = "some")]
    pub(super) sub_type: String,
    #[serde(deserialize_with = "some")]
    pub(super) default_value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rollout {
    #[serde(deserialize_with = "some")]
    pub(super) id: String,
    #[serde(deserialize_with = "some")]
    pub(super) experiments: Vec<DatafileExperiment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DatafileIntegration {
    pub(super) key: Option<String>,
    #[serde(deserialize_with = "some")]
    pub(super) host: String,
    #[serde(deserialize_with = "some")]
    pub(super) public_key: String,
}
