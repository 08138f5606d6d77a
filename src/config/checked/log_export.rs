//! The export of logs.

use std::path::PathBuf;
use std::time::Duration;

use filters::models::cloud_credentials::sigv4::AwsKeys;

use super::CloudSettings;
pub use crate::config::file::log_export::Compression;
use crate::config::secret::Secret;

/// The export of logs.
///
/// It has no `Debug`, because it holds secrets.
#[derive(Clone, Eq, PartialEq)]
pub struct LogExportConfig {
    pub destination: DestinationConfig,
    pub compression: Compression,
    /// The size of a batch before it is compressed.
    pub batch_bytes: u64,
    /// How long a smaller batch waits.
    pub batch_interval: Duration,
    /// The maximum size of all that waits.
    pub spool_bytes: u64,
    /// The time limit of one batch.
    pub timeout: Duration,
}

/// Where batches go.
#[derive(Clone, Eq, PartialEq)]
pub enum DestinationConfig {
    S3(S3Config),
    ClickHouse(ClickHouseConfig),
    Folder(PathBuf),
}

/// A bucket.
#[derive(Clone, Eq, PartialEq)]
pub struct S3Config {
    /// The URL of the bucket, without a slash at its end.
    pub url: String,
    /// What stands before the names of objects; empty, or with a slash at its end.
    pub prefix: String,
    pub region: String,
    pub keys: S3Keys,
}

/// The keys that sign requests to a bucket.
#[derive(Clone, Eq, PartialEq)]
pub enum S3Keys {
    /// Those of the configuration.
    Written(AwsKeys),
    /// Those of AWS's own sources.
    Source(CloudSettings),
}

/// A table of ClickHouse.
#[derive(Clone, Eq, PartialEq)]
pub struct ClickHouseConfig {
    /// The URL of the HTTP interface.
    pub url: String,
    /// Letters, digits and `_`, like the table.
    pub database: String,
    pub table: String,
    pub user: String,
    pub password: Option<Secret>,
}
