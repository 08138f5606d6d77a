//! API keys: what carries one, and who is admitted by it.

use std::sync::Arc;

use filters::accounts::{
    AccountsSnapshot, ApiKey, Caller, KeyRow, KeyState, KeyText, Mode, OrganizationStatus, Pepper,
    Plan, admit, carries_api_key, holds_api_key, own_credential,
};
use filters::fault::Fault;
use filters::money::Usd;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Request};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const KEY_HEADER: HeaderName = HeaderName::from_static("x-weirgate-key");

fn key(choices: &mut Choices<'_>) -> KeyText {
    let mut entropy = [7; 32];
    entropy.iter_mut().for_each(|byte| *byte = choices.byte());
    KeyText::from_entropy(&entropy)
}

fn caller() -> Arc<Caller> {
    Arc::new(Caller {
        organization_id: "org_1".into(),
        organization: "acme".into(),
        project_id: "proj_1".into(),
        project: "default".into(),
        key_id: "key_1".into(),
        key_label: "".into(),
        mode: Mode::Platform,
        plan: Plan::None,
        plan_since_ms: 0,
        member: None,
        terms: None,
        cache_ttl_s: None,
        experiments: None,
        expires_at_ms: None,
        is_debug: false,
        regions: [None, None],
        exports_content: false,
        keep_bodies_until_ms: None,
    })
}

#[test]
fn only_the_key_itself_admits() {
    let pepper = Pepper::parse(&[5; 32]).unwrap();
    run("accounts: admission", |choices| {
        let key = key(choices);
        let row = KeyRow {
            caller: caller(),
            state: KeyState::Active,
            is_unreadable: false,
            organization_status: OrganizationStatus::Active,
            is_project_archived: false,
        };
        let accounts = AccountsSnapshot::new(1, [(pepper.hash(key.to_api_key()), row)]);
        let damaged = damage::bytes(choices, key.reveal().as_bytes().to_vec());
        let scheme = *choices.pick(&["Bearer ", "bearer  ", "Basic ", "", "Bearer"]);
        let mut headers = HeaderMap::new();
        let value = [scheme.as_bytes(), &damaged].concat();
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(AUTHORIZATION, value);
        }
        if choices.once_in(3)
            && let Ok(value) = HeaderValue::from_bytes(&damaged)
        {
            headers.append(HeaderName::from_static("x-api-key"), value);
        }
        let admitted = admit(&headers, &KEY_HEADER, &accounts, &pepper, 0);
        if admitted.is_ok() {
            assert_eq!(damaged.trim_ascii(), key.reveal().as_bytes());
            assert!(scheme.trim().eq_ignore_ascii_case("bearer"), "{headers:?}");
        }
        assert_eq!(
            ApiKey::parse(&damaged).is_ok(),
            damaged == key.reveal().as_bytes()
        );
    });
}

#[test]
fn a_credential_of_a_vendor_is_found_or_refused_without_being_told() {
    run("accounts: credentials of vendors", |choices| {
        let key = key(choices);
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, HeaderValue::from_str(key.reveal()).unwrap());
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            if choices.once_in(2) {
                continue;
            }
            let beginning = *choices.pick(&[
                "sk-ant-oat01-",
                "sk-ant-api03-",
                "sk-proj-",
                "sk-",
                "eyJ",
                key.reveal(),
                "",
            ]);
            let scheme = if name == "authorization" {
                "Bearer "
            } else {
                ""
            };
            let text = format!("{scheme}{beginning}{}", choices.text());
            let damaged = damage::bytes(choices, text.into_bytes());
            if let Ok(value) = HeaderValue::from_bytes(&damaged) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        match own_credential(&headers, &KEY_HEADER) {
            Ok(None) => {}
            Ok(Some(own)) => {
                assert!(!holds_api_key(own.text.as_bytes()));
                assert!(own.text.bytes().all(|byte| byte.is_ascii_graphic()));
                assert!(own.text.starts_with("sk-"));
                let is_claude = own.text.starts_with("sk-ant-");
                assert_eq!(is_claude, own.kind.vendor().as_str() == "anthropic");
            }
            Err(error) => {
                let message = Fault::from(error).message;
                for value in headers.values() {
                    let text = value.as_bytes();
                    let is_long = text.len() > 20;
                    assert!(!is_long || memchr::memmem::find(message.as_bytes(), text).is_none());
                }
            }
        }
    });
}

#[test]
fn a_key_is_found_wherever_a_head_carries_it() {
    run("accounts: keys in heads", |choices| {
        use base64::Engine;
        let key = key(choices);
        let around = |choices: &mut Choices<'_>| {
            choices
                .text()
                .chars()
                .filter(char::is_ascii_graphic)
                .collect::<String>()
        };
        let (before, after) = (around(choices), around(choices));
        let text = format!("{before}{}/{after}", key.reveal());
        let request = match choices.below(4) {
            0 => Request::builder().uri(format!(
                "/?k={}",
                text.replace(['"', '<', '>', '\\', '{', '}', '#'], "")
            )),
            1 => Request::builder().header("x-anything", text),
            2 => Request::builder().header("cookie", format!("a=b; {text}")),
            _ => {
                let basic = base64::engine::general_purpose::STANDARD.encode(text);
                Request::builder().header(AUTHORIZATION, format!("Basic {basic}"))
            }
        };
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert!(carries_api_key(&head), "{head:?}");
    });
}

/// Amounts are below this many units.
const BOUND: i128 = 10_i128.pow(30);

#[test]
fn an_amount_that_is_written_is_read_back() {
    run("accounts: amounts", |choices| {
        let amount = Usd::from_units(
            i128::from(choices.number()) * i128::from(choices.number() >> 2) % BOUND,
        );
        let written = amount.to_string();
        assert_eq!(Usd::parse(&written), Ok(amount));
        let damaged = damage::bytes(choices, written.into_bytes());
        if let Ok(text) = std::str::from_utf8(&damaged)
            && let Ok(amount) = Usd::parse(text)
        {
            assert_eq!(Usd::parse(&amount.to_string()), Ok(amount), "{text}");
            assert!(amount.units() >= 0, "{text}");
        }
    });
}
