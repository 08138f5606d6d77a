//! Google's sources of tokens.

use filters::models::cloud_credentials::aws::Environment;
use filters::models::cloud_credentials::federated_token;
use filters::models::cloud_credentials::google::account::GoogleAccount;
use filters::models::cloud_credentials::google::external::{ExternalAccount, SubjectSource};
use filters::models::cloud_credentials::google::service_account::ServiceAccount;
use filters::models::cloud_credentials::google::{self, replies};
use filters::models::cloud_credentials::granted::{Granted, GrantedSecret};
use filters::models::cloud_credentials::secret_text::SecretText;
use filters::models::cloud_credentials::source_error::SourceError;
use filters::models::cloud_credentials::source_request::SourceRequest;

use super::aws;
use super::fetch::{need_file, read_file, send, unix_s};

/// Fetches a token from the source that the environment names.
///
/// Errors: why it gives none.
pub(super) async fn fetch(environment: &Environment, scope: &str) -> Result<Granted, SourceError> {
    let file = google::file(environment);
    let text = match &file {
        Some(file) if file.is_required => Some(need_file(file.setting, file.path.clone()).await?),
        Some(file) => read_file(file.setting, file.path.clone()).await?,
        None => None,
    };
    let Some((file, text)) = file.zip(text) else {
        return ask_token(google::metadata_request(environment, scope)?).await;
    };
    let setting = file.setting;
    match GoogleAccount::read(setting, &text)? {
        GoogleAccount::Service(account) => sign_in(setting, &account, scope).await,
        GoogleAccount::User(user) => ask_token(user.request(setting)).await,
        GoogleAccount::External(account) => {
            let subject = find_subject(setting, environment, &account).await?;
            trade(setting, &account, (&subject, scope)).await
        }
    }
}

/// Fetches a token of a service account.
///
/// Errors: why there is none.
pub(super) async fn sign_in(
    setting: &'static str,
    account: &ServiceAccount,
    scope: &str,
) -> Result<Granted, SourceError> {
    ask_token(account.request(setting, scope, unix_s())?).await
}

async fn ask_token(request: SourceRequest) -> Result<Granted, SourceError> {
    let reply = send(request).await?;
    let token = replies::read_token(&reply.body, unix_s());
    token.ok_or_else(|| reply.unreadable("token"))
}

async fn find_subject(
    setting: &'static str,
    environment: &Environment,
    account: &ExternalAccount,
) -> Result<SecretText, SourceError> {
    let (text, format) = match &account.subject {
        SubjectSource::Aws => {
            let region = aws::find_region(environment).await?;
            let granted = aws::fetch(environment, &region).await?;
            let GrantedSecret::Keys(keys) = &granted.secret else {
                return Err(SourceError::new(
                    setting,
                    "AWS gives no keys",
                    "name its source",
                ));
            };
            return account.aws_subject(setting, (keys, &region), unix_s());
        }
        SubjectSource::File { path, format } => (need_file(setting, path.clone()).await?, format),
        SubjectSource::Url {
            url,
            headers,
            format,
        } => {
            let mut request = SourceRequest::to_metadata(setting, url.clone());
            request.more_headers.clone_from(headers);
            let reply = send(request).await?;
            let text = String::from_utf8(reply.body.to_vec());
            (text.map_err(|_| reply.unreadable("text"))?, format)
        }
    };
    federated_token::read(setting, &format.find(setting, &text)?, unix_s())
}

async fn trade(
    setting: &'static str,
    account: &ExternalAccount,
    (subject, scope): (&SecretText, &str),
) -> Result<Granted, SourceError> {
    let granted = ask_token(account.exchange_request(setting, subject, scope)).await?;
    let GrantedSecret::Token(token) = &granted.secret else {
        return Ok(granted);
    };
    let Some(request) = account.impersonation_request(setting, token, scope) else {
        return Ok(granted);
    };
    let reply = send(request).await?;
    replies::read_impersonation(&reply.body).ok_or_else(|| reply.unreadable("token"))
}
