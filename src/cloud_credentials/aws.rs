//! AWS's sources of keys.

use filters::models::cloud_credentials::aws::profile::{self, ProfileFiles};
use filters::models::cloud_credentials::aws::{
    self, AwsContainer, AwsSource, ContainerToken, Environment, WebIdentity, replies,
};
use filters::models::cloud_credentials::granted::Granted;
use filters::models::cloud_credentials::source_error::SourceError;
use filters::models::cloud_credentials::source_request::SourceRequest;
use reqwest::Url;

use super::fetch::{SourceReply, read_federated, read_file, send};

/// Fetches keys from the source that the environment names now.
///
/// Errors: why it gives none.
pub(super) async fn fetch(environment: &Environment, region: &str) -> Result<Granted, SourceError> {
    let [config, credentials] = profile::paths(environment);
    let config = read_shared("AWS_CONFIG_FILE", config).await?;
    let credentials = read_shared("AWS_SHARED_CREDENTIALS_FILE", credentials).await?;
    let files = ProfileFiles {
        config: config.as_deref(),
        credentials: credentials.as_deref(),
    };
    match aws::choose(environment, &files, region)? {
        AwsSource::Keys(keys) => Ok(AwsSource::granted(keys)),
        AwsSource::WebIdentity(identity) => trade(identity).await,
        AwsSource::Container(container) => ask_container(container).await,
        AwsSource::Machine(machine) => ask_machine(&machine).await,
    }
}

async fn read_shared(
    setting: &'static str,
    path: Option<String>,
) -> Result<Option<String>, SourceError> {
    match path {
        Some(path) => read_file(setting, path).await,
        None => Ok(None),
    }
}

async fn trade(identity: WebIdentity) -> Result<Granted, SourceError> {
    let token = read_federated(identity.setting, identity.token_file.clone()).await?;
    let reply = send(identity.request(&token)).await?;
    replies::read_assumed_role(&reply.body).ok_or_else(|| reply.unreadable("keys"))
}

async fn ask_container(container: AwsContainer) -> Result<Granted, SourceError> {
    let token = match &container.token {
        Some(ContainerToken::Text(token)) => Some(token.clone()),
        Some(ContainerToken::File(path)) => {
            Some(read_federated(AwsContainer::TOKEN_FILE, path.clone()).await?)
        }
        None => None,
    };
    let reply = send(container.request(token.as_ref())).await?;
    replies::read_keys(&reply.body).ok_or_else(|| reply.unreadable("keys"))
}

async fn ask_machine(machine: &Url) -> Result<Granted, SourceError> {
    let reply = send_written(aws::session_request(machine)).await?;
    let session = replies::read_session(&reply.body);
    let session = session.ok_or_else(|| reply.unreadable("session"))?;
    let reply = send_written(aws::role_request(machine, &session, "")).await?;
    let role = replies::read_role(&reply.body);
    let role = role.ok_or_else(|| reply.unreadable("role of the machine"))?;
    let reply = send_written(aws::role_request(machine, &session, role)).await?;
    replies::read_keys(&reply.body).ok_or_else(|| reply.unreadable("keys"))
}

async fn send_written(request: Option<SourceRequest>) -> Result<SourceReply, SourceError> {
    let request = request.ok_or_else(|| {
        let setting = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
        SourceError::new(
            setting,
            "it is no base of paths",
            "name the vendor's address",
        )
    })?;
    send(request).await
}

/// Returns the region of a machine or of the environment, for tokens that Google trades.
///
/// Errors: there is none.
pub(super) async fn find_region(environment: &Environment) -> Result<String, SourceError> {
    let [config, _] = profile::paths(environment);
    let config = read_shared("AWS_CONFIG_FILE", config).await?;
    let files = ProfileFiles {
        config: config.as_deref(),
        credentials: None,
    };
    aws::find_region(None, environment, &files)
}
