//! `[log_export]`, as the file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogExportConfig {
    /// Where the lines go: s3 (any storage that speaks its API), clickhouse, or file (a folder of this machine).
    pub kind: LogExportKind,
    /// How objects, inserts and files are compressed.
    #[serde(default)]
    pub compression: Compression,
    /// Bytes of lines after which a batch is sent: an object, an insert or a file, before it is compressed.
    #[serde(default = "batch_bytes")]
    #[schemars(range(min = 65_536, max = 67_108_864))]
    pub batch_bytes: u64,
    /// Seconds after which a smaller batch is sent.
    #[serde(default = "batch_interval_s")]
    #[schemars(range(min = 1, max = 3600))]
    pub batch_interval_s: u64,
    /// The most bytes that may wait in store.state_dir; beyond it new lines are dropped and counted.
    #[serde(default = "spool_bytes")]
    #[schemars(range(min = 131_072, max = 1_099_511_627_776_i64))]
    pub spool_bytes: u64,
    /// Seconds that one object or insert may take.
    #[serde(default = "timeout_s")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout_s: u64,
    /// s3: the bucket, which exists.
    #[serde(default)]
    pub bucket: Option<String>,
    /// s3: what stands before the names of objects, without a slash at its ends.
    #[serde(default)]
    pub prefix: Option<String>,
    /// s3: the region of the bucket; default: AWS_REGION, AWS_DEFAULT_REGION, that of the profile; beside endpoint us-east-1.
    #[serde(default)]
    pub region: Option<String>,
    /// s3: scheme, host and port of another storage than AWS's.
    #[serde(default)]
    #[schemars(extend("format" = "url"))]
    pub endpoint: Option<String>,
    /// s3: whether the bucket stands in the path and not in the host, as many other storages want it; default: true beside endpoint.
    #[serde(default)]
    pub path_style: Option<bool>,
    /// s3: the id of the key; default: AWS's own sources, as credentials = "aws" of a provider has them.
    #[serde(default)]
    pub access_key_id: Option<SecretRef>,
    /// s3: the key.
    #[serde(default)]
    pub secret_access_key: Option<SecretRef>,
    /// s3: the token of a temporary key.
    #[serde(default)]
    pub session_token: Option<SecretRef>,
    /// clickhouse: the URL of its HTTP interface.
    #[serde(default)]
    #[schemars(extend("format" = "url"))]
    pub url: Option<String>,
    /// clickhouse: the database.
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    pub database: Option<String>,
    /// clickhouse: the table; `weirgate log-export schema` prints the statement that makes it.
    #[serde(default)]
    #[schemars(extend("default" = "weirgate_calls"))]
    pub table: Option<String>,
    /// clickhouse: the user.
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    pub user: Option<String>,
    /// clickhouse: the user's password.
    #[serde(default)]
    pub password: Option<SecretRef>,
    /// file: the folder, which is made if it does not exist.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub folder: Option<String>,
}

/// Where lines go.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogExportKind {
    S3,
    ClickHouse,
    File,
}

/// How batches of the log export are compressed.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    #[default]
    Gzip,
    Zstd,
    None,
}

fn batch_bytes() -> u64 {
    8 << 20
}

fn batch_interval_s() -> u64 {
    60
}

fn spool_bytes() -> u64 {
    1 << 30
}

fn timeout_s() -> u64 {
    30
}
