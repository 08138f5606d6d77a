//! Access tokens of OAuth. A token stands for an API key, for one client, one resource and some minutes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::api_key::KeyHash;

/// The contents of an access token. The text of a token is the encryption of these bytes, so its holder cannot read
/// them.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct AccessToken {
    /// The hash of the API key for which the token stands.
    #[serde(serialize_with = "write_hash", deserialize_with = "read_hash")]
    pub key: KeyHash,
    pub client_id: Box<str>,
    pub grant_id: Box<str>,
    /// The permissions of the token: a bit for each scope of the resource.
    pub scopes: u8,
    /// The URL of the resource that accepts the token.
    pub audience: Box<str>,
    /// When it expires, in unix milliseconds.
    pub expires_ms: i64,
}

impl AccessToken {
    /// Returns the bytes of the contents. `None` never happens for texts that fit into memory.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(self).ok()
    }

    /// Reads the bytes of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

fn write_hash<S: Serializer>(hash: &KeyHash, serializer: S) -> Result<S::Ok, S::Error> {
    hash.as_bytes().serialize(serializer)
}

fn read_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KeyHash, D::Error> {
    <[u8; 32]>::deserialize(deserializer).map(KeyHash::from_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let token = AccessToken {
            key: KeyHash::from_bytes([7; 32]),
            client_id: "client_1".into(),
            grant_id: "grant_1".into(),
            scopes: 5,
            audience: "https://gw.example/mcp".into(),
            expires_ms: 1_800_000_000_000,
        };
        let bytes = token.to_bytes().unwrap();
        assert!(AccessToken::from_bytes(&bytes) == Some(token));
        for end in 0..bytes.len() {
            assert!(AccessToken::from_bytes(&bytes[..end]).is_none());
        }
    }
}
