//! The model gateway's rows of the route table.

use std::sync::Arc;

use filters::fault::Fault;
use filters::limits::QuotaGroup;
use filters::models::front::Front;
use filters::models::fronts::ALTERNATIVE_STYLE;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::embeddings::Embeddings;
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
    let forward = |name, path, group, front| Route {
        quota: Some(group),
        body: BodyRule::Json(config.limits.body_bytes.chat),
        ..row(name, Method::POST, path, handler(models, front))
    };
    let list = ListModels {
        models: Arc::clone(models),
    };
    let one = GetModel {
        models: Arc::clone(models),
    };
    let key = KeyStatus {
        models: Arc::clone(models),
    };
    let credits = Credits {
        models: Arc::clone(models),
    };
    let list_access = if config.models.require_key {
        Access::Key
    } else {
        Access::Open
    };
    vec![
        Route {
            access: list_access,
            ..row(
                "models",
                Method::GET,
                "/v1/models",
                Handler::Endpoint(Arc::new(list)),
            )
        },
        Route {
            access: list_access,
            ..row(
                "model",
                Method::GET,
                "/v1/models/**",
                Handler::Endpoint(Arc::new(one)),
            )
        },
        row(
            "key",
            Method::GET,
            "/v1/key",
            Handler::Endpoint(Arc::new(key)),
        ),
        row(
            "credits",
            Method::GET,
            "/v1/credits",
            Handler::Endpoint(Arc::new(credits)),
        ),
        forward(
            "chat_completions",
            "/v1/chat/completions",
            QuotaGroup::Chat,
            &ChatCompletions,
        ),
        forward(
            "embeddings",
            "/v1/embeddings",
            QuotaGroup::Embeddings,
            &Embeddings,
        ),
    ]
}

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
