//! Access to the accounts for commands.

use filters::accounts::{AllowedRegions, UnknownValue};
use filters::money::Usd;
use jiff::Timestamp;

use super::{Exit, Output, Source, load};
use crate::config::{LoadedConfig, ValueSource};
use crate::store::{Store, StoreError, StoreSettings};

/// Opens the configured store and runs `work` on it.
///
/// Errors are printed to stderr; an unusable configuration, or none, has exit code 78.
pub(super) fn on_store<T>(
    source: &Source,
    out: &mut Output,
    work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
) -> Result<T, Exit> {
    let loaded = load_named(source, out)?;
    let opened = run_on_store(out, async {
        let settings = StoreSettings::from_config(&loaded.config.store)?;
        let opened = Store::open(&settings).await?;
        let result = work(&opened.store).await;
        opened.store.close().await;
        let new_store = opened.is_new_file.then(|| settings.url.redacted());
        Ok((result, new_store))
    });
    let (result, new_store) = opened?;
    if let Some(name) = new_store {
        out.note(&format!("made a new store: {name}"));
    }
    result.map_err(|error| refuse(&error, out))
}

/// Waits for work on a store. Errors are printed to stderr.
pub(super) fn run_on_store<T>(
    out: &mut Output,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| out.fail(&format!("nothing can be run: {error}")))?;
    let result = runtime.block_on(work);
    result.map_err(|error| refuse(&error, out))
}

/// Loads the configuration. Refuses the command if no store is named: the command would create a new store in the
/// current folder, which no server uses.
pub(super) fn load_named(source: &Source, out: &mut Output) -> Result<LoadedConfig, Exit> {
    let loaded = load(source, out)?;
    let named = loaded.origins.find("store.url");
    if *source != Source::Defaults || matches!(named, Some(ValueSource::Variable(_))) {
        return Ok(loaded);
    }
    out.fail(
        "no configuration was found, so no store is known: give the server's configuration with -c FILE, or run this in \
         the folder that has its conf/weirgate.toml",
    );
    Err(Exit::Configuration)
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

/// The regions that a flag sets; `None`: calls may be computed everywhere.
#[derive(Clone, Debug)]
pub(super) struct RegionsChange(pub(super) Option<AllowedRegions>);

/// Reads the regions of a flag. An empty text takes the bound away.
pub(super) fn parse_regions(text: &str) -> Result<RegionsChange, UnknownValue> {
    match text {
        "" => Ok(RegionsChange(None)),
        text => text.parse().map(|regions| RegionsChange(Some(regions))),
    }
}
