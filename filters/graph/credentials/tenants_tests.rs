#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use super::*;

/// Base64 of 32 bytes.
const SECRET: &str = "YSBzZWNyZXQgb2YgMzIgYnl0ZXMsIG5vdCBsZXNzISE=";
/// MD5 of `{"query":"{__typename}"}`.
const BODY_MD5: u128 = 0x3aec_a260_892c_bb68_8767_73c7_857f_8529;
/// Computed by Python's `hmac` over key, method, path and query, timestamp, nonce and the body's hash.
const SIGNATURE: &str = "ifGHnmlMZJFsh7LUUk7BxCNc6Afk9PIYQs0AoGKdLa4=";
const NOW_MS: i64 = 1_800_000_000_000;

fn tenants() -> Tenants {
    let [t1, t2] = ["t1", "t2"].map(Arc::<str>::from);
    let mut tenants = Tenants::default();
    tenants.add_single(&t1, "sk1");
    tenants.add_app(&t1, "ak1", Some(SECRET));
    tenants.add_app(&t2, "ak2", None);
    tenants.add_app(&t2, "ak3", Some("no base64!"));
    tenants.add_issuer(&t1, "https://id", Some("one"), Some(7));
    tenants.add_issuer(&t2, "https://id", None, None);
    tenants
}

fn inputs() -> VerificationInputs<'static> {
    VerificationInputs {
        method: "POST",
        path_and_query: "/content/v2?stored=true",
        body_md5: Some(BODY_MD5.to_be_bytes()),
        now_ms: NOW_MS,
        accepts_single_key: true,
        claims: None,
    }
}

fn signed(key: &'static str) -> Signed<'static> {
    Signed {
        key,
        timestamp_ms: "1800000000000",
        nonce: "n1",
        signature: SIGNATURE,
    }
}

fn basic(key: &str, secret: &str) -> PresentedCredential<'static> {
    PresentedCredential::Basic(Basic(format!("{key}:{secret}")))
}

