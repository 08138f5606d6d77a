//! From the path and the query of a request to members of its body, so that a body says all that is asked for.

use bytes::Bytes;
use memchr::memmem;

use super::check::top::{ARRAY, SSE};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::form;
use crate::json::members::{find, without};
use crate::json::{Error, Type, Walker, quoted};
use crate::models::dialects::contents::canonical;
use crate::models::front::ClientHead;

/// Stands before the name of the model.
const MODELS: &str = "/models/";

/// Returns the model in a path that ends with a method, such as `/v1beta/models/a/b:generateContent`.
pub fn model_of_path(path: &str) -> String {
    let (_, rest) = path.split_once(MODELS).unwrap_or_default();
    let end = rest.rfind(':').or_else(|| {
        let lower = rest.to_ascii_lowercase();
        lower.rfind("%3a")
    });
    let model = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
    // In a path, a plus does not mean a space.
    form::decode(&model.replace('+', "%2B")).into_owned()
}

/// Returns the body of a request with the members `model` and `stream`. A body that was composed before has them, and its head
/// says nothing.
///
/// Cost: one copy of the body. Errors: 400 for an unknown `alt`, another model than that of the path, or a member `stream`.
pub(super) fn compose(head: &ClientHead<'_>, body: Bytes, is_stream: bool) -> Result<Bytes, Fault> {
    if head.path.is_empty() {
        return Ok(body);
    }
    let model = model_of_path(head.path);
    let form = match (is_stream, form::values(head.query, "alt").last().as_deref()) {
        (false, None | Some("json")) => None,
        (true, None | Some("json")) => Some(ARRAY),
        (true, Some("sse")) => Some(SSE),
        (false, Some("sse")) => None,
        (_, Some(other)) => {
            let message = format!(
                "`alt` is `{}`; accepted is `sse` or `json`",
                crate::fault::quoted(other)
            );
            return Err(Fault::invalid("alt", message).with_code(FaultCode::InvalidParameters));
        }
    };
    let form = form.map_or("null".to_owned(), quoted);
    let members = format!("\"model\":{},\"stream\":{form}}}", quoted(&model));
    let own = match has_key(&body, "\"model\"") || has_key(&body, "\"stream\"") {
        true => without_own(&body, &model)?,
        false => None,
    };
    let text = own.as_deref().map_or(&*body, str::as_bytes);
    let text = text.trim_ascii_end();
    // What is no object is refused where it is checked.
    let Some(inside) = text.strip_suffix(b"}") else {
        return Ok(body);
    };
    let is_empty = inside.trim_ascii_end().ends_with(b"{");
    let mut composed = Vec::with_capacity(text.len() + members.len() + 1);
    composed.extend_from_slice(inside);
    composed.extend_from_slice(if is_empty { b"" } else { b"," });
    composed.extend_from_slice(members.as_bytes());
    Ok(composed.into())
}

/// Returns whether a quoted name is a key somewhere in a body.
fn has_key(body: &[u8], name: &str) -> bool {
    memmem::find_iter(body, name).any(|at| {
        let behind = body.get(at + name.len()..).unwrap_or_default();
        behind.trim_ascii_start().first() == Some(&b':')
    })
}

/// Returns a body without the model that the path says, too; `None`: it stays as it is, or is refused where it is checked.
///
/// Errors: 400 if the body names another model, or how the answer comes.
fn without_own(body: &[u8], model: &str) -> Result<Option<String>, Fault> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Ok(None);
    };
    if find(text, "stream").is_some() {
        let message = "`stream` is no member; accepted is the path `:streamGenerateContent`";
        return Err(Fault::invalid("stream", message).with_code(FaultCode::InvalidParameters));
    }
    let Ok((rest, Some(said))) = without(text, "model") else {
        return Ok(None);
    };
    if said == quoted(model) || said == quoted(&["models/", model].concat()) {
        return Ok(Some(rest));
    }
    let shown: String = said.chars().take(64).collect();
    let message =
        format!("`model` is {shown}; accepted is the model of the path, or no such member");
    Err(Fault::invalid("model", message).with_code(FaultCode::InvalidParameters))
}

