//! `GET /v1/datafile`: the project's datafile.

use filters::fault::Fault;

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns the datafile in force.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open_without_body(service, request).await?;
    let datafile = context.protocol().write_datafile(&context.loaded.text);
    Ok(Response::json(datafile))
}
