//! Access tokens of OAuth as texts. They are made, read, and admitted in place of an API key.
//!
//! A text is `wga_` and the encrypted bytes of an [`AccessToken`]. So a token needs no row in the store: its key and
//! its revocation are in the snapshot of accounts, which follows the store.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use filters::accounts::{AccessToken, AccountsSnapshot, AuthError, Caller, Pepper, admit_token};
use filters::proxy::OwnOrigin;

use crate::encryption::{Seal, SealError};

/// The prefix of each text.
const PREFIX: &str = "wga_";
/// The purpose of the derived key, which is also the context of the encryption.
const PURPOSE: &str = "access tokens of OAuth, version 1";

/// Makes and reads access tokens.
pub struct AccessTokens {
    seal: Seal,
    own_origin: OwnOrigin,
}

impl AccessTokens {
    /// Makes the reader and writer of tokens. `own_origin` gives the origin of the resources for which tokens are.
    ///
    /// Errors: never, because the derived key has the cipher's length.
    pub fn new(pepper: &Pepper, own_origin: OwnOrigin) -> Result<Self, SealError> {
        let seal = Seal::new(&pepper.derive(PURPOSE))?;
        Ok(Self { seal, own_origin })
    }

    /// Returns whether a credential has the form of an access token. API keys never have it.
    pub fn is_token(credential: &[u8]) -> bool {
        credential.starts_with(PREFIX.as_bytes())
    }

    /// Returns the text of a token.
    ///
    /// Errors: the operating system gave no random bytes.
    pub fn write(&self, token: &AccessToken) -> Result<String, SealError> {
        let bytes = token.to_bytes().ok_or(SealError::Damaged)?;
        let sealed = self.seal.encrypt(PURPOSE.as_bytes(), &bytes)?;
        Ok(format!("{PREFIX}{}", BASE64.encode(sealed)))
    }

    /// Reads a text that this server has made. The token may have expired.
    pub fn read(&self, text: &[u8]) -> Option<AccessToken> {
        let sealed = BASE64.decode(text.strip_prefix(PREFIX.as_bytes())?).ok()?;
        let bytes = self.seal.decrypt(PURPOSE.as_bytes(), &sealed).ok()?;
        AccessToken::from_bytes(&bytes)
    }

    /// Returns a token and its caller, if the token is for this path of this host, as `peer` reaches it.
    ///
    /// `now_ms` is unix time in milliseconds. Errors: [`AuthError`]. Cost: the look-ups of an API key.
    pub fn admit(
        &self,
        text: &[u8],
        (host, peer, path): (Option<&str>, Option<IpAddr>, &str),
        accounts: &AccountsSnapshot,
        now_ms: i64,
    ) -> Result<(AccessToken, Arc<Caller>), AuthError> {
        let token = self.read(text).ok_or(AuthError::TokenUnknown)?;
        let origin = self.own_origin.for_host(host, peer);
        let audience = origin.map(|origin| format!("{origin}{path}"));
        let caller = admit_token(&token, audience.as_deref(), accounts, now_ms)?;
        Ok((token, caller))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::accounts::{KeyHash, holds_api_key};

    use super::*;

    const PEER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn tokens(byte: u8) -> AccessTokens {
        let pepper = Pepper::parse(&[byte; 32]).unwrap();
        AccessTokens::new(&pepper, OwnOrigin::default()).unwrap()
    }

    fn token() -> AccessToken {
        AccessToken {
            key: KeyHash::from_bytes([7; 32]),
            client_id: "client_1".into(),
            grant_id: "grant_1".into(),
            scopes: 1,
            audience: "http://localhost/mcp".into(),
            expires_ms: 1_000,
        }
    }

    #[test]
    fn a_text_is_read_by_servers_with_the_same_secret_alone() {
        let text = tokens(1).write(&token()).unwrap();
        assert!(tokens(1).read(text.as_bytes()) == Some(token()));
        assert!(tokens(2).read(text.as_bytes()).is_none());
        assert!(AccessTokens::is_token(text.as_bytes()) && holds_api_key(text.as_bytes()));
        assert_ne!(text, tokens(1).write(&token()).unwrap());
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert!(tokens(1).read(&other).is_none(), "{at}");
            assert!(tokens(1).read(&text.as_bytes()[..at]).is_none(), "{at}");
        }
    }

    #[test]
    fn a_token_is_for_its_resource_until_its_time_is_over() {
        let (tokens, accounts) = (tokens(1), AccountsSnapshot::default());
        let text = tokens.write(&token()).unwrap();
        let refused = |host, path, now_ms| {
            let admitted = tokens.admit(text.as_bytes(), (host, PEER, path), &accounts, now_ms);
            admitted.err().unwrap()
        };
        let here = Some("localhost");
        // Its key is not one of these accounts.
        assert_eq!(refused(here, "/mcp", 999), AuthError::Unknown);
        assert_eq!(refused(here, "/mcp", 1_000), AuthError::TokenExpired);
        for (host, path) in [
            (Some("localhost:81"), "/mcp"),
            (Some("gw.example"), "/mcp"),
            (None, "/mcp"),
            (here, "/v1/models"),
        ] {
            assert_eq!(refused(host, path, 999), AuthError::TokenUnknown, "{path}");
        }
        let elsewhere = Some(IpAddr::from([192, 0, 2, 1]));
        let resource = (here, elsewhere, "/mcp");
        let elsewhere = tokens.admit(text.as_bytes(), resource, &accounts, 999);
        assert_eq!(elsewhere.err(), Some(AuthError::TokenUnknown));
        let mut revoked = AccountsSnapshot::default();
        revoked.revoke("client_1", 1);
        let refused = tokens.admit(text.as_bytes(), (here, PEER, "/mcp"), &revoked, 999);
        assert_eq!(refused.err(), Some(AuthError::TokenRevoked));
    }
}
