//! `litellm_settings`, `router_settings` and `general_settings`: what becomes of them in `weirgate.toml`.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::fallbacks::take_either;
use super::fields::{Field, Fields};
use super::known;
use super::references::{Reading, is_variable};

/// Sections of the configuration, by name, in the order in which they are written.
pub(super) type Sections = BTreeMap<&'static str, Table>;

/// The most seconds of a timeout.
const MAX_TIMEOUT_S: u64 = 86_400;
/// What bounds all attempts together, unless a timeout is longer.
const DEADLINE_S: u64 = 1500;
const MEGABYTE: u64 = 1 << 20;

/// What the settings amount to.
#[derive(Default)]
pub(super) struct ImportedSettings {
    pub sections: Sections,
    /// The seconds for which replies are replayed; `None`: they are not.
    pub cache_ttl_s: Option<u64>,
    /// How often another attempt is made, if that is said.
    pub retries: Option<u64>,
}

impl ImportedSettings {
    fn set(&mut self, section: &'static str, key: &str, value: impl Into<Value>) {
        let table = self.sections.entry(section).or_default();
        table.insert(key.to_owned(), value.into());
    }

    fn set_count(&mut self, section: &'static str, key: &str, count: u64) {
        self.set(section, key, i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Reads what the two tables say that may both say it, and what is left of them.
pub(super) fn read<'n>(
    router: &mut Fields<'n>,
    library: &mut Fields<'n>,
    reading: &mut Reading<'_>,
) -> ImportedSettings {
    let mut settings = ImportedSettings::default();
    read_timeouts(&mut settings, router, library, reading);
    if let Some(field) = take_either("num_retries", router, library, reading) {
        settings.retries = field.to_count();
        match settings.retries {
            Some(_) => reading.findings.differs(
                &field,
                "a failed attempt leads to the next provider or region, and is not repeated at the same; routing.attempts counts all",
                "nothing",
            ),
            None => reading.findings.wrong_kind(&field, "a number"),
        }
    }
    read_strategy(&mut settings, router, reading);
    read_cache(&mut settings, library, reading);
    read_router_redis(&mut settings, router, reading);
    if let Some((_, true)) = library.take_bool("json_logs", &mut reading.findings) {
        settings.set("log", "format", "json");
    }
    for name in ["set_verbose", "debug"] {
        if let Some((_, true)) = library.take_bool(name, &mut reading.findings) {
            settings.set("log", "level", "debug");
        }
    }
    settings
}

/// Reads the timeouts of all providers together. `timeout` of the router counts before `request_timeout` of the library.
fn read_timeouts(
    settings: &mut ImportedSettings,
    router: &mut Fields<'_>,
    library: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let findings = &mut reading.findings;
    let of_router = router.take_seconds("timeout", findings);
    let of_library = library.take_seconds("request_timeout", findings);
    if let (Some(_), Some((field, _))) = (&of_router, &of_library) {
        let what = "router_settings.timeout says it, too, and counts";
        findings.left_out(field, what, "take one of them out");
    }
    let whole = of_router.or(of_library);
    let stream = router.take_seconds("stream_timeout", findings);
    let mut longest = 0;
    let timeouts = [
        (
            &whole,
            ["total_timeout_s", "stream_total_timeout_s"].as_slice(),
        ),
        (&stream, ["first_event_timeout_s"].as_slice()),
    ];
    for (timeout, keys) in timeouts {
        let Some((field, seconds)) = timeout else {
            continue;
        };
        let kept = (*seconds).clamp(1, MAX_TIMEOUT_S);
        if kept != *seconds {
            let what = format!("is outside 1 to {MAX_TIMEOUT_S} seconds; the nearest is written");
            findings.differs(field, what, "correct it in weirgate.toml");
        }
        longest = longest.max(kept);
        for key in keys {
            settings.set_count("routing", key, kept);
        }
    }
    if longest > DEADLINE_S {
        settings.set_count("routing", "deadline_s", longest);
    }
}

/// Reads how the router chooses among deployments.
fn read_strategy(
    settings: &mut ImportedSettings,
    router: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let Some((field, strategy)) = router.take_text("routing_strategy", &mut reading.findings)
    else {
        return;
    };
    let weights = |price: f64, uptime: f64, latency: f64| {
        Table::from_iter([
            ("price".to_owned(), Value::from(price)),
            ("uptime".to_owned(), Value::from(uptime)),
            ("throughput".to_owned(), Value::from(0.0)),
            ("latency".to_owned(), Value::from(latency)),
        ])
    };
    let cure =
        "set routing.weights in weirgate.toml, or let requests say `routing` (docs/routing.md)";
    match &*strategy {
        "latency-based-routing" => settings.set("routing", "weights", weights(0.0, 0.1, 0.9)),
        "cost-based-routing" => settings.set("routing", "weights", weights(0.9, 0.1, 0.0)),
        "simple-shuffle" => {
            let what = "equal servers of one provider share calls by weight; among others the best by price and measured uptime and speed is first";
            reading.findings.differs(&field, what, cure);
        }
        _ => {
            let what = "the best provider by price and measured uptime and speed is first; limits that replies tell are kept to";
            reading.findings.differs(&field, what, cure);
        }
    }
}

/// Reads the cache of replies.
fn read_cache(
    settings: &mut ImportedSettings,
    library: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let is_on = library.take_bool("cache", &mut reading.findings);
    let params = library.take("cache_params");
    let Some((field, true)) = is_on else {
        if let Some(params) = params {
            let what = "the cache is off, so it has no effect";
            reading
                .findings
                .left_out(&params, what, "set `cache` to true, and import again");
        }
        return;
    };
    let mut params = Fields::read(params, &mut reading.findings);
    let kind = params.take_text("type", &mut reading.findings);
    let mut is_kept = true;
    match &kind {
        Some((_, kind)) if kind == "redis" => read_redis(settings, "", &mut params, reading),
        Some((_, kind)) if kind == "local" => {}
        None => read_redis(settings, "", &mut params, reading),
        Some((field, _)) => {
            let what =
                "replies are kept in memory or in Redis, and replayed for the same request alone";
            reading.findings.left_out(
                field,
                what,
                "set shared.redis, if several processes share replies",
            );
        }
    }
    if let Some((field, mode)) = params.take_text("mode", &mut reading.findings)
        && mode == "default_off"
    {
        is_kept = false;
        let what = "a project replays replies or does not; requests may say no, and not yes";
        let cure =
            "set cache_ttl_s of a project of its own in accounts.toml, for the keys that want it";
        reading.findings.left_out(&field, what, cure);
    }
    let ttl = params.take_seconds("ttl", &mut reading.findings);
    if is_kept {
        const USUAL_S: u64 = 600;
        const MAX_S: u64 = 31_536_000;
        let seconds = ttl.as_ref().map_or(USUAL_S, |(_, seconds)| *seconds);
        settings.cache_ttl_s = Some(seconds.clamp(1, MAX_S));
        if ttl.is_none() {
            let what = format!("no ttl is said; replies are replayed for {USUAL_S} s");
            let cure = "set cache_ttl_s of the project in accounts.toml";
            reading.findings.differs(&field, what, cure);
        }
    }
    reading.findings.leave(params, known::CACHE);
}

/// Reads the Redis of the router, unless that of the cache is known.
fn read_router_redis(
    settings: &mut ImportedSettings,
    router: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    if let Some(field) = router.take("redis_url") {
        let what = "the address may hold a password, so it is not written";
        let cure = "set WEIRGATE_SHARED__REDIS in the environment of the server";
        reading.findings.left_out(&field, what, cure);
    }
    read_redis(settings, "redis_", router, reading);
}

/// Reads host, port and password of a Redis, whose fields begin with `prefix`.
fn read_redis(
    settings: &mut ImportedSettings,
    prefix: &str,
    fields: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let mut take = |name: &str| fields.take(&format!("{prefix}{name}"));
    let (host, port) = (take("host"), take("port"));
    let (password, user, ssl) = (take("password"), take("username"), take("ssl"));
    let Some(host) = host else {
        return;
    };
    let secrets: Vec<&Field<'_>> = [&password, &user].into_iter().flatten().collect();
    let is_open = secrets
        .iter()
        .all(|field| field.to_text().is_some_and(|text| text.is_empty()));
    let scheme = match ssl.as_ref().and_then(Field::to_bool) {
        Some(true) => "rediss",
        _ => "redis",
    };
    if !is_open {
        for field in secrets {
            let what = "the address of Redis would hold a secret, so it is not written";
            let cure = format!(
                "set WEIRGATE_SHARED__REDIS={scheme}://USER:PASSWORD@HOST:PORT in the environment of the server"
            );
            reading.findings.left_out(field, what, cure);
        }
        return;
    }
    let host_text = reading.text(&host);
    let port_text = match &port {
        Some(port) => reading.text(port),
        None => Some("6379".to_owned()),
    };
    let Some((name, port_number)) = host_text.zip(port_text) else {
        return;
    };
    let is_host = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    let is_port = port_number.parse::<u16>().is_ok_and(|port| port > 0);
    match is_host && is_port {
        true => settings.set(
            "shared",
            "redis",
            format!("{scheme}://{name}:{port_number}"),
        ),
        false => reading.findings.left_out(
            &host,
            "is no host, or its port is none",
            "set shared.redis in weirgate.toml",
        ),
    }
}

/// Reads what of `general_settings` is a setting of the process.
pub(super) fn read_general(
    settings: &mut ImportedSettings,
    general: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let findings = &mut reading.findings;
    if let Some((field, count)) = general.take_count("global_max_parallel_requests", findings) {
        match (1..=1_000_000).contains(&count) {
            true => settings.set_count("limits", "in_flight", count),
            false => findings.left_out(
                &field,
                "is outside 1 to 1000000",
                "set limits.in_flight in weirgate.toml",
            ),
        }
    }
    if let Some((field, megabytes)) = general.take_count("max_request_size_mb", findings) {
        let bytes = megabytes.saturating_mul(MEGABYTE);
        match (1024..=1 << 30).contains(&bytes) {
            true => {
                let body = Table::from_iter([(
                    "chat".to_owned(),
                    Value::from(i64::try_from(bytes).unwrap_or(i64::MAX)),
                )]);
                settings.set("limits", "body_bytes", body);
            }
            false => findings.left_out(
                &field,
                "is outside 1 to 1024 MB",
                "set limits.body_bytes in weirgate.toml",
            ),
        }
    }
    if let Some((field, text)) = general.take_text("maximum_spend_logs_retention_period", findings)
    {
        match to_days(&text) {
            Some(days) => settings.set_count("store", "usage_retention_days", days),
            None => findings.left_out(
                &field,
                "is no time that can be read",
                "set store.usage_retention_days in weirgate.toml",
            ),
        }
    }
}

/// Returns the days of a time such as `30d`, `12h` or `1mo`, of which a begun one counts.
fn to_days(text: &str) -> Option<u64> {
    const HOUR_S: u64 = 3600;
    const DAY_S: u64 = 24 * HOUR_S;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit_s = match unit {
        "s" | "" => 1,
        "m" => 60,
        "h" => HOUR_S,
        "d" => DAY_S,
        "w" => 7 * DAY_S,
        "mo" => 30 * DAY_S,
        _ => return None,
    };
    let days = number
        .parse::<u64>()
        .ok()?
        .checked_mul(unit_s)?
        .div_ceil(DAY_S);
    (1..=36_500).contains(&days).then_some(days)
}

/// Notes what is left of variables: the process gets them otherwise.
pub(super) fn read_environment(fields: Fields<'_>, reading: &mut Reading<'_>) {
    for (name, field) in fields.into_rest() {
        let what = match is_variable(&field) {
            true => "another name for a variable",
            false => "a variable; its value may be a secret, and is not written",
        };
        let cure =
            format!("set {name} in the environment of the server, if something refers to it");
        reading.findings.left_out(&field, what, cure);
    }
}

#[cfg(test)]
mod tests {
    use super::to_days;

    #[test]
    fn begun_days_count() {
        for (text, days) in [
            ("30d", Some(30)),
            ("12h", Some(1)),
            ("25h", Some(2)),
            ("1mo", Some(30)),
            ("2w", Some(14)),
            ("86400", Some(1)),
            ("", None),
            ("0d", None),
            ("3y", None),
            ("99999999999999999999d", None),
            ("-1d", None),
        ] {
            assert_eq!(to_days(text), days, "{text}");
        }
    }
}
