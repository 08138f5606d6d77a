//! Computes a signature of a request to AWS anew, from the bytes that have come. It shares no code with the signer on purpose.
//! Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::support::upstream::Received;

/// How far the time of a signature may be from the server's. Units: seconds.
const SKEW_S: i64 = 300;
/// What has to be signed, beside the token of temporary keys.
const SIGNED: [&str; 3] = ["content-type", "host", "x-amz-date"];

/// The keys that a request has to be signed with, and what for.
#[derive(Clone, Copy, Debug)]
pub struct SignedBy<'a> {
    pub id: &'a str,
    pub secret: &'a str,
    /// The token of temporary keys.
    pub session: Option<&'a str>,
    pub region: &'a str,
    pub service: &'a str,
}

/// Checks the signature of a request, as the service does.
pub fn check(request: &Received, by: SignedBy<'_>) -> Result<(), String> {
    let header = |name: &str| {
        request
            .header(name)
            .ok_or_else(|| format!("{name} is missing"))
    };
    let authorization = header("authorization")?;
    let parts = authorization.strip_prefix("AWS4-HMAC-SHA256 ");
    let parts = parts.ok_or("authorization is no signature")?;
    let member = |name: &str| {
        let mut parts = parts.split(", ");
        let found = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| format!("authorization has no {name}"))
    };
    let time = header("x-amz-date")?;
    check_time(time)?;
    let valid_for = format!("{}/{}/{}/aws4_request", &time[..8], by.region, by.service);
    if member("Credential")? != format!("{}/{valid_for}", by.id) {
        return Err("the credential is for another key, day, region or service".to_owned());
    }
    if request.header("x-amz-security-token") != by.session {
        return Err("the security token is invalid".to_owned());
    }
    let names: Vec<&str> = member("SignedHeaders")?.split(';').collect();
    let token = by.session.map(|_| "x-amz-security-token");
    if let Some(open) = SIGNED
        .into_iter()
        .chain(token)
        .find(|name| !names.contains(name))
    {
        return Err(format!("{open} is not signed"));
    }
    let mut lines = String::new();
    for name in &names {
        lines += &format!("{name}:{}\n", header(name)?.trim());
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let canonical = [
        request.method.as_str(),
        &encoded_again(path),
        query,
        &lines,
        &names.join(";"),
        &hex(&Sha256::digest(&request.body)),
    ]
    .join("\n");
    let hash = hex(&Sha256::digest(canonical));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{valid_for}\n{hash}");
    let mut key = format!("AWS4{}", by.secret).into_bytes();
    for part in [&time[..8], by.region, by.service, "aws4_request", &text] {
        key = mac(&key, part);
    }
    match member("Signature")? == hex(&key) {
        true => Ok(()),
        false => Err("the signature is another".to_owned()),
    }
}

fn check_time(time: &str) -> Result<(), String> {
    let read = jiff::Timestamp::strptime("%Y%m%dT%H%M%SZ %z", format!("{time} +0000"));
    let read = read.map_err(|_| "x-amz-date is no time")?;
    let apart = jiff::Timestamp::now().as_second() - read.as_second();
    match apart.abs() <= SKEW_S {
        true => Ok(()),
        false => Err("the signature has expired".to_owned()),
    }
}

/// A path as all services but one want it: as it was sent, encoded once more.
fn encoded_again(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let bytes = path.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    bytes.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    let code = mac.chain_update(text).finalize();
    code.into_bytes().to_vec()
}
