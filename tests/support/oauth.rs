//! A client of the MCP server's OAuth, and the person who allows it, with a browser that follows nothing.

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use weirgate::encryption::Seal;

use super::ask::Ask;
use super::boot::Gateway;
use super::client::{Answer, ask};

/// Where the client waits for its answer.
pub const REDIRECT_URI: &str = "http://127.0.0.1:7777/callback";
/// The verifier and the challenge of RFC 7636, appendix B.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// See [`VERIFIER`].
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The issuer, because requests of tests name this host.
pub const ISSUER: &str = "http://localhost";
/// The resource.
pub const RESOURCE: &str = "http://localhost/mcp";

/// What a token response has.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The client.
    pub client: String,
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: String,
}

/// What a page has that its form sends.
#[derive(Clone, Debug)]
pub struct Page {
    /// The hidden field.
    pub request: String,
    /// The cookie that came with it.
    pub cookie: String,
}

/// A request that registers a client.
pub fn registration(metadata: &Value) -> Ask {
    Ask::post("/mcp/oauth/register", metadata.to_string())
}

/// Registers a client without a secret, and returns its id.
pub fn client(server: SocketAddr) -> String {
    let metadata = json!({"client_name": "An editor", "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none"});
    let answer = ask(server, &registration(&metadata));
    assert_eq!(answer.status(), 201, "{}", answer.text());
    answer.json()["client_id"].as_str().unwrap().to_owned()
}

/// Pairs as a query or a form.
pub fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs).finish()
}

/// The request of a client for these scopes, changed by more parameters: one replaces its namesake, an empty one removes it.
pub fn authorization(client: &str, scope: &str, more: &[(&str, &str)]) -> Ask {
    let mut pairs = vec![
        ("client_id", client),
        ("redirect_uri", REDIRECT_URI),
        ("response_type", "code"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "the state"),
        ("scope", scope),
        ("resource", RESOURCE),
    ];
    for (name, value) in more {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name, value));
    }
    pairs.retain(|(_, value)| !value.is_empty());
    Ask::get(&format!("/mcp/oauth/authorize?{}", encoded(&pairs)))
}

/// Shows the page of a request.
pub fn page(server: SocketAddr, request: &Ask) -> Page {
    let answer = ask(server, request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let cookie = answer.header("set-cookie").unwrap().split(';').next();
    Page {
        request: hidden(answer.text()),
        cookie: cookie.unwrap().to_owned(),
    }
}

/// The page with another content, sealed by the gateway's own key.
pub fn resealed(gateway: &Gateway, page: &Page, change: impl FnOnce(&mut Value)) -> Page {
    let pepper = &gateway.running.app.proxy.pepper;
    let seal = Seal::new(&pepper.derive("pages of consent of OAuth, version 1")).unwrap();
    let sealed = BASE64.decode(&page.request).unwrap();
    let opened = seal.decrypt(b"page of consent", &sealed).unwrap();
    let mut opened: Value = serde_json::from_slice(&opened).unwrap();
    change(&mut opened);
    let sealed = seal.encrypt(b"page of consent", opened.to_string().as_bytes());
    Page {
        request: BASE64.encode(sealed.unwrap()),
        ..page.clone()
    }
}

/// The hidden field of a page.
fn hidden(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"request\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The form of a page as a browser sends it.
pub fn form(page: &Page, key: &str, decision: &str) -> Ask {
    let fields = [
        ("request", &*page.request),
        ("key", key),
        ("decision", decision),
    ];
    post("/mcp/oauth/authorize", &fields)
        .header("Origin", ISSUER)
        .header("Cookie", &page.cookie)
}

/// A form.
pub fn post(path: &str, fields: &[(&str, &str)]) -> Ask {
    Ask::new("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(encoded(fields))
}

/// The parameters that a redirect brings to the client.
pub fn brought(answer: &Answer) -> Vec<(String, String)> {
    let location = answer.header("location").expect("a redirect");
    let query = location.strip_prefix(REDIRECT_URI).expect(location);
    form_urlencoded::parse(query.trim_start_matches('?').as_bytes())
        .into_owned()
        .collect()
}

/// A code that the person with this key has given.
pub fn code(server: SocketAddr, client: &str, key: &str, scope: &str) -> String {
    let page = page(server, &authorization(client, scope, &[]));
    let answer = ask(server, &form(&page, key, "allow"));
    assert_eq!(answer.status(), 303, "{}", answer.text());
    let brought = brought(&answer);
    let code = brought.into_iter().find(|(name, _)| name == "code");
    code.expect("a code").1
}

/// The request for the tokens of a code, with more fields in the place of their namesakes.
pub fn exchange(client: &str, code: &str, more: &[(&str, &str)]) -> Ask {
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT_URI),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ];
    for (name, value) in more {
        fields.retain(|(known, _)| known != name);
        fields.push((name, value));
    }
    fields.retain(|(_, value)| !value.is_empty());
    post("/mcp/oauth/token", &fields)
}

/// The request for the tokens of a refresh token.
pub fn refresh(client: &str, token: &str) -> Ask {
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", token),
    ];
    post("/mcp/oauth/token", &fields)
}

/// The tokens of a response.
pub fn tokens(client: &str, answer: &Answer) -> Tokens {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let body = answer.json();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    Tokens {
        client: client.to_owned(),
        access: text("access_token"),
        refresh: text("refresh_token"),
    }
}

/// Tokens of a new client that the person with this key has allowed these scopes.
pub fn allowed(server: SocketAddr, key: &str, scope: &str) -> Tokens {
    let client = client(server);
    let code = code(server, &client, key, scope);
    tokens(&client, &ask(server, &exchange(&client, &code, &[])))
}

/// The word of an error, behind the status.
pub fn error(answer: &Answer) -> (u16, String) {
    let error = answer.json()["error"].as_str().unwrap().to_owned();
    (answer.status(), error)
}

/// A call of a tool with a token.
pub fn call(token: &str, name: &str) -> Ask {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": name, "arguments": {}}});
    Ask::post("/mcp", body.to_string()).key(token)
}
