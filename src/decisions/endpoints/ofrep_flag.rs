//! `POST /ofrep/v1/evaluate/flags/{key}`: evaluates one flag. Source: docs/decisions.md 24.

use filters::decisions::ofrep;
use filters::decisions::ofrep::OfrepError;
use filters::fault::Fault;

use super::context::DecisionContext;
use super::decide::decide_keys;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns the evaluation of a flag, or the protocol's refusal.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let key = ofrep::flag_key(request.path);
    let asked = match ofrep::read_context(request.body) {
        Ok(asked) => asked,
        Err(error) => return Ok(refusal(error, Some(&key))),
    };
    if !context.loaded.project.has_flag(&key) {
        return Ok(refusal(OfrepError::FlagNotFound, Some(&key)));
    }
    let mut out = Vec::new();
    for one in decide_keys(&context, &asked.ask, &[&key]).await? {
        ofrep::write_evaluation(&one, &asked, &mut out);
    }
    Ok(Response::json(out))
}

/// Returns a refusal in the form of the protocol.
pub(super) fn refusal(error: OfrepError, key: Option<&str>) -> Response {
    Response {
        status: error.status(),
        ..Response::json(error.to_json(key))
    }
}
