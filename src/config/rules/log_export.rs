//! Checks the keys of `[log_export]`.

use std::path::PathBuf;
use std::time::Duration;

use filters::models::cloud_credentials::secret_text::SecretText;
use filters::models::cloud_credentials::sigv4::{AwsKeys, S3};

use super::provider_urls::is_unencrypted_and_remote;
use super::{Rules, cloud};
use crate::config::checked::{
    ClickHouseConfig, DestinationConfig, LogExportConfig, S3Config, S3Keys,
};
use crate::config::file::File;
use crate::config::file::log_export::{self as file, LogExportKind};

/// The region of storage that is not AWS's and has none.
const OTHER_REGION: &str = "us-east-1";

/// The maximum number of batches that may wait.
const MAX_BATCHES: u64 = 512;

/// The keys of each kind.
const KEYS: [(LogExportKind, &str, &[&str]); 3] = [
    (
        LogExportKind::S3,
        "s3",
        &[
            "bucket",
            "prefix",
            "region",
            "endpoint",
            "path_style",
            "access_key_id",
            "secret_access_key",
            "session_token",
        ],
    ),
    (
        LogExportKind::ClickHouse,
        "clickhouse",
        &["url", "database", "table", "user", "password"],
    ),
    (LogExportKind::File, "file", &["folder"]),
];

/// Checks the section. Returns `None` without one, or if a key is missing.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> Option<LogExportConfig> {
    let export = file.log_export.as_ref()?;
    refuse_others(rules, export.kind);
    if export.spool_bytes < export.batch_bytes.saturating_mul(2) {
        rules.refuse(
            "log_export.spool_bytes",
            format!(
                "is {}, less than two batches of log_export.batch_bytes = {}",
                export.spool_bytes, export.batch_bytes
            ),
            "make it twice as large at least",
        );
    }
    if export.spool_bytes > export.batch_bytes.saturating_mul(MAX_BATCHES) {
        rules.refuse(
            "log_export.spool_bytes",
            format!(
                "is {}, more than {MAX_BATCHES} batches of log_export.batch_bytes = {}, and each is an open file",
                export.spool_bytes, export.batch_bytes
            ),
            "make it smaller, or the batches larger",
        );
    }
    for (key, url) in [("endpoint", &export.endpoint), ("url", &export.url)] {
        if url.as_deref().is_some_and(is_unencrypted_and_remote) {
            rules.warn(
                &format!("log_export.{key}"),
                "is not encrypted: keys and lines can be read on the way",
                "write https://, unless the network between is yours",
            );
        }
    }
    let destination = match export.kind {
        LogExportKind::S3 => DestinationConfig::S3(check_s3(rules, export)?),
        LogExportKind::ClickHouse => DestinationConfig::ClickHouse(check_table(rules, export)?),
        LogExportKind::File => {
            let folder = needed(rules, "folder", export.folder.as_deref(), "/var/log/calls")?;
            DestinationConfig::Folder(PathBuf::from(folder))
        }
    };
    Some(LogExportConfig {
        destination,
        compression: export.compression,
        batch_bytes: export.batch_bytes,
        batch_interval: Duration::from_secs(export.batch_interval_s),
        spool_bytes: export.spool_bytes,
        timeout: Duration::from_secs(export.timeout_s),
    })
}

/// Refuses the keys of other kinds.
fn refuse_others(rules: &mut Rules<'_>, kind: LogExportKind) {
    let own = KEYS.iter().find(|(of, ..)| *of == kind);
    let own = own.map_or("", |(_, name, _)| name);
    for (_, name, keys) in KEYS.iter().filter(|(of, ..)| *of != kind) {
        for key in *keys {
            let place = format!("log_export.{key}");
            if rules.is_set(&place) {
                let message = format!("has no effect with kind = {own:?}: it is of kind {name:?}");
                rules.refuse(&place, message, "take it out, or change kind");
            }
        }
    }
}

/// Returns the value of a key that the kind needs.
fn needed<'f>(
    rules: &mut Rules<'_>,
    key: &str,
    value: Option<&'f str>,
    example: &str,
) -> Option<&'f str> {
    let value = value.filter(|value| !value.is_empty());
    if value.is_none() {
        let cure = format!("add {key} = {example:?} to [log_export]");
        rules.refuse(
            &format!("log_export.{key}"),
            "is missing: this kind needs it",
            cure,
        );
    }
    value
}

