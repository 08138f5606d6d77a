#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::super::api_key::KeyText;
use super::*;

const KEY_HEADER: HeaderName = HeaderName::from_static("x-weirgate-key");
const LOGIN: &str = "sk-ant-oat01-canary0123456789";
const ANTHROPIC: &str = "sk-ant-api03-canary0123456789";
const OPENAI: &str = "sk-proj-canary0123456789abc";

fn key() -> String {
    KeyText::from_entropy(&[1; 32]).reveal().to_owned()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// What these headers bring beside an API key in its own header: kind, header and text.
fn brought(
    pairs: &[(&'static str, &str)],
) -> Result<Option<(OwnCredentialKind, &'static str, String)>, PassthroughError> {
    let mut headers = headers(pairs);
    headers.append(KEY_HEADER, HeaderValue::from_str(&key()).unwrap());
    let found = own_credential(&headers, &KEY_HEADER)?;
    Ok(found.map(|it| (it.kind, it.header, it.text.to_owned())))
}

/// The words for what is not passed on, of one text in `x-api-key`.
fn refused(text: &str) -> &'static str {
    match brought(&[("x-api-key", text)]) {
        Err(PassthroughError::Unusable { header, what }) => {
            assert_eq!(header, "x-api-key");
            what
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_credential_belongs_to_the_vendor_that_its_beginning_names() {
    use OwnCredentialKind::{AnthropicKey, ClaudeLogin, OpenAiKey};
    let marked = "sk-0123456789T3BlbkFJ0123456789";
    for (text, kind, vendor) in [
        (LOGIN, ClaudeLogin, Vendor::Anthropic),
        (ANTHROPIC, AnthropicKey, Vendor::Anthropic),
        (OPENAI, OpenAiKey, Vendor::OpenAi),
        ("sk-svcacct-0123456789abcdef", OpenAiKey, Vendor::OpenAi),
        (marked, OpenAiKey, Vendor::OpenAi),
    ] {
        let bearer = format!("Bearer {text}");
        let found = brought(&[("authorization", &bearer)]).unwrap();
        assert_eq!(found, Some((kind, "Authorization", text.to_owned())));
        let found = brought(&[("x-api-key", text)]).unwrap();
        assert_eq!(found, Some((kind, "x-api-key", text.to_owned())));
        assert_eq!(kind.vendor(), vendor, "{text}");
    }
}

#[test]
fn what_several_vendors_may_have_made_goes_to_none() {
    let rest = "0123456789abcdef0123456789";
    for (beginning, what) in [
        ("sk-", "several vendors share"),
        ("sk-ant-admin01-", "admin key of Anthropic"),
        ("sk-ant-ort01-", "refresh token"),
        ("sk-ant-sid01-", "session of claude.ai"),
        ("sk-ant-new01-", "Anthropic of an unknown kind"),
        ("sk-admin-", "admin key of OpenAI"),
        ("sk-or-v1-", "OpenRouter"),
        ("AIza", "Google"),
        ("gsk_", "Groq"),
        ("xai-", "xAI"),
        ("eyJ", "ChatGPT login"),
        ("hunter2", "unknown kind"),
        ("SK-ANT-API03-", "unknown kind"),
    ] {
        let text = format!("{beginning}{rest}");
        assert!(refused(&text).contains(what), "{text}: {}", refused(&text));
    }
    for text in ["sk-ant-oat01-short", "sk-proj-with a blank in it all"] {
        assert!(refused(text).contains("cut"), "{text}");
    }
    let long = format!("sk-ant-oat01-{}", "a".repeat(5_000));
    assert!(refused(&long).contains("cut"));
}

#[test]
fn nothing_is_brought_unless_the_api_key_stands_apart() {
    let bearer = format!("Bearer {LOGIN}");
    for pairs in [
        &[("authorization", &*bearer)][..],
        &[("authorization", &*bearer), ("x-weirgate-key", "")],
        &[("authorization", &*bearer), ("x-weirgate-key", "  ")],
    ] {
        assert!(own_credential(&headers(pairs), &KEY_HEADER).is_ok_and(|it| it.is_none()));
    }
    let of_ours = format!("Bearer {}", key());
    for pairs in [
        &[][..],
        &[("authorization", "")],
        &[("authorization", "Bearer ")],
        &[("authorization", &*of_ours)],
        &[("x-api-key", ""), ("x-goog-api-key", " ")],
    ] {
        assert_eq!(brought(pairs), Ok(None), "{pairs:?}");
    }
}

#[test]
fn two_credentials_are_refused_and_one_in_two_headers_is_one() {
    let bearer = format!("Bearer {ANTHROPIC}");
    let same = brought(&[("authorization", &bearer), ("x-api-key", ANTHROPIC)]).unwrap();
    assert_eq!(same.unwrap().1, "Authorization");
    let other = brought(&[("authorization", &bearer), ("x-api-key", LOGIN)]);
    let headers = ["Authorization", "x-api-key"];
    assert_eq!(other, Err(PassthroughError::Different(headers)));
    let twice = brought(&[("x-api-key", LOGIN), ("x-api-key", LOGIN)]);
    assert_eq!(twice, Err(PassthroughError::Repeated("x-api-key")));
    let basic = brought(&[("authorization", "Basic YTpi")]);
    assert_eq!(basic, Err(PassthroughError::OtherScheme));
    // That of the gateway beside one of a vendor is no second one.
    let beside = brought(&[("authorization", &bearer), ("x-api-key", &key())]).unwrap();
    assert_eq!(beside.unwrap().2, ANTHROPIC);
}

#[test]
fn a_refusal_says_what_came_and_what_is_accepted_and_never_the_credential() {
    let unusable = PassthroughError::Unusable {
        header: "x-api-key",
        what: UNKNOWN,
    };
    let login = OwnCredentialKind::ClaudeLogin;
    for (error, status, code, param) in [
        (unusable, 400, "own_credential_unusable", "x-api-key"),
        (
            PassthroughError::OtherScheme,
            400,
            "own_credential_unusable",
            "Authorization",
        ),
        (
            PassthroughError::Repeated("x-api-key"),
            400,
            "own_credential_unusable",
            "x-api-key",
        ),
        (
            PassthroughError::Different(["Authorization", "x-api-key"]),
            400,
            "own_credential_unusable",
            "x-api-key",
        ),
        (
            PassthroughError::NotAllowed("Authorization", login),
            403,
            "passthrough_not_allowed",
            "Authorization",
        ),
    ] {
        let fault = Fault::from(error);
        assert_eq!((fault.status(), fault.code()), (status, Some(code)));
        assert_eq!(fault.param.as_deref(), Some(param));
        let told = match status {
            403 => "--allow-passthrough anthropic",
            _ => "`sk-ant-oat…`",
        };
        assert!(fault.message.contains(told), "{}", fault.message);
    }
}

#[test]
fn addresses_are_a_vendor_s_by_their_host_over_tls_alone() {
    use Vendor::{Anthropic, OpenAi};
    for (url, vendor) in [
        ("https://api.anthropic.com", Some(Anthropic)),
        ("https://API.Anthropic.com:443/v1", Some(Anthropic)),
        ("https://api.openai.com/v1", Some(OpenAi)),
        ("https://eu.api.openai.com/v1", Some(OpenAi)),
        ("http://api.anthropic.com", None),
        ("https://api.anthropic.com:8443", None),
        ("https://api.anthropic.com.example", None),
        ("https://notapi.anthropic.com", None),
        ("https://api.anthropic.com@evil.example", None),
        ("https://user@api.anthropic.com", None),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", None),
        ("https://name.openai.azure.com", None),
        ("https://openrouter.ai/api/v1", None),
        ("http://127.0.0.1:9", None),
        ("", None),
    ] {
        assert_eq!(Vendor::of_urls([url]), vendor, "{url}");
    }
    let both = ["https://api.openai.com/v1", "https://eu.api.openai.com/v1"];
    assert_eq!(Vendor::of_urls(both), Some(OpenAi));
    let mixed = ["https://api.openai.com/v1", "https://proxy.example/v1"];
    assert_eq!(Vendor::of_urls(mixed), None);
    let two = ["https://api.openai.com", "https://api.anthropic.com"];
    assert_eq!(Vendor::of_urls(two), None);
    assert_eq!(Vendor::of_urls([]), None);
}

#[test]
fn a_login_gets_its_beta_once_and_a_key_none() {
    let completed = |kind: OwnCredentialKind, listed: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(listed) = listed {
            headers.insert("anthropic-beta", HeaderValue::from_str(listed).unwrap());
        }
        kind.complete(&mut headers);
        let beta = headers.get("anthropic-beta");
        beta.map(|beta| beta.to_str().unwrap().to_owned())
    };
    let login = OwnCredentialKind::ClaudeLogin;
    assert_eq!(completed(login, None).as_deref(), Some("oauth-2025-04-20"));
    assert_eq!(
        completed(login, Some("a-2025-01-01")).as_deref(),
        Some("a-2025-01-01,oauth-2025-04-20")
    );
    let own = "a-2025-01-01, oauth-2027-01-01";
    assert_eq!(completed(login, Some(own)).as_deref(), Some(own));
    assert_eq!(completed(OwnCredentialKind::AnthropicKey, None), None);
}

#[test]
fn vendors_are_read_by_their_names() {
    for vendor in Vendor::ALL {
        assert_eq!(vendor.as_str().parse(), Ok(vendor));
    }
    let unknown = "google".parse::<Vendor>();
    let told = unknown.map_err(|error| error.to_string());
    assert!(told.is_err_and(|told| told.contains("anthropic, openai")));
}
