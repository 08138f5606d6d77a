//! `GET` and `POST /mcp/oauth/authorize`: asks a person whether a client may act with an API key, and takes the
//! answer.
//!
//! The page contains the encrypted request, and a cookie binds it to the browser that shows it. So nothing is stored
//! until the person answers, and no other page can answer in the person's name. All responses are for people.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use filters::accounts::{AuthError, Caller, admit_key};
use filters::fault::{ExceededLimit, Fault, FaultKind};
use filters::limits::headers::Quota;
use filters::mcp::oauth::authorization::{self, AuthorizationRefusal, AuthorizationRequest};
use filters::mcp::oauth::client::{Client, is_document_id};
use filters::mcp::oauth::consent::{self, Consent};
use filters::mcp::oauth::error::{OAuthError, OAuthErrorCode};
use filters::mcp::oauth::form::OAuthParameters;
use filters::mcp::oauth::metadata;
use filters::mcp::oauth::redirect::RedirectUri;
use filters::mcp::oauth::scopes::Scopes;
use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::token::read_form;
use super::{Here, OAuth, random_secret, unix_ms};
use crate::proxy::handler::Request;
use crate::proxy::response::Response;
use crate::store::NewCode;

/// The time in which a page may be answered.
const PAGE_MS: i64 = 600_000;
/// The lifetime of a code.
const CODE_MS: i64 = 60_000;
/// The context of a page's encryption.
const CONTEXT: &[u8] = b"page of consent";
/// The prefix of cookie names. Each page has its own cookie, so that two pages may be open at once.
const COOKIE: &str = "weirgate_consent_";
/// The characters of a page's id in the name of its cookie.
const COOKIE_ID_CHARS: usize = 12;

/// The encrypted contents of a page.
#[derive(Deserialize, Serialize)]
struct ConsentRequest {
    /// The id, of random digits.
    id: String,
    cookie: String,
    /// The code that the client gets if the person allows. It is fixed per page, because a browser that sends the
    /// form twice only shows the second response.
    code: String,
    /// The expiry, in unix milliseconds.
    expires_at_ms: i64,
    issuer: String,
    client_name: String,
    /// The host of the client's document, if it has one.
    document_host: Option<String>,
    /// The metadata in that document: JSON.
    document: Option<String>,
    /// The client's request.
    request: AuthorizationRequest,
}

/// Another page, which says why the consent page is not shown.
struct NoticePage {
    status: u16,
    title: &'static str,
    text: String,
    /// The limit that the request exceeds.
    exceeded: Option<ExceededLimit>,
}

impl NoticePage {
    fn new(status: u16, title: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            status,
            title,
            text,
            exceeded: None,
        }
    }

    fn unusable(text: impl Into<String>) -> Self {
        Self::new(400, "This link cannot be used", text)
    }

    fn over() -> Self {
        Self::new(
            400,
            "This page has ended",
            "It can be answered once, within 10 minutes. Go back to the application and begin again.",
        )
    }

    fn to_response(&self, now_ms: u64) -> Response {
        let mut response = page(self.status, consent::notice(self.title, &self.text), None);
        if let Some(quota) = self.exceeded.map(Quota::from_exceeded) {
            response.headers.extend(quota.headers());
            response.headers.extend(quota.refusal(now_ms / 1000));
        }
        response
    }
}

impl From<Fault> for NoticePage {
    fn from(fault: Fault) -> Self {
        let title = match fault.kind {
            FaultKind::NotFound => "There is nothing here",
            FaultKind::Invalid => "This link cannot be used",
            FaultKind::RateLimited => "Too many tries",
            _ => "This does not work now",
        };
        Self {
            exceeded: fault.exceeded(),
            ..Self::new(fault.status(), title, fault.message)
        }
    }
}

/// `GET`: asks the person.
///
/// Errors: none. All errors are shown to the person.
pub(super) async fn ask(oauth: &OAuth, request: Request<'_>) -> Result<Response, Fault> {
    let asked = show(oauth, request).await;
    Ok(asked.unwrap_or_else(|notice| notice.to_response(request.now_ms)))
}

