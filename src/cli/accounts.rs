//! Access to the accounts for commands.

use filters::accounts::{AllowedRegions, UnknownValue};
use filters::money::Usd;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::actor::find_actor;
use super::{Exit, Output, OutputFormat, Source, load};
use crate::config::{LoadedConfig, ValueSource, nearest};
use crate::store::{AccountEditor, Deletion, Store, StoreError, StoreSettings};

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
        let known = match &result {
            Err(error) => opened.store.known_names(error).await.unwrap_or_default(),
            Ok(_) => Vec::new(),
        };
        opened.store.close().await;
        let new_store = opened.is_new_file.then(|| settings.url.redacted());
        Ok((result, known, new_store))
    });
    let (result, known, new_store) = opened?;
    if let Some(name) = new_store {
        out.note(&format!("made a new store: {name}"));
    }
    result.map_err(|error| refuse(&error, &known, out))
}

/// Opens the configured store and runs `work` on it, which changes accounts in the name of whoever gives the command.
///
/// Errors: those of [`on_store`], and a `WEIRGATE_ACTOR` that is no name.
pub(super) fn change_accounts<T>(
    source: &Source,
    out: &mut Output,
    work: impl AsyncFnOnce(AccountEditor<'_>) -> Result<T, StoreError>,
) -> Result<T, Exit> {
    let actor = find_actor(out)?;
    on_store(source, out, async |store| work(store.by(&actor)).await)
}

/// Waits for work on a store. Errors are printed to stderr.
pub(super) fn run_on_store<T>(
    out: &mut Output,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Exit> {
    write_on_store(out, async |_: &mut Output| work.await)
}

/// Waits for work on a store that writes its result itself. Errors are printed to stderr.
pub(super) fn write_on_store<T>(
    out: &mut Output,
    work: impl AsyncFnOnce(&mut Output) -> Result<T, StoreError>,
) -> Result<T, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| out.fail(&format!("nothing can be run: {error}")))?;
    let result = runtime.block_on(work(out));
    result.map_err(|error| refuse(&error, &[], out))
}

/// Writes what a deletion has given up, or that it has to be confirmed and what it would give up. Then it fails.
pub(super) fn write_deletion(
    (kind, name): (&str, &str),
    deletion: &Deletion,
    (is_confirmed, format): (bool, OutputFormat),
    out: &mut Output,
) -> Result<(), Exit> {
    let parts = deletion.parts.iter().filter(|(_, count)| *count > 0);
    let mut texts: Vec<String> = parts
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if !deletion.balance.is_zero() {
        texts.push(format!("{} USD of credit", deletion.balance));
    }
    let with: Map<String, Value> = deletion
        .parts
        .iter()
        .map(|(what, count)| (what.replace(' ', "_").to_lowercase(), json!(count)))
        .collect();
    let done = if is_confirmed { "deleted" } else { "nothing" };
    let record = json!({
        "done": done, "id": deletion.id, "name": name, "with": with,
        "balance": deletion.balance.to_string(),
    });
    let with = match texts.as_slice() {
        [] => String::new(),
        texts => format!(", with {}", texts.join(", ")),
    };
    if is_confirmed {
        let note = format!("deleted the {kind} `{name}`{with}");
        out.done(format, &note, None, &record);
        return Ok(());
    }
    if format == OutputFormat::Json {
        out.json(&record);
    }
    Err(out.fail(&format!(
        "nothing was done: --yes deletes the {kind} `{name}` for good{with}"
    )))
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

/// Writes an error, with the one of the known names that was probably meant.
fn refuse(error: &StoreError, known: &[String], out: &mut Output) -> Exit {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let meant = match error {
        StoreError::NotFound { name, .. } => nearest(name, &known),
        _ => None,
    };
    let exit = out.fail(&match meant {
        Some(meant) => format!("{error}; did you mean `{meant}`?"),
        None => error.to_string(),
    });
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
pub(super) fn format_time(unix_ms: Option<i64>) -> Value {
    let time = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    time.map_or(Value::Null, |time| time.to_string().into())
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

/// Reads a flag that is on or off.
pub(super) fn parse_switch(text: &str) -> Result<bool, UnknownValue> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(UnknownValue("on, off")),
    }
}
