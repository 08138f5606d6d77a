//! Sources of Microsoft Entra's tokens, in the order of Azure's own SDKs: a client's secret, a federated token, the identity
//! of an app, the identity of the machine.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::aws::{Environment, set};
use super::granted::Granted;
use super::secret_text::SecretText;
use super::source_error::SourceError;
use super::source_request::SourceRequest;
use super::vendor_hosts::SourceHost;

/// The scope of tokens for Foundry and the API of version 1. Hosts with dated versions take
/// `https://cognitiveservices.azure.com/.default`.
pub const USUAL_SCOPE: &str = "https://ai.azure.com/.default";
const USUAL_AUTHORITY: &str = "https://login.microsoftonline.com";
const MACHINE_URL: &str = "http://169.254.169.254";
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";
const MACHINE: &str = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
const APP: &str = "IDENTITY_ENDPOINT";
const CLIENT: &str = "AZURE_CLIENT_ID";
const TENANT: &str = "AZURE_TENANT_ID";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A source of tokens.
#[derive(Debug)]
pub enum EntraSource {
    Secret {
        client: EntraClient,
        secret: SecretText,
    },
    /// The token in a file is traded for Entra's.
    Federated {
        client: EntraClient,
        token_file: String,
    },
    App {
        endpoint: Url,
        header: SecretText,
        client_id: Option<String>,
    },
    Machine {
        endpoint: Url,
        client_id: Option<String>,
    },
}

/// A client of Entra, and where it asks for tokens.
#[derive(Debug)]
pub struct EntraClient {
    id: String,
    token_url: Url,
}

/// The name of the setting with the file of a federated token.
pub const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Chooses the source.
///
/// Errors: the first source that the environment names cannot be used.
pub fn choose(environment: &Environment) -> Result<EntraSource, SourceError> {
    if let Some(secret) = set(environment, "AZURE_CLIENT_SECRET") {
        return Ok(EntraSource::Secret {
            client: client(environment, "AZURE_CLIENT_SECRET")?,
            secret: SecretText::new(secret),
        });
    }
    if let Some(file) = set(environment, TOKEN_FILE) {
        return Ok(EntraSource::Federated {
            client: client(environment, TOKEN_FILE)?,
            token_file: file.to_owned(),
        });
    }
    let client_id = set(environment, CLIENT).map(str::to_owned);
    if let Some(endpoint) = set(environment, APP) {
        let header = set(environment, "IDENTITY_HEADER").ok_or_else(|| {
            let came = "is missing beside IDENTITY_ENDPOINT";
            SourceError::new("IDENTITY_HEADER", came, "set both of them, or none")
        })?;
        return Ok(EntraSource::App {
            endpoint: SourceHost::EntraIdentity.check(APP, endpoint)?,
            header: SecretText::new(header),
            client_id,
        });
    }
    let machine = set(environment, MACHINE).unwrap_or(MACHINE_URL);
    let endpoint = SourceHost::EntraIdentity.check(MACHINE, machine)?;
    Ok(EntraSource::Machine {
        endpoint,
        client_id,
    })
}

fn client(environment: &Environment, beside: &str) -> Result<EntraClient, SourceError> {
    let needed = |name: &'static str| {
        let value = set(environment, name);
        value.ok_or_else(|| {
            let came = format!("is missing beside {beside}");
            SourceError::new(name, came, "set it to the id that Entra shows")
        })
    };
    let (id, tenant) = (needed(CLIENT)?, needed(TENANT)?);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !tenant.bytes().all(is_plain) {
        let cure = "write the id or the domain of the tenant";
        return Err(SourceError::new(TENANT, "it is no id of a tenant", cure));
    }
    let authority = set(environment, AUTHORITY).unwrap_or(USUAL_AUTHORITY);
    // Azure's SDKs take a host without a scheme too.
    let authority = match authority.contains("://") {
        true => authority.to_owned(),
        false => format!("https://{authority}"),
    };
    let mut token_url = SourceHost::EntraAuthority.check(AUTHORITY, &authority)?;
    token_url.set_path(&format!("/{tenant}/oauth2/v2.0/token"));
    token_url.set_query(None);
    Ok(EntraClient {
        id: id.to_owned(),
        token_url,
    })
}

