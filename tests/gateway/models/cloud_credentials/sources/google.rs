//! Google's sources of tokens.

use std::time::{Duration, Instant};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde_json::{Value, json};

use super::{SignedIn, Variables, bad_replies, form, serving};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const TABLE: &str = "credentials = \"google\"";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// A key that only tests use.
const PRIVATE_KEY: &str =
    include_str!("../../../../../filters/models/cloud_credentials/google/samples/private_key.pem");
/// Its modulus.
const MODULUS: &str = "lnpxaRlC6_3fNprTaojoLobqT3gsql7PU0mjr8QLb5hRC2ndCYt1MoyIwxJ_z9TXZZRY69l6LY3pLLjz3r5XB4lHrSuJ0mMCe3xmraJ0YatUHd1dPwEHbP3DBvAScibahuXLuZ-QxwuEoElSzcu227C-GsnjH4t3yIMkQEnvJpIYwzBo8zZe57iH2C71vwsHskQFzRbC5eUlAYreSbu75wOthJ9G855RxbtTAJDeWD73Tgybza5j7AlNZdTeKpMW1ZNKEFfrksXqD_mtMp77rprhITYY_u8dn7BMjAL6h8M_Qws2xMt_sj76-fSOuUxwVUZp8AQ6QQZmOGFn5x42uQ";
const AUDIENCE: &str =
    "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q";

/// A folder with a file of credentials, and the variable that names it.
struct CredentialFile {
    folder: tempfile::TempDir,
    path: String,
}

impl CredentialFile {
    fn write(credentials: &Value) -> CredentialFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("application_default_credentials.json");
        std::fs::write(&path, credentials.to_string()).unwrap();
        let path = path.display().to_string();
        CredentialFile { folder, path }
    }

    fn variables(&self) -> Variables {
        vec![("GOOGLE_APPLICATION_CREDENTIALS", self.path.clone())]
    }
}

fn token(text: &str) -> Reply {
    let body = json!({"access_token": text, "expires_in": 3600, "token_type": "Bearer"});
    Reply::json(200, body.to_string())
}

fn assert_bearer(request: &Received, token: &str) {
    let bearer = format!("Bearer {token}");
    assert_eq!(request.header("authorization"), Some(&*bearer));
}

fn service_account(token_uri: &str) -> Value {
    json!({"type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key_id": "k1",
        "private_key": PRIVATE_KEY, "token_uri": token_uri})
}

#[test]
fn a_service_account_signs_for_its_token() {
    let server = serving(|request| {
        let form = form(request)?;
        let [(_, grant), (_, assertion)] = form.try_into().ok()?;
        let key = DecodingKey::from_rsa_components(MODULUS, "AQAB").ok()?;
        let mut rules = Validation::new(Algorithm::RS256);
        rules.set_audience(&[format!("http://{}/token", request.header("host")?)]);
        let claims = decode::<Value>(&assertion, &key, &rules).ok()?.claims;
        let is_asked = grant == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            && claims["iss"] == "a@p.iam.gserviceaccount.com"
            && claims["scope"] == SCOPE;
        is_asked.then(|| token("of-the-account"))
    });
    let file = CredentialFile::write(&service_account(&format!("{}/token", server.url())));
    let signed_in = SignedIn::start(TABLE, &file.variables());
    assert_bearer(&signed_in.request(), "of-the-account");
}

