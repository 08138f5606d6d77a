//! Results of the server's methods.

use serde_json::{Value, json};

use super::message::{Call, INVALID_PARAMS, Members, RpcError};
use super::revision::Revision;

/// The name of the server.
const NAME: &str = "weirgate";
/// The description of the server for a model.
const INSTRUCTIONS: &str = "Calls models of many providers with one key, and tells what they cost; decides feature flags. \
    `list-models` names the models.";
/// How long a client may cache a list, in milliseconds.
const LIST_TTL_MS: u64 = 60_000;

/// The features that are served beside tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Offered {
    pub resources: bool,
    pub prompts: bool,
}

/// Returns the name and the version of the server.
pub fn server_info() -> Value {
    json!({"name": NAME, "title": "Weirgate", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the body of a result: `{jsonrpc, id, result}`, with the members that a stateless revision needs in each
/// result.
pub fn result(revision: Revision, id: &Value, mut result: Members) -> Vec<u8> {
    if revision.is_stateless() {
        result.insert("resultType".to_owned(), "complete".into());
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            let key = "io.modelcontextprotocol/serverInfo".to_owned();
            meta.insert(key, server_info());
        }
    }
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
    body.to_string().into_bytes()
}

/// Returns the members of a result with one list, which the client may cache for a while.
///
/// Errors: the call has a cursor, because lists have one page.
pub fn list(
    revision: Revision,
    call: &Call,
    name: &str,
    items: Value,
) -> Result<Members, RpcError> {
    if call.params.contains_key("cursor") {
        let message = "`cursor` is not one of this server: its lists have one page";
        return Err(RpcError::new(INVALID_PARAMS, 200, message).with_id(&call.id));
    }
    let mut result = Members::new();
    result.insert(name.to_owned(), items);
    allow_caching(revision, &mut result);
    Ok(result)
}

/// Lets the client cache a result for a while, in revisions that can express this.
pub fn allow_caching(revision: Revision, result: &mut Members) {
    if revision.is_stateless() {
        result.insert("ttlMs".to_owned(), LIST_TTL_MS.into());
        result.insert("cacheScope".to_owned(), "private".into());
    }
}

/// Returns the capabilities of the server. `tells`: it announces changes on the stream of a session.
fn capabilities(offered: Offered, tells: bool) -> Value {
    let mut all = Members::new();
    all.insert("tools".to_owned(), json!({"listChanged": false}));
    if offered.resources {
        let resources = json!({"subscribe": false, "listChanged": false});
        all.insert("resources".to_owned(), resources);
        all.insert("completions".to_owned(), json!({}));
    }
    if offered.prompts {
        all.insert("prompts".to_owned(), json!({"listChanged": tells}));
    }
    all.into()
}

/// Returns the members of the result of `initialize`.
///
/// Errors: the call names no revision.
pub fn initialize(call: &Call, offered: Offered) -> Result<Members, RpcError> {
    let Some(asked) = call.text("protocolVersion") else {
        let message = "`protocolVersion` is missing, or is no text";
        return Err(RpcError::new(INVALID_PARAMS, 200, message).with_id(&call.id));
    };
    let mut result = Members::new();
    let agreed = Revision::agree(asked).as_str();
    result.insert("protocolVersion".to_owned(), agreed.into());
    result.insert("capabilities".to_owned(), capabilities(offered, true));
    result.insert("serverInfo".to_owned(), server_info());
    result.insert("instructions".to_owned(), INSTRUCTIONS.into());
    Ok(result)
}

/// Returns the members of the result of `server/discover`.
pub fn discover(revision: Revision, offered: Offered) -> Members {
    let mut result = Members::new();
    let names = Revision::names();
    result.insert("supportedVersions".to_owned(), json!(names));
    result.insert("capabilities".to_owned(), capabilities(offered, false));
    result.insert("instructions".to_owned(), INSTRUCTIONS.into());
    allow_caching(revision, &mut result);
    result
}

/// Returns the public facts about the server, as JSON. `endpoint` is its path.
pub fn info(endpoint: &str, offered: Offered) -> Vec<u8> {
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": INSTRUCTIONS,
        "protocolVersion": Revision::ALL.first().map(|it| it.as_str()),
        "supportedVersions": Revision::names(),
        "transport": "streamable-http",
        "endpoint": endpoint,
        "capabilities": capabilities(offered, true),
    })
    .to_string()
    .into_bytes()
}
