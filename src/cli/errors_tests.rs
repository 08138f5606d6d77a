//! `docs/errors.md`: each error that clients get, made of the tables that make the errors.
//!
//! After a change of them: `WRITE_GOLDEN=1 cargo test --lib the_page_of_errors_is_of_these_codes`, and read the difference.

use std::fmt::Write as _;
use std::path::Path;

use filters::decisions::ofrep::OfrepError;
use filters::fault::{Fault, FaultKind, may_help_later};
use filters::fault_code::{CuredBy, FaultCode};
use filters::mcp::message;
use filters::mcp::oauth::error::OAuthErrorCode;
use filters::models::fronts::contents::ContentsError;
use filters::models::fronts::messages::MessagesError;
use filters::models::fronts::responses::ResponsesError;
use serde_json::Value;

use crate::cli::Exit;

const HEAD: &str = "\
# Errors

<!-- Made from the code: WRITE_GOLDEN=1 cargo test --lib the_page_of_errors_is_of_these_codes -->

What a client can get, what it means, and who cures it. The message of an error names the field, what came and what is accepted; the
code is for programs, and does not change. The log line of a request has the code and, without what it quotes, the message (`error`), and
the `request_id` that each response carries in `x-request-id`.

\"Again\" says whether the same request may succeed later. Where it may not, the response has `x-should-retry: false`; where a wait is
known, it has `Retry-After`. A provider that fails is no error of the client's while another one answers: `metadata.routing` lists
who was tried.

## Codes

| status | code | means | cure | by | again |
|---|---|---|---|---|---|
";

const WITHOUT_CODE: &str = "\
Some errors have no code (`null`): a 400 whose `param` says all, a 402 and a 410 that the message explains (a model that is
retired), and a 500, which is a mistake of the gateway: report it with its `request_id`.

A provider that refuses a request as wrong is not followed by another one. Its own code goes to the client where it is a plain word, in
place of one of these, and its message without secrets and addresses. So a code that is not in the table is a provider's.

Jobs of videos and responses in the background fail by an `error` of their own: [api.md](api.md) has it. A stream that breaks
off ends with an error event in the words of its API, and never with an invented end.

## In the words of each API

The same error, as the clients of each API read it.

| API | body |
|---|---|
| chat completions, and all others below `/v1` without a word of their own | `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}`, and `metadata` where providers were tried |
| the same, to clients that send `anthropic-version` | `{\"type\": \"error\", \"error\": {\"type\", \"message\"}}` |
| Messages (`/v1/messages`) | `{\"type\": \"error\", \"error\": {\"type\", \"message\", \"details\": {\"error_code\"}}, \"request_id\"}` |
| Responses (`/v1/responses`) | `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}` |
| Gemini (`/v1beta`) | `{\"error\": {\"code\", \"message\", \"status\", \"details\"}}` |
| graph | `{\"code\", \"status\", \"message\", \"details\": {}}`, the code in capitals |

| error | chat completions | Messages | Responses | Gemini |
|---|---|---|---|---|
";

const BELOW: &str = "\
A code of its own stands in `code` of chat completions and Responses, in `details.error_code` of Messages, and in `reason` of the first of
Gemini's `details`. A prompt that is longer than a model takes is `context_length_exceeded` in Responses, and `prompt is too
long: …` in Messages, by which clients make their history shorter. Clients of Messages and Responses see an empty account as a 429
that they do not repeat.

## Flag decisions

Errors are `{\"error\": MESSAGE}` with the status of the table above ([decision-agent.md](decision-agent.md) 7); with
`decisions.compat = \"agent\"` they are in the original agent's bytes. The token endpoint answers `{\"error\", \"error_description\"}`.
OpenFeature's protocol has words of its own in `errorCode`, and `GENERAL` for all other errors:

| status | `errorCode` | means |
|---|---|---|
";

const GRAPH: &str = "
## Graph limits

A request over its limit is a 429 with `Retry-After`, `X-RateLimit-Limit` and `X-RateLimit-Window`
([graph-limits.md](graph-limits.md) 7). What the service itself answers passes unchanged. Errors of the gateway are codes of the table
above in capitals: `RATE_LIMIT_EXCEEDED`, `CONNECT_FAILED`, `UPSTREAM_FAILED`, `UPSTREAM_TIMEOUT`, `UNAVAILABLE`, `NOT_FOUND`, `UNKNOWN_TENANT`.

## MCP

Errors of the protocol are JSON-RPC's; [mcp.md](mcp.md#transport) says which request gets which. A tool that fails is a result with
`isError`, and its text has an error of the tables above.

| code | means |
|---|---|
";

const OAUTH: &str = "
Errors of OAuth are `{\"error\", \"error_description\"}`, the first being one of
";

const COMMANDS: &str = "
## Commands

| exit code | means |
|---|---|
";

const END: &str = "
Findings of `weirgate check`, of the start and of a reload have no codes: each names its key, file, line and column, and
the cure.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in FaultCode::ALL {
        let row = code.row();
        let by = match row.cured_by {
            CuredBy::Client => "client",
            CuredBy::Operator => "operator",
            CuredBy::Provider => "provider",
        };
        let again = if may_help_later(row.status) {
            "yes"
        } else {
            "no"
        };
        let (status, code, meaning, cure) = (row.status, row.code, row.meaning, row.cure);
        writeln!(
            page,
            "| {status} | `{code}` | {meaning} | {cure} | {by} | {again} |"
        )
        .unwrap();
    }
    page.push('\n');
    page.push_str(WITHOUT_CODE);
    FaultKind::ALL
        .iter()
        .for_each(|kind| words(&mut page, *kind));
    page.push('\n');
    page.push_str(BELOW);
    for (error, means) in OFREP {
        let body: Value = serde_json::from_slice(&error.to_json(None)).unwrap();
        let code = body["errorCode"].as_str().unwrap();
        writeln!(page, "| {} | `{code}` | {means} |", error.status()).unwrap();
    }
    page.push_str(GRAPH);
    for (code, means) in JSON_RPC {
        writeln!(page, "| `{code}` | {means} |").unwrap();
    }
    page.push_str(OAUTH);
    let words: Vec<String> = OAuthErrorCode::ALL
        .iter()
        .map(|code| format!("`{}`", code.as_str()))
        .collect();
    writeln!(page, "{}.", words.join(", ")).unwrap();
    page.push_str(COMMANDS);
    for exit in [Exit::Done, Exit::Failed, Exit::Usage, Exit::Configuration] {
        let means = match exit {
            Exit::Done => "done; also the end of a server that was told to stop",
            Exit::Failed => {
                "it failed, and stderr says why; what is all or nothing has changed nothing"
            }
            Exit::Usage | Exit::NoVerdict => {
                "the arguments are wrong; of commands whose 1 is a verdict (`models retiring --within`, `reconcile`) also: it could not be found out"
            }
            Exit::Configuration => {
                "the configuration is wrong, or there is none; all problems are on stderr. systemd does not start the server again"
            }
        };
        writeln!(page, "| {} | {means} |", exit.code()).unwrap();
    }
    page + END
}

