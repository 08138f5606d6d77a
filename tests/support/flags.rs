//! A gateway with decisions: the sandbox datafile under the SDK key `sandbox`.

use serde_json::Value;

use super::ask::Ask;
use super::boot::Gateway;
use super::client::{Answer, ask};

/// A gateway with these keys in `[decisions]` beside the sandbox project.
pub fn gateway(more: &str) -> Gateway {
    gateway_with_env(more, &[])
}

/// The same with more variables in its environment.
pub fn gateway_with_env(more: &str, env: &[(&str, &str)]) -> Gateway {
    let toml = format!(
        "[decisions]\n{more}\n[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n"
    );
    Gateway::start_with_env(&toml, "", env)
}

/// A call with the SDK key.
pub fn call(path: &str, body: &Value) -> Ask {
    Ask::post(path, body.to_string()).header("X-Platform-SDK-Key", "sandbox")
}

/// Sends the call and returns the reply.
pub fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    ask(gateway.address(), &call(path, body))
}

/// Returns status and error of a reply.
pub fn refused(answer: &Answer) -> (u16, String) {
    let error = answer.json()["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status(), error)
}

/// A gateway in agent mode with these keys in `[decisions]`.
pub fn agent(more: &str) -> Gateway {
    gateway(&format!("compat = \"agent\"\n{more}"))
}

/// Status, type, whether the type is final, and body.
pub type Said<'a> = (u16, Option<&'a str>, Option<&'a str>, &'a str);

/// The shown parts of an answer.
pub fn said(answer: &Answer) -> Said<'_> {
    (
        answer.status(),
        answer.header("content-type"),
        answer.header("x-content-type-options"),
        answer.text(),
    )
}

/// A reply in plain text.
pub fn plain(status: u16, body: &str) -> Said<'_> {
    let kind = Some("text/plain; charset=utf-8");
    (status, kind, Some("nosniff"), body)
}

/// A reply in JSON.
pub fn json_of(status: u16, body: &str) -> Said<'_> {
    (status, Some("application/json"), None, body)
}
