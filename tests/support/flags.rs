//! A gateway with decisions: the sandbox datafile under the SDK key `sandbox`.

use serde_json::Value;

use super::ask::Ask;
use super::boot::Gateway;
use super::client::{Answer, ask};

/// A gateway whose `[decisions]` hold these keys beside the sandbox project.
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

/// Its answer.
pub fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    ask(gateway.address(), &call(path, body))
}

/// Status and error of an answer.
pub fn refused(answer: &Answer) -> (u16, String) {
    let error = answer.json()["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status(), error)
}
