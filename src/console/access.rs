//! Who may use the console: sign-in, the session's cookie, and the proof that a change was meant.
//!
//! A session is nothing but its cookie: sealed with a key that the store's secret derives, so a session lives on across
//! restarts, reloads, upgrades and the processes of a fleet. It ends with its time, or with the token under which it
//! began. Without `admin.token` there is no sign-in, but peer and `Host` have to be this machine.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use filters::accounts::Pepper;
use http::{HeaderMap, header};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::encryption::{Seal, SealError};

/// The purpose of the key that seals cookies.
const SEAL_PURPOSE: &str = "sessions of the console, version 1";
/// What a cookie is sealed for.
const CONTEXT: &[u8] = b"weirgate console session";
/// The name of the cookie.
const COOKIE: &str = "weirgate_console";
/// How long a session lasts. Our choice: a working day.
const SESSION_SECONDS: i64 = 12 * 3600;
/// How long a one-time link may be opened.
const LINK_SECONDS: i64 = 300;
/// The links that wait to be opened, at most. Another one replaces the oldest.
const MAX_LINKS: usize = 16;
/// The wrong tokens that are looked at in a minute; more are refused unseen.
const MAX_WRONG_TOKENS: u32 = 20;
/// The maximum characters of the name that a person gives.
const MAX_NAME_CHARS: usize = 64;

/// Makes and reads sessions.
pub struct ConsoleAccess {
    seal: Seal,
    links: Mutex<VecDeque<Link>>,
    wrong_tokens: Mutex<WrongTokens>,
}

/// Who looks at a page.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Visitor {
    /// The name that the person gave, or that of the user who asked for the link. Nobody has proved it.
    pub name: String,
    /// Comes with each change: another site cannot know it.
    pub csrf: String,
    /// The end of the session, in seconds of Unix time.
    expires_at: i64,
    /// The start of the hash of the token under which the session began; empty without a token.
    token: String,
}

/// A link that signs in once.
struct Link {
    code: String,
    name: String,
    expires_at: i64,
}

/// The wrong tokens of a minute.
#[derive(Default)]
struct WrongTokens {
    minute: i64,
    count: u32,
}

/// Why somebody was not signed in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SignInError {
    WrongToken,
    TooManyTries,
    /// The link is unknown, too old, or was used.
    NoSuchLink,
    /// The operating system gave no random bytes.
    Randomness,
}

impl SignInError {
    pub(super) fn status(self) -> u16 {
        match self {
            Self::WrongToken | Self::NoSuchLink => 403,
            Self::TooManyTries => 429,
            Self::Randomness => 500,
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::WrongToken => "This is not the token of admin.token.",
            Self::TooManyTries => "Too many wrong tokens: try again in a minute.",
            Self::NoSuchLink => {
                "This link was used, or is older than five minutes: `weirgate console` prints another one."
            }
            Self::Randomness => "No session could be made: the system gave no random bytes.",
        }
    }
}

impl From<SealError> for SignInError {
    fn from(_: SealError) -> Self {
        Self::Randomness
    }
}

impl ConsoleAccess {
    /// Makes one whose cookies are sealed with the store's secret.
    ///
    /// Errors: never, because the key has the cipher's length.
    pub fn new(pepper: &Pepper) -> Result<Self, SealError> {
        Ok(Self {
            seal: Seal::new(&pepper.derive(SEAL_PURPOSE))?,
            links: Mutex::default(),
            wrong_tokens: Mutex::default(),
        })
    }

    /// Returns the code of a link that signs a person in once.
    ///
    /// Errors: the operating system gave no random bytes.
    pub fn make_link(&self, name: &str) -> Result<String, SealError> {
        let code = random_text()?;
        let mut links = lock(&self.links);
        if links.len() >= MAX_LINKS {
            links.pop_front();
        }
        links.push_back(Link {
            code: code.clone(),
            name: clean_name(name),
            expires_at: now_s() + LINK_SECONDS,
        });
        Ok(code)
    }

