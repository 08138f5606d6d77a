#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use super::*;

/// Base64 of 32 bytes.
const SECRET: &str = "YSBzZWNyZXQgb2YgMzIgYnl0ZXMsIG5vdCBsZXNzISE=";
/// Of `{"query":"{__typename}"}`.
const BODY_MD5: u128 = 0x3aec_a260_892c_bb68_8767_73c7_857f_8529;
/// Reckoned by Python's `hmac` over key, method, path and query, timestamp, nonce and the body's hash.
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

fn proof() -> VerificationInputs<'static> {
    VerificationInputs {
        method: "POST",
        path_and_query: "/content/v2?stored=true",
        body_md5: Some(BODY_MD5.to_be_bytes()),
        now_ms: NOW_MS,
        takes_single_key: true,
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

fn whose(presented: &PresentedCredential<'_>, proof: &VerificationInputs<'_>) -> Option<String> {
    let identity = tenants().identify(presented, proof, &Nonces::default());
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
    assert_eq!(whose(&single("sk1"), &proof()), t1());
    let elsewhere = VerificationInputs {
        takes_single_key: false,
        ..proof()
    };
    assert_eq!(whose(&single("sk1"), &elsewhere), None);
}

#[test]
fn unknown_credentials_have_no_tenant() {
    assert_eq!(whose(&single("sk2"), &proof()), None);
    assert_eq!(whose(&single("ak1"), &proof()), None);
    assert_eq!(whose(&basic("sk1", ""), &proof()), None);
    assert_eq!(
        whose(&PresentedCredential::Signed(signed("ak9")), &proof()),
        None
    );
    assert_eq!(whose(&PresentedCredential::Nothing, &proof()), None);
    assert_eq!(whose(&PresentedCredential::Other, &proof()), None);
}

#[test]
fn a_secret_is_compared_where_one_is_configured() {
    assert_eq!(whose(&basic("ak1", SECRET), &proof()), t1());
    assert_eq!(whose(&basic("ak1", "wrong"), &proof()), None);
    assert_eq!(whose(&basic("ak1", ""), &proof()), None);
    assert_eq!(whose(&basic("ak2", "anything"), &proof()), t2());
    assert_eq!(whose(&basic("ak3", "no base64!"), &proof()), t2());
}

#[test]
fn a_signature_counts_for_its_tenant() {
    assert_eq!(
        whose(&PresentedCredential::Signed(signed("ak1")), &proof()),
        t1()
    );
}

#[test]
fn a_signature_over_anything_else_counts_for_nobody() {
    let changed = [
        VerificationInputs {
            method: "PUT",
            ..proof()
        },
        VerificationInputs {
            path_and_query: "/content/v2",
            ..proof()
        },
        VerificationInputs {
            path_and_query: "/Content/v2?stored=true",
            ..proof()
        },
        VerificationInputs {
            body_md5: Some([0; 16]),
            ..proof()
        },
        VerificationInputs {
            body_md5: None,
            ..proof()
        },
    ];
    for proof in &changed {
        assert_eq!(
            whose(&PresentedCredential::Signed(signed("ak1")), proof),
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
        assert_eq!(whose(&PresentedCredential::Signed(signed), &proof()), None);
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
        let proof = VerificationInputs {
            now_ms: NOW_MS + off_ms,
            ..proof()
        };
        let tenant = whose(&PresentedCredential::Signed(signed("ak1")), &proof);
        assert_eq!(tenant.is_some(), counts, "{off_ms}");
        let unverified = whose(&PresentedCredential::Signed(signed("ak2")), &proof);
        assert_eq!(unverified.is_some(), counts, "{off_ms}");
    }
}

#[test]
fn a_signature_counts_once() {
    let (tenants, nonces) = (tenants(), Nonces::default());
    let tenant = |now_ms| {
        let proof = VerificationInputs { now_ms, ..proof() };
        tenants
            .identify(&PresentedCredential::Signed(signed("ak1")), &proof, &nonces)
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
    tenants.identify(&PresentedCredential::Signed(forged), &proof(), &nonces);
    let honest = tenants.identify(
        &PresentedCredential::Signed(signed("ak1")),
        &proof(),
        &nonces,
    );
    assert!(honest.tenant.is_some());
}

#[test]
fn only_a_signature_that_can_be_verified_needs_the_body() {
    let needs = |presented| tenants().needs_body(&presented);
    assert!(needs(PresentedCredential::Signed(signed("ak1"))));
    assert!(!needs(PresentedCredential::Signed(signed("ak2"))));
    assert!(!needs(PresentedCredential::Signed(signed("ak9"))));
    assert!(!needs(basic("ak1", SECRET)));
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
    let proof = VerificationInputs {
        claims: Some(&claims),
        ..proof()
    };
    whose(&PresentedCredential::Bearer("a.b.c"), &proof)
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
        tenants().needs_key_set(&claims)
    };
    assert_eq!(needs("one"), Some(7));
    assert_eq!(needs("two"), None);
}

#[test]
fn a_token_without_claims_counts_for_nobody() {
    assert_eq!(whose(&PresentedCredential::Bearer("junk"), &proof()), None);
}

#[test]
fn a_credential_has_its_class_whether_or_not_it_counts() {
    let class = |presented| {
        tenants()
            .identify(&presented, &proof(), &Nonces::default())
            .class
    };
    assert_eq!(class(single("nobody")), CredentialKind::Single);
    assert_eq!(class(basic("nobody", "")), CredentialKind::App);
    assert_eq!(
        class(PresentedCredential::Signed(signed("nobody"))),
        CredentialKind::App
    );
    assert_eq!(
        class(PresentedCredential::Bearer("junk")),
        CredentialKind::Bearer
    );
    assert_eq!(class(PresentedCredential::Other), CredentialKind::Other);
    assert_eq!(class(PresentedCredential::Nothing), CredentialKind::Nothing);
}
