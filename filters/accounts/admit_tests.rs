#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use super::super::api_key::KeyText;
use super::super::{KeyState, Mode, OrganizationStatus, Plan};
use super::*;

const NOW_MS: i64 = 1_800_000_000_000;
const KEY_HEADER: HeaderName = HeaderName::from_static("x-weirgate-key");

struct House {
    accounts: AccountsSnapshot,
    pepper: Pepper,
}

fn key(seed: u8) -> KeyText {
    KeyText::from_entropy(&[seed; 32])
}

fn caller(id: &str) -> Caller {
    Caller {
        organization_id: "org_1".into(),
        organization: "acme".into(),
        project_id: "proj_1".into(),
        project: "default".into(),
        key_id: id.into(),
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
    }
}

fn row(id: &str) -> KeyRow {
    KeyRow {
        caller: Arc::new(caller(id)),
        state: KeyState::Active,
        is_unreadable: false,
        organization_status: OrganizationStatus::Active,
        is_project_archived: false,
    }
}

/// A snapshot with this row for `key(1)` and a valid one for `key(2)`.
fn house(row_of_one: KeyRow) -> House {
    let pepper = Pepper::parse(&[9; 32]).ok().unwrap();
    let rows = [
        (pepper.hash(key(1).to_api_key()), row_of_one),
        (pepper.hash(key(2).to_api_key()), row("key_2")),
    ];
    House {
        accounts: AccountsSnapshot::new(7, rows),
        pepper,
    }
}

fn sound() -> House {
    house(row("key_1"))
}

