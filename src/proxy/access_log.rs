//! The line of a request, for the log, for the export and for the calls in memory. It contains no secret and no query, and a body for the
//! export alone, where the caller's organization allows it. Source: docs/interface.md, Logs; docs/log-export.md

use std::cell::Cell;
use std::io::Write;

use filters::accounts::holds_api_key;
use filters::fault::Fault;
use filters::json::{Object, write_escaped};
use http::header::USER_AGENT;
use pingora_proxy::Session;

use super::admission;
use super::context::Context;
use super::exchange::{Exchange, LogPart, log_ms};
use super::state::ProxyState;
use crate::telemetry::calls::MAX_LINE_BYTES;
use crate::telemetry::logging;

/// A larger buffer is freed once its line is sent: it had the content of a call.
const KEPT_LINE_BYTES: usize = 16 << 10;
/// The maximum bytes of a path or a user agent in the log.
const MAX_TEXT_BYTES: usize = 256;

thread_local! {
    /// The buffer of this worker's last line, which the next line reuses.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What a line is for, beside the log.
#[derive(Clone, Copy)]
pub(super) struct LineUses {
    pub(super) is_exported: bool,
    /// Whether it is kept among the calls in memory.
    pub(super) is_kept: bool,
}

/// Writes the line of a request that has ended to the log, where the configuration says so, and to the rest that wants it.
pub(super) fn write_line(
    (state, uses): (&ProxyState, LineUses),
    (session, ctx): (&Session, &Context),
    route: &str,
    outcome: &str,
) {
    // Formatting a line may log another line, which then finds an empty buffer here.
    let mut line = LINE.take();
    line.clear();
    format_line(&mut line, state, (session, ctx), (route, outcome));
    if state.settings.writes_access_log {
        state.access_log.send(&line);
    }
    if uses.is_kept {
        let kept = keep_line(&mut line, state, (session, ctx), (route, outcome));
        if let Some((number, until_ms)) = kept.zip(ctx.info.keep_bodies_until_ms()) {
            keep_bodies(state, ctx, (number, until_ms));
        }
    }
    if uses.is_exported {
        if ctx.info.exports_content() {
            write_content(&mut line, ctx);
        }
        state.log_export.send(&line);
        line.shrink_to(KEPT_LINE_BYTES);
    }
    LINE.set(line);
}

/// Keeps what was asked and answered in a call in memory, until the time that its organization allows.
fn keep_bodies(state: &ProxyState, ctx: &Context, kept: (u64, i64)) {
    let Some(exchange) = &ctx.exchange else {
        return;
    };
    let mut content = Vec::new();
    let mut members = Object::open(&mut content);
    exchange.log(&ctx.info, LogPart::Content, &mut members);
    members.close();
    let now_ms = i64::try_from(ctx.info.unix_ms()).unwrap_or(i64::MAX);
    state.calls.keep_bodies(kept, &content, now_ms);
}

/// Keeps a line among the calls in memory, with more members, as far as they have room. The line itself is the same afterwards. Returns
/// the number of the call.
fn keep_line(
    line: &mut Vec<u8>,
    state: &ProxyState,
    (session, ctx): (&Session, &Context),
    (route, outcome): (&str, &str),
) -> Option<u64> {
    let whole = line.len();
    if whole > MAX_LINE_BYTES {
        let mut core = Vec::new();
        let mut members = Object::open(&mut core);
        write_core(&mut members, state, (session, ctx, None), (route, outcome));
        members.bool("cut", true);
        members.close();
        return state.calls.keep(&core);
    }
    add_members(line, |members| write_details(members, ctx));
    if line.len() > MAX_LINE_BYTES {
        end_at(line, whole);
    }
    let without_plan = line.len();
    if let Some(exchange) = &ctx.exchange {
        add_members(line, |members| {
            exchange.log(&ctx.info, LogPart::Plan, members)
        });
    }
    if line.len() > MAX_LINE_BYTES {
        end_at(line, without_plan);
    }
    let number = state.calls.keep(line);
    end_at(line, whole);
    number
}

/// Writes what only the calls in memory have.
fn write_details(members: &mut Object<'_>, ctx: &Context) {
    let label = ctx.info.caller.as_ref().map(|caller| &*caller.key_label);
    members.optional_text("key_label", label.filter(|label| !label.is_empty()));
    if let Some(quota) = ctx.info.quota {
        members.object("quota", |object| {
            object.number("limit", quota.verdict.limit);
            object.number("remaining", quota.verdict.remaining);
            object.number("reset_ms", quota.verdict.reset_ms);
            object.number("window_ms", quota.window_ms);
        });
    }
    if let Some(exchange) = &ctx.exchange {
        exchange.log(&ctx.info, LogPart::Details, members);
    }
}

/// Adds what was asked and answered to a line, if there is any.
fn write_content(line: &mut Vec<u8>, ctx: &Context) {
    if let Some(exchange) = &ctx.exchange {
        add_members(line, |members| {
            exchange.log(&ctx.info, LogPart::Content, members);
        });
    }
}

/// Adds members to a line that has some.
fn add_members(line: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    let whole = line.len();
    line.pop();
    let mut members = Object::open(line);
    write(&mut members);
    members.close();
    // The brace that ended the line stands where that of the new members begins, unless there are none.
    match line.len() > whole + 1 {
        true => _ = line.get_mut(whole - 1).map(|brace| *brace = b','),
        false => end_at(line, whole),
    }
}

/// Ends a line that was this long, and to which members were added.
fn end_at(line: &mut Vec<u8>, bytes: usize) {
    line.truncate(bytes - 1);
    line.push(b'}');
}

fn format_line(
    out: &mut Vec<u8>,
    state: &ProxyState,
    (session, ctx): (&Session, &Context),
    (route, outcome): (&str, &str),
) {
    let mut line = Object::open(out);
    let exchange = ctx.exchange.as_deref();
    write_core(&mut line, state, (session, ctx, exchange), (route, outcome));
    line.close();
}

/// Writes the members of the core, and those of an exchange.
fn write_core(
    line: &mut Object<'_>,
    state: &ProxyState,
    (session, ctx, exchange): (&Session, &Context, Option<&dyn Exchange>),
    (route, outcome): (&str, &str),
) {
    let info = &ctx.info;
    logging::write_time(line, info.unix_us());
    let is_server_error = ctx.status >= 500;
    line.text("level", if is_server_error { "warn" } else { "info" });
    line.text("request_id", info.id.as_str());
    line.text("route", route);
    let head = session.req_header();
    line.text("method", head.method.as_str());
    line.value("path", |out| write_cut(head.uri.path().as_bytes(), out));
    if let Some(address) = admission::client_ip(&state.settings.client_ip, session) {
        // Writing to memory does not fail.
        line.value("client_ip", |out| _ = write!(out, "\"{address}\""));
    }
    if let Some(agent) = head.headers.get(USER_AGENT) {
        line.value("user_agent", |out| write_cut(agent.as_bytes(), out));
    }
    if let Some(caller) = &info.caller {
        line.text("organization", &caller.organization);
        line.text("project", &caller.project);
        line.text("key_id", &caller.key_id);
    }
    if let Some(token) = &info.token {
        line.value("client_id", |out| {
            write_cut(token.client_id.as_bytes(), out)
        });
    }
    if let Some(exchange) = exchange {
        exchange.log(info, LogPart::BeforeStatus, line);
    }
    line.number("status", u64::from(ctx.status));
    line.text("outcome", outcome);
    log_ms(line, "duration_ms", info.elapsed());
    if !info.shared_wait.waited().is_zero() {
        log_ms(line, "shared_wait_ms", info.shared_wait.waited());
    }
    line.number("request_bytes", info.body_bytes as u64);
    line.number("response_bytes", session.body_bytes_sent() as u64);
    if let Some(exchange) = exchange {
        exchange.log(info, LogPart::AfterSizes, line);
    }
    if let Some(fault) = &ctx.fault {
        line.object("error", |error| write_fault(error, fault));
    }
}

/// Writes the start of a client's text as a JSON string. A text with one of our API keys is not written.
///
/// Cost: no allocation for ASCII.
fn write_cut(text: &[u8], out: &mut Vec<u8>) {
    // Most texts have no underscore and need no search for a key.
    if text.contains(&b'_') && holds_api_key(text) {
        out.extend_from_slice(b"\"[removed]\"");
        return;
    }
    let cut = text.get(..MAX_TEXT_BYTES).unwrap_or(text);
    out.push(b'"');
    if cut.is_ascii() && !cut.contains(&0x7f) {
        write_escaped(&String::from_utf8_lossy(cut), out);
    } else {
        for c in String::from_utf8_lossy(cut).chars() {
            write_char(c, out);
        }
    }
    if cut.len() < text.len() {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

/// Writes a character of a JSON string. Control characters beyond ASCII are escaped, because terminals obey them.
fn write_char(c: char, out: &mut Vec<u8>) {
    if c.is_control() {
        _ = write!(out, "\\u{:04x}", u32::from(c));
    } else {
        write_escaped(c.encode_utf8(&mut [0; 4]), out);
    }
}

fn write_fault(error: &mut Object<'_>, fault: &Fault) {
    error.text("type", fault.error_type());
    error.text_or_null("code", fault.code());
    error.text_or_null("param", fault.param.as_deref());
    error.text("message", &fault.logged_message());
    error.optional_text(
        "detail",
        Some(&*fault.detail).filter(|detail| !detail.is_empty()),
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn written(text: &[u8]) -> String {
        let mut out = Vec::new();
        write_cut(text, &mut out);
        let is_control = |byte: &u8| byte.is_ascii_control();
        assert!(!out.iter().any(is_control), "{out:?}");
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_clients_text_is_cut_and_escaped() {
        assert_eq!(written(b"curl/8.5 (\"x\") \\"), "curl/8.5 (\"x\") \\");
        assert_eq!(written(b"a\x1b[31m\x7f"), "a\u{1b}[31m\u{7f}");
        assert_eq!(written("é\u{9b}1m".as_bytes()), "é\u{9b}1m");
        assert_eq!(written(&[b'a', 0xff]), "a\u{fffd}");
        assert_eq!(written(&[b'a'; 256]), "a".repeat(256));
        assert_eq!(written(&[b'a'; 257]), "a".repeat(256) + "…");
    }

    #[test]
    fn a_clients_text_with_an_api_key_is_not_written() {
        let key = format!("/v1/{}wg_{}", "a/".repeat(200), "B".repeat(43));
        assert_eq!(written(key.as_bytes()), "[removed]");
    }
}
