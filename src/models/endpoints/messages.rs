//! What clients of Messages ask beside answers and counts: which models there are, and whether anybody is there.
//! Source: docs/facts/messages.md 1.

use filters::fault::{Fault, quoted};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// The models of a page, where the client does not say how many.
const PAGE: usize = 20;
/// The most models of a page.
const MAX_PAGE: usize = 1000;

/// `HEAD /api/hello`, by which Claude Code finds out whether the gateway is there.
pub struct Hello;

impl Endpoint for Hello {
    fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async { Ok(Response::json("{}")) })
    }
}

/// Returns a page of the list of models in the words of Messages. `entries` are those of `GET /v1/models`; an alias is an entry
/// of its own, because clients choose from what is listed.
///
/// Errors: 400 for a `limit` that is no number from 1 to [`MAX_PAGE`].
pub fn page(entries: &[Value], request: &Request<'_>) -> Result<Response, Fault> {
    let limit = match request.values("limit").last() {
        None => PAGE,
        Some(limit) => {
            let number = limit.parse().ok();
            let number = number.filter(|number| (1..=MAX_PAGE).contains(number));
            number.ok_or_else(|| {
                let message = format!(
                    "`limit` is `{}`; accepted is a number from 1 to {MAX_PAGE}",
                    quoted(&limit)
                );
                Fault::invalid("limit", message)
            })?
        }
    };
    let all: Vec<Value> = entries.iter().flat_map(listed).collect();
    let place = |name: &str| {
        let id = request.values(name).last()?;
        all.iter().position(|entry| entry["id"] == *id)
    };
    let (after, before) = (place("after_id"), place("before_id"));
    let start = after.map_or(0, |at| at + 1);
    let end = before.unwrap_or(all.len());
    // A page before an entry ends there.
    let start = match before {
        Some(end) => start.max(end.saturating_sub(limit)),
        None => start,
    };
    let page: Vec<&Value> = all.iter().take(end).skip(start).take(limit).collect();
    let has_more = match before {
        Some(_) => start > 0,
        None => start + page.len() < end,
    };
    let id = |entry: Option<&&Value>| entry.map_or(Value::Null, |entry| entry["id"].clone());
    let (first, last) = (id(page.first()), id(page.last()));
    let body = json!({ "data": page, "has_more": has_more, "first_id": first, "last_id": last });
    Ok(Response::json(body.to_string()))
}

/// Returns the entries of a model: by its id, and by each of its aliases.
fn listed(entry: &Value) -> Vec<Value> {
    let created = entry["created"].as_i64().unwrap_or_default();
    let created = jiff::Timestamp::from_second(created).unwrap_or_default();
    let aliases = entry["aliases"].as_array().into_iter().flatten();
    let ids = std::iter::once(&entry["id"]).chain(aliases);
    let one = |id: &Value| {
        json!({
            "type": "model",
            "id": id,
            "display_name": entry["display_name"].as_str().or(id.as_str()),
            "created_at": created.to_string(),
            "max_input_tokens": entry["context_length"],
            "max_tokens": entry["max_output"],
        })
    };
    ids.map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use http::HeaderMap;

    use super::*;

    fn ids(query: &str) -> (Vec<String>, bool) {
        let entries: Vec<Value> = (0..5)
            .map(|number| json!({"id": format!("m{number}"), "aliases": match number { 1 => json!(["claude-x"]), _ => Value::Null }}))
            .collect();
        let headers = HeaderMap::new();
        let request = Request {
            headers: &headers,
            path: "/v1/models",
            query,
            body: b"",
            caller: None,
            client_ip: None,
            now_ms: 0,
        };
        let response = page(&entries, &request).unwrap();
        let body: Value = serde_json::from_slice(response.body.bytes()).unwrap();
        let data = body["data"].as_array().unwrap();
        let ids: Vec<String> = data
            .iter()
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(body["first_id"].as_str(), ids.first().map(String::as_str));
        assert_eq!(body["last_id"].as_str(), ids.last().map(String::as_str));
        (ids, body["has_more"].as_bool().unwrap())
    }

    #[test]
    fn the_list_has_pages_and_aliases() {
        let all = ["m0", "m1", "claude-x", "m2", "m3", "m4"];
        for (query, expected, has_more) in [
            ("", &all[..], false),
            ("limit=1000", &all, false),
            ("limit=2", &all[..2], true),
            ("limit=2&after_id=m1", &all[2..4], true),
            ("limit=2&after_id=m3", &all[5..], false),
            ("limit=2&before_id=m2", &all[1..3], true),
            ("limit=9&before_id=m2", &all[..3], false),
            ("after_id=nobody", &all, false),
        ] {
            let (ids, more) = ids(query);
            assert_eq!(ids, expected, "{query}");
            assert_eq!(more, has_more, "{query}");
        }
    }
}
