//! The model gateway's rows of the route table.

use std::sync::Arc;

use filters::fault::Fault;
use filters::limits::QuotaGroup;
use filters::models::front::Front;
use filters::models::fronts::ALTERNATIVE_STYLE;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::embeddings::Embeddings;
use filters::models::fronts::speech::Speech;
use http::{HeaderMap, Method};

use super::Models;
use super::endpoints::credits::Credits;
use super::endpoints::key::KeyStatus;
use super::endpoints::models::{GetModel, ListModels};
use super::handler::ModelHandler;
use crate::config::Config;
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, Route};

/// Returns the rows.
pub fn routes(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    let row = |name, method, path, handler| Route {
        name,
        method,
        path,
        access: Access::Key,
        quota: None,
        deprecation: None,
        takes_permit: true,
        body: BodyRule::None,
        errors: Arc::new(error_response),
        handler,
    };
    let forward = |(path, group, front): (_, _, &'static dyn Front)| Route {
        quota: Some(group),
        body: BodyRule::Json(config.limits.body_bytes.chat),
        ..row(front.name(), Method::POST, path, handler(models, front))
    };
    let models = || Arc::clone(models);
    let get = |name, path, endpoint| row(name, Method::GET, path, Handler::Endpoint(endpoint));
    let list_access = if config.models.require_key {
        Access::Key
    } else {
        Access::Open
    };
    let listed = |route| Route {
        access: list_access,
        ..route
    };
    let (list, one) = (
        ListModels { models: models() },
        GetModel { models: models() },
    );
    let (key, credits) = (KeyStatus { models: models() }, Credits { models: models() });
    [
        listed(get("models", "/v1/models", Arc::new(list))),
        listed(get("model", "/v1/models/**", Arc::new(one))),
        get("key", "/v1/key", Arc::new(key)),
        get("credits", "/v1/credits", Arc::new(credits)),
    ]
    .into_iter()
    .chain(FRONTS.map(forward))
    .collect()
}

/// The requests that go to providers: path, quota and front.
const FRONTS: [(&str, QuotaGroup, &dyn Front); 3] = [
    ("/v1/chat/completions", QuotaGroup::Chat, &ChatCompletions),
    ("/v1/embeddings", QuotaGroup::Embeddings, &Embeddings),
    ("/v1/audio/speech", QuotaGroup::Audio, &Speech),
];

/// Returns a fault in the style that the client reads.
fn error_response(fault: &Fault, headers: &HeaderMap) -> Response {
    let mut response = Response::from(fault);
    if headers.contains_key(ALTERNATIVE_STYLE) {
        response.body = fault.alternative_body().into();
    }
    response
}

fn handler(models: &Arc<Models>, front: &'static dyn Front) -> Handler {
    let models = Arc::clone(models);
    Handler::Forward(Arc::new(ModelHandler { models, front }))
}
