//! Google's sources of tokens, in the order of Google's own SDKs: the file of `GOOGLE_APPLICATION_CREDENTIALS`, the file of
//! gcloud, the metadata of the machine.
//!
//! [`account`] reads files, [`external`] trades tokens of other issuers, [`replies`] reads what servers answer.

pub mod account;
pub mod external;
pub mod replies;
pub mod service_account;

use url::Url;

use super::aws::{Environment, set};
use super::source_error::SourceError;
use super::source_request::SourceRequest;
use super::vendor_hosts::SourceHost;

/// The scope of tokens for models.
pub const USUAL_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The setting that names the file.
pub const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// What stands in errors for gcloud's own file.
pub const GCLOUD_FILE: &str = "application_default_credentials.json";
const METADATA: &str = "GCE_METADATA_HOST";
const METADATA_HOST: &str = "metadata.google.internal";

/// A file of credentials: its path, and whether it has to exist.
#[derive(Debug, Eq, PartialEq)]
pub struct CredentialFile {
    pub path: String,
    pub setting: &'static str,
    pub is_required: bool,
}

/// Returns the file of credentials that the environment names, or the usual one. `None`: there is no home either.
pub fn file(environment: &Environment) -> Option<CredentialFile> {
    if let Some(path) = set(environment, FILE) {
        return Some(CredentialFile {
            path: path.to_owned(),
            setting: FILE,
            is_required: true,
        });
    }
    let folder = set(environment, "CLOUDSDK_CONFIG").map(str::to_owned);
    let home = || Some(format!("{}/.config/gcloud", set(environment, "HOME")?));
    let folder = folder.or_else(home)?;
    Some(CredentialFile {
        path: format!("{folder}/{GCLOUD_FILE}"),
        setting: GCLOUD_FILE,
        is_required: false,
    })
}

/// Returns the request for the token of the machine's account.
///
/// Errors: the environment names another host than Google's or loopback.
pub fn metadata_request(
    environment: &Environment,
    scope: &str,
) -> Result<SourceRequest, SourceError> {
    let host = set(environment, METADATA).unwrap_or(METADATA_HOST);
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let mut url = SourceHost::GoogleMetadata.check(METADATA, &url)?;
    url.query_pairs_mut().append_pair("scopes", scope);
    Ok(SourceRequest::to_metadata(METADATA, url).with_header("metadata-flavor", "Google"))
}

/// Reads an address of a file.
pub(super) fn token_url(setting: &'static str, text: &str) -> Result<Url, SourceError> {
    SourceHost::GoogleToken.check(setting, text)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
