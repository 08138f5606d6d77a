//! Sources of Microsoft Entra's tokens.

use filters::models::cloud_credentials::aws::Environment;
use filters::models::cloud_credentials::entra::{self, EntraSource};
use filters::models::cloud_credentials::granted::Granted;
use filters::models::cloud_credentials::source_error::SourceError;

use super::fetch::{read_federated, send, unix_s};

/// Fetches a token from the source that the environment names.
///
/// Errors: why it gives none.
pub(super) async fn fetch(environment: &Environment, scope: &str) -> Result<Granted, SourceError> {
    let request = match entra::choose(environment)? {
        EntraSource::Secret { client, secret } => client.secret_request(&secret, scope),
        EntraSource::Federated { client, token_file } => {
            let token = read_federated(entra::TOKEN_FILE, token_file).await?;
            client.federated_request(&token, scope)
        }
        EntraSource::App {
            endpoint,
            header,
            client_id,
        } => entra::app_request(&endpoint, &header, (scope, client_id.as_deref())),
        EntraSource::Machine {
            endpoint,
            client_id,
        } => entra::machine_request(&endpoint, (scope, client_id.as_deref())),
    };
    let reply = send(request).await?;
    let token = entra::read_token(&reply.body, unix_s());
    token.ok_or_else(|| reply.unreadable("token"))
}
