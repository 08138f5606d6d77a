//! `POST /v1/batch`: several calls in one, answered in the request's order.
//! Source: docs/decision-agent.md 2.4, 4 rule 5.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use filters::decisions::answer::MAX_BYTES;
use filters::decisions::{Compat, encode};
use filters::fault::{AgentForm, Fault, FaultKind};
use filters::json::{Object, write_number};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::operations;
use super::operations::BatchOperation;
use super::{Endpoint, Request, agent, answer};
use crate::decisions::DecisionService;
use crate::decisions::routes::{BatchPaths, Target};
use crate::proxy::response::Response;

/// How long all operations of a batch may take. Our choice: the agent of old breaks off after 10 s, so that its
/// clients wait no longer, and what is done by then has to reach them.
const BATCH_TIMEOUT: Duration = Duration::from_secs(9);

/// What all operations of a batch share.
struct Bounds {
    until: Instant,
    room_bytes: AtomicUsize,
}

impl Bounds {
    /// The answer, where there is room for it.
    ///
    /// Errors: 413.
    fn take(&self, answer: Response) -> Result<Response, Fault> {
        let bytes = answer.body.bytes().len();
        let less = |room: usize| room.checked_sub(bytes);
        let (order, room) = (Ordering::Relaxed, &self.room_bytes);
        room.fetch_update(order, order, less).map_err(|_| {
            let message = "the batch answers more than 16 MiB: ask for less at once";
            Fault::new(FaultKind::TooLarge, message)
        })?;
        Ok(answer)
    }
}

/// Answers a batch, after [`BATCH_TIMEOUT`] at the latest; what is not done by then has failed, and so has what has no room
/// among [`MAX_BYTES`].
///
/// Errors: 400 for what is no batch, 422 for too many operations; in document mode 401 and 403 for the call itself.
pub async fn run(
    flags: &DecisionService,
    paths: &BatchPaths,
    call: &Request<'_>,
) -> Result<Response, Fault> {
    let bounds = Bounds {
        until: Instant::now() + BATCH_TIMEOUT,
        room_bytes: AtomicUsize::new(MAX_BYTES),
    };
    if flags.compat == Compat::Document {
        super::sdk_key(flags, call).await?;
    }
    let operations = operations::read(call.body, flags.compat)?;
    let (most, at_once) = flags.batch;
    if operations.len() > most {
        let message = format!("too many operations, exceeding {most} operations");
        let too_many = Fault::new(FaultKind::TooMany, message);
        return Err(too_many.with_agent_form(AgentForm::Object));
    }
    let started = now();
    let mut running: Vec<BoxFuture<'_, _>> = Vec::with_capacity(operations.len());
    for operation in &operations {
        running.push(item((flags, paths), operation, call.now_ms, &bounds).boxed());
    }
    let done = stream::iter(running).buffered(at_once);
    let done: Vec<(Vec<u8>, bool)> = done.collect().await;
    let errors = done.iter().filter(|(_, is_error)| *is_error).count() as u64;
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("startedAt", &started);
    body.text("endedAt", &ended(flags.compat, !operations.is_empty()));
    body.number("errorCount", errors);
    body.array("response", done, |(item, _), out| {
        out.extend_from_slice(&item);
    });
    body.close();
    Ok(Response::json(out))
}

/// The item of an operation, and whether it failed.
async fn item(
    (flags, paths): (&DecisionService, &BatchPaths),
    operation: &BatchOperation,
    now_ms: u64,
    bounds: &Bounds,
) -> (Vec<u8>, bool) {
    // Most operations wait for nothing: the worker's other requests move on between them.
    tokio::task::yield_now().await;
    let started = now();
    let is_request = flags.compat == Compat::Document || operation.is_request();
    let answered = match is_request {
        true => in_time(bounds.until, call(flags, paths, operation, now_ms)).await,
        false => Err(agent::no_request()),
    };
    let answered = answered.and_then(|answer| bounds.take(answer));
    let answered = answered.unwrap_or_else(|fault| super::error_response(flags.compat, &fault));
    let is_error = answered.status != 200;
    let status = match flags.compat {
        Compat::Document if is_error => 400,
        _ => answered.status,
    };
    let mut out = Vec::new();
    let mut item = Object::open(&mut out);
    item.value("status", |out| write_number(u64::from(status), out));
    let body = body(flags.compat, answered.body.bytes());
    let id = body.as_ref().map(|_| request_id(flags.compat, operation));
    item.text("requestID", id.as_deref().unwrap_or_default());
    item.text("operationID", &operation.operation_id);
    item.text("method", &operation.method);
    item.text("url", &operation.url);
    item.raw("body", body.as_deref().unwrap_or("null"));
    item.text("startedAt", &started);
    item.text("endedAt", &ended(flags.compat, is_request));
    item.close();
    (out, is_error)
}

/// What a call answers in time. One whose time is over before it begins is not begun.
///
/// Errors: 504, and what the call says.
async fn in_time(
    until: Instant,
    call: impl Future<Output = Result<Response, Fault>>,
) -> Result<Response, Fault> {
    let late = || {
        let message = "the time of the batch was over before this operation was done";
        Err(Fault::new(FaultKind::UpstreamTimeout, message))
    };
    if Instant::now() >= until {
        return late();
    }
    timeout_at(until, call).await.unwrap_or_else(|_| late())
}