impl EntraClient {
    /// Returns the request with the client's secret.
    pub fn secret_request(&self, secret: &SecretText, scope: &str) -> SourceRequest {
        self.request(scope, &[("client_secret", secret.expose())])
    }

    /// Returns the request with a federated token.
    pub fn federated_request(&self, token: &SecretText, scope: &str) -> SourceRequest {
        let proof = [
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", token.expose()),
        ];
        self.request(scope, &proof)
    }

    fn request(&self, scope: &str, proof: &[(&str, &str)]) -> SourceRequest {
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_id", &self.id),
            ("scope", scope),
        ];
        form.extend_from_slice(proof);
        SourceRequest::with_form(AUTHORITY, self.token_url.clone(), &form)
    }
}

/// Returns the request for the token of an app's identity.
pub fn app_request(
    endpoint: &Url,
    header: &SecretText,
    (scope, client_id): (&str, Option<&str>),
) -> SourceRequest {
    let url = with_query(endpoint.clone(), "2019-08-01", scope, client_id);
    let request = SourceRequest::to_metadata(APP, url);
    request.with_header("x-identity-header", header.expose())
}

/// Returns the request for the token of the machine's identity.
pub fn machine_request(endpoint: &Url, (scope, client_id): (&str, Option<&str>)) -> SourceRequest {
    let mut url = endpoint.clone();
    url.set_path("/metadata/identity/oauth2/token");
    let url = with_query(url, "2018-02-01", scope, client_id);
    SourceRequest::to_metadata(MACHINE, url).with_header("metadata", "true")
}

/// Identities take the resource of a scope.
fn with_query(mut url: Url, version: &str, scope: &str, client_id: Option<&str>) -> Url {
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    let mut query = url.query_pairs_mut();
    query.append_pair("api-version", version);
    query.append_pair("resource", resource);
    if let Some(id) = client_id {
        query.append_pair("client_id", id);
    }
    drop(query);
    url
}

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    /// Seconds, as a number or a text.
    expires_in: Option<Value>,
    /// A Unix time, as a number or a text.
    expires_on: Option<Value>,
}