#[test]
fn a_person_who_has_signed_in_is_asked_for_in_the_usual_folder() {
    let server = serving(|request| {
        let expected = [
            ("grant_type", "refresh_token"),
            ("client_id", "c"),
            ("client_secret", "s"),
            ("refresh_token", "r"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (form(request)? == expected).then(|| token("of-the-person"))
    });
    let file = CredentialFile::write(
        &json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", server.url())}),
    );
    let folder = file.folder.path().display().to_string();
    let signed_in = SignedIn::start(TABLE, &[("CLOUDSDK_CONFIG", folder)]);
    assert_bearer(&signed_in.request(), "of-the-person");
}

/// Google's exchange of tokens, the account that is taken on, and another issuer's metadata.
fn exchange() -> Upstream {
    serving(|request| match &*request.path {
        "/v1/token" => {
            let form = form(request)?;
            let value = |name: &str| form.iter().find(|(it, _)| it == name).map(|(_, it)| &**it);
            let is_asked = value("grant_type")
                == Some("urn:ietf:params:oauth:grant-type:token-exchange")
                && value("audience") == Some(AUDIENCE)
                && value("scope") == Some(SCOPE)
                && value("subject_token_type") == Some("urn:ietf:params:oauth:token-type:jwt");
            match value("subject_token")? {
                "subject" if is_asked => Some(token("federated")),
                _ => None,
            }
        }
        "/v1/account:generateAccessToken" => {
            let body = request.json();
            let is_asked = request.header("authorization") == Some("Bearer federated")
                && body == json!({"scope": [SCOPE], "lifetime": "3600s"});
            let reply = json!({"accessToken": "taken-on", "expireTime": "2100-01-01T00:00:00Z"});
            is_asked.then(|| Reply::json(200, reply.to_string()))
        }
        "/subject" => {
            let is_asked = request.header("metadata") == Some("true") && request.method == "GET";
            is_asked.then(|| Reply::json(200, r#"{"value":"subject"}"#))
        }
        _ => None,
    })
}

fn external(server: &Upstream, source: &Value, takes_on: bool) -> CredentialFile {
    let url = server.url();
    let mut credentials = json!({"type": "external_account", "audience": AUDIENCE, "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{url}/v1/token"), "credential_source": source});
    if takes_on {
        credentials["service_account_impersonation_url"] =
            format!("{url}/v1/account:generateAccessToken").into();
    }
    CredentialFile::write(&credentials)
}

#[test]
fn an_external_account_trades_what_a_file_or_a_server_holds() {
    let server = exchange();
    let folder = tempfile::tempdir().unwrap();
    let [text, json] = ["text", "json"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&text, "subject\n").unwrap();
    std::fs::write(&json, r#"{"id_token":"subject"}"#).unwrap();
    let in_json = |name: &str| json!({"type": "json", "subject_token_field_name": name});
    let sources = [
        json!({"file": text}),
        json!({"file": json, "format": in_json("id_token")}),
        json!({"url": format!("{}/subject", server.url()), "headers": {"Metadata": "true"}, "format": in_json("value")}),
    ];
    for source in sources {
        for (takes_on, expected) in [(false, "federated"), (true, "taken-on")] {
            let file = external(&server, &source, takes_on);
            let signed_in = SignedIn::start(TABLE, &file.variables());
            assert_bearer(&signed_in.request(), expected);
        }
    }
}

#[test]
fn an_external_account_of_aws_shows_a_signed_request() {
    let server = serving(|request| {
        let form = form(request)?;
        let subject = form.iter().find(|(name, _)| name == "subject_token")?;
        // What is in it is encoded once more.
        let subject = form_urlencoded::parse(format!("s={}", subject.1).as_bytes())
            .next()?
            .1
            .into_owned();
        let subject: Value = serde_json::from_str(&subject).ok()?;
        let headers = subject["headers"].as_array()?;
        let header = |name: &str| {
            let found = headers.iter().find(|it| {
                it["key"]
                    .as_str()
                    .is_some_and(|it| it.eq_ignore_ascii_case(name))
            });
            found?["value"].as_str()
        };
        let is_signed = header("authorization")?
            .starts_with("AWS4-HMAC-SHA256 Credential=AKIAOTHER/")
            && header("x-goog-cloud-target-resource") == Some(AUDIENCE)
            && subject["method"] == "POST"
            && subject["url"]
                == "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15";
        is_signed.then(|| token("of-the-role"))
    });
    let file = external(&server, &json!({"environment_id": "aws1"}), false);
    let mut variables = file.variables();
    variables.extend([
        ("AWS_ACCESS_KEY_ID", "AKIAOTHER".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "other".to_owned()),
        ("AWS_REGION", "eu-west-1".to_owned()),
    ]);
    let signed_in = SignedIn::start(TABLE, &variables);
    assert_bearer(&signed_in.request(), "of-the-role");
}

fn machine(server: &Upstream) -> Variables {
    vec![("GCE_METADATA_HOST", server.address().to_string())]
}

#[test]
fn a_machine_gives_the_token_of_its_account() {
    let server = serving(|request| {
        let path = "/computeMetadata/v1/instance/service-accounts/default/token?scopes=";
        let is_asked =
            request.path.starts_with(path) && request.header("metadata-flavor") == Some("Google");
        is_asked.then(|| token("of-the-machine......"))
    });
    let signed_in = SignedIn::start(TABLE, &machine(&server));
    assert_bearer(&signed_in.request(), "of-the-machine......");
}

#[test]
fn what_a_source_of_google_answers_amiss_is_no_token() {
    let ended = json!({"access_token": "t", "expires_in": 0}).to_string();
    let ended = (
        Reply::json(200, ended),
        "credentials: what the source gives has ended already; ".to_owned(),
    );
    let empty = |setting: &str| (Reply::json(200, "{}"), format!("{setting}: "));
    let setting = "GCE_METADATA_HOST";
    let bad = bad_replies().map(|(reply, said)| (reply, format!("{setting}: {said}")));
    for (reply, expected) in bad.into_iter().chain([ended.clone(), empty(setting)]) {
        let server = Upstream::always(reply);
        SignedIn::start(TABLE, &machine(&server)).fails(&expected);
    }
    let setting = "GOOGLE_APPLICATION_CREDENTIALS";
    let bad = bad_replies().map(|(reply, said)| (reply, format!("{setting}: {said}")));
    for (reply, expected) in bad.into_iter().chain([ended, empty(setting)]) {
        let server = Upstream::always(reply);
        let file = CredentialFile::write(&service_account(&format!("{}/token", server.url())));
        SignedIn::start(TABLE, &file.variables()).fails(&expected);
    }
}

#[test]
fn a_metadata_server_of_google_that_hangs_costs_two_seconds() {
    let server = Upstream::always(Reply::hang());
    let source = json!({"url": format!("{}/subject", server.url())});
    let file = external(&server, &source, false);
    for (variables, setting) in [
        (machine(&server), "GCE_METADATA_HOST"),
        (file.variables(), "GOOGLE_APPLICATION_CREDENTIALS"),
    ] {
        let signed_in = SignedIn::start(TABLE, &variables);
        let begun = Instant::now();
        signed_in.fails(&format!("{setting}: it did not answer within 2 s; "));
        let taken = begun.elapsed();
        assert!(taken < Duration::from_secs(4), "{taken:?}");
    }
}

#[test]
fn an_expired_subject_is_named_before_anything_is_asked() {
    let server = Upstream::always(token("t"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    // {"exp":1767323045}
    std::fs::write(&path, "e30.eyJleHAiOjE3NjczMjMwNDV9.c2ln").unwrap();
    let file = external(&server, &json!({"file": path}), false);
    let signed_in = SignedIn::start(TABLE, &file.variables());
    signed_in.fails("GOOGLE_APPLICATION_CREDENTIALS: the token in the file has expired ");
    assert_eq!(server.connections(), 0);
}
