//! `POST /ofrep/v1/evaluate/flags`: evaluates all flags, in the order of the datafile. Source: docs/decisions.md 24.

use bytes::Bytes;
use filters::decisions::decide::decide;
use filters::decisions::ofrep;
use filters::decisions::response_body::list;
use filters::fault::Fault;
use filters::json::Object;
use http::{HeaderValue, header};

use super::context::DecisionContext;
use super::ofrep_flag::refusal;
use super::user_state::UserState;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns all evaluations, or 304 if the client already has them. Only evaluations of single flags make impressions.
///
/// Errors: 413 for a response that would be too long.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let asked = match ofrep::read_context(request.body) {
        Ok(asked) => asked,
        Err(error) => return Ok(refusal(error, None)),
    };
    let project = &context.loaded.project;
    let keys: Vec<&str> = project.flag_keys().collect();
    let mut state = UserState::new(&context, &asked.ask.user, &[], asked.ask.options).await;
    let all = state
        .decide(&keys, |key, inputs| decide(project, key, inputs))
        .await?;
    let listed = list(all.iter(), |decided, out| {
        ofrep::write_evaluation(decided, &asked, out);
    })?;
    let mut out = Vec::with_capacity(listed.len() + 16);
    let mut body = Object::open(&mut out);
    body.value("flags", |out| out.extend_from_slice(&listed));
    body.close();
    let etag = ofrep::etag(&out);
    let known = request.headers.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = Response::json(out);
    if is_known {
        response.status = 304;
        response.body = Bytes::new().into();
    }
    response
        .headers
        .extend(HeaderValue::from_str(&etag).map(|etag| (header::ETAG, etag)));
    Ok(response)
}