/// Reads a token, of the authority or of an identity.
pub fn read_token(body: &[u8], now_s: u64) -> Option<Granted> {
    let reply: TokenReply = serde_json::from_slice(body).ok()?;
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64().map(|seconds| seconds as u64),
    };
    let lives_s = reply.expires_in.as_ref().and_then(number);
    let ends_s: Option<u64> = reply.expires_on.as_ref().and_then(number);
    let lives_s = lives_s.or_else(|| Some(ends_s?.saturating_sub(now_s)))?;
    let is_token = !reply.access_token.is_empty();
    is_token.then(|| Granted::token(reply.access_token, lives_s, now_s))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::models::cloud_credentials::granted::GrantedSecret;

    fn chosen(pairs: &[(&str, &str)]) -> Result<EntraSource, String> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        choose(&pairs.collect()).map_err(|error| error.to_string())
    }

    const CLIENT_PAIRS: [(&str, &str); 2] =
        [("AZURE_CLIENT_ID", "c-1"), ("AZURE_TENANT_ID", "t-1")];

    #[test]
    fn sources_are_chosen_in_the_vendors_order() {
        let secret = ("AZURE_CLIENT_SECRET", "s&1");
        let file = ("AZURE_FEDERATED_TOKEN_FILE", "/token");
        let app = [
            ("IDENTITY_ENDPOINT", "http://localhost:42356/msi/token"),
            ("IDENTITY_HEADER", "h"),
        ];
        let [id, tenant] = CLIENT_PAIRS;
        let all = [secret, file, app[0], app[1], id, tenant];
        let EntraSource::Secret { client, secret } = chosen(&all).unwrap() else {
            panic!("secret")
        };
        let request = client.secret_request(&secret, USUAL_SCOPE);
        assert_eq!(
            request.url.as_str(),
            "https://login.microsoftonline.com/t-1/oauth2/v2.0/token"
        );
        let body = "grant_type=client_credentials&client_id=c-1&scope=https%3A%2F%2Fai.azure.com%2F.default\
                    &client_secret=s%261";
        assert_eq!(request.body.as_deref(), Some(body));
        let EntraSource::Federated { client, token_file } = chosen(&all[1..]).unwrap() else {
            panic!("file")
        };
        assert_eq!(token_file, "/token");
        let body = client
            .federated_request(&SecretText::new("j"), "s")
            .body
            .unwrap();
        assert!(body.ends_with("jwt-bearer&client_assertion=j"), "{body}");
        let EntraSource::App {
            endpoint,
            header,
            client_id,
        } = chosen(&all[2..]).unwrap()
        else {
            panic!("app")
        };
        let url = app_request(&endpoint, &header, (USUAL_SCOPE, client_id.as_deref())).url;
        let query = "api-version=2019-08-01&resource=https%3A%2F%2Fai.azure.com&client_id=c-1";
        assert_eq!(url.query(), Some(query));
        let EntraSource::Machine { endpoint, .. } = chosen(&[]).unwrap() else {
            panic!("machine")
        };
        let url = machine_request(&endpoint, ("https://a/.default", None)).url;
        let expected = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fa";
        assert_eq!(url.as_str(), expected);
    }

    #[test]
    fn a_source_that_cannot_be_used_is_named_with_its_cure() {
        let [id, tenant] = CLIENT_PAIRS;
        let secret = ("AZURE_CLIENT_SECRET", "s");
        for (pairs, expected) in [
            (
                vec![secret, id],
                "AZURE_TENANT_ID: is missing beside AZURE_CLIENT_SECRET; ",
            ),
            (
                vec![secret, tenant],
                "AZURE_CLIENT_ID: is missing beside AZURE_CLIENT_SECRET; ",
            ),
            (
                vec![secret, id, ("AZURE_TENANT_ID", "a/../b")],
                "AZURE_TENANT_ID: it is no id of a tenant; ",
            ),
            (
                vec![secret, id, tenant, ("AZURE_AUTHORITY_HOST", "evil.example")],
                "AZURE_AUTHORITY_HOST: the address is not one of the vendor's; ",
            ),
            (
                vec![("IDENTITY_ENDPOINT", "http://localhost/")],
                "IDENTITY_HEADER: is missing beside IDENTITY_ENDPOINT; ",
            ),
            (
                vec![
                    ("IDENTITY_ENDPOINT", "http://10.0.0.1/"),
                    ("IDENTITY_HEADER", "h"),
                ],
                "IDENTITY_ENDPOINT: the address is not one of the vendor's; ",
            ),
        ] {
            let error = chosen(&pairs).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let authority = ("AZURE_AUTHORITY_HOST", "login.microsoftonline.us");
        assert!(chosen(&[secret, id, tenant, authority]).is_ok());
    }

    #[test]
    fn tokens_are_read_with_ends_in_all_forms() {
        for body in [
            r#"{"access_token":"a","expires_in":3600}"#,
            r#"{"access_token":"a","expires_in":"3600"}"#,
            r#"{"access_token":"a","expires_on":"4600"}"#,
            r#"{"access_token":"a","expires_on":4600}"#,
        ] {
            let granted = read_token(body.as_bytes(), 1000).unwrap();
            assert_eq!(granted.expires_s, Some(4600), "{body}");
            assert_eq!(granted.secret, GrantedSecret::Token(SecretText::new("a")));
        }
        for bad in [
            "",
            "<html>",
            r#"{"access_token":"a"}"#,
            r#"{"access_token":"","expires_in":1}"#,
            "{}",
        ] {
            assert!(read_token(bad.as_bytes(), 0).is_none(), "{bad}");
        }
    }
}
