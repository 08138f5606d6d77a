//! The model gateway's rows of the route table.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::models::dialects::Dialect;
use filters::models::front::Front;
use filters::models::fronts::contents::{self, ContentsError};
use filters::models::fronts::messages::{self, MessagesError};
use filters::models::fronts::responses::{Responses, ResponsesError};
use filters::models::fronts::videos::Videos;
use filters::models::fronts::{ALTERNATIVE_STYLE, FRONTS};
use filters::models::operation::Operation;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::Models;
use super::endpoints::count_tokens::CountTokens;
use super::endpoints::credits::Credits;
use super::endpoints::key::KeyStatus;
use super::endpoints::messages::Hello;
use super::endpoints::models::{GetModel, ListModels};
use super::endpoints::prompts::{GetPrompt, ListPrompts, RenderPrompt};
use super::endpoints::responses::Upgrade;
use super::endpoints::stored_responses::{
    CancelResponse, DeleteResponse, GetResponse, ListInputItems,
};
use super::endpoints::usage::{GetUsage, GetUsageBreakdown, turns};
use super::endpoints::videos::{DeleteVideo, GetVideo, ListVideos, VideoContent};
use super::handler::ModelHandler;
use crate::config::Config;
use crate::proxy::handler::{Endpoint, Handler};
use crate::proxy::response::{RETRY_AFTER_MS, Response};
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// Returns the rows.
pub fn routes(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    let mut routes = lists(models, config);
    routes.extend(usage(models));
    routes.extend(prompts(models, config));
    routes.extend(calls(models, config));
    routes.extend(beside_messages(models, config));
    routes.extend(beside_contents(models, config));
    routes.push(upgrade());
    routes.extend(stored_responses(models, config));
    routes.extend(videos(models));
    routes
}

