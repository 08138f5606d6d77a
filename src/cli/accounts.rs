//! Access to the accounts for commands.

use filters::money::Usd;
use jiff::Timestamp;

use super::{Exit, Output, Source, load};
use crate::store::{Store, StoreError, StoreSettings};

/// Opens the configured store and runs `work` on it.
///
/// Errors are printed to stderr; an unusable configuration has exit code 78.
pub(super) fn on_store<T>(
    source: &Source,
    out: &mut Output,
    work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
) -> Result<T, Exit> {
    let loaded = load(source, out)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| out.fail(&format!("nothing can be run: {error}")))?;
    let result = runtime.block_on(async {
        let settings = StoreSettings::from_config(&loaded.config.store)?;
        let store = Store::open(&settings).await?.store;
        let result = work(&store).await;
        store.close().await;
        result
    });
    result.map_err(|error| refuse(&error, out))
}

fn refuse(error: &StoreError, out: &mut Output) -> Exit {
    let exit = out.fail(&error.to_string());
    match error {
        StoreError::InvalidName { .. }
        | StoreError::InvalidTerm(_)
        | StoreError::InvalidSecret(_) => Exit::Usage,
        error if error.is_configuration() => Exit::Configuration,
        _ => exit,
    }
}

/// Parses an amount of the argument `name`. Errors: negative, too long, not a plain decimal.
pub(super) fn parse_usd(name: &str, text: &str, out: &mut Output) -> Result<Usd, Exit> {
    Usd::parse(text).map_err(|error| {
        out.fail(&format!("{name}: {error}"));
        Exit::Usage
    })
}

/// Returns the current time in unix milliseconds.
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Formats a time as RFC 3339, or as null.
pub(super) fn format_time(unix_ms: Option<i64>) -> serde_json::Value {
    let time = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    time.map_or(serde_json::Value::Null, |time| time.to_string().into())
}