/// Returns the request that stands in `generateContentRequest`, without its model, which the path says; a body without it stays.
///
/// Errors: 400, it is no object.
pub(super) fn unwrapped(body: Bytes) -> Result<Bytes, Fault> {
    let Ok(text) = std::str::from_utf8(&body) else {
        return Ok(body);
    };
    let mut inner = None;
    // What is no JSON is refused where it is checked.
    let walked = Walker::over(text).object(|walk, key| {
        let value = walk.skip()?;
        if canonical(&key) == "generateContentRequest" && value != "null" {
            inner = Some(value);
        }
        Ok::<(), Error>(())
    });
    let Some(inner) = inner.filter(|_| walked.is_ok()) else {
        return Ok(body);
    };
    if Walker::over(inner).peek() != Ok(Type::Object) {
        let message = "`generateContentRequest` is no object; accepted is a request for an answer";
        return Err(Fault::invalid("generateContentRequest", message));
    }
    match without(inner, "model") {
        Ok((request, _)) => Ok(request.into()),
        Err(_) => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http::HeaderMap;

    use super::*;

    #[test]
    fn the_model_of_a_path_may_have_slashes_colons_and_escapes() {
        for (path, model) in [
            ("/v1beta/models/m:generateContent", "m"),
            ("//v1beta/models/a/b:eu:streamGenerateContent", "a/b:eu"),
            ("/v1/models/a%2Fb+c:countTokens", "a/b+c"),
            ("/v1beta/models/m%3AgenerateContent", "m"),
            ("/v1beta/models/m", "m"),
            ("/x", ""),
        ] {
            assert_eq!(model_of_path(path), model, "{path}");
        }
    }

    #[test]
    fn a_body_says_what_path_and_query_say() {
        let headers = HeaderMap::new();
        let composed = |body: &'static str, query: &str, is_stream: bool| {
            let head = ClientHead {
                path: "/v1beta/models/m:x",
                query,
                headers: &headers,
            };
            compose(&head, body.into(), is_stream)
                .map(|body| String::from_utf8(body.to_vec()).unwrap())
        };
        for (body, query, is_stream, expected) in [
            ("{}", "", false, r#"{"model":"m","stream":null}"#),
            (
                "{\"a\":1} \n",
                "alt=sse",
                true,
                r#"{"a":1,"model":"m","stream":"sse"}"#,
            ),
            ("{ }", "key=x", true, r#"{ "model":"m","stream":"array"}"#),
            ("[1]", "", true, "[1]"),
            (
                r#"{"model": "models/m","contents":[{"role":"model"}]}"#,
                "",
                false,
                r#"{"contents":[{"role":"model"}],"model":"m","stream":null}"#,
            ),
        ] {
            assert_eq!(composed(body, query, is_stream).unwrap(), expected);
        }
        let fault = composed("{}", "alt=media", true).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("alt"));
        for (body, param) in [
            (r#"{"model":"n"}"#, "model"),
            (r#"{"model":null}"#, "model"),
            (r#"{"stream" : true}"#, "stream"),
        ] {
            let fault = composed(body, "", false).unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
    }

    #[test]
    fn a_whole_request_may_be_counted() {
        let inner = |body: &'static str| {
            let body = unwrapped(body.into()).unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        let whole = r#"{"generate_content_request":{"model":"models/m","contents":[]}}"#;
        assert_eq!(inner(whole), r#"{"contents":[]}"#);
        assert_eq!(inner(r#"{"contents":[]}"#), r#"{"contents":[]}"#);
        assert!(unwrapped(r#"{"generateContentRequest":1}"#.into()).is_err());
    }
}