    /// Signs in with the code of a link, which is used up. Returns the session and its cookie.
    pub(super) fn use_link(
        &self,
        code: &str,
        (token_hash, is_encrypted): (Option<&[u8; 32]>, bool),
    ) -> Result<(Visitor, String), SignInError> {
        let now_s = now_s();
        let name = {
            let mut links = lock(&self.links);
            links.retain(|link| link.expires_at > now_s);
            let is_code = |link: &Link| bool::from(link.code.as_bytes().ct_eq(code.as_bytes()));
            let at = links.iter().position(is_code);
            at.and_then(|at| links.remove(at)).map(|link| link.name)
        };
        let name = name.ok_or(SignInError::NoSuchLink)?;
        self.begin(&name, token_hash, is_encrypted)
    }

    /// Signs in with the hash of a token. Returns the session and its cookie.
    pub(super) fn sign_in(
        &self,
        (presented, expected): (&[u8; 32], &[u8; 32]),
        name: &str,
        is_encrypted: bool,
    ) -> Result<(Visitor, String), SignInError> {
        let minute = now_s() / 60;
        let mut wrong = lock(&self.wrong_tokens);
        if wrong.minute != minute {
            *wrong = WrongTokens { minute, count: 0 };
        }
        if wrong.count >= MAX_WRONG_TOKENS {
            return Err(SignInError::TooManyTries);
        }
        if !bool::from(presented.ct_eq(expected)) {
            wrong.count += 1;
            return Err(SignInError::WrongToken);
        }
        drop(wrong);
        self.begin(name, Some(expected), is_encrypted)
    }

    /// Begins a session. Returns it with the value of `Set-Cookie`.
    pub(super) fn begin(
        &self,
        name: &str,
        token_hash: Option<&[u8; 32]>,
        is_encrypted: bool,
    ) -> Result<(Visitor, String), SignInError> {
        let visitor = Visitor {
            name: clean_name(name),
            csrf: random_text()?,
            expires_at: now_s() + SESSION_SECONDS,
            token: token_mark(token_hash),
        };
        let plain = serde_json::to_vec(&visitor).unwrap_or_default();
        let sealed = self.seal.encrypt(CONTEXT, &plain)?;
        let value = URL_SAFE_NO_PAD.encode(sealed);
        Ok((visitor, cookie(&value, SESSION_SECONDS, is_encrypted)))
    }

    /// Returns the session of a request, if it has one that holds.
    pub(super) fn visitor(
        &self,
        headers: &HeaderMap,
        token_hash: Option<&[u8; 32]>,
    ) -> Option<Visitor> {
        let values = headers.get_all(header::COOKIE).iter();
        let mut pairs = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == COOKIE)?;
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let plain = self.seal.decrypt(CONTEXT, &sealed).ok()?;
        let visitor: Visitor = serde_json::from_slice(&plain).ok()?;
        let holds = visitor.expires_at > now_s() && visitor.token == token_mark(token_hash);
        holds.then_some(visitor)
    }
}

impl Visitor {
    /// Returns whether a text is the proof that this session's pages carry.
    pub(super) fn has_csrf(&self, presented: &str) -> bool {
        bool::from(self.csrf.as_bytes().ct_eq(presented.as_bytes()))
    }
}

/// Returns the value of `Set-Cookie` that ends a session.
pub(super) fn ended_cookie(is_encrypted: bool) -> String {
    cookie("", 0, is_encrypted)
}

fn cookie(value: &str, seconds: i64, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/console; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Returns what says in a cookie which token was in force. It is too short to find the token by.
fn token_mark(token_hash: Option<&[u8; 32]>) -> String {
    let start = token_hash.and_then(|hash| hash.first_chunk::<6>());
    start.map_or_else(String::new, |start| URL_SAFE_NO_PAD.encode(start))
}

/// Returns a name without control characters, of a bounded length.
fn clean_name(name: &str) -> String {
    let kept = name.chars().filter(|c| !c.is_control());
    let kept: String = kept.take(MAX_NAME_CHARS).collect();
    match kept.trim() {
        "" => "somebody".to_owned(),
        name => name.to_owned(),
    }
}

pub(super) fn random_text() -> Result<String, SealError> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(|_| SealError::Randomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn now_s() -> i64 {
    Timestamp::now().as_second()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
