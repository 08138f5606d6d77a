//! Answers requests: who may see what, which view answers, and what every answer tells the browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use filters::form;
use filters::proxy::is_loopback;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use maud::html;
use sha2::{Digest, Sha256};

use super::access::{SignInError, Visitor, ended_cookie};
use super::assets;
use super::layout::{self, Frame};
use super::reply::{ConsoleReply, ConsoleStream, TEXT};
use super::request::ConsoleRequest;
use super::state::{Console, ConsoleSettings, ENTER, PATH};
use super::views;

const SIGN_IN: &str = "/console/sign-in";
const SIGN_OUT: &str = "/console/sign-out";
/// The name of somebody who needed no token.
const LOCAL: &str = "somebody on this machine";
const HTML: &str = "text/html; charset=utf-8";
/// The maximum bytes of a form.
pub const MAX_FORM_BYTES: usize = 1 << 20;
/// Nothing but this listener's own files, and nothing in the text of a page is code or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A request as the listener has it.
pub struct ConsoleCall {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub client: Option<SocketAddr>,
}

/// The body of an answer.
pub enum ConsoleBody {
    Whole(Bytes),
    /// Comes piece by piece, until the sender is dropped.
    Pieces {
        stream: ConsoleStream,
        /// Says that the stream goes on while nothing comes; empty: nothing may say so.
        pulse: &'static [u8],
    },
}

impl Console {
    /// Answers a request whose path is [`PATH`] or below it, on the thread of the console: the one of the listener is for probes and
    /// metrics. It is answered to its end, whether or not the person waits for it.
    pub async fn answer(self: &Arc<Self>, incoming: ConsoleCall) -> Response<ConsoleBody> {
        if let Some(asset) = assets::find(&incoming.path) {
            return asset_response(asset);
        }
        let permit = match self.capacity.requests.enter() {
            Ok(permit) => permit,
            Err(full) => return busy(&full.to_string(), full.retry_after_s),
        };
        let console = Arc::clone(self);
        let answering = self.thread().spawn(async move {
            let response = console.answer_here(&incoming).await;
            drop(permit);
            response
        });
        let failed = Bytes::from_static(b"the page could not be made: the log says why\n");
        answering.await.unwrap_or_else(|_| whole(500, TEXT, failed))
    }

    async fn answer_here(&self, incoming: &ConsoleCall) -> Response<ConsoleBody> {
        let settings = self.settings.load_full();
        let visit = Visit {
            console: self,
            settings: &settings,
            incoming,
            is_encrypted: is_encrypted(&incoming.headers),
        };
        let mut response = visit.answer().await;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        );
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("same-origin"),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }
}

/// A request, with the settings that hold for it.
struct Visit<'v> {
    console: &'v Console,
    settings: &'v ConsoleSettings,
    incoming: &'v ConsoleCall,
    is_encrypted: bool,
}

