//! Checks of single values: bounds of numbers, formats of texts.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, Uri};
use serde_json::{Number, Value as Json};

use super::document::Value;
use super::suggest;
use filters::cidr::Cidr;
use filters::models::parameter::Parameter;
use filters::models::routing::Date;
use filters::money::{Factor, HoursWindow, InvalidAmount, Price};

/// The message of a problem, and the cure.
type FormatError = (String, String);

const CURE_OF_DATE: &str = "write year, month and day, such as 2026-11-01";

fn refuse<T>(message: impl Into<String>, cure: impl Into<String>) -> Result<T, FormatError> {
    Err((message.into(), cure.into()))
}

/// Checks that a number has the schema's type and is within its bounds.
pub(super) fn check_number(value: &Value, schema: &Json) -> Result<Json, FormatError> {
    let (number, shown) = match value {
        Value::Integer(number) => (*number as f64, number.to_string()),
        Value::Float(text) => (
            text.replace('_', "").parse().unwrap_or(f64::NAN),
            text.clone(),
        ),
        _ => (f64::NAN, String::new()),
    };
    let min = schema
        .get("minimum")
        .and_then(Json::as_f64)
        .unwrap_or(f64::MIN);
    let max = schema
        .get("maximum")
        .and_then(Json::as_f64)
        .unwrap_or(i64::MAX as f64);
    if !number.is_finite() || number < min || number > max {
        return refuse(format!("{shown} is out of range"), bounds(schema));
    }
    let json = match value {
        Value::Integer(number) => i64::try_from(*number).ok().map(Number::from),
        _ if super::walk::schema_type(schema) == "integer" => {
            return refuse(
                format!("must be an integer, but is {shown}"),
                bounds(schema),
            );
        }
        _ => Number::from_f64(number),
    };
    match json {
        Some(number) => Ok(Json::Number(number)),
        None => refuse(format!("{shown} is out of range"), bounds(schema)),
    }
}

fn bounds(schema: &Json) -> String {
    let default = schema
        .get("default")
        .map(|default| format!("; the default is {default}"));
    let default = default.unwrap_or_default();
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(min), Some(max)) => format!("give a number from {min} to {max}{default}"),
        (Some(min), None) => format!("give a number of at least {min}{default}"),
        (None, Some(max)) => format!("give a number of at most {max}{default}"),
        (None, None) => format!("give a number{default}"),
    }
}

/// Returns the cure for a value of the wrong type.
pub(super) fn describe_type(schema: &Json) -> String {
    if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
        return format!("use one of: {}", join_choices(choices));
    }
    if super::walk::schema_format(schema) == "date" {
        return CURE_OF_DATE.to_owned();
    }
    match super::walk::schema_type(schema) {
        "integer" | "number" => bounds(schema),
        "boolean" => "write true or false, without quotes".to_owned(),
        "array" => "write a list: [ … ]".to_owned(),
        "object" => "write a table: { key = value }".to_owned(),
        _ => "put the value in quotes".to_owned(),
    }
}

fn join_choices(choices: &[Json]) -> String {
    choices
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Checks that a text is one of the schema's choices, is long enough, and has the right format.
pub(super) fn check_text(text: &str, schema: &Json) -> Result<Json, FormatError> {
    if let Some(choices) = schema.get("enum").and_then(Json::as_array)
        && !choices.iter().any(|choice| choice == text)
    {
        let known: Vec<&str> = choices.iter().filter_map(Json::as_str).collect();
        let suggestion = suggest::nearest(text, &known);
        let suggestion = suggestion
            .map(|suggestion| format!("did you mean {suggestion:?}? "))
            .unwrap_or_default();
        let cure = format!("{suggestion}use one of: {}", join_choices(choices));
        return refuse(format!("{text:?} is not known"), cure);
    }
    if text.is_empty() && schema.get("minLength").and_then(Json::as_u64).unwrap_or(0) > 0 {
        return refuse("must not be empty", "give it a value, or take the key out");
    }
    check_format(text, super::walk::schema_format(schema))?;
    Ok(Json::String(text.to_owned()))
}

fn check_format(text: &str, format: &str) -> Result<(), FormatError> {
    if let Some(format) = format.strip_suffix("-or-empty") {
        return if text.is_empty() {
            Ok(())
        } else {
            check_format(text, format)
        };
    }
    match format {
        "address" => check_address(text),
        "cidr" => text
            .parse::<Cidr>()
            .map(drop)
            .or_else(|why| refuse(why, "give a block such as \"10.0.0.0/8\" or one address")),
        "header" => check_header(text),
        "url" => check_url(text, &["http", "https"]),
        "url-pattern" => check_url_pattern(text),
        "origin-or-sandbox" => check_origin(text),
        "store-url" => check_store_url(text),
        "redis-url" => check_url(text, &["redis", "rediss"]),
        "path" => check_path(text),
        "socket-path" => check_socket_path(text),
        "sdk-key" => check_sdk_key(text),
        "method" => check_method(text),
        "date" => check_date(text),
        "time" => check_time(text),
        "price-per-million" => check_price(Price::per_million(text)),
        "price-per-thousand" => check_price(Price::per_thousand(text)),
        "price-factor" => check_factor(Factor::parse(text)),
        "price-share" => check_factor(Factor::parse(text).and_then(Factor::complement)),
        "hours" => match HoursWindow::parse(text, &[]) {
            Ok(_) => Ok(()),
            Err(why) => refuse(why, "give hours of a day in UTC, such as \"16:30-00:30\""),
        },
        "price-per-call" => check_price(Price::per_call(text)),
        _ => Ok(()),
    }
}

fn check_date(text: &str) -> Result<(), FormatError> {
    // A time after the day is accepted and ignored.
    let day = text.get(..10).unwrap_or(text);
    if Date(day.to_owned()).unix_s().is_some() {
        return Ok(());
    }
    refuse(format!("{text:?} is not a date"), CURE_OF_DATE)
}

fn check_time(text: &str) -> Result<(), FormatError> {
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => Ok(()),
        Err(_) => refuse(
            format!("{text:?} is not a time"),
            "write date, time and zone, such as 2031-01-01T00:00:00Z",
        ),
    }
}

