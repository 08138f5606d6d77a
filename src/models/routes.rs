//! The model gateway's rows of the route table.

use std::sync::Arc;

use filters::limits::QuotaGroup;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::embeddings::Embeddings;
use http::Method;

use super::Models;
use super::endpoints::key::KeyStatus;
use super::endpoints::models::ListModels;
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
        takes_permit: true,
        body: BodyRule::None,
        errors: Arc::new(|fault| Response::from(fault)),
        handler,
    };
    let forward = |front: &'static dyn Front| {
        let models = Arc::clone(models);
        Handler::Forward(Arc::new(ModelHandler { models, front }))
    };
    let list = ListModels {
        models: Arc::clone(models),
    };
    let key = KeyStatus {
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
        row(
            "key",
            Method::GET,
            "/v1/key",
            Handler::Endpoint(Arc::new(key)),
        ),
        Route {
            quota: Some(QuotaGroup::Chat),
            body: BodyRule::Json(config.limits.body_bytes.chat),
            ..row(
                "chat_completions",
                Method::POST,
                "/v1/chat/completions",
                forward(&ChatCompletions),
            )
        },
        Route {
            quota: Some(QuotaGroup::Embeddings),
            body: BodyRule::Json(config.limits.body_bytes.chat),
            ..row(
                "embeddings",
                Method::POST,
                "/v1/embeddings",
                forward(&Embeddings),
            )
        },
    ]
}