fn row(
    name: &'static str,
    (method, path): (Method, &'static str),
    handler: Handler,
    description: &'static str,
) -> Route {
    Route {
        name,
        method,
        path,
        access: Access::Key,
        quota: None,
        deprecation: None,
        takes_permit: true,
        body: BodyRule::None,
        errors: error_style(None),
        description,
        is_on: true,
        handler,
    }
}

/// Returns the rows that tell what there is.
fn lists(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    let get = |name, path, endpoint: Arc<dyn Endpoint>, description| {
        let handler = Handler::Endpoint(endpoint);
        row(name, (Method::GET, path), handler, description)
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
    let access = if config.models.require_key {
        Access::Key
    } else {
        Access::Open
    };
    let (list, one) = (Arc::new(list), Arc::new(one));
    let [of_contents, one_of_contents] = contents_lists((list.clone(), one.clone()), access);
    vec![
        of_contents,
        one_of_contents,
        Route {
            access,
            ..get(
                "models",
                "/v1/models",
                list,
                include_str!("endpoints/models.json"),
            )
        },
        Route {
            access,
            ..get(
                "model",
                "/v1/models/**",
                one,
                include_str!("endpoints/model.json"),
            )
        },
        get(
            "key",
            "/v1/key",
            Arc::new(key),
            include_str!("endpoints/key.json"),
        ),
        get(
            "credits",
            "/v1/credits",
            Arc::new(credits),
            include_str!("endpoints/credits.json"),
        ),
    ]
}

/// Returns the rows of the same lists for clients of contents.
fn contents_lists((list, one): (Arc<ListModels>, Arc<GetModel>), access: Access) -> [Route; 2] {
    let access = match access {
        Access::Key => Access::KeyInQuery,
        access => access,
    };
    let get = |name, path, endpoint: Arc<dyn Endpoint>, description| {
        let handler = Handler::Endpoint(endpoint);
        Route {
            access,
            errors: error_style(Some(Dialect::Contents)),
            ..row(name, (Method::GET, path), handler, description)
        }
    };
    [
        get(
            "contents_models",
            "/v1beta/models",
            list,
            include_str!("endpoints/contents_models.json"),
        ),
        get(
            "contents_model",
            "/v1beta/models/**",
            one,
            include_str!("endpoints/contents_model.json"),
        ),
    ]
}

/// Returns the rows that tell what calls took.
fn usage(models: &Arc<Models>) -> Vec<Route> {
    let turns = turns(models);
    let by_time = GetUsage {
        turns: Arc::clone(&turns),
    };
    vec![
        row(
            "usage",
            (Method::GET, "/v1/usage"),
            Handler::Endpoint(Arc::new(by_time)),
            include_str!("endpoints/usage.json"),
        ),
        row(
            "usage_breakdown",
            (Method::GET, "/v1/usage/breakdown"),
            Handler::Endpoint(Arc::new(GetUsageBreakdown { turns })),
            include_str!("endpoints/usage_breakdown.json"),
        ),
    ]
}

/// Returns the rows that tell of managed prompts.
fn prompts(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    const PROMPT: &str = "/v1/prompts/**";
    let endpoint = |name, at, endpoint: Arc<dyn Endpoint>, description| Route {
        is_on: config.prompts_enabled,
        ..row(name, at, Handler::Endpoint(endpoint), description)
    };
    let models = || Arc::clone(models);
    let list = ListPrompts { models: models() };
    let get = GetPrompt { models: models() };
    let render = RenderPrompt { models: models() };
    vec![
        endpoint(
            "prompts",
            (Method::GET, "/v1/prompts"),
            Arc::new(list),
            include_str!("endpoints/prompts.json"),
        ),
        endpoint(
            "prompt",
            (Method::GET, PROMPT),
            Arc::new(get),
            include_str!("endpoints/prompt.json"),
        ),
        Route {
            body: match config.prompts_enabled {
                true => BodyRule::Json(config.limits.body_bytes.chat),
                false => BodyRule::None,
            },
            ..endpoint(
                "render_prompt",
                (Method::POST, PROMPT),
                Arc::new(render),
                include_str!("endpoints/render_prompt.json"),
            )
        },
    ]
}

/// Returns the rows that call models.
fn calls(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    let forward = |front: &&'static dyn Front| {
        let front = *front;
        let told = front.row();
        let at = move |path| Route {
            access: access_of(told.dialect),
            quota: Some(told.operation.row().quota),
            body: body_rule(told.operation, config),
            errors: error_style(told.dialect),
            ..row(
                told.name,
                (Method::POST, path),
                handler(models, front),
                &told.description,
            )
        };
        let paths = [told.path, told.other_path].into_iter();
        paths.filter(|path| !path.is_empty()).map(at)
    };
    FRONTS.iter().flat_map(forward).collect()
}

/// Returns who may call an API of this dialect.
fn access_of(dialect: Option<Dialect>) -> Access {
    match dialect {
        Some(Dialect::Contents) => Access::KeyInQuery,
        _ => Access::Key,
    }
}

/// Returns the rows that clients of Contents ask beside answers.
fn beside_contents(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    let count = CountTokens {
        models: Arc::clone(models),
        api: &contents::COUNTING,
    };
    let count = Handler::Endpoint(Arc::new(count));
    let paths = ["/v1beta/models/**:countTokens", "/v1/models/**:countTokens"];
    let at = |path| Route {
        access: Access::KeyInQuery,
        body: BodyRule::Json(config.limits.body_bytes.chat),
        errors: error_style(Some(Dialect::Contents)),
        ..row(
            "contents_count_tokens",
            (Method::POST, path),
            count.clone(),
            include_str!("endpoints/contents_count_tokens.json"),
        )
    };
    paths.into_iter().map(at).collect()
}

/// Returns the rows that clients of Messages ask beside answers.
fn beside_messages(models: &Arc<Models>, config: &Config) -> [Route; 2] {
    let count = CountTokens {
        models: Arc::clone(models),
        api: &messages::COUNTING,
    };
    let count = Handler::Endpoint(Arc::new(count));
    let hello = Handler::Endpoint(Arc::new(Hello));
    [
        Route {
            body: BodyRule::Json(config.limits.body_bytes.chat),
            errors: error_style(Some(Dialect::Messages)),
            ..row(
                "count_tokens",
                (Method::POST, "/v1/messages/count_tokens"),
                count,
                include_str!("endpoints/count_tokens.json"),
            )
        },
        Route {
            access: Access::Open,
            takes_permit: false,
            ..row(
                "hello",
                (Method::HEAD, "/api/hello"),
                hello,
                include_str!("endpoints/hello.json"),
            )
        },
    ]
}

/// Returns the row by which clients of Responses ask for another protocol, before they post.
fn upgrade() -> Route {
    let upgrade = Handler::Endpoint(Arc::new(Upgrade));
    Route {
        errors: error_style(Some(Dialect::Responses)),
        takes_permit: false,
        ..row(
            "responses_upgrade",
            (Method::GET, Responses.row().path),
            upgrade,
            include_str!("endpoints/responses_upgrade.json"),
        )
    }
}

/// Returns the rows of responses that are kept.
fn stored_responses(models: &Arc<Models>, config: &Config) -> Vec<Route> {
    const RESPONSE: &str = "/v1/responses/*";
    let endpoint = |name, at, endpoint: Arc<dyn Endpoint>, description| Route {
        is_on: config.responses.store,
        errors: error_style(Some(Dialect::Responses)),
        ..row(name, at, Handler::Endpoint(endpoint), description)
    };
    let models = || Arc::clone(models);
    let get = GetResponse { models: models() };
    let delete = DeleteResponse { models: models() };
    let items = ListInputItems { models: models() };
    let cancel = CancelResponse { models: models() };
    vec![
        endpoint(
            "stored_response",
            (Method::GET, RESPONSE),
            Arc::new(get),
            include_str!("endpoints/stored_response.json"),
        ),
        endpoint(
            "delete_stored_response",
            (Method::DELETE, RESPONSE),
            Arc::new(delete),
            include_str!("endpoints/delete_stored_response.json"),
        ),
        endpoint(
            "response_input_items",
            (Method::GET, "/v1/responses/*/input_items"),
            Arc::new(items),
            include_str!("endpoints/response_input_items.json"),
        ),
        endpoint(
            "cancel_response",
            (Method::POST, "/v1/responses/*/cancel"),
            Arc::new(cancel),
            include_str!("endpoints/cancel_response.json"),
        ),
    ]
}

/// Returns the rows of videos that were ordered.
fn videos(models: &Arc<Models>) -> Vec<Route> {
    const JOB: &str = "/v1/videos/*";
    let endpoint = |name, at, endpoint: Arc<dyn Endpoint>, description| {
        row(name, at, Handler::Endpoint(endpoint), description)
    };
    let models = || Arc::clone(models);
    let list = ListVideos { models: models() };
    let get = GetVideo { models: models() };
    let content = VideoContent { models: models() };
    let delete = DeleteVideo { models: models() };
    vec![
        endpoint(
            "video_list",
            (Method::GET, Videos.row().path),
            Arc::new(list),
            include_str!("endpoints/video_list.json"),
        ),
        endpoint(
            "video",
            (Method::GET, JOB),
            Arc::new(get),
            include_str!("endpoints/video.json"),
        ),
        endpoint(
            "video_content",
            (Method::GET, "/v1/videos/*/content"),
            Arc::new(content),
            include_str!("endpoints/video_content.json"),
        ),
        endpoint(
            "delete_video",
            (Method::DELETE, JOB),
            Arc::new(delete),
            include_str!("endpoints/delete_video.json"),
        ),
    ]
}

/// Returns how the body of a request is read.
fn body_rule(operation: Operation, config: &Config) -> BodyRule {
    let limits = &config.limits.body_bytes;
    match operation {
        Operation::Images | Operation::ImageEdits => BodyRule::JsonOrForm(limits.images),
        Operation::Ocr => BodyRule::SpooledJson(limits.ocr),
        Operation::Transcriptions | Operation::Translations => BodyRule::Form(limits.audio),
        Operation::Videos => BodyRule::JsonOrForm(limits.chat),
        _ => BodyRule::Json(limits.chat),
    }
}

/// Returns the style of errors of an API of this dialect.
fn error_style(dialect: Option<Dialect>) -> ErrorStyle {
    match dialect {
        Some(Dialect::Messages) => ErrorStyle {
            schema: Some("MessagesError"),
            write: Arc::new(|fault, refused| messages_error(fault, refused.id)),
        },
        Some(Dialect::Responses) => ErrorStyle {
            schema: Some("Error"),
            write: Arc::new(|fault, _| responses_error(fault)),
        },
        Some(Dialect::Contents) => ErrorStyle {
            schema: Some("ContentsError"),
            write: Arc::new(|fault, _| contents_error(fault)),
        },
        _ => ErrorStyle {
            schema: Some("Error"),
            write: Arc::new(|fault, refused| error_response(fault, refused.headers)),
        },
    }
}

/// Returns a fault in the words of Messages.
fn messages_error(fault: &Fault, request_id: &str) -> Response {
    const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
    let error = MessagesError::new(fault, request_id);
    let mut response = Response {
        status: error.status,
        body: error.body.into(),
        ..Response::from(fault)
    };
    if error.is_final {
        response.replace_headers(&[(SHOULD_RETRY, HeaderValue::from_static("false"))]);
    }
    response
}

/// The headers that say how long a client waits before it asks again.
const WAITS: [HeaderName; 2] = [header::RETRY_AFTER, RETRY_AFTER_MS];

/// Returns a fault in the words of Responses. Clients wait for as long as `retry-after` says, and give up on a 429 without it.
fn responses_error(fault: &Fault) -> Response {
    let error = ResponsesError::new(fault);
    let mut response = Response {
        status: error.status,
        body: error.body().into(),
        ..Response::from(fault)
    };
    // A budget begins anew, or more is granted: clients are told when, and not to ask before.
    if fault.kind == FaultKind::Payment && !fault.has_code(FaultCode::BudgetReached) {
        response.headers.retain(|(name, _)| !WAITS.contains(name));
    }
    response
}

/// Returns a fault in the words of Contents.
fn contents_error(fault: &Fault) -> Response {
    let error = ContentsError::new(fault);
    Response {
        status: error.status,
        body: error.body.into(),
        ..Response::from(fault)
    }
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