fn check_price(parsed: Result<Price, InvalidAmount>) -> Result<(), FormatError> {
    parsed.map(drop).or_else(|invalid| {
        refuse(
            invalid.to_string(),
            "write USD as a decimal in quotes, such as \"2.50\"",
        )
    })
}

fn check_factor(parsed: Result<Factor, InvalidAmount>) -> Result<(), FormatError> {
    parsed.map(drop).or_else(|invalid| {
        refuse(
            invalid.to_string(),
            "write a decimal in quotes, such as \"0.5\"",
        )
    })
}

fn check_address(text: &str) -> Result<(), FormatError> {
    if text.parse::<SocketAddr>().is_ok() {
        return Ok(());
    }
    let cure = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("add a port: \"[{ip}]:8080\""),
        Ok(IpAddr::V4(ip)) => format!("add a port: \"{ip}:8080\""),
        Err(_) => "give an IP address and a port, such as \"127.0.0.1:8080\"".to_owned(),
    };
    refuse(format!("{text:?} is not an address with a port"), cure)
}

fn check_header(text: &str) -> Result<(), FormatError> {
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => refuse(
            format!("{text:?} is not a header's name"),
            "use letters, digits and dashes, such as \"x-forwarded-for\"",
        ),
    }
}

/// Checks an absolute URL with one of these schemes, without query, fragment or user.
fn check_url(text: &str, schemes: &[&str]) -> Result<(), FormatError> {
    let accepted = schemes.join(":// or ");
    let cure = format!("give a URL that begins with {accepted}://");
    // The message does not repeat the text, because the text may contain a password.
    let Ok(uri) = text.parse::<Uri>() else {
        return refuse("is not a URL", cure);
    };
    if !uri
        .scheme_str()
        .is_some_and(|scheme| schemes.contains(&scheme))
    {
        return refuse("is not a URL of a scheme that is understood", cure);
    }
    if uri.host().is_none_or(str::is_empty) {
        return refuse("is a URL without a host", cure);
    }
    if is_invalid_port(&uri) {
        return refuse("is a URL with a wrong port", "give a port from 1 to 65535");
    }
    if uri.query().is_some() || text.contains('#') {
        return refuse(
            "is a URL with a query or fragment",
            "cut it off at the ? or #",
        );
    }
    if schemes.contains(&"http")
        && uri
            .authority()
            .is_some_and(|host| host.as_str().contains('@'))
    {
        return refuse(
            "is a URL with a user in it",
            "take out everything up to the @",
        );
    }
    Ok(())
}

fn is_invalid_port(uri: &Uri) -> bool {
    let Some(authority) = uri.authority() else {
        return false;
    };
    let host_and_port = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = host_and_port
        .rsplit(']')
        .next()
        .and_then(|rest| rest.split_once(':'));
    port.is_some_and(|_| uri.port_u16().is_none_or(|port| port == 0))
}

fn check_url_pattern(text: &str) -> Result<(), FormatError> {
    if text.matches("%s").count() != 1 {
        return refuse("must contain %s once", "write %s where the id belongs");
    }
    let filled = text.replace("%s", "x");
    check_url(
        filled.split('?').next().unwrap_or_default(),
        &["http", "https"],
    )
}

