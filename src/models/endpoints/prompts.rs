//! `GET /v1/prompts`, `GET` and `POST /v1/prompts/{name}`: the managed prompts that the caller may use, as stored or
//! rendered. Source: docs/prompts.md.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind, quoted};
use filters::fault_code::FaultCode;
use filters::form;
use filters::models::prompts::library::{FoundPrompt, ReferencePlace};
use filters::models::prompts::reference::PromptReference;
use filters::models::prompts::shown::{GivenValues, listed, rendered, shown};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::models::Models;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// The prefix of the paths of single prompts.
const PATH: &str = "/v1/prompts/";

/// `GET /v1/prompts`.
pub struct ListPrompts {
    pub models: Arc<Models>,
}

/// `GET /v1/prompts/{name}`. A name may have slashes, plain or escaped, and a label or a version after `@`.
pub struct GetPrompt {
    pub models: Arc<Models>,
}

/// `POST /v1/prompts/{name}`: renders the prompt with values of its variables.
pub struct RenderPrompt {
    pub models: Arc<Models>,
}

impl Endpoint for ListPrompts {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let response = owners(&self.models, &request).map(|owners| {
            let library = self.models.prompts.current();
            let data: Vec<Value> = library.usable_by(owners).into_iter().map(listed).collect();
            let body = json!({"object": "list", "data": data});
            Response::json(body.to_string().into_bytes())
        });
        Box::pin(async { response })
    }
}

impl Endpoint for GetPrompt {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let found = find(&self.models, &request);
        let response = found.map(|found| Response::json(shown(&found)));
        Box::pin(async { response })
    }
}

impl Endpoint for RenderPrompt {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let rendered = find(&self.models, &request).and_then(|found| {
            let given = GivenValues::parse(request.body)?;
            rendered(&found, &given, self.models.max_chat_bytes)
        });
        Box::pin(async { rendered.map(Response::json) })
    }
}

/// Returns the ids of the caller's organization and project.
///
/// Errors: 404 if prompts are off.
fn owners<'a>(models: &Models, request: &Request<'a>) -> Result<(&'a str, &'a str), Fault> {
    if !models.prompts_enabled {
        let message = "this gateway has no managed prompts (`prompts.enabled` is false)";
        return Err(Fault::new(FaultKind::NotFound, message));
    }
    let nobody = || Fault::new(FaultKind::Internal, "nobody calls");
    let caller = request.caller.ok_or_else(nobody)?;
    Ok((&*caller.organization_id, &*caller.project_id))
}

fn find(models: &Models, request: &Request<'_>) -> Result<FoundPrompt, Fault> {
    let owners = owners(models, request)?;
    let name = request.path.strip_prefix(PATH).unwrap_or_default();
    // In a path, a plus does not mean a space.
    let name = form::decode(&name.replace('+', "%2B")).into_owned();
    let reference = PromptReference::parse(&name).ok_or_else(|| {
        let message = format!("{:?} names no prompt", quoted(&name));
        Fault::new(FaultKind::NotFound, message).with_code(FaultCode::PromptNotFound)
    })?;
    let found = models
        .prompts
        .current()
        .find(owners, &reference, ReferencePlace::Object);
    found.map_err(|fault| fault.with_param("name"))
}
