#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const TOKEN: [u8; 32] = [7; 32];

fn access() -> ConsoleAccess {
    ConsoleAccess::new(&Pepper::parse(&[1; 32]).unwrap()).unwrap()
}

/// Returns the headers that a browser sends after this `Set-Cookie`.
fn browser(cookie: &str) -> HeaderMap {
    let pair = cookie.split(';').next().unwrap();
    let mut headers = HeaderMap::new();
    let cookies = format!("theme=dark; {pair}");
    headers.insert(header::COOKIE, cookies.parse().unwrap());
    headers
}

#[test]
fn a_session_is_its_cookie_and_ends_with_its_token() {
    let access = access();
    let (visitor, cookie) = access.sign_in((&TOKEN, &TOKEN), "Ann", true).unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/console"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let headers = browser(&cookie);
    assert_eq!(access.visitor(&headers, Some(&TOKEN)), Some(visitor));
    assert_eq!(access.visitor(&headers, Some(&[8; 32])), None);
    assert_eq!(access.visitor(&headers, None), None);
    let other = ConsoleAccess::new(&Pepper::parse(&[2; 32]).unwrap()).unwrap();
    assert_eq!(other.visitor(&headers, Some(&TOKEN)), None);
    // Another process with the same secret knows it.
    let same = ConsoleAccess::new(&Pepper::parse(&[1; 32]).unwrap()).unwrap();
    assert!(same.visitor(&headers, Some(&TOKEN)).is_some());
}

#[test]
fn a_cookie_that_was_changed_or_has_ended_is_none() {
    let access = access();
    let (mut visitor, cookie) = access.begin("Ann", None, false).unwrap();
    assert!(!cookie.contains("Secure"), "{cookie}");
    let changed = cookie.replacen("console=", "console=A", 1);
    assert_eq!(access.visitor(&browser(&changed), None), None);
    assert_eq!(access.visitor(&browser(&ended_cookie(false)), None), None);
    visitor.expires_at = now_s();
    let sealed = access
        .seal
        .encrypt(CONTEXT, &serde_json::to_vec(&visitor).unwrap());
    let ended = format!("{COOKIE}={}", URL_SAFE_NO_PAD.encode(sealed.unwrap()));
    assert_eq!(access.visitor(&browser(&ended), None), None);
}

#[test]
fn wrong_tokens_are_few_in_a_minute() {
    let access = access();
    let tried = |presented| access.sign_in((presented, &TOKEN), "Ann", false).err();
    let tries: Vec<_> = (0..2 * MAX_WRONG_TOKENS).map(|_| tried(&[0; 32])).collect();
    assert_eq!(tries.first(), Some(&Some(SignInError::WrongToken)));
    assert_eq!(tries.last(), Some(&Some(SignInError::TooManyTries)));
}

#[test]
fn a_link_signs_in_once() {
    let access = access();
    let code = access.make_link("ann\u{1b}[31m").unwrap();
    let opened = access.use_link(&code, (Some(&TOKEN), false));
    assert_eq!(opened.unwrap().0.name, "ann[31m");
    let again = access.use_link(&code, (Some(&TOKEN), false)).err();
    assert_eq!(again, Some(SignInError::NoSuchLink));
    let first = access.make_link("ann").unwrap();
    for _ in 0..MAX_LINKS {
        access.make_link("ann").unwrap();
    }
    assert!(access.use_link(&first, (None, false)).is_err());
}
