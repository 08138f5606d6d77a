#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Value, json};

use super::account::{GoogleAccount, of_organization};
use super::external::SubjectSource;
use super::replies::{read_impersonation, read_token};
use super::*;
use crate::models::cloud_credentials::secret_text::SecretText;
use crate::models::cloud_credentials::sigv4::AwsKeys;

/// A key that only tests use.
const PRIVATE_KEY: &str = include_str!("samples/private_key.pem");
/// Its modulus.
const MODULUS: &str = "lnpxaRlC6_3fNprTaojoLobqT3gsql7PU0mjr8QLb5hRC2ndCYt1MoyIwxJ_z9TXZZRY69l6LY3pLLjz3r5XB4lHrSuJ0mMCe3xmraJ0YatUHd1dPwEHbP3DBvAScibahuXLuZ-QxwuEoElSzcu227C-GsnjH4t3yIMkQEnvJpIYwzBo8zZe57iH2C71vwsHskQFzRbC5eUlAYreSbu75wOthJ9G855RxbtTAJDeWD73Tgybza5j7AlNZdTeKpMW1ZNKEFfrksXqD_mtMp77rprhITYY_u8dn7BMjAL6h8M_Qws2xMt_sj76-fSOuUxwVUZp8AQ6QQZmOGFn5x42uQ";
const NOW_S: u64 = 1_767_323_045;

fn service_account() -> Value {
    json!({
        "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com",
        "private_key_id": "k1", "private_key": PRIVATE_KEY,
        "token_uri": "https://oauth2.googleapis.com/token",
    })
}

fn external(source: Value) -> Value {
    json!({
        "type": "external_account", "audience": "//iam.googleapis.com/p/1", "subject_token_type": "jwt",
        "token_url": "https://sts.googleapis.com/v1/token", "credential_source": source,
    })
}

fn read(written: &Value) -> Result<GoogleAccount, String> {
    GoogleAccount::read(FILE, &written.to_string()).map_err(|error| error.to_string())
}

fn form(body: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect()
}