/// The body of an item; the agent of old reads and writes it anew, and has none for an empty one.
fn body(compat: Compat, answered: &[u8]) -> Option<Cow<'_, str>> {
    match compat {
        Compat::Agent => {
            let value: Value = serde_json::from_slice(answered).ok()?;
            Some(encode::value(&value).into())
        }
        Compat::Document if answered.is_empty() => Some("{}".into()),
        Compat::Document => Some(String::from_utf8_lossy(answered)),
    }
}

/// Runs the call that an operation names; only decision endpoints can be, and no batch.
async fn call(
    flags: &DecisionService,
    paths: &BatchPaths,
    operation: &BatchOperation,
    now_ms: u64,
) -> Result<Response, Fault> {
    let is_agent = flags.compat == Compat::Agent;
    let (path, in_url) = operation.target(flags.compat);
    let found = match is_agent {
        true => agent_endpoint(paths, &operation.method, path),
        false => Ok(endpoint(paths, &operation.method, path)?),
    };
    let query = query(operation, in_url)?;
    let headers = headers(operation)?;
    let body = match &operation.body {
        // The agent of old sends it written anew: of names that differ in their case the last in order counts.
        body if is_agent => encode::value(body).into_bytes(),
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let call = Request {
        headers: &headers,
        path,
        query: &query,
        body: &body,
        caller: None,
        client_ip: None,
        now_ms,
    };
    match found {
        Ok(endpoint) => answer(flags, endpoint, &call).await,
        Err(fault) => {
            // Below here the agent of old knows who asks before it knows for what.
            if path.starts_with("/v1/") {
                super::caller(flags, &call).await?;
            }
            Err(fault)
        }
    }
}

/// The endpoint that an operation names.
///
/// Errors: 400 for another method, and for what answers no decisions; 404, 405.
fn endpoint(paths: &BatchPaths, method: &str, path: &str) -> Result<Endpoint, Fault> {
    let method = match method {
        "" | "GET" => Method::GET,
        "POST" => Method::POST,
        other => {
            let message = format!("`method` is {other:?}; GET and POST are accepted");
            return Err(Fault::new(FaultKind::Invalid, message).with_param("method"));
        }
    };
    match paths.find(&method, path)? {
        Some(Target::Operation(endpoint)) => Ok(endpoint),
        _ => Err(no_decisions()),
    }
}

/// The same as the agent of old finds it, which knows no other endpoints than its own.
fn agent_endpoint(paths: &BatchPaths, method: &str, path: &str) -> Result<Endpoint, Fault> {
    let method = match method {
        "" => Method::GET,
        other => Method::from_bytes(other.as_bytes()).map_err(|_| agent::no_request())?,
    };
    let at = |method: &Method| match paths.find(method, path) {
        Ok(found) => Ok(found.filter(|target| is_of_agent(*target))),
        Err(fault)
            if matches!(
                fault.kind,
                FaultKind::NotFound | FaultKind::MethodNotAllowed
            ) =>
        {
            Ok(None)
        }
        Err(fault) => Err(fault),
    };
    let found = match method {
        Method::GET | Method::POST => at(&method)?,
        _ => None,
    };
    match found {
        Some(Target::Operation(endpoint)) => Ok(endpoint),
        Some(_) => Err(no_decisions()),
        None if at(&Method::GET)?.is_some() || at(&Method::POST)?.is_some() => {
            Err(agent::other_method())
        }
        None => Err(agent::no_page()),
    }
}

/// Whether the agent of old has such an endpoint beside batches, which do not nest.
fn is_of_agent(target: Target) -> bool {
    match target {
        Target::Operation(endpoint) => {
            !matches!(endpoint, Endpoint::OfrepFlag | Endpoint::OfrepFlags)
        }
        target => matches!(target, Target::Token | Target::EventStream),
    }
}

fn no_decisions() -> Fault {
    Fault::new(FaultKind::Invalid, "`url` names no decision endpoint").with_param("url")
}

fn query(operation: &BatchOperation, in_url: &str) -> Result<String, Fault> {
    let mut query = form_urlencoded::Serializer::new(in_url.to_owned());
    let named = operation
        .parameters
        .iter()
        .chain(&operation.params)
        .flatten();
    for (name, value) in named {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            match value {
                Value::String(text) => query.append_pair(name, text),
                Value::Bool(_) | Value::Number(_) => query.append_pair(name, &value.to_string()),
                _ => {
                    let message =
                        format!("`parameters.{name}` is neither a text nor a list of texts");
                    return Err(Fault::new(FaultKind::Invalid, message).with_param("parameters"));
                }
            };
        }
    }
    Ok(query.finish())
}

/// Headers of the operation and no others: a body without its `Content-Type` is of no media type.
fn headers(operation: &BatchOperation) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for (name, value) in operation.headers.iter().flatten() {
        let bad = || {
            let message = format!("the header {name:?} cannot be sent");
            Fault::new(FaultKind::Invalid, message).with_param("headers")
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let value = value.as_str().ok_or_else(bad)?;
        headers.append(header, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    Ok(headers)
}

/// The agent of old tells the id that an operation came with.
fn request_id(compat: Compat, operation: &BatchOperation) -> String {
    let given = operation.header("x-request-id");
    let given = given.filter(|id| compat == Compat::Agent && !id.is_empty());
    given.map_or_else(crate::decisions::new_uuid, str::to_owned)
}

/// When something ended; the agent of old has a time for what has never begun.
fn ended(compat: Compat, has_begun: bool) -> String {
    match compat {
        Compat::Agent if !has_begun => "0001-01-01T00:00:00Z".to_owned(),
        _ => now(),
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
