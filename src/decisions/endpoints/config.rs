//! `GET /v1/config`: the configuration for clients.

use filters::fault::Fault;

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns the overview of the project.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open_without_body(service, request).await?;
    Ok(Response::json(context.loaded.project.overview()))
}
