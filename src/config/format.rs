//! The checks of single values: numbers by their bounds, texts by their format.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, Uri};
use serde_json::{Number, Value as Json};

use super::document::Value;
use super::suggest;
use filters::cidr::Cidr;

/// What is wrong, and its cure.
type FormatError = (String, String);

fn refused<T>(message: impl Into<String>, cure: impl Into<String>) -> Result<T, FormatError> {
    Err((message.into(), cure.into()))
}

/// A number of the schema's type within its bounds.
pub(super) fn number(value: &Value, schema: &Json) -> Result<Json, FormatError> {
    let (number, shown) = match value {
        Value::Integer(number) => (*number as f64, number.to_string()),
        Value::Float(text) => (
            text.replace('_', "").parse().unwrap_or(f64::NAN),
            text.clone(),
        ),
        _ => (f64::NAN, String::new()),
    };
    let least = schema
        .get("minimum")
        .and_then(Json::as_f64)
        .unwrap_or(f64::MIN);
    let most = schema
        .get("maximum")
        .and_then(Json::as_f64)
        .unwrap_or(i64::MAX as f64);
    if !number.is_finite() || number < least || number > most {
        return refused(format!("{shown} is out of range"), bounds(schema));
    }
    let json = match value {
        Value::Integer(number) => i64::try_from(*number).ok().map(Number::from),
        _ if super::walk::type_of(schema) == "integer" => {
            return refused(
                format!("must be an integer, but is {shown}"),
                bounds(schema),
            );
        }
        _ => Number::from_f64(number),
    };
    match json {
        Some(number) => Ok(Json::Number(number)),
        None => refused(format!("{shown} is out of range"), bounds(schema)),
    }
}

fn bounds(schema: &Json) -> String {
    let default = schema
        .get("default")
        .map(|default| format!("; the default is {default}"));
    let default = default.unwrap_or_default();
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!("give a number from {least} to {most}{default}"),
        (Some(least), None) => format!("give a number of at least {least}{default}"),
        (None, Some(most)) => format!("give a number of at most {most}{default}"),
        (None, None) => format!("give a number{default}"),
    }
}

/// What to write where the type was wrong.
pub(super) fn cure_of_type(schema: &Json) -> String {
    if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
        return format!("use one of: {}", listed(choices));
    }
    match super::walk::type_of(schema) {
        "integer" | "number" => bounds(schema),
        "boolean" => "write true or false, without quotes".to_owned(),
        "array" => "write a list: [ … ]".to_owned(),
        "object" => "write a table: { key = value }".to_owned(),
        _ => "put the value in quotes".to_owned(),
    }
}

fn listed(choices: &[Json]) -> String {
    choices
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A text that is one of the schema's choices, long enough, and of its format.
pub(super) fn text(text: &str, schema: &Json) -> Result<Json, FormatError> {
    if let Some(choices) = schema.get("enum").and_then(Json::as_array)
        && !choices.iter().any(|choice| choice == text)
    {
        let known: Vec<&str> = choices.iter().filter_map(Json::as_str).collect();
        let meant = suggest::nearest(text, &known);
        let meant = meant
            .map(|meant| format!("did you mean {meant:?}? "))
            .unwrap_or_default();
        let cure = format!("{meant}use one of: {}", listed(choices));
        return refused(format!("{text:?} is not known"), cure);
    }
    if text.is_empty() && schema.get("minLength").and_then(Json::as_u64).unwrap_or(0) > 0 {
        return refused("must not be empty", "give it a value, or take the key out");
    }
    formatted(text, super::walk::format_of(schema))?;
    Ok(Json::String(text.to_owned()))
}

fn formatted(text: &str, format: &str) -> Result<(), FormatError> {
    if let Some(format) = format.strip_suffix("-or-empty") {
        return if text.is_empty() {
            Ok(())
        } else {
            formatted(text, format)
        };
    }
    match format {
        "address" => address(text),
        "cidr" => text
            .parse::<Cidr>()
            .map(drop)
            .or_else(|why| refused(why, "give a block such as \"10.0.0.0/8\" or one address")),
        "header" => header(text),
        "url" => url(text, &["http", "https"]),
        "url-pattern" => url_pattern(text),
        "origin-or-sandbox" => origin(text),
        "store-url" => store(text),
        "redis-url" => url(text, &["redis", "rediss"]),
        "path" => path(text),
        "field" => field(text),
        "sdk-key" => sdk_key(text),
        "method" => method(text),
        _ => Ok(()),
    }
}

fn address(text: &str) -> Result<(), FormatError> {
    if text.parse::<SocketAddr>().is_ok() {
        return Ok(());
    }
    let cure = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("add a port: \"[{ip}]:8080\""),
        Ok(IpAddr::V4(ip)) => format!("add a port: \"{ip}:8080\""),
        Err(_) => "give an IP address and a port, such as \"127.0.0.1:8080\"".to_owned(),
    };
    refused(format!("{text:?} is not an address with a port"), cure)
}

fn header(text: &str) -> Result<(), FormatError> {
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => refused(
            format!("{text:?} is not a header's name"),
            "use letters, digits and dashes, such as \"x-forwarded-for\"",
        ),
    }
}