/// `POST`: takes the person's answer.
///
/// Errors: none. All errors are shown to the person.
pub(super) async fn answer(oauth: &OAuth, request: Request<'_>) -> Result<Response, Fault> {
    let answered = take_answer(oauth, request).await;
    Ok(answered.unwrap_or_else(|notice| notice.to_response(request.now_ms)))
}

async fn show(oauth: &OAuth, request: Request<'_>) -> Result<Response, NoticePage> {
    let here = oauth.here(&request)?;
    let query = OAuthParameters::read(request.query);
    let id = authorization::client_id(&query).map_err(NoticePage::unusable)?;
    let client = oauth.find_client(id, request.client_ip).await?;
    let client = client.ok_or_else(|| {
        let text =
            "The application that led here is not known to this server. It may register again.";
        NoticePage::unusable(text)
    })?;
    let asked = AuthorizationRequest::read(&query, &client, (&here.issuer, &here.resource));
    let asked = match asked {
        Ok(asked) => asked,
        Err(AuthorizationRefusal::Page(text)) => return Err(NoticePage::unusable(text)),
        Err(AuthorizationRefusal::Redirect(url)) => return redirect(302, &url),
    };
    let page = ConsentRequest {
        id: random_secret("")?,
        cookie: random_secret("")?,
        code: random_secret("wgc_")?,
        expires_at_ms: unix_ms(request.now_ms).saturating_add(PAGE_MS),
        issuer: here.issuer,
        client_name: client.name().to_owned(),
        document_host: client.document_host().map(str::to_owned),
        document: document(&client),
        request: asked,
    };
    let sealed = oauth.seal(&page)?;
    let mut response = form(&page, &sealed, 200, None);
    let cookie = cookie(&page)?;
    response.headers.push((header::SET_COOKIE, cookie));
    Ok(response)
}

/// Returns the metadata of a client with a document.
fn document(client: &Client) -> Option<String> {
    let members = is_document_id(&client.id).then(|| client.metadata.to_members())?;
    Some(serde_json::Value::Object(members).to_string())
}

async fn take_answer(oauth: &OAuth, request: Request<'_>) -> Result<Response, NoticePage> {
    let here = oauth.here(&request)?;
    check_origin(request.headers, &here)?;
    let form = read_form(&request);
    let form = form.map_err(|error| NoticePage::unusable(error.description))?;
    let sealed = form.find("request").unwrap_or_default();
    let page = oauth.open(sealed).ok_or_else(NoticePage::over)?;
    let now_ms = unix_ms(request.now_ms);
    if now_ms >= page.expires_at_ms || page.issuer != here.issuer {
        return Err(NoticePage::over());
    }
    if !has_cookie(request.headers, &page) {
        let text = "This page was not shown to this browser, or the browser keeps no cookies.";
        return Err(NoticePage::new(
            403,
            "This page cannot be answered here",
            text,
        ));
    }
    match form.find("decision") {
        Some("deny") => deny(oauth, &page, now_ms).await,
        Some("allow") => {
            let key = form.find("key").unwrap_or_default();
            match oauth.sign_in(key, &request).await {
                Ok(caller) => allow(oauth, &page, &caller, now_ms).await,
                Err(SignInRefusal::Problem(problem)) => {
                    Ok(self::form(&page, sealed, 403, Some(problem)))
                }
                Err(SignInRefusal::Fault(fault)) => Err(fault.into()),
            }
        }
        _ => Err(NoticePage::unusable(
            "The form has no `decision`, `allow` or `deny`.",
        )),
    }
}