/// Writes how each API says a fault of this kind.
fn words(page: &mut String, kind: FaultKind) {
    let fault = Fault::new(kind, "it failed");
    let name = match fault.code() {
        Some(code) => format!("{} `{code}`", fault.status()),
        None => format!("{} without a code", fault.status()),
    };
    let chat = format!("{} `{}`", fault.status(), fault.error_type());
    let messages = MessagesError::new(&fault, "");
    let body: Value = serde_json::from_slice(&messages.body).unwrap();
    let messages = format!(
        "{} `{}`",
        messages.status,
        body["error"]["type"].as_str().unwrap()
    );
    let responses = ResponsesError::new(&fault);
    let code = responses
        .code
        .as_deref()
        .map_or("null".to_owned(), |code| format!("`{code}`"));
    let responses = format!("{} {code}", responses.status);
    let contents = ContentsError::new(&fault);
    let body: Value = serde_json::from_slice(&contents.body).unwrap();
    let contents = format!(
        "{} `{}`",
        contents.status,
        body["error"]["status"].as_str().unwrap()
    );
    writeln!(
        page,
        "| {name} | {chat} | {messages} | {responses} | {contents} |"
    )
    .unwrap();
}

const OFREP: [(OfrepError, &str); 5] = [
    (OfrepError::Parse, "the body is not a JSON object"),
    (OfrepError::Context, "`context` is not an object"),
    (
        OfrepError::Member("name"),
        "a member of it that has to be a text is none",
    ),
    (
        OfrepError::TargetingKeyMissing,
        "`context.targetingKey` is missing",
    ),
    (
        OfrepError::FlagNotFound,
        "the project of the SDK key has no such flag",
    ),
];

const JSON_RPC: [(i32, &str); 10] = [
    (-32002, "no such resource"),
    (message::PARSE_ERROR, "the body is not JSON"),
    (
        message::INVALID_REQUEST,
        "the body is no message, or one of a revision that is not served",
    ),
    (message::METHOD_NOT_FOUND, "no such method"),
    (
        message::INVALID_PARAMS,
        "the parameters of the method are wrong",
    ),
    (message::INTERNAL_ERROR, "the gateway failed"),
    (
        message::REFUSED,
        "refused for its origin, its size or a limit",
    ),
    (
        message::UNAUTHENTICATED,
        "no valid key; `WWW-Authenticate` says where to sign in",
    ),
    (
        message::HEADER_MISMATCH,
        "a header differs from the body, or is missing",
    ),
    (
        message::UNSUPPORTED_VERSION,
        "the revision of the protocol is not served",
    ),
];

#[test]
fn the_page_of_errors_is_of_these_codes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
    let expected = page();
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/errors.md is of other codes: WRITE_GOLDEN=1 cargo test --lib the_page_of_errors_is_of_these_codes"
    );
}

/// The constants of these codes stand in several files, and this page lists all of them.
#[test]
fn each_code_of_json_rpc_is_on_the_page() {
    let mut found = 0;
    for folder in ["filters/mcp", "src/mcp"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter(|line| line.contains("const ")) {
                let Some((_, code)) = line.split_once(": i32 = ") else {
                    continue;
                };
                let code: i32 = code.trim_end_matches(';').parse().unwrap();
                assert!(JSON_RPC.iter().any(|(known, _)| *known == code), "{line}");
                found += 1;
            }
        }
    }
    assert_eq!(found, JSON_RPC.len());
}