#[test]
fn an_assertion_is_signed_with_the_accounts_key() {
    let GoogleAccount::Service(account) = read(&service_account()).unwrap() else {
        panic!("service")
    };
    let request = account.request(FILE, USUAL_SCOPE, NOW_S).unwrap();
    assert_eq!(request.url.as_str(), "https://oauth2.googleapis.com/token");
    let form = form(&request.body.unwrap());
    assert_eq!(form[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let key = DecodingKey::from_rsa_components(MODULUS, "AQAB").unwrap();
    let mut rules = Validation::new(Algorithm::RS256);
    rules.validate_exp = false;
    rules.set_audience(&["https://oauth2.googleapis.com/token"]);
    let claims = decode::<Value>(&form[1].1, &key, &rules).unwrap().claims;
    assert_eq!(
        decode_header(&form[1].1).unwrap().kid.as_deref(),
        Some("k1")
    );
    let expected = json!({
        "iss": "a@p.iam.gserviceaccount.com", "scope": USUAL_SCOPE, "iat": NOW_S, "exp": NOW_S + 3600,
        "aud": "https://oauth2.googleapis.com/token",
    });
    assert_eq!(claims, expected);
    assert!(!format!("{account:?}").contains("PRIVATE"));
}

#[test]
fn an_organization_brings_a_service_account_of_googles_own_address_alone() {
    assert!(of_organization(&service_account().to_string()).is_ok());
    let with = |name: &str, value: Value| {
        let mut written = service_account();
        written[name] = value;
        of_organization(&written.to_string()).map_err(|error| error.to_string())
    };
    for (name, value, expected) in [
        (
            "type",
            json!("external_account"),
            "the provider key: its type is external_account, which is not supported; ",
        ),
        (
            "type",
            json!("authorized_user"),
            "the provider key: its type is authorized_user, which is not supported; ",
        ),
        ("type", json!(1), "the provider key: its JSON has no type; "),
        (
            "token_uri",
            json!("http://127.0.0.1/token"),
            "the provider key: its token_uri is another than Google's; ",
        ),
        (
            "token_uri",
            json!("https://sts.googleapis.com/token"),
            "the provider key: its token_uri is another than Google's; ",
        ),
        (
            "token_uri",
            json!("https://evil.example/"),
            "the provider key: the address is not one of the vendor's; ",
        ),
        (
            "token_uri",
            json!("file:///etc/passwd"),
            "the provider key: the address has no host; ",
        ),
        (
            "private_key",
            json!("secret"),
            "the provider key: its private_key is no RSA key in PEM; ",
        ),
        (
            "client_email",
            json!(7),
            "the provider key: its client_email is no text; ",
        ),
    ] {
        let error = with(name, value).err().unwrap();
        assert!(error.starts_with(expected), "{error}");
    }
    for text in ["", "[]", "sk-secret", "{"] {
        let error = of_organization(text).err().unwrap().to_string();
        assert!(
            error.contains("it is no JSON object") && !error.contains("sk-secret"),
            "{error}"
        );
    }
}

#[test]
fn a_token_of_a_file_or_a_server_is_traded() {
    let source =
        json!({"file": "/var/token", "format": {"type": "json", "subject_token_field_name": "t"}});
    let mut written = external(source);
    let url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p:generateAccessToken";
    written["service_account_impersonation_url"] = json!(url);
    let GoogleAccount::External(account) = read(&written).unwrap() else {
        panic!("external")
    };
    let SubjectSource::File { path, format } = &account.subject else {
        panic!("a file")
    };
    assert_eq!(
        (&**path, format.find(FILE, r#"{"t":"jwt-1"}"#).unwrap()),
        ("/var/token", "jwt-1".to_owned())
    );
    assert!(format.find(FILE, r#"{"other":1}"#).is_err() && format.find(FILE, "<html>").is_err());
    let body = account
        .exchange_request(FILE, &SecretText::new("jwt-1"), "narrow")
        .body
        .unwrap();
    let form = form(&body);
    assert_eq!(form[2], ("scope".to_owned(), USUAL_SCOPE.to_owned()));
    assert_eq!(form[5], ("subject_token".to_owned(), "jwt-1".to_owned()));
    let request = account
        .impersonation_request(FILE, &SecretText::new("t"), "narrow")
        .unwrap();
    let body: Value = serde_json::from_str(&request.body.unwrap()).unwrap();
    assert_eq!(body, json!({"scope": ["narrow"], "lifetime": "3600s"}));
    let source = json!({"url": "http://169.254.169.254/token", "headers": {"Metadata": "True"}});
    let GoogleAccount::External(account) = read(&external(source)).unwrap() else {
        panic!("external")
    };
    assert!(matches!(&account.subject, SubjectSource::Url { headers, .. } if headers.len() == 1));
    assert!(
        account
            .impersonation_request(FILE, &SecretText::new("t"), "s")
            .is_none()
    );
}

#[test]
fn the_role_of_an_aws_machine_is_shown_by_a_signed_request() {
    let source = json!({"environment_id": "aws1"});
    let GoogleAccount::External(account) = read(&external(source)).unwrap() else {
        panic!("external")
    };
    let keys = AwsKeys {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: SecretText::new("s"),
        session_token: Some(SecretText::new("t")),
    };
    let subject = account
        .aws_subject(FILE, (&keys, "us-east-2"), NOW_S)
        .unwrap();
    let text = form(subject.expose()).remove(0).0;
    let request: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        request["url"],
        "https://sts.us-east-2.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
    );
    let headers = request["headers"].as_array().unwrap();
    let value =
        |name: &str| headers.iter().find(|header| header["key"] == name).unwrap()["value"].clone();
    assert_eq!(
        value("x-goog-cloud-target-resource"),
        "//iam.googleapis.com/p/1"
    );
    assert!(
        value("authorization")
            .as_str()
            .unwrap()
            .contains("/us-east-2/sts/aws4_request, SignedHeaders=host;")
    );
    assert_eq!(value("x-amz-security-token"), "t");
}

#[test]
fn sources_of_other_kinds_and_hosts_are_refused() {
    for (written, expected) in [
        (
            external(json!({"executable": {"command": "rm"}})),
            "its credential_source runs a program",
        ),
        (
            external(json!({"certificate": {}})),
            "its credential_source is a certificate",
        ),
        (
            external(json!({"environment_id": "azure1"})),
            "its environment_id is not aws1",
        ),
        (
            external(json!({})),
            "its credential_source has neither a file nor a url, or both",
        ),
        (
            external(json!({"url": "https://evil.example/"})),
            "the address is not one of the vendor's",
        ),
        (
            json!({"type": "impersonated_service_account"}),
            "its type is impersonated_service_account, which",
        ),
        (
            json!({"type": "authorized_user", "client_id": "c"}),
            "it lacks a member that a authorized_user has",
        ),
        (
            json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
                "token_uri": "https://evil.example/"}),
            "the address is not one of the vendor's",
        ),
    ] {
        let error = read(&written).err().unwrap();
        let expected = format!("GOOGLE_APPLICATION_CREDENTIALS: {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_person_who_has_signed_in_and_the_machine_give_tokens() {
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
    let GoogleAccount::User(user) = read(&user).unwrap() else {
        panic!("user")
    };
    let request = user.request(FILE);
    let body = "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r";
    assert_eq!(request.body.as_deref(), Some(body));
    let environment = |pairs: &[(&str, &str)]| -> Environment {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pairs.collect()
    };
    let request = metadata_request(&environment(&[]), "s").unwrap();
    let expected = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token?scopes=s";
    assert_eq!(request.url.as_str(), expected);
    assert!(metadata_request(&environment(&[("GCE_METADATA_HOST", "127.0.0.1:80")]), "s").is_ok());
    for host in [
        "evil.example",
        "127.0.0.1@evil.example",
        "metadata.google.internal.evil.example/",
    ] {
        assert!(
            metadata_request(&environment(&[("GCE_METADATA_HOST", host)]), "s").is_err(),
            "{host}"
        );
    }
    let named = file(&environment(&[(FILE, "/k.json"), ("HOME", "/h")])).unwrap();
    assert!(named.is_required && named.path == "/k.json");
    let usual = file(&environment(&[("HOME", "/h")])).unwrap();
    assert_eq!(
        usual.path,
        "/h/.config/gcloud/application_default_credentials.json"
    );
}

#[test]
fn replies_are_read_and_others_refused() {
    let token = read_token(br#"{"access_token":"t..","expires_in":3599}"#, NOW_S).unwrap();
    assert_eq!(token.expires_s, Some(NOW_S + 3599));
    let taken_on = r#"{"accessToken":"t","expireTime":"2026-01-02T03:04:05Z"}"#;
    assert_eq!(
        read_impersonation(taken_on.as_bytes()).unwrap().expires_s,
        Some(NOW_S)
    );
    for bad in [
        "",
        "<html>",
        "{}",
        r#"{"access_token":"","expires_in":1}"#,
        r#"{"accessToken":"t","expireTime":"x"}"#,
    ] {
        assert!(
            read_token(bad.as_bytes(), 0).is_none() && read_impersonation(bad.as_bytes()).is_none()
        );
    }
}
