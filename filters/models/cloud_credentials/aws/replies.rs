//! What AWS's sources answer.

use serde::Deserialize;

use crate::models::cloud_credentials::granted::{Granted, GrantedSecret, read_time};
use crate::models::cloud_credentials::secret_text::SecretText;
use crate::models::cloud_credentials::sigv4::AwsKeys;

/// The longest name of a role.
const MAX_ROLE_BYTES: usize = 256;

/// The keys that containers and machines answer.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetadataKeys {
    /// The machine's metadata says here whether there are keys.
    code: Option<String>,
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

/// Reads the session of the machine's metadata.
pub fn read_session(body: &[u8]) -> Option<SecretText> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'<';
    (!text.is_empty() && text.bytes().all(is_plain)).then(|| SecretText::new(text))
}

/// Reads the name of the machine's role, which is the first line.
pub fn read_role(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let role = text.lines().next()?.trim();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@-_".contains(&byte);
    let is_role = !role.is_empty() && role.len() <= MAX_ROLE_BYTES && role.bytes().all(is_plain);
    is_role.then_some(role)
}

/// Reads the keys of a container or a machine.
pub fn read_keys(body: &[u8]) -> Option<Granted> {
    let keys: MetadataKeys = serde_json::from_slice(body).ok()?;
    let is_success = keys.code.as_deref().is_none_or(|code| code == "Success");
    let expires_s = match &keys.expiration {
        Some(time) => Some(read_time(time)?),
        None => None,
    };
    let granted = Granted {
        secret: GrantedSecret::Keys(AwsKeys {
            access_key_id: keys.access_key_id.into(),
            secret_access_key: SecretText::new(keys.secret_access_key),
            session_token: keys.token.map(SecretText::new),
        }),
        expires_s,
    };
    is_success.then_some(granted)
}

/// Reads the keys that STS gives for a web identity.
pub fn read_assumed_role(body: &[u8]) -> Option<Granted> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, keys) = text.split_once("<Credentials>")?;
    let (keys, _) = keys.split_once("</Credentials>")?;
    Some(Granted {
        secret: GrantedSecret::Keys(AwsKeys {
            access_key_id: xml_text(keys, "AccessKeyId")?.into(),
            secret_access_key: SecretText::new(xml_text(keys, "SecretAccessKey")?),
            session_token: Some(SecretText::new(xml_text(keys, "SessionToken")?)),
        }),
        expires_s: Some(read_time(&xml_text(keys, "Expiration")?)?),
    })
}

/// Returns the text of the first element of a name. The vendor's replies have neither attributes nor comments there.
pub(in crate::models::cloud_credentials) fn xml_text(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let inner = inner.trim();
    let is_text = !inner.is_empty() && !inner.contains('<');
    is_text.then(|| {
        let plain = inner.replace("&lt;", "<").replace("&gt;", ">");
        plain
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&")
    })
}
