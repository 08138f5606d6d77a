#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::replies::{read_assumed_role, read_keys, read_role, read_session};
use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    pairs.collect()
}

const CONFIG: &str = "\
[default]
region = eu-west-1 # here
; a comment
[profile  keyed]
aws_access_key_id=AKIACONFIG
aws_secret_access_key = c
s3 =
  region = nested
[profile web]
role_arn = arn:aws:iam::1:role/r
web_identity_token_file = /t
[profile sso]
sso_start_url = https://x
[profile chained]
role_arn = arn:aws:iam::1:role/r
source_profile = default
[profile half]
aws_access_key_id = AKIA
";
const CREDENTIALS: &str = "[keyed]\naws_access_key_id = AKIAFILE\naws_secret_access_key = f=1\n\
                           aws_session_token = T\n";

fn files() -> ProfileFiles<'static> {
    ProfileFiles {
        config: Some(CONFIG),
        credentials: Some(CREDENTIALS),
    }
}

fn chosen(pairs: &[(&str, &str)]) -> Result<AwsSource, String> {
    choose(&environment(pairs), &files(), "eu-west-1").map_err(|error| error.to_string())
}

#[test]
fn sources_are_chosen_in_the_vendors_order() {
    let id = ("AWS_ACCESS_KEY_ID", "AKIAENV");
    let secret = ("AWS_SECRET_ACCESS_KEY", "s");
    let file = ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
    let role = ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
    let profile = ("AWS_PROFILE", "keyed");
    let relative = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/1");
    let all = [id, secret, file, role, profile, relative];
    let AwsSource::Keys(keys) = chosen(&all).unwrap() else {
        panic!("variables come first")
    };
    assert_eq!(&*keys.access_key_id, "AKIAENV");
    let AwsSource::WebIdentity(identity) = chosen(&all[2..]).unwrap() else {
        panic!("then identities")
    };
    assert_eq!(
        identity.sts.as_str(),
        "https://sts.eu-west-1.amazonaws.com/"
    );
    let request = identity.request(&SecretText::new("a.b=c"));
    let body = request.body.unwrap();
    assert!(
        body.ends_with("&RoleSessionName=weirgate&WebIdentityToken=a.b%3Dc"),
        "{body}"
    );
    let AwsSource::Keys(keys) = chosen(&all[4..]).unwrap() else {
        panic!("then the profile")
    };
    // The file of credentials wins over the other one.
    assert_eq!(
        (&*keys.access_key_id, keys.secret_access_key.expose()),
        ("AKIAFILE", "f=1")
    );
    let AwsSource::Container(container) = chosen(&[relative]).unwrap() else {
        panic!("then the container")
    };
    assert_eq!(container.url.as_str(), "http://169.254.170.2/v2/1");
    let AwsSource::Machine(machine) = chosen(&[]).unwrap() else {
        panic!("last the machine")
    };
    let session = session_request(&machine).unwrap();
    assert_eq!(
        (session.method.as_str(), session.url.path()),
        ("PUT", "/latest/api/token")
    );
    let AwsSource::WebIdentity(identity) = chosen(&[("AWS_PROFILE", "web")]).unwrap() else {
        panic!("by profile")
    };
    assert_eq!(identity.token_file, "/t");
}

#[test]
fn a_source_that_cannot_be_used_is_named_with_its_cure() {
    let token = ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
    for (pairs, expected) in [
        (
            vec![("AWS_ACCESS_KEY_ID", "a")],
            "AWS_SECRET_ACCESS_KEY: is missing, and its other half is set",
        ),
        (
            vec![token],
            "AWS_ROLE_ARN: is missing beside AWS_WEB_IDENTITY_TOKEN_FILE",
        ),
        (
            vec![
                token,
                ("AWS_ROLE_ARN", "r"),
                ("AWS_ENDPOINT_URL_STS", "https://evil.example"),
            ],
            "AWS_ENDPOINT_URL_STS: the address is not one of the vendor's",
        ),
        (
            vec![("AWS_PROFILE", "gone")],
            "AWS_PROFILE: the profile gone is in none of AWS's shared files",
        ),
        (
            vec![("AWS_PROFILE", "sso")],
            "AWS_PROFILE: the profile sso has sso_start_url, which a gateway does not run",
        ),
        (
            vec![("AWS_PROFILE", "chained")],
            "AWS_PROFILE: the profile chained takes a role on by another profile",
        ),
        (
            vec![("AWS_PROFILE", "half")],
            "AWS_PROFILE: the profile half has half of a pair of keys",
        ),
        (
            vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/")],
            "AWS_CONTAINER_CREDENTIALS_FULL_URI: the address is not one of the vendor's",
        ),
        (
            vec![("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/")],
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: it is no path",
        ),
        (
            vec![("AWS_EC2_METADATA_DISABLED", "True")],
            "AWS_EC2_METADATA_DISABLED: no variable, profile or container has keys",
        ),
    ] {
        let error = chosen(&pairs).unwrap_err();
        assert!(
            error.starts_with(expected) && error.contains("; "),
            "{error}"
        );
    }
}

#[test]
fn the_region_is_the_settings_the_variables_or_the_profiles() {
    let find = |configured, pairs: &[_]| {
        let found = find_region(configured, &environment(pairs), &files());
        found.map_err(|error| error.to_string())
    };
    let variable = ("AWS_DEFAULT_REGION", "us-east-2");
    assert_eq!(find(Some("ap-south-1"), &[variable]).unwrap(), "ap-south-1");
    assert_eq!(find(None, &[variable]).unwrap(), "us-east-2");
    assert_eq!(find(None, &[]).unwrap(), "eu-west-1");
    let expected = "region: is missing, and so are AWS_REGION and a region of the profile keyed; \
                    set region, or AWS_REGION";
    assert_eq!(
        find(None, &[("AWS_PROFILE", "keyed")]).unwrap_err(),
        expected
    );
}

#[test]
fn replies_are_read_and_others_refused() {
    let keys = r#"{"Code":"Success","AccessKeyId":"ASIA","SecretAccessKey":"s","Token":"t",
        "Expiration":"2026-01-02T03:04:05Z"}"#;
    assert_eq!(
        read_keys(keys.as_bytes()).unwrap().expires_s,
        Some(1_767_323_045)
    );
    assert!(read_keys(keys.replace("Success", "Failed").as_bytes()).is_none());
    assert!(read_keys(keys.replace("2026-01-02T03:04:05Z", "soon").as_bytes()).is_none());
    let xml = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
               <AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s&amp;lt;</SecretAccessKey><SessionToken>\n t \
               </SessionToken><Expiration>2026-01-02T03:04:05Z</Expiration></Credentials></A></B>";
    let granted = read_assumed_role(xml.as_bytes()).unwrap();
    let GrantedSecret::Keys(keys) = granted.secret else {
        panic!("keys")
    };
    assert_eq!(keys.secret_access_key.expose(), "s&lt;");
    assert_eq!(keys.session_token.unwrap().expose(), "t");
    for bad in [
        "",
        "{}",
        "<html>",
        "<Credentials></Credentials>",
        "\u{feff}[1]",
    ] {
        assert!(read_keys(bad.as_bytes()).is_none() && read_assumed_role(bad.as_bytes()).is_none());
    }
    assert_eq!(read_role(b"my-role\nother"), Some("my-role"));
    assert!(
        read_role(b"../x").is_none() && read_role(b"<html>").is_none() && read_role(b"").is_none()
    );
    assert!(read_session(b"AQ==").is_some() && read_session(b"<html>").is_none());
}