impl Visit<'_> {
    async fn answer(&self) -> Response<ConsoleBody> {
        let ConsoleCall { method, path, .. } = self.incoming;
        if let Err(why) = self.check_place() {
            return self.render(
                None,
                ConsoleReply::refused(403, "Not from here", html! { p { (why) } }),
            );
        }
        let is_change = match *method {
            Method::GET | Method::HEAD => false,
            Method::POST => true,
            _ => return self.refuse(405, "The console answers GET and POST."),
        };
        match path.as_str() {
            ENTER if !is_change => return self.enter(),
            SIGN_IN if !is_change => return self.show_sign_in(200, None),
            SIGN_IN => return self.sign_in(),
            _ => {}
        }
        let headers = &self.incoming.headers;
        let visitor = self.console.access.visitor(headers, self.token_hash());
        let (visitor, cookie) = match visitor {
            Some(visitor) => (visitor, None),
            None if self.token_hash().is_some() => return self.send_to_sign_in(),
            // Whoever is on this machine needs no token.
            None => match self.console.access.begin(LOCAL, None, self.is_encrypted) {
                Ok((visitor, cookie)) => (visitor, Some(cookie)),
                Err(error) => return self.refuse(error.status(), error.message()),
            },
        };
        let request = self.request(visitor);
        let reply = match is_change {
            true => self.change(&request).await,
            false => self.show(&request).await,
        };
        let mut response = self.render(Some(&request.visitor), reply);
        if path == SIGN_OUT && response.status() == StatusCode::SEE_OTHER {
            set_cookie(&mut response, &ended_cookie(self.is_encrypted));
        } else if let Some(cookie) = cookie {
            set_cookie(&mut response, &cookie);
        }
        response
    }

    fn request(&self, visitor: Visitor) -> ConsoleRequest {
        let incoming = self.incoming;
        let address = incoming.client.map(|client| client.ip().to_canonical());
        let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let parts = (incoming.method.clone(), &*incoming.path, &*incoming.query);
        let content = (incoming.headers.clone(), &*incoming.body);
        ConsoleRequest::new(parts, content, (visitor, address))
    }

    async fn show(&self, request: &ConsoleRequest) -> ConsoleReply {
        match views::find(&request.path) {
            Some(view) => (view.show)(self.console, request).await,
            None => ConsoleReply::not_found("There is no such page."),
        }
    }

    /// Does a change, if it is meant and allowed.
    async fn change(&self, request: &ConsoleRequest) -> ConsoleReply {
        let refused = |why: &str| {
            ConsoleReply::refused(
                403,
                "Not changed",
                html! { p.notice role="alert" { (why) } },
            )
        };
        let csrf = request.field("csrf").unwrap_or_default();
        if !request.visitor.has_csrf(&csrf) || is_foreign(request) {
            return refused("The form is of another session: reload its page and send it again.");
        }
        if request.path == SIGN_OUT {
            return ConsoleReply::Redirect(SIGN_IN.to_owned());
        }
        let view = views::find(&request.path);
        let needs_write = view.is_none_or(|view| !view.is_harmless);
        if needs_write && !self.settings.is_writable {
            return refused("The console is read-only: admin.write = true lets it change things.");
        }
        self.show(request).await
    }

    /// Checks from where a request comes: without a token from this machine alone, and under a name of this machine, so that
    /// no page of another site whose name was pointed here is answered.
    ///
    /// Errors: why it is refused.
    fn check_place(&self) -> Result<(), &'static str> {
        if self.token_hash().is_some() {
            return Ok(());
        }
        let client = self
            .incoming
            .client
            .map(|client| client.ip().to_canonical());
        if !client.is_some_and(|ip: IpAddr| ip.is_loopback()) {
            return Err("Without admin.token the console answers this machine alone.");
        }
        let mut hosts = self.incoming.headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        match (host, hosts.next()) {
            (Some(host), None) if is_loopback(host) => Ok(()),
            _ => Err("Without admin.token, Host has to be localhost."),
        }
    }

    fn token_hash(&self) -> Option<&[u8; 32]> {
        self.settings.token_hash.as_ref()
    }

    fn enter(&self) -> Response<ConsoleBody> {
        let code = form::values(&self.incoming.query, "code").next();
        let terms = (self.token_hash(), self.is_encrypted);
        let entered = self
            .console
            .access
            .use_link(&code.unwrap_or_default(), terms);
        self.welcome(entered)
    }

    fn sign_in(&self) -> Response<ConsoleBody> {
        let Some(expected) = self.token_hash() else {
            return self.redirect(PATH);
        };
        let form = String::from_utf8_lossy(&self.incoming.body);
        let field = |name| form::values(&form, name).next().unwrap_or_default();
        let presented: [u8; 32] = Sha256::digest(field("token").trim().as_bytes()).into();
        let (access, name) = (&self.console.access, field("name"));
        self.welcome(access.sign_in((&presented, expected), &name, self.is_encrypted))
    }

    fn welcome(&self, session: Result<(Visitor, String), SignInError>) -> Response<ConsoleBody> {
        match session {
            Ok((_, cookie)) => {
                let mut response = self.redirect(PATH);
                set_cookie(&mut response, &cookie);
                response
            }
            Err(error) => self.show_sign_in(error.status(), Some(error.message())),
        }
    }

    fn show_sign_in(&self, status: u16, problem: Option<&str>) -> Response<ConsoleBody> {
        let page = ConsoleReply::refused(status, "Sign in", layout::sign_in(problem));
        self.render(None, page)
    }

    /// Leads a person to the page to sign in, and tells a script that it has no session.
    fn send_to_sign_in(&self) -> Response<ConsoleBody> {
        let headers = &self.incoming.headers;
        let is_script = headers.contains_key("hx-request")
            || headers
                .get("sec-fetch-dest")
                .is_some_and(|it| it == "empty");
        match is_script {
            true => self.show_sign_in(401, None),
            false => self.redirect(SIGN_IN),
        }
    }

    fn refuse(&self, status: u16, why: &str) -> Response<ConsoleBody> {
        self.render(
            None,
            ConsoleReply::refused(status, "Not done", html! { p { (why) } }),
        )
    }

    fn redirect(&self, to: &str) -> Response<ConsoleBody> {
        self.render(None, ConsoleReply::Redirect(to.to_owned()))
    }

    fn render(&self, visitor: Option<&Visitor>, reply: ConsoleReply) -> Response<ConsoleBody> {
        let frame = Frame {
            visitor,
            path: &self.incoming.path,
            navigation: &views::navigation(),
            has_token: self.settings.token_hash.is_some(),
            is_writable: self.settings.is_writable,
        };
        match reply {
            ConsoleReply::Page {
                status,
                title,
                body,
            } => {
                let page = layout::page(&frame, &title, &body);
                whole(status, HTML, page.0.into())
            }
            ConsoleReply::Fragment(body) => whole(200, HTML, body.0.into()),
            ConsoleReply::Other {
                status,
                media_type,
                body,
            } => whole(status, media_type, body),
            ConsoleReply::Events(stream) => streamed("text/event-stream", stream, b":\n\n"),
            ConsoleReply::Text(stream) => streamed(TEXT, stream, b""),
            ConsoleReply::Busy { why, retry_after_s } => busy(&why, retry_after_s),
            ConsoleReply::Redirect(to) => {
                let mut response = whole(303, HTML, Bytes::new());
                // A path of this listener; what is no header is the overview.
                let to = HeaderValue::from_str(&to);
                let to = to.unwrap_or_else(|_| HeaderValue::from_static(PATH));
                response.headers_mut().insert(header::LOCATION, to);
                response
            }
        }
    }
}