fn check_s3(rules: &mut Rules<'_>, export: &file::LogExportConfig) -> Option<S3Config> {
    let bucket = needed(rules, "bucket", export.bucket.as_deref(), "calls")?;
    let is_of_names = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
    if !bucket
        .bytes()
        .all(|b| is_of_names(b) || b.is_ascii_uppercase())
    {
        rules.refuse(
            "log_export.bucket",
            format!("{bucket:?} is no name of a bucket"),
            "write letters, digits, dots and dashes",
        );
    }
    let prefix = export.prefix.as_deref().unwrap_or_default();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._/=".contains(&b);
    let has_empty = !prefix.is_empty()
        && prefix
            .split('/')
            .any(|part| matches!(part, "" | "." | ".."));
    if has_empty || !prefix.bytes().all(is_plain) {
        rules.refuse(
            "log_export.prefix",
            format!("{prefix:?} is no prefix"),
            "write letters, digits and -._= with single slashes between them, such as \"weirgate/prod\"",
        );
    }
    let (region, keys) = check_keys(rules, export);
    let endpoint = export
        .endpoint
        .as_deref()
        .map(|it| it.trim_end_matches('/'));
    // The certificate of AWS's hosts is good for one label before them.
    let usual = endpoint.is_some() || bucket.contains('.');
    let is_in_path = export.path_style.unwrap_or(usual);
    let endpoint = match endpoint {
        Some(endpoint) => endpoint.to_owned(),
        None => format!("https://s3.{region}.amazonaws.com"),
    };
    let url = match endpoint.split_once("://") {
        Some((scheme, host)) if !is_in_path => format!("{scheme}://{bucket}.{host}"),
        _ => format!("{endpoint}/{bucket}"),
    };
    Some(S3Config {
        url,
        prefix: match prefix {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        },
        region,
        keys,
    })
}

/// Returns the region and the keys of a bucket.
fn check_keys(rules: &mut Rules<'_>, export: &file::LogExportConfig) -> (String, S3Keys) {
    let secrets = [
        ("access_key_id", &export.access_key_id),
        ("secret_access_key", &export.secret_access_key),
        ("session_token", &export.session_token),
    ];
    let [id, secret, token] = secrets.map(|(key, reference)| {
        let found = rules.find_secret(&format!("log_export.{key}"), reference.as_ref());
        found.map(|found| found.expose().to_owned())
    });
    let is_written = secrets.iter().any(|(_, reference)| reference.is_some());
    for (key, reference) in secrets.iter().take(2) {
        if is_written && reference.is_none() {
            rules.refuse(
                &format!("log_export.{key}"),
                "is missing beside the other half of the key",
                "set access_key_id and secret_access_key, or neither for AWS's own sources",
            );
        }
    }
    let usual = export.endpoint.is_some().then_some(OTHER_REGION);
    let environment = cloud::environment(rules.env);
    let names = ("log_export", "access_key_id");
    let configured = export.region.as_deref().or(usual);
    let region = cloud::check_aws(rules, names, (configured, !is_written), &environment);
    let keys = match is_written {
        true => S3Keys::Written(AwsKeys {
            access_key_id: id.unwrap_or_default().into(),
            secret_access_key: SecretText::new(secret.unwrap_or_default()),
            session_token: token.map(SecretText::new),
        }),
        false => S3Keys::Source(cloud::of_aws(environment, &region, S3)),
    };
    (region, keys)
}

fn check_table(rules: &mut Rules<'_>, export: &file::LogExportConfig) -> Option<ClickHouseConfig> {
    let url = needed(rules, "url", export.url.as_deref(), "http://localhost:8123")?;
    let named = [
        ("database", &export.database, "default"),
        ("table", &export.table, "weirgate_calls"),
    ];
    let [database, table] = named.map(|(key, value, usual)| {
        let name = value.as_deref().unwrap_or(usual);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            rules.refuse(
                &format!("log_export.{key}"),
                format!("{name:?} is no name of ClickHouse that needs no quotes"),
                "write letters, digits and _",
            );
        }
        name.to_owned()
    });
    Some(ClickHouseConfig {
        url: url.trim_end_matches('/').to_owned(),
        database,
        table,
        user: export.user.clone().unwrap_or_else(|| "default".to_owned()),
        password: rules.find_secret("log_export.password", export.password.as_ref()),
    })
}