impl House {
    fn admit(&self, pairs: &[(&'static str, String)]) -> Result<Arc<Caller>, AuthError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append(*name, value);
        }
        admit(&headers, &KEY_HEADER, &self.accounts, &self.pepper, NOW_MS)
    }

    fn bearer(&self, value: &str) -> Result<Arc<Caller>, AuthError> {
        self.admit(&[("authorization", value.to_owned())])
    }
}

fn id(answer: Result<Arc<Caller>, AuthError>) -> Result<String, AuthError> {
    answer.map(|caller| caller.key_id.to_string())
}

fn text(seed: u8) -> String {
    key(seed).reveal().to_owned()
}

#[test]
fn a_bearer_key_names_its_caller() {
    let answer = sound().bearer(&format!("Bearer {}", text(1)));
    assert_eq!(id(answer), Ok("key_1".to_owned()));
}

#[test]
fn an_x_api_key_names_its_caller() {
    let answer = sound().admit(&[("x-api-key", text(2))]);
    assert_eq!(id(answer), Ok("key_2".to_owned()));
}

#[test]
fn the_same_key_in_both_headers_is_one_key() {
    let both = [
        ("authorization", format!("Bearer {}", text(1))),
        ("x-api-key", text(1)),
    ];
    assert_eq!(id(sound().admit(&both)), Ok("key_1".to_owned()));
}

#[test]
fn the_scheme_is_read_without_case_and_with_any_number_of_spaces() {
    for scheme in ["Bearer ", "bearer ", "BEARER ", "BeArEr   ", "  Bearer  "] {
        let answer = sound().bearer(&format!("{scheme}{}", text(1)));
        assert_eq!(id(answer), Ok("key_1".to_owned()), "{scheme:?}");
    }
}

#[test]
fn no_key_and_an_empty_key_are_missing() {
    let empty: [&[(&str, String)]; 6] = [
        &[],
        &[("authorization", String::new())],
        &[("authorization", "Bearer".to_owned())],
        &[("authorization", "Bearer   ".to_owned())],
        &[("x-api-key", String::new())],
        &[("x-api-key", "  ".to_owned())],
    ];
    for headers in empty {
        assert_eq!(
            id(sound().admit(headers)),
            Err(AuthError::Missing),
            "{headers:?}"
        );
    }
}

#[test]
fn a_key_in_the_wrong_place_is_no_key() {
    let house = sound();
    assert_eq!(id(house.bearer(&text(1))), Err(AuthError::OtherScheme));
    for scheme in ["Basic ", "Bearer\t", "Bearer", "Bearer:", "Token "] {
        let answer = house.bearer(&format!("{scheme}{}", text(1)));
        assert_eq!(id(answer), Err(AuthError::OtherScheme), "{scheme:?}");
    }
    let answer = house.admit(&[("x-api-key", format!("Bearer {}", text(1)))]);
    assert_eq!(id(answer), Err(AuthError::Malformed));
}

#[test]
fn a_header_that_came_twice_is_refused_even_with_one_value() {
    for name in ["authorization", "x-api-key"] {
        let value = if name == "x-api-key" {
            text(1)
        } else {
            format!("Bearer {}", text(1))
        };
        let answer = sound().admit(&[(name, value.clone()), (name, value)]);
        assert_eq!(id(answer), Err(AuthError::Repeated), "{name}");
    }
}

#[test]
fn two_keys_conflict_whatever_their_state() {
    for other in [text(2), text(3), "nonsense".to_owned(), String::new()] {
        let both = [
            ("authorization", format!("Bearer {}", text(1))),
            ("x-api-key", other.clone()),
        ];
        assert_eq!(
            id(sound().admit(&both)),
            Err(AuthError::Conflicting),
            "{other}"
        );
        let both = [
            ("authorization", format!("Bearer {other}")),
            ("x-api-key", text(1)),
        ];
        assert_eq!(
            id(sound().admit(&both)),
            Err(AuthError::Conflicting),
            "{other}"
        );
    }
}

#[test]
fn another_scheme_beside_a_key_conflicts() {
    let both = [
        ("authorization", "Basic dTpw".to_owned()),
        ("x-api-key", text(1)),
    ];
    assert_eq!(id(sound().admit(&both)), Err(AuthError::Conflicting));
}

#[test]
fn a_typo_is_told_from_an_unknown_key() {
    let mut typo = text(1);
    typo.replace_range(10..11, if &typo[10..11] == "a" { "b" } else { "a" });
    assert_eq!(
        id(sound().bearer(&format!("Bearer {typo}"))),
        Err(AuthError::Malformed)
    );
    assert_eq!(
        id(sound().bearer(&format!("Bearer {}", text(3)))),
        Err(AuthError::Unknown)
    );
}

#[test]
fn hostile_values_are_malformed() {
    let hostile = [
        "x".repeat(100_000),
        format!("{}, Bearer {}", text(1), text(2)),
        "wg_".to_owned(),
    ];
    for value in hostile {
        assert_eq!(
            id(sound().bearer(&format!("Bearer {value}"))),
            Err(AuthError::Malformed)
        );
    }
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", HeaderValue::from_bytes(&[0xFF; 46]).unwrap());
    let house = sound();
    let answer = admit(
        &headers,
        &KEY_HEADER,
        &house.accounts,
        &house.pepper,
        NOW_MS,
    );
    assert_eq!(id(answer), Err(AuthError::Malformed));
}

#[test]
fn another_pepper_knows_no_key() {
    let mut house = sound();
    house.pepper = Pepper::parse(&[8; 32]).ok().unwrap();
    assert_eq!(
        id(house.bearer(&format!("Bearer {}", text(1)))),
        Err(AuthError::Unknown)
    );
}

#[test]
fn a_revoked_or_disabled_key_does_not_count() {
    for (state, expected) in [
        (KeyState::Revoked, AuthError::Revoked),
        (KeyState::Disabled, AuthError::Disabled),
    ] {
        let house = house(KeyRow {
            state,
            ..row("key_1")
        });
        let answer = house.bearer(&format!("Bearer {}", text(1)));
        assert_eq!(id(answer), Err(expected));
    }
}

#[test]
fn a_key_counts_until_the_millisecond_it_expires() {
    for (end_ms, expected) in [
        (NOW_MS + 1, Ok("key_1".to_owned())),
        (NOW_MS, Err(AuthError::Expired)),
        (NOW_MS - 1, Err(AuthError::Expired)),
    ] {
        let caller = Caller {
            expires_at_ms: Some(end_ms),
            ..caller("key_1")
        };
        let house = house(KeyRow {
            caller: Arc::new(caller),
            ..row("key_1")
        });
        assert_eq!(id(house.bearer(&format!("Bearer {}", text(1)))), expected);
    }
}

#[test]
fn an_organization_that_is_disabled_or_held_and_an_archived_project_are_refused() {
    let disabled = house(KeyRow {
        organization_status: OrganizationStatus::Disabled,
        ..row("key_1")
    });
    let answer = disabled.bearer(&format!("Bearer {}", text(1)));
    assert_eq!(id(answer), Err(AuthError::OrganizationDisabled));
    let held = house(KeyRow {
        organization_status: OrganizationStatus::Held,
        is_project_archived: true,
        ..row("key_1")
    });
    let answer = held.bearer(&format!("Bearer {}", text(1)));
    assert_eq!(id(answer), Err(AuthError::OrganizationHeld));
    let archived = house(KeyRow {
        is_project_archived: true,
        ..row("key_1")
    });
    let answer = archived.bearer(&format!("Bearer {}", text(1)));
    assert_eq!(id(answer), Err(AuthError::ProjectArchived));
}

#[test]
fn a_key_that_cannot_be_read_is_refused_in_words() {
    let unreadable = house(KeyRow {
        is_unreadable: true,
        organization_status: OrganizationStatus::Disabled,
        ..row("key_1")
    });
    let answer = unreadable.bearer(&format!("Bearer {}", text(1)));
    assert_eq!(id(answer), Err(AuthError::Unreadable));
    let fault = Fault::from(AuthError::Unreadable);
    assert_eq!(
        (fault.kind, fault.code()),
        (FaultKind::Forbidden, Some("key_unreadable"))
    );
}

#[test]
fn a_dead_key_tells_nothing_of_its_organization() {
    let house = house(KeyRow {
        state: KeyState::Revoked,
        organization_status: OrganizationStatus::Disabled,
        is_project_archived: true,
        ..row("key_1")
    });
    assert_eq!(
        id(house.bearer(&format!("Bearer {}", text(1)))),
        Err(AuthError::Revoked)
    );
}

#[test]
fn each_refusal_has_its_status() {
    let table = [
        (AuthError::Missing, 401),
        (AuthError::OtherScheme, 401),
        (AuthError::Malformed, 401),
        (AuthError::Unknown, 401),
        (AuthError::Revoked, 401),
        (AuthError::Disabled, 401),
        (AuthError::Expired, 401),
        (AuthError::Repeated, 400),
        (AuthError::Conflicting, 400),
        (AuthError::OrganizationHeld, 403),
        (AuthError::OrganizationDisabled, 410),
        (AuthError::ProjectArchived, 410),
    ];
    for (error, status) in table {
        assert_eq!(Fault::from(error).status(), status, "{error:?}");
    }
}

#[test]
fn a_key_is_found_wherever_a_head_carries_it() {
    let key = KeyText::from_entropy(&[7; 32]);
    let key = key.reveal();
    let basic = format!("Basic {}", STANDARD.encode(format!("{key}:")));
    let mistyped = format!("{}x", &key[..key.len() - 1]);
    let carries = |uri: &str, name: &str, value: &str| {
        let head = http::Request::builder().uri(uri).header(name, value);
        carries_api_key(&head.body(()).unwrap().into_parts().0)
    };
    assert!(carries("/x", "authorization", &format!("Bearer {key}")));
    assert!(carries(
        "/x",
        "authorization",
        &format!("bearer  {mistyped}")
    ));
    assert!(carries("/x", "authorization", &basic));
    assert!(carries("/x", "cookie", &format!("a=b; key={key}")));
    assert!(carries(&format!("/x?auth={key}"), "x", "y"));
    assert!(carries(&format!("/{key}/x"), "x", "y"));
    for other in [
        "wg_",
        "wg_short",
        "Bearer epi-single",
        "Basic x",
        "Basic d2c=",
        "basic",
    ] {
        assert!(!carries("/wg_/x", "authorization", other), "{other}");
    }
}

#[test]
fn each_refusal_says_what_is_wrong() {
    for (error, words) in [
        (AuthError::Missing, "is required"),
        (AuthError::OtherScheme, "another scheme"),
        (AuthError::Malformed, "mistyped"),
        (AuthError::Unknown, "not known"),
        (AuthError::Revoked, "revoked"),
        (AuthError::Expired, "expired"),
        (AuthError::Repeated, "more than once"),
        (AuthError::Conflicting, "different keys"),
        (AuthError::OrganizationHeld, "held for review"),
        (AuthError::OrganizationDisabled, "disabled"),
        (AuthError::ProjectArchived, "archived"),
    ] {
        assert!(error.message().contains(words), "{error:?}");
    }
}

#[test]
fn the_header_of_its_own_proves_the_caller_and_leaves_the_others_to_vendors() {
    let bearer = "Bearer sk-ant-oat01-0123456789abcdef".to_owned();
    for other in [
        ("authorization", bearer.clone()),
        ("authorization", "Basic YTpi".to_owned()),
        ("x-api-key", "sk-ant-api03-0123456789abcdef".to_owned()),
        ("x-goog-api-key", "anything".to_owned()),
        ("authorization", format!("bearer {}", text(2))),
    ] {
        let answer = sound().admit(&[("x-weirgate-key", text(2)), other]);
        assert_eq!(id(answer), Ok("key_2".to_owned()));
    }
    // An empty one is none, so the others count again.
    let empty = [
        ("x-weirgate-key", " ".to_owned()),
        ("authorization", format!("Bearer {}", text(1))),
    ];
    assert_eq!(id(sound().admit(&empty)), Ok("key_1".to_owned()));
}

#[test]
fn two_keys_of_the_gateway_conflict_in_any_two_headers() {
    for other in [
        ("authorization", format!("Bearer {}", text(1))),
        ("authorization", text(1)),
        ("x-api-key", text(1)),
        ("x-goog-api-key", text(1)),
    ] {
        let answer = sound().admit(&[("x-weirgate-key", text(2)), other]);
        assert_eq!(id(answer), Err(AuthError::Conflicting));
    }
    let twice = [("x-weirgate-key", text(1)), ("x-weirgate-key", text(1))];
    assert_eq!(id(sound().admit(&twice)), Err(AuthError::Repeated));
}

#[test]
fn a_credential_of_a_vendor_alone_is_told_from_a_mistyped_key() {
    let login = "Bearer sk-ant-oat01-0123456789abcdef";
    assert_eq!(id(sound().bearer(login)), Err(AuthError::OfVendor));
    assert!(AuthError::OfVendor.is_refused_key());
    assert!(AuthError::OfVendor.message().contains("x-weirgate-key"));
    let unknown = "Bearer sk-0123456789abcdef0123456789";
    assert_eq!(id(sound().bearer(unknown)), Err(AuthError::Malformed));
    // A vendor's credential does not stand for a key where the key should.
    let apart = [("x-weirgate-key", "sk-ant-oat01-0123456789abcdef".to_owned())];
    assert_eq!(id(sound().admit(&apart)), Err(AuthError::OfVendor));
}
