//! Where batches go. A destination takes a batch whole, and a second time without a second copy.

mod clickhouse;
mod folder;
mod s3;

use bytes::Bytes;
use prometheus::IntCounterVec;

use self::clickhouse::ClickHouse;
use self::folder::Folder;
use self::s3::S3;
use super::segment::SegmentName;
use crate::config::{Compression, DestinationConfig, LogExportConfig};
use crate::outbound::Outbound;

/// The maximum size of a reply that is read.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// The lines of a segment, compressed.
pub(super) struct Batch {
    pub(super) name: SegmentName,
    pub(super) body: Bytes,
}

/// Where batches go.
pub(super) struct Destination(Kind);

enum Kind {
    S3(S3),
    ClickHouse(ClickHouse),
    Folder(Folder),
}

impl Destination {
    /// Errors: no HTTP client can be made, or the address is none.
    pub(super) fn new(config: &LogExportConfig, fetches: &IntCounterVec) -> Result<Self, String> {
        let client = |url: &str| {
            let client = Outbound::new(config.timeout, [url]);
            client.map_err(|error| format!("no HTTP client: {error}"))
        };
        Ok(Self(match &config.destination {
            DestinationConfig::S3(s3) => Kind::S3(S3::new(s3, client(&s3.url)?, fetches)?),
            DestinationConfig::ClickHouse(table) => {
                Kind::ClickHouse(ClickHouse::new(table, client(&table.url)?))
            }
            DestinationConfig::Folder(folder) => Kind::Folder(Folder(folder.clone())),
        }))
    }

    /// Sends a batch. Once it has arrived, another send of it changes nothing.
    ///
    /// Errors: why it has not arrived, or may not have. The text holds nothing of the batch and no secret.
    pub(super) async fn send(&self, batch: Batch) -> Result<(), String> {
        match &self.0 {
            Kind::S3(s3) => s3.write(batch).await,
            Kind::ClickHouse(table) => table.insert(batch).await,
            Kind::Folder(folder) => folder.write(&batch).map_err(|error| error.to_string()),
        }
    }

    async fn try_out(&self) -> Result<(), String> {
        match &self.0 {
            Kind::S3(s3) => s3.find_bucket().await,
            Kind::ClickHouse(table) => table.find_table().await,
            Kind::Folder(folder) => folder.try_out().map_err(|error| error.to_string()),
        }
    }
}

/// Asks whether the destination of a configuration is there, without a change of it.
///
/// Errors: why lines would not arrive.
pub async fn try_out(config: &LogExportConfig, fetches: &IntCounterVec) -> Result<(), String> {
    Destination::new(config, fetches)?.try_out().await
}

/// Returns the media type of a body.
fn media_type(compression: Compression) -> &'static str {
    match compression {
        Compression::Gzip => "application/gzip",
        Compression::Zstd => "application/zstd",
        Compression::None => "application/x-ndjson",
    }
}