fn check_origin(text: &str) -> Result<(), FormatError> {
    if text.is_empty() || text == "sandbox" {
        return Ok(());
    }
    check_url(text, &["http", "https"])?;
    let path = text
        .parse::<Uri>()
        .map(|uri| uri.path().to_owned())
        .unwrap_or_default();
    if path.is_empty() || path == "/" {
        return Ok(());
    }
    refuse(
        "is a URL with a path",
        "give scheme, host and port only; paths are forwarded as they come",
    )
}

fn check_store_url(text: &str) -> Result<(), FormatError> {
    if let Some(path) = text.strip_prefix("sqlite:") {
        return if path.trim_start_matches('/').is_empty() {
            refuse("names no file", "write \"sqlite:var/weirgate.db\"")
        } else {
            Ok(())
        };
    }
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let plain = text.split('?').next().unwrap_or_default();
        return check_url(plain, &["postgres", "postgresql"]);
    }
    refuse(
        "is not a store",
        "write \"sqlite:PATH\" or \"postgres://user@host/db\"",
    )
}

fn check_path(text: &str) -> Result<(), FormatError> {
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    refuse(
        format!("{text:?} is not a path"),
        "begin with / and leave out spaces",
    )
}

/// The system cuts or refuses longer paths of sockets.
fn check_socket_path(text: &str) -> Result<(), FormatError> {
    const MAX_BYTES: usize = 107;
    if text.contains('\0') {
        return refuse("a path has no NUL", "take it out");
    }
    if text.len() > MAX_BYTES {
        let message = format!("{text:?} is too long for the path of a socket");
        return refuse(message, format!("use at most {MAX_BYTES} bytes"));
    }
    Ok(())
}

fn check_sdk_key(text: &str) -> Result<(), FormatError> {
    let key = text.split_once(':').map_or(text, |(key, _)| key);
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    if (1..=128).contains(&key.len()) && text.bytes().all(|byte| is_valid(byte) || byte == b':') {
        return Ok(());
    }
    refuse(
        format!("{text:?} is not an SDK key"),
        "use 1 to 128 of A-Z a-z 0-9 + / = _ -, with an optional :token",
    )
}

fn check_method(text: &str) -> Result<(), FormatError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(());
    }
    refuse(
        format!("{text:?} is not a method"),
        "write it in capitals: \"GET\", \"POST\"",
    )
}

/// Checks the name of a member in a table with free names.
pub(super) fn check_name(name: &str, names: &str) -> Result<(), FormatError> {
    match names {
        "header" => check_header(name),
        "parameter" => check_parameter(name),
        "operation" => match name.split_once(' ') {
            Some((verb, pattern)) => check_method(verb).and_then(|()| check_path(pattern)),
            None => refuse(
                format!("{name:?} is not an operation"),
                "write \"METHOD pattern\", such as \"POST /content/v2\"",
            ),
        },
        _ => {
            let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if (1..=64).contains(&name.len()) && name.bytes().all(is_valid) {
                return Ok(());
            }
            refuse(
                format!("{name:?} is not a name"),
                "use 1 to 64 of A-Z a-z 0-9 . _ -",
            )
        }
    }
}

fn check_parameter(name: &str) -> Result<(), FormatError> {
    let known = Parameter::ALL.map(Parameter::as_str);
    if known.contains(&name) {
        return Ok(());
    }
    let suggestion = suggest::nearest(name, &known);
    let suggestion = suggestion.map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    let cure = format!("{suggestion}use one of: {}", known.join(", "));
    refuse(format!("{name:?} is not a parameter"), cure)
}

/// Checks an amount of USD. A number keeps the digits of the document.
pub(super) fn check_usd(value: &Value) -> Result<Json, FormatError> {
    let text = match value {
        Value::Text(text) | Value::Float(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        _ => String::new(),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    let digits = |part: &str, max: usize| {
        (1..=max).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if digits(whole, 12) && digits(fraction, 12) {
        return Ok(Json::String(text));
    }
    refuse(
        "is not an amount of USD",
        "write a decimal such as \"20.50\", not negative",
    )
}

/// Checks an id, with or without quotes.
pub(super) fn check_id(value: &Value) -> Result<Json, FormatError> {
    match value {
        Value::Text(text) if !text.is_empty() => Ok(Json::String(text.clone())),
        Value::Integer(number) if u64::try_from(*number).is_ok() => {
            Ok(Json::from(u64::try_from(*number).unwrap_or_default()))
        }
        _ => refuse("is not an id", "write it as a string or a number"),
    }
}
