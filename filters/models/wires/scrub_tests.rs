use super::*;

const NONE: [&str; 0] = [];

#[test]
fn secrets_addresses_and_accounts_do_not_pass() {
    let scrubbed = scrub(
        "Incorrect API key provided: sk-proj-abc123. See https://a.example/x?key=1 (org-77aa) \
             AIzaSyA1234567890 Bearer abcdefghijklmnopqrstuvwxyz0123456789 dial 10.1.2.3:8080",
        &NONE,
    );
    for secret in [
        "sk-proj",
        "example",
        "org-77aa",
        "AIza",
        "abcdefghijklmnop",
        "10.1.2.3",
    ] {
        assert!(!scrubbed.contains(secret), "{scrubbed}");
    }
    assert!(scrubbed.contains("Incorrect API key provided"));
}

#[test]
fn the_credential_of_the_attempt_does_not_pass_whatever_its_form() {
    for key in [
        "abc",
        "hunter2",
        "correct horse, battery",
        "p@ss/w0rd+x",
        "it's \"quoted\"",
        "a-key-of-more-than-thirty-two-bytes-0123456789",
    ] {
        for (before, after) in [
            ("", ""),
            ("(", ")"),
            ("key=", "&x=1"),
            ("\"", "\","),
            ("x: ", "."),
        ] {
            let in_form = percent_encoded(key).replace("%20", "+");
            for shown in [
                key.to_owned(),
                key.to_uppercase(),
                percent_encoded(key),
                in_form,
            ] {
                let said = format!("the credential {before}{shown}{after} is wrong");
                let clean = scrub(&said, &[key]).to_lowercase();
                assert!(!clean.contains(&shown.to_lowercase()), "{said} -> {clean}");
                assert!(clean.starts_with("the credential "), "{clean}");
                assert!(clean.ends_with(" is wrong"), "{clean}");
            }
        }
    }
}

#[test]
fn a_masked_or_shortened_credential_does_not_pass() {
    let key = "8f3kq02mzz91-ab";
    for shown in [
        "8f3k...1-ab",
        "8f3kq0…",
        "****1-ab",
        "8f3kq02mzz",
        "02mzz91-a",
        "8f3k**********ab",
    ] {
        let said = format!("the key '{shown}' is wrong");
        assert!(
            !scrub(&said, &[key]).contains(shown),
            "{}",
            scrub(&said, &[key])
        );
    }
}

#[test]
fn a_short_credential_leaves_the_words_around_it_readable() {
    let said = "a test of tests: test";
    assert_eq!(scrub(said, &["test"]), "a [removed] of tests: [removed]");
    assert_eq!(scrub(said, &["another"]), said);
}

#[test]
fn a_host_goes_with_its_port_and_its_address() {
    let exact = ["models.internal", "models.internal:8443", "fd00::7"];
    let said = "POST models.internal:8443/v1 via Models.Internal [fd00::7]:8443 failed";
    let clean = scrub(said, &exact);
    assert_eq!(
        clean,
        "POST [removed]/v1 via [removed] [[removed]]:8443 failed"
    );
}

#[test]
fn a_long_message_is_cut_at_a_character_and_never_inside_a_secret() {
    assert!(scrub(&"é".repeat(5000), &NONE).len() < 520);
    let key = "k".repeat(300);
    for length in [100, 400, 495, 8 << 10, (8 << 10) - 100] {
        let said = format!("{} {key}", "a ".repeat(length / 2));
        assert!(!scrub(&said, &[&key]).contains("kkkkkkkk"), "{length}");
    }
}

#[test]
fn ordinary_words_pass() {
    let said = "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, see `max_tokens`...";
    assert_eq!(scrub(said, &["8f3kq02mzz91-ab", "api.example.com"]), said);
}
