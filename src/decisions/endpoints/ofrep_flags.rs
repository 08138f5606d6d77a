//! `POST /ofrep/v1/evaluate/flags`: evaluates all flags, in the order of the datafile. Source: docs/decisions.md 24.

use filters::decisions::decide::decide;
use filters::decisions::ofrep;
use filters::decisions::response_body::list;
use filters::fault::Fault;
use http::{HeaderValue, header};

use super::context::DecisionContext;
use super::ofrep_flag::refusal;
use super::user_state::UserState;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// The tag of the datafile that a stream has announced to the client.
const FLAG_CONFIG_ETAG: &str = "flagConfigEtag";

/// Returns all evaluations, or 304 if the client already has them. Only evaluations of single flags make impressions. A client
/// that was told of a datafile that is not in force here gets no 304, and the source is asked for it first.
///
/// Errors: 413 for a response that would be too long.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let mut context = DecisionContext::open(service, request).await?;
    let asked = match ofrep::read_context(request.body) {
        Ok(asked) => asked,
        Err(error) => return Ok(refusal(error, None)),
    };
    let is_current = context
        .follow(request.values(FLAG_CONFIG_ETAG).last().as_deref())
        .await?;
    let project = &context.loaded.project;
    let keys: Vec<&str> = project.flag_keys().collect();
    let mut state = UserState::new(&context, &asked.ask.user, &[], asked.ask.options).await;
    let all = state
        .decide(&keys, |key, inputs| decide(project, key, inputs))
        .await?;
    let listed = list(all.iter(), |decided, out| {
        ofrep::write_evaluation(decided, &asked, out);
    })?;
    let etag = ofrep::etag(&context.sdk_key, request.body, &listed);
    let mut known = request.headers.get_all(header::IF_NONE_MATCH).into_iter();
    let is_known = known.any(|known| ofrep::names_etag(known.as_bytes(), &etag));
    let mut response = if is_current && is_known {
        Response {
            status: 304,
            ..Response::json("")
        }
    } else {
        let stream = service.change_streams.uri(&context.sdk_key, request.now_ms);
        Response::json(ofrep::write_all(&listed, stream.as_deref()))
    };
    response
        .headers
        .extend(HeaderValue::from_str(&etag).map(|etag| (header::ETAG, etag)));
    Ok(response)
}
