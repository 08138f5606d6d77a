//! An issuer of tokens: its published key and its signatures.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD as BASE64, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// The private key, which only tests use.
const PRIVATE: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAxf+UGMwNePR01m6K/lGhX31f20TraEelgTVZB8p5mKhRANCAASjxtSzkpCTDjr4tfp1zkKAUnVnkfLc2oTfro+aR4k3BaK+f2cUL5bTkQNGE30nMmI+JVRIY2ev1HYpAJSQiaMJ";

/// The id of its key.
pub const KEY_ID: &str = "first";

/// The key set it publishes, its key under this id.
pub fn key_set(id: &str) -> String {
    json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": id, "alg": "ES256", "use": "sig",
        "x": "o8bUs5KQkw46-LX6dc5CgFJ1Z5Hy3NqE366PmkeJNwU",
        "y": "or5_ZxQvltORA0YTfScyYj4lVEhjZ6_UdikAlJCJowk"}]})
    .to_string()
}

/// Returns a token of these claims. Its head names the key of this id.
pub fn token(id: &str, claims: &Value) -> String {
    let header = Header {
        kid: Some(id.to_owned()),
        ..Header::new(Algorithm::ES256)
    };
    let key = EncodingKey::from_ec_der(&BASE64.decode(PRIVATE).unwrap());
    encode(&header, claims, &key).unwrap()
}

/// A moment in the far future, in Unix seconds.
pub const NEVER: u64 = 4_102_444_800;

/// Returns a token of this head and these claims.
pub fn token_with(header: &Value, claims: &Value) -> String {
    let encode = |part: &Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(header), encode(claims));
    let key = EncodingKey::from_ec_der(&BASE64.decode(PRIVATE).unwrap());
    let signature = sign(signed.as_bytes(), &key, Algorithm::ES256).unwrap();
    format!("{signed}.{signature}")
}