/// Returns whether a browser says that another site has sent this.
fn is_foreign(request: &ConsoleRequest) -> bool {
    let site = request.headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

/// Returns whether the person's browser speaks TLS, to whatever stands in front.
fn is_encrypted(headers: &HeaderMap) -> bool {
    let scheme = headers.get("x-forwarded-proto");
    scheme.is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
}

fn streamed(
    media_type: &'static str,
    stream: ConsoleStream,
    pulse: &'static [u8],
) -> Response<ConsoleBody> {
    let mut response = Response::new(ConsoleBody::Pieces { stream, pulse });
    let media_type = HeaderValue::from_static(media_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

fn whole(status: u16, media_type: &'static str, body: Bytes) -> Response<ConsoleBody> {
    let mut response = Response::new(ConsoleBody::Whole(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let media_type = HeaderValue::from_static(media_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

/// Says that there are as many of something as there may be, and when to ask again.
fn busy(why: &str, retry_after_s: u64) -> Response<ConsoleBody> {
    let mut response = whole(503, TEXT, format!("{why}\n").into());
    let retry_after = HeaderValue::from(retry_after_s);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, retry_after);
    response
}

fn asset_response(asset: &assets::Asset) -> Response<ConsoleBody> {
    let mut response = whole(200, asset.media_type, Bytes::from_static(asset.bytes));
    let headers = response.headers_mut();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, forever);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

fn set_cookie(response: &mut Response<ConsoleBody>, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}
