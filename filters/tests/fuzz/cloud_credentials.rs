//! Files and replies from which credentials of clouds are read: none stops the process, and no error shows a secret.

use filters::models::cloud_credentials::aws::profile::ProfileFiles;
use filters::models::cloud_credentials::aws::{self, Environment, replies as aws_replies};
use filters::models::cloud_credentials::google::account::{GoogleAccount, of_organization};
use filters::models::cloud_credentials::google::replies as google_replies;
use filters::models::cloud_credentials::own_keys::read_own_keys;
use filters::models::cloud_credentials::source_error::{describe_refusal, describe_unreadable};
use filters::models::cloud_credentials::{entra, federated_token};
use serde_json::json;

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const SECRET: &str = "wJalrXUtnFEMIK7MDENGbPxRfiCY";
const NOW_S: u64 = 1_800_000_000;

fn damaged(choices: &mut Choices<'_>, text: &str) -> Vec<u8> {
    damage::bytes(choices, text.as_bytes().to_vec())
}

/// Asserts that a text for people has nothing of the secret, which is longer than what damage leaves of it by chance.
fn assert_silent(text: &str) {
    let shown = SECRET.as_bytes().windows(12).any(|part| {
        let part = std::str::from_utf8(part).unwrap();
        text.contains(part)
    });
    assert!(!shown, "{text}");
}

fn shared_file(choices: &mut Choices<'_>) -> String {
    let lines = [
        "[default]\n".to_owned(),
        "[profile p]\n".to_owned(),
        "[p]\n".to_owned(),
        "aws_access_key_id = AKIDEXAMPLE\n".to_owned(),
        format!("aws_secret_access_key={SECRET}\n"),
        format!("aws_session_token = {SECRET} # end\n"),
        "region = eu-west-1\n".to_owned(),
        "role_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /t\n".to_owned(),
        "credential_process = /bin/x\n".to_owned(),
        "s3 =\n  a = b\n".to_owned(),
        "; note\n\n".to_owned(),
    ];
    let count = choices.below(12);
    (0..count)
        .map(|_| choices.pick(&lines).as_str())
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn shared_files_of_aws_are_read_or_refused_without_their_secrets() {
    run("cloud credentials: shared files", |choices| {
        let [config, credentials] = [(); 2].map(|()| {
            let file = shared_file(choices);
            String::from_utf8_lossy(&damaged(choices, &file)).into_owned()
        });
        let files = ProfileFiles {
            config: Some(&config),
            credentials: Some(&credentials),
        };
        let mut environment = Environment::new();
        if choices.once_in(2) {
            environment.insert("AWS_PROFILE".to_owned(), "p".to_owned());
        }
        if let Err(error) = aws::find_region(None, &environment, &files) {
            assert_silent(&error.to_string());
        }
        if let Err(error) = aws::choose(&environment, &files, "eu-west-1") {
            assert_silent(&error.to_string());
        }
    });
}

#[test]
fn replies_of_sources_are_read_or_refused_without_their_secrets() {
    run("cloud credentials: replies", |choices| {
        let bodies = [
            json!({"AccessKeyId": "AKID", "SecretAccessKey": SECRET, "Token": SECRET, "Expiration": "2027-01-15T09:00:00Z"}).to_string(),
            json!({"access_token": SECRET, "expires_in": 3600, "token_type": "Bearer"}).to_string(),
            json!({"access_token": SECRET, "expires_on": "1800003600"}).to_string(),
            json!({"accessToken": SECRET, "expireTime": "2027-01-15T09:00:00.5Z"}).to_string(),
            json!({"error": "invalid_client", "error_description": format!("bad secret {SECRET}")}).to_string(),
            format!(
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>A</AccessKeyId>\
                 <SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{SECRET}</SessionToken>\
                 <Expiration>2027-01-15T09:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            ),
            "<html><body>Sign in</body></html>".to_owned(),
        ];
        let body = choices.pick(&bodies).clone();
        let body = damaged(choices, &body);
        let _ = aws_replies::read_keys(&body);
        let _ = aws_replies::read_assumed_role(&body);
        let _ = aws_replies::read_session(&body);
        let _ = aws_replies::read_role(&body);
        let _ = entra::read_token(&body, NOW_S);
        let _ = google_replies::read_token(&body, NOW_S);
        let _ = google_replies::read_impersonation(&body);
        assert_silent(&describe_unreadable(&body, "a token"));
        assert!(describe_refusal(403, &body).len() < 2_000);
    });
}

#[test]
fn files_of_organizations_and_of_google_are_read_or_refused_without_their_secrets() {
    run("cloud credentials: files", |choices| {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n");
        let files = [
            json!({"type": "service_account", "client_email": "a@b", "private_key": key, "private_key_id": "1",
                "token_uri": "https://oauth2.googleapis.com/token"}),
            json!({"type": "authorized_user", "client_id": "a", "client_secret": SECRET, "refresh_token": SECRET}),
            json!({"type": "external_account", "audience": "//iam.googleapis.com/a", "subject_token_type": "t",
                "token_url": "https://sts.googleapis.com/v1/token", "credential_source": {"file": "/t"}}),
            json!({"access_key_id": "AKID", "secret_access_key": SECRET, "session_token": SECRET}),
        ];
        let file = choices.pick(&files).clone();
        let file = damage::tree(choices, file).to_string();
        let file = match choices.once_in(2) {
            true => String::from_utf8_lossy(&damaged(choices, &file)).into_owned(),
            false => file,
        };
        if let Err(error) = GoogleAccount::read("GOOGLE_APPLICATION_CREDENTIALS", &file) {
            assert_silent(&error.to_string());
        }
        if let Err(error) = of_organization(&file) {
            assert_silent(&error.to_string());
        }
        if let Err(error) = read_own_keys(&file) {
            assert_silent(&error.to_string());
        }
        if let Err(error) = federated_token::read("AZURE_FEDERATED_TOKEN_FILE", &file, NOW_S) {
            assert_silent(&error.to_string());
        }
    });
}
