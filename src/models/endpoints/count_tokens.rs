//! How many tokens a request has, in the words of an API: asked of the model's provider where it counts in these words, else an estimate that errs
//! high. It costs nothing, and what comes of it says nothing about the health of the provider.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::Fault;
use filters::models::cloud_credentials::sigv4::BodyHash;
use filters::models::dialects::state::{Maker, States};
use filters::models::front::ClientHead;
use filters::models::fronts::counted::{Counted, CountingApi};
use filters::models::operation::Operation;
use filters::models::request::ModelRequest;
use filters::models::wires::{BodySlice, Counting, Target};
use futures::future::BoxFuture;
use http::HeaderValue;
use reqwest::RequestBuilder;
use serde_json::json;

use crate::cloud_credentials::SourceState;
use crate::cloud_credentials::authorize::authorize;
use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::models::passthrough::PassedKey;
use crate::models::planner::PlanContext;
use crate::models::providers::endpoints::TriedEndpoints;
use crate::models::providers::{Credential, KeyPool};
use crate::models::upstream_head::OwnHeaders;
use crate::outbound::read_body;
use crate::proxy::body;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// The most bytes of a reply.
const MAX_REPLY_BYTES: usize = 64 << 10;
/// How long a provider is not asked that fails.
const FAILED_REST_MS: u64 = 10_000;
/// How long a provider is not asked that does not know the path, or refuses the key.
const REFUSED_REST_MS: u64 = 600_000;

/// The endpoint.
pub struct CountTokens {
    pub models: Arc<Models>,
    pub api: &'static CountingApi,
}

/// Why a provider has not counted.
enum Uncounted {
    /// It is not asked again for so long.
    Rests(u64),
    /// It refuses this request.
    Refused,
}

impl Endpoint for CountTokens {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let text = Bytes::copy_from_slice(request.body);
            let head = ClientHead {
                path: request.path,
                query: request.query,
                headers: request.headers,
            };
            let counting = || (self.api.read)(&head, text);
            let Counted {
                request: mut asked,
                estimate,
            } = body::off_worker(request.body.len(), counting)?;
            asked.take_headers(request.headers);
            let caller = request.caller.map(|caller| &**caller);
            let passed = self.models.passed_key(request.headers, caller)?;
            let counted = self.ask(&asked, &request, passed.as_ref()).await;
            let body = json!({ self.api.member: counted.unwrap_or(estimate) });
            Ok(Response::json(body.to_string()))
        })
    }
}

impl CountTokens {
    /// Returns what the model's first provider counts, if it counts.
    async fn ask(
        &self,
        asked: &ModelRequest,
        request: &Request<'_>,
        passed: Option<&PassedKey>,
    ) -> Option<u64> {
        let counts = &self.models.provider_counts;
        let (deployment, keys) = self.find(asked, request, passed)?;
        let name = &deployment.provider.name;
        if counts.rests(name, request.now_ms) {
            return None;
        }
        let _running = counts.running.try_acquire().ok()?;
        let key = keys.get(keys.pick(0, deployment.id, request.now_ms))?;
        let counting = deployment
            .wire
            .counting
            .filter(|_| deployment.served.counts)?;
        let sent = self.write(asked, request, (&deployment, key, counting))?;
        match count(sent, counting).await {
            Ok(tokens) => Some(tokens).filter(|tokens| *tokens > 0),
            // What the vendor says of one caller's credential is nothing to others.
            Err(Uncounted::Rests(_)) if passed.is_some() => None,
            Err(Uncounted::Rests(ms)) => {
                counts.rest(name, request.now_ms + ms);
                None
            }
            Err(Uncounted::Refused) => None,
        }
    }

