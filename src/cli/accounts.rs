//! How a command reaches the accounts.

use filters::money::Usd;
use jiff::Timestamp;

use super::{Exit, Output, Source, load};
use crate::store::{Store, StoreError, StoreSettings};

/// Opens the store that the configuration names, and runs one piece of work on it.
///
/// What goes wrong is said on stderr; a configuration that cannot be used is exit code 78.
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
    let done = runtime.block_on(async {
        let settings = StoreSettings::from_config(&loaded.config.store)?;
        let store = Store::open(&settings).await?.store;
        let done = work(&store).await;
        store.close().await;
        done
    });
    done.map_err(|error| refuse(&error, out))
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

/// An amount that was given as `name`. Errors: negative, too long, no plain decimal.
pub(super) fn usd(name: &str, text: &str, out: &mut Output) -> Result<Usd, Exit> {
    Usd::parse(text).map_err(|bad| {
        out.fail(&format!("{name}: {bad}"));
        Exit::Usage
    })
}

/// Now, in unix milliseconds.
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A time as it is shown: RFC 3339, or nothing.
pub(super) fn shown(unix_ms: Option<i64>) -> serde_json::Value {
    let time = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    time.map_or(serde_json::Value::Null, |time| time.to_string().into())
}