/// Checks that the form was sent by our own page. Programs send no `Origin`.
fn check_origin(headers: &HeaderMap, here: &Here) -> Result<(), NoticePage> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if origins.all(|origin| {
        origin
            .as_bytes()
            .eq_ignore_ascii_case(here.issuer.as_bytes())
    }) {
        return Ok(());
    }
    let text = "The form was sent by a page of another site. Nothing was allowed.";
    Err(NoticePage::new(
        403,
        "This page cannot be answered here",
        text,
    ))
}

/// The reason for which a sign-in failed.
enum SignInRefusal {
    /// The person may try again.
    Problem(&'static str),
    /// The gateway refuses the attempt.
    Fault(Fault),
}

impl OAuth {
    fn seal(&self, page: &ConsentRequest) -> Result<String, Fault> {
        let failed = || Fault::new(FaultKind::Internal, "the page could not be made");
        let bytes = serde_json::to_vec(page).map_err(|_| failed())?;
        let sealed = self.pages.encrypt(CONTEXT, &bytes);
        Ok(BASE64.encode(sealed.map_err(|_| failed())?))
    }

    fn open(&self, sealed: &str) -> Option<ConsentRequest> {
        let sealed = BASE64.decode(sealed).ok()?;
        let bytes = self.pages.decrypt(CONTEXT, &sealed).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns the caller of the API key with which a person signs in. An address that guesses keys waits up to a
    /// second.
    async fn sign_in(
        &self,
        key: &str,
        request: &Request<'_>,
    ) -> Result<Arc<Caller>, SignInRefusal> {
        let parts = &self.parts;
        let accounts = parts.accounts.current();
        let now_ms = unix_ms(request.now_ms);
        let key = key.trim().as_bytes();
        let caller = match admit_key(key, &accounts, &parts.pepper, now_ms) {
            Ok(caller) => caller,
            Err(AuthError::Unknown) if !parts.accounts.is_loaded() => {
                let message = "API keys cannot be checked at the moment.";
                let fault = Fault::new(FaultKind::Unavailable, message);
                return Err(SignInRefusal::Fault(fault));
            }
            Err(error) => {
                if let Some(address) = request.client_ip.filter(|_| error.is_refused_key()) {
                    let limits = &parts.address_limits;
                    // Waited or not, the person gets the same page.
                    _ = limits.delay_refused_key(address, Instant::now()).await;
                }
                return Err(SignInRefusal::Problem(problem(error)));
            }
        };
        let terms = caller.terms.as_ref();
        let checked = terms.map(|terms| terms.rules.check_address(request.client_ip));
        if checked.is_some_and(|checked| checked.is_err()) {
            let problem = "This API key may not be used from where you are.";
            return Err(SignInRefusal::Problem(problem));
        }
        Ok(caller)
    }
}

/// Returns the text for a person whose key is refused.
fn problem(error: AuthError) -> &'static str {
    match error {
        AuthError::Missing | AuthError::Malformed => {
            "That is no API key: one is wg_ and 43 letters and digits."
        }
        AuthError::Revoked => "This API key was revoked.",
        AuthError::Disabled => "This API key is disabled.",
        AuthError::Expired => "This API key has expired.",
        AuthError::Unreadable => "This server cannot read the settings of this API key.",
        AuthError::OrganizationHeld
        | AuthError::OrganizationDisabled
        | AuthError::ProjectArchived => {
            "The organization or the project of this API key is closed."
        }
        _ => "This API key is not known here.",
    }
}

async fn deny(oauth: &OAuth, page: &ConsentRequest, now_ms: i64) -> Result<Response, NoticePage> {
    answer_once(oauth, page, None, now_ms).await?;
    let error = OAuthError::new(OAuthErrorCode::AccessDenied, "the person has said no");
    let url = page.request.error_url(&page.issuer, &error);
    redirect(303, &url.ok_or_else(NoticePage::over)?)
}

async fn allow(
    oauth: &OAuth,
    page: &ConsentRequest,
    caller: &Caller,
    now_ms: i64,
) -> Result<Response, NoticePage> {
    answer_once(oauth, page, Some(caller), now_ms).await?;
    let url = page.request.code_url(&page.issuer, &page.code);
    redirect(303, &url.ok_or_else(NoticePage::over)?)
}

/// Stores the answer of a person, and if the caller allows, the code.
///
/// Errors: the page already has another answer, or its code was used.
async fn answer_once(
    oauth: &OAuth,
    page: &ConsentRequest,
    allowed_by: Option<&Caller>,
    now_ms: i64,
) -> Result<(), NoticePage> {
    let (id, expires_at_ms) = (page.id.clone(), page.expires_at_ms);
    let request = serde_json::to_string(&page.request).unwrap_or_default();
    let (client_id, document) = (page.request.client_id.clone(), page.document.clone());
    let hash = oauth.parts.pepper.hash_secret(page.code.as_bytes());
    let key_id = allowed_by.map(|caller| caller.key_id.to_string());
    let answered = oauth.parts.store.with_store(|store| async move {
        let code = key_id.as_ref().map(|key_id| NewCode {
            hash: hash.as_bytes(),
            client_id: &client_id,
            document: document.as_deref(),
            key_id,
            request: &request,
            expires_at_ms: now_ms.saturating_add(CODE_MS),
        });
        store
            .answer_consent((&id, hash.as_bytes()), expires_at_ms, code.as_ref(), now_ms)
            .await
    });
    match answered.await? {
        true => Ok(()),
        false => Err(NoticePage::over()),
    }
}

/// Returns the page with the form.
fn form(asked: &ConsentRequest, sealed: &str, status: u16, problem: Option<&str>) -> Response {
    let request = &asked.request;
    let redirect_uri = RedirectUri::parse(&request.redirect_uri);
    let scopes = Scopes::from_bits(request.scopes).to_vec();
    let action = format!("{}/authorize", metadata::PATH);
    let html = consent::page(&Consent {
        client_name: &asked.client_name,
        client_host: asked.document_host.as_deref(),
        redirect_host: redirect_uri.map_or("", |uri| uri.place()),
        scopes: &scopes,
        action: &action,
        request: sealed,
        problem,
    });
    page(status, html, Some(&request.redirect_uri))
}

fn page(status: u16, html: String, redirect_uri: Option<&str>) -> Response {
    Response {
        status,
        headers: consent::headers(redirect_uri).into(),
        body: html.into(),
    }
}

/// Sends the browser to the client. The URL contains the answer, so no other site may learn it.
fn redirect(status: u16, url: &str) -> Result<Response, NoticePage> {
    let location = HeaderValue::try_from(url).map_err(|_| NoticePage::over())?;
    let headers = vec![
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    Ok(Response {
        status,
        headers,
        body: Vec::new().into(),
    })
}

/// Returns the name of a page's cookie.
fn cookie_name(page: &ConsentRequest) -> String {
    let id = page.id.get(..COOKIE_ID_CHARS).unwrap_or_default();
    format!("{COOKIE}{id}")
}

fn cookie(page: &ConsentRequest) -> Result<HeaderValue, NoticePage> {
    let (name, value) = (cookie_name(page), &page.cookie);
    let seconds = PAGE_MS / 1000;
    let mut cookie = format!(
        "{name}={value}; Path={}; Max-Age={seconds}; HttpOnly; SameSite=Strict",
        metadata::PATH
    );
    if page.issuer.starts_with("https:") {
        cookie.push_str("; Secure");
    }
    HeaderValue::try_from(cookie).map_err(|_| NoticePage::over())
}

/// Returns whether a request has the cookie of a page. The comparison takes constant time.
fn has_cookie(headers: &HeaderMap, page: &ConsentRequest) -> bool {
    let name = cookie_name(page);
    let lines = headers.get_all(header::COOKIE).iter();
    let mut cookies = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    cookies.any(|cookie| {
        let parts = cookie.trim().split_once('=');
        parts.is_some_and(|(known, value)| {
            known == name && bool::from(value.as_bytes().ct_eq(page.cookie.as_bytes()))
        })
    })
}