/// An absolute URL of one of these schemes, without query, fragment or user.
fn url(text: &str, schemes: &[&str]) -> Result<(), FormatError> {
    let wanted = schemes.join(":// or ");
    let cure = format!("give a URL that begins with {wanted}://");
    // The text is not repeated: it may hold a password.
    let Ok(uri) = text.parse::<Uri>() else {
        return refused("is not a URL", cure);
    };
    if !uri
        .scheme_str()
        .is_some_and(|scheme| schemes.contains(&scheme))
    {
        return refused("is not a URL of a scheme that is understood", cure);
    }
    if uri.host().is_none_or(str::is_empty) {
        return refused("is a URL without a host", cure);
    }
    if port_is_wrong(&uri) {
        return refused("is a URL with a wrong port", "give a port from 1 to 65535");
    }
    if uri.query().is_some() || text.contains('#') {
        return refused(
            "is a URL with a query or fragment",
            "cut it off at the ? or #",
        );
    }
    if schemes.contains(&"http")
        && uri
            .authority()
            .is_some_and(|host| host.as_str().contains('@'))
    {
        return refused(
            "is a URL with a user in it",
            "take out everything up to the @",
        );
    }
    Ok(())
}

fn port_is_wrong(uri: &Uri) -> bool {
    let Some(authority) = uri.authority() else {
        return false;
    };
    let host_and_port = authority.as_str().rsplit('@').next().unwrap_or_default();
    let written = host_and_port
        .rsplit(']')
        .next()
        .and_then(|rest| rest.split_once(':'));
    written.is_some_and(|_| uri.port_u16().is_none_or(|port| port == 0))
}

fn url_pattern(text: &str) -> Result<(), FormatError> {
    if text.matches("%s").count() != 1 {
        return refused("must contain %s once", "write %s where the id belongs");
    }
    let filled = text.replace("%s", "x");
    url(
        filled.split('?').next().unwrap_or_default(),
        &["http", "https"],
    )
}

fn origin(text: &str) -> Result<(), FormatError> {
    if text.is_empty() || text == "sandbox" {
        return Ok(());
    }
    url(text, &["http", "https"])?;
    let path = text
        .parse::<Uri>()
        .map(|uri| uri.path().to_owned())
        .unwrap_or_default();
    if path.is_empty() || path == "/" {
        return Ok(());
    }
    refused(
        "is a URL with a path",
        "give scheme, host and port only; paths are forwarded as they come",
    )
}

fn store(text: &str) -> Result<(), FormatError> {
    if let Some(path) = text.strip_prefix("sqlite:") {
        return if path.trim_start_matches('/').is_empty() {
            refused("names no file", "write \"sqlite:var/weirgate.db\"")
        } else {
            Ok(())
        };
    }
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let plain = text.split('?').next().unwrap_or_default();
        return url(plain, &["postgres", "postgresql"]);
    }
    refused(
        "is not a store",
        "write \"sqlite:PATH\" or \"postgres://user@host/db\"",
    )
}

fn path(text: &str) -> Result<(), FormatError> {
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    refused(
        format!("{text:?} is not a path"),
        "begin with / and leave out spaces",
    )
}

fn field(text: &str) -> Result<(), FormatError> {
    let good = |part: &str| {
        let part = part.strip_suffix("[]").unwrap_or(part);
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if text.split('.').all(good) {
        return Ok(());
    }
    let cure = "write a field of the request: \"logprobs\", \"messages[].name\"";
    refused(format!("{text:?} is not a field"), cure)
}

fn sdk_key(text: &str) -> Result<(), FormatError> {
    let key = text.split_once(':').map_or(text, |(key, _)| key);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    if (1..=128).contains(&key.len()) && text.bytes().all(|byte| good(byte) || byte == b':') {
        return Ok(());
    }
    refused(
        format!("{text:?} is not an SDK key"),
        "use 1 to 128 of A-Z a-z 0-9 + / = _ -, with an optional :token",
    )
}

fn method(text: &str) -> Result<(), FormatError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(());
    }
    refused(
        format!("{text:?} is not a method"),
        "write it in capitals: \"GET\", \"POST\"",
    )
}

/// The name of a member in a table of free names.
pub(super) fn name(name: &str, names: &str) -> Result<(), FormatError> {
    match names {
        "header" => header(name),
        "operation" => match name.split_once(' ') {
            Some((verb, pattern)) => method(verb).and_then(|()| path(pattern)),
            None => refused(
                format!("{name:?} is not an operation"),
                "write \"METHOD pattern\", such as \"POST /content/v2\"",
            ),
        },
        _ => {
            let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if (1..=64).contains(&name.len()) && name.bytes().all(good) {
                return Ok(());
            }
            refused(
                format!("{name:?} is not a name"),
                "use 1 to 64 of A-Z a-z 0-9 . _ -",
            )
        }
    }
}

/// An amount of USD as decimal text; a float keeps the digits that were written.
pub(super) fn usd(value: &Value) -> Result<Json, FormatError> {
    let text = match value {
        Value::Text(text) | Value::Float(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        _ => String::new(),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if digits(whole, 12) && digits(fraction, 12) {
        return Ok(Json::String(text));
    }
    refused(
        "is not an amount of USD",
        "write a decimal such as \"20.50\", not negative",
    )
}

/// An id written with or without quotes.
pub(super) fn id(value: &Value) -> Result<Json, FormatError> {
    match value {
        Value::Text(text) if !text.is_empty() => Ok(Json::String(text.clone())),
        Value::Integer(number) if u64::try_from(*number).is_ok() => {
            Ok(Json::from(u64::try_from(*number).unwrap_or_default()))
        }
        _ => refused("is not an id", "write it as a string or a number"),
    }
}