    /// Returns the first way to serve the model, if that is in these words, and the keys that its calls have.
    fn find(
        &self,
        asked: &ModelRequest,
        request: &Request<'_>,
        passed: Option<&PassedKey>,
    ) -> Option<(Arc<Deployment>, Arc<KeyPool>)> {
        let models = &self.models;
        let caller = request.caller.map(|caller| &**caller);
        let byok_keys = models.byok_keys.of_caller(caller);
        let byok: Vec<&str> = byok_keys.iter().flat_map(|keys| keys.providers()).collect();
        let context = PlanContext {
            caller,
            byok_providers: &byok,
            passed,
            session: None,
            no_fallback: false,
            explains: false,
            notes_plan: false,
            now_ms: request.now_ms,
            now_s: request.now_ms / 1000,
        };
        let found = models.planner.resolve(asked, &context, false).ok()?;
        let candidate = found.candidates().first()?;
        let deployment = models.planner.deployment(candidate)?;
        if deployment.wire.dialect != Some(self.api.dialect) {
            return None;
        }
        let own = byok_keys
            .as_ref()
            .and_then(|keys| keys.find(&deployment.provider.name));
        let own = passed.map(|passed| &passed.keys).or(own);
        let keys = Arc::clone(own.unwrap_or(&deployment.site.keys));
        Some((deployment, keys))
    }

    /// Writes the provider's request.
    fn write(
        &self,
        asked: &ModelRequest,
        request: &Request<'_>,
        (deployment, key, counting): (&Deployment, &Credential, &Counting),
    ) -> Option<RequestBuilder> {
        let codec = deployment.wire.codec(Operation::Chat)?;
        let organization = request
            .caller
            .map(|caller| Arc::clone(&caller.organization_id));
        let states = States::new(self.models.state_secret, organization);
        let target = deployment.target();
        let target = Target {
            maker: Maker {
                states: &states,
                own_key: key.own_id(),
                ..target.maker
            },
            ..target
        };
        let mut sent = Vec::with_capacity(asked.source.body.len());
        for slice in codec.encode(asked, &target).ok()? {
            match slice {
                BodySlice::Bytes(bytes) => sent.extend_from_slice(&bytes),
                BodySlice::Upload(_) => return None,
            }
        }
        let sent = (counting.body)(sent, target.model);
        let own = OwnHeaders {
            authority: None,
            body_bytes: sent.len(),
            request_id: &HeaderValue::from_static(""),
            traceparent: None,
            credential: deployment.provider.credential(key).ok()?,
            passed: key.passed,
            of_wire: &codec.headers(asked, &target),
        };
        let (client, ()) = http::Request::new(()).into_parts();
        let template = deployment.head(Operation::Chat, false)?;
        let mut head = template.request(&own, &client)?;
        head.uri = (counting.path)(head.uri.path()).parse().ok()?;
        if let Some(source) = deployment.provider.source(key) {
            let SourceState::Ready(held) = source.state() else {
                return None;
            };
            let hash = BodyHash::from_slices([&sent[..]]);
            let signed = (&hash, request.now_ms / 1000);
            authorize(&mut head, &held, deployment.site.signing.as_ref(), signed)?;
        }
        // The HTTP client writes the first two, and the request has no id upstream.
        for name in ["host", "content-length", "x-request-id"] {
            head.headers.remove(name);
        }
        let endpoints = &deployment.site.endpoints;
        let endpoint = endpoints.pick(None, TriedEndpoints::default(), request.now_ms);
        let origin = endpoints.origin(endpoint)?.url();
        let url = format!("{origin}{}", head.uri);
        let post = self.models.provider_counts.outbound.post(&url).ok()?;
        Some(post.headers(head.headers).body(sent))
    }
}

/// Sends a request, and reads the count.
async fn count(request: RequestBuilder, counting: &Counting) -> Result<u64, Uncounted> {
    let failed = || Uncounted::Rests(FAILED_REST_MS);
    let reply = request.send().await.map_err(|_| failed())?;
    match reply.status().as_u16() {
        200 => {}
        401 | 403 | 404 | 405 | 501 => return Err(Uncounted::Rests(REFUSED_REST_MS)),
        429 | 500.. => return Err(failed()),
        _ => return Err(Uncounted::Refused),
    }
    let body = read_body(reply, MAX_REPLY_BYTES).await;
    let body = body.map_err(|_| failed())?;
    (counting.tokens)(&body).ok_or(Uncounted::Rests(REFUSED_REST_MS))
}