fn single(key: &'static str) -> PresentedCredential<'static> {
    PresentedCredential::Single(Cow::Borrowed(key))
}

fn tenant_of(
    presented: &PresentedCredential<'_>,
    inputs: &VerificationInputs<'_>,
) -> Option<String> {
    let identity = tenants().identify(presented, inputs, &Nonces::default());
    identity.tenant.map(|tenant| tenant.to_string())
}

fn t1() -> Option<String> {
    Some("t1".to_owned())
}

fn t2() -> Option<String> {
    Some("t2".to_owned())
}

#[test]
fn a_public_key_counts_for_its_tenant_where_it_is_a_credential() {
    assert_eq!(tenant_of(&single("sk1"), &inputs()), t1());
    let elsewhere = VerificationInputs {
        accepts_single_key: false,
        ..inputs()
    };
    assert_eq!(tenant_of(&single("sk1"), &elsewhere), None);
}

#[test]
fn unknown_credentials_have_no_tenant() {
    assert_eq!(tenant_of(&single("sk2"), &inputs()), None);
    assert_eq!(tenant_of(&single("ak1"), &inputs()), None);
    assert_eq!(tenant_of(&basic("sk1", ""), &inputs()), None);
    assert_eq!(
        tenant_of(&PresentedCredential::Signed(signed("ak9")), &inputs()),
        None
    );
    assert_eq!(tenant_of(&PresentedCredential::Absent, &inputs()), None);
    assert_eq!(tenant_of(&PresentedCredential::Other, &inputs()), None);
}

#[test]
fn a_secret_is_compared_where_one_is_configured() {
    assert_eq!(tenant_of(&basic("ak1", SECRET), &inputs()), t1());
    assert_eq!(tenant_of(&basic("ak1", "wrong"), &inputs()), None);
    assert_eq!(tenant_of(&basic("ak1", ""), &inputs()), None);
    assert_eq!(tenant_of(&basic("ak2", "anything"), &inputs()), t2());
    assert_eq!(tenant_of(&basic("ak3", "no base64!"), &inputs()), t2());
}

#[test]
fn a_signature_counts_for_its_tenant() {
    assert_eq!(
        tenant_of(&PresentedCredential::Signed(signed("ak1")), &inputs()),
        t1()
    );
}

#[test]
fn a_signature_over_anything_else_counts_for_nobody() {
    let changed = [
        VerificationInputs {
            method: "PUT",
            ..inputs()
        },
        VerificationInputs {
            path_and_query: "/content/v2",
            ..inputs()
        },
        VerificationInputs {
            path_and_query: "/Content/v2?stored=true",
            ..inputs()
        },
        VerificationInputs {
            body_md5: Some([0; 16]),
            ..inputs()
        },
        VerificationInputs {
            body_md5: None,
            ..inputs()
        },
    ];
    for inputs in &changed {
        assert_eq!(
            tenant_of(&PresentedCredential::Signed(signed("ak1")), inputs),
            None
        );
    }
    let forged = [
        Signed {
            nonce: "n2",
            ..signed("ak1")
        },
        Signed {
            timestamp_ms: "1800000000001",
            ..signed("ak1")
        },
        Signed {
            timestamp_ms: "soon",
            ..signed("ak1")
        },
        Signed {
            signature: "AAAA",
            ..signed("ak1")
        },
        Signed {
            signature: "%",
            ..signed("ak1")
        },
        signed("ak3"),
    ];
    for signed in forged {
        assert_eq!(
            tenant_of(&PresentedCredential::Signed(signed), &inputs()),
            None
        );
    }
}

#[test]
fn a_signature_counts_for_300_seconds_either_way() {
    for (off_ms, counts) in [
        (-300_001, false),
        (-300_000, true),
        (300_000, true),
        (300_001, false),
    ] {
        let inputs = VerificationInputs {
            now_ms: NOW_MS + off_ms,
            ..inputs()
        };
        let tenant = tenant_of(&PresentedCredential::Signed(signed("ak1")), &inputs);
        assert_eq!(tenant.is_some(), counts, "{off_ms}");
        let unverified = tenant_of(&PresentedCredential::Signed(signed("ak2")), &inputs);
        assert_eq!(unverified.is_some(), counts, "{off_ms}");
    }
}

#[test]
fn a_signature_counts_once() {
    let (tenants, nonces) = (tenants(), Nonces::default());
    let tenant = |now_ms| {
        let inputs = VerificationInputs { now_ms, ..inputs() };
        tenants
            .identify(
                &PresentedCredential::Signed(signed("ak1")),
                &inputs,
                &nonces,
            )
            .tenant
    };
    assert!(tenant(NOW_MS - 300_000).is_some());
    assert_eq!(tenant(NOW_MS), None);
    assert_eq!(tenant(NOW_MS + 300_000), None);
}

#[test]
fn a_forged_signature_spends_no_nonce() {
    let (tenants, nonces) = (tenants(), Nonces::default());
    let forged = Signed {
        signature: "AAAA",
        ..signed("ak1")
    };
    tenants.identify(&PresentedCredential::Signed(forged), &inputs(), &nonces);
    let honest = tenants.identify(
        &PresentedCredential::Signed(signed("ak1")),
        &inputs(),
        &nonces,
    );
    assert!(honest.tenant.is_some());
}

#[test]
fn only_a_signature_that_can_be_verified_needs_the_body() {
    let needs = |presented| tenants().needs_body(&presented, 1_800_000_000_000);
    assert!(needs(PresentedCredential::Signed(signed("ak1"))));
    assert!(!needs(PresentedCredential::Signed(signed("ak2"))));
    assert!(!needs(PresentedCredential::Signed(signed("ak9"))));
    assert!(!needs(basic("ak1", SECRET)));
    let late = 1_800_000_000_000 + LEEWAY_MS + 1;
    assert!(!tenants().needs_body(&PresentedCredential::Signed(signed("ak1")), late));
}

fn claims(issuer: &str, audiences: &[&str], is_verified: bool) -> TenantClaims {
    TenantClaims {
        issuer: issuer.to_owned(),
        audiences: audiences
            .iter()
            .map(|&audience| audience.to_owned())
            .collect(),
        is_verified,
    }
}

fn bearer(issuer: &str, audiences: &[&str], is_verified: bool) -> Option<String> {
    let claims = claims(issuer, audiences, is_verified);
    let inputs = VerificationInputs {
        claims: Some(&claims),
        ..inputs()
    };
    tenant_of(&PresentedCredential::Bearer("a.b.c"), &inputs)
}

#[test]
fn a_token_counts_for_the_tenant_of_its_issuer_and_audience() {
    assert_eq!(bearer("https://id", &["one"], true), t1());
    assert_eq!(bearer("https://id", &["two", "one"], true), t1());
    assert_eq!(bearer("https://id", &["two"], true), t2());
    assert_eq!(bearer("https://id", &[], true), t2());
    assert_eq!(bearer("https://id/", &["one"], true), None);
}

#[test]
fn a_token_is_believed_unverified_only_where_no_key_set_is_configured() {
    assert_eq!(bearer("https://id", &["one"], false), None);
    assert_eq!(bearer("https://id", &["two"], false), t2());
    let needs = |audience| {
        let claims = claims("https://id", &[audience], false);
        tenants().required_key_set(&claims)
    };
    assert_eq!(needs("one"), Some(7));
    assert_eq!(needs("two"), None);
}

#[test]
fn a_token_without_claims_counts_for_nobody() {
    assert_eq!(
        tenant_of(&PresentedCredential::Bearer("junk"), &inputs()),
        None
    );
}

#[test]
fn a_credential_has_its_class_whether_or_not_it_counts() {
    let kind = |presented| {
        tenants()
            .identify(&presented, &inputs(), &Nonces::default())
            .kind
    };
    assert_eq!(kind(single("nobody")), CredentialKind::Single);
    assert_eq!(kind(basic("nobody", "")), CredentialKind::App);
    assert_eq!(
        kind(PresentedCredential::Signed(signed("nobody"))),
        CredentialKind::App
    );
    assert_eq!(
        kind(PresentedCredential::Bearer("junk")),
        CredentialKind::Bearer
    );
    assert_eq!(kind(PresentedCredential::Other), CredentialKind::Other);
    assert_eq!(kind(PresentedCredential::Absent), CredentialKind::Absent);
}
