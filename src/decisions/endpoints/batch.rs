//! `POST /v1/batch`: several requests in one, answered in order. Source: docs/decision-agent.md 2.4, 4 rule 5.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use filters::decisions::batch::{
    AnsweredBatch, AnsweredOperation, BatchOperation, BatchTarget, FoundRoute, Times,
};
use filters::decisions::response_body::MAX_BODY_BYTES;
use filters::fault::{Fault, FaultKind};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::Method;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::context::{authorize, check_credentials};
use super::{Handle, WriteFault, error_response};
use crate::decisions::DecisionService;
use crate::decisions::uuid::new_uuid;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;
use crate::proxy::router::PathTable;

/// The maximum time for all operations of a batch. Our choice: the agent breaks off after 10 s, so its clients wait
/// no longer, and the finished operations have to reach them before.
const BATCH_TIMEOUT: Duration = Duration::from_secs(9);

/// The maximum number of operations of a batch that wait for datafiles at once. Our choice: a caller that invents SDK
/// keys causes one fetch for each, and a batch may contain hundreds.
const MAX_FETCHES: usize = 8;

/// The routes that an operation may name.
pub struct BatchRoutes {
    paths: PathTable,
    routes: Vec<BatchRoute>,
}

/// A route for operations of a batch.
pub struct BatchRoute {
    pub name: &'static str,
    pub method: Method,
    /// The normalised path.
    pub path: &'static str,
    /// The endpoint, if a batch may call it.
    pub handle: Option<Handle>,
    /// Writes the faults of the route.
    pub errors: WriteFault,
}

impl BatchRoutes {
    /// Creates the table of these routes.
    pub fn new(routes: Vec<BatchRoute>) -> Self {
        let paths = routes
            .iter()
            .map(|route| (route.method.clone(), route.path));
        Self {
            paths: PathTable::new(paths.collect()),
            routes,
        }
    }

    /// Returns the route for a method and a path. Errors: 400 for a path that cannot be normalised, 404, 405.
    fn find(&self, method: &Method, path: &str) -> Result<FoundRoute, Fault> {
        let index = self.paths.find(method, path, None)?;
        let route = self.routes.get(index);
        Ok(FoundRoute {
            index,
            name: route.map_or("", |route| route.name),
            is_operation: route.is_some_and(|route| route.handle.is_some()),
        })
    }
}

/// The bounds that all operations of a batch share.
struct Bounds {
    deadline: Instant,
    free_bytes: AtomicUsize,
    fetches: Semaphore,
}

impl Bounds {
    /// Returns the response if its body fits.
    ///
    /// Errors: 413.
    fn take(&self, response: Response) -> Result<Response, Fault> {
        let bytes = response.body.bytes().len();
        let less = |free: usize| free.checked_sub(bytes);
        let (order, free) = (Ordering::Relaxed, &self.free_bytes);
        free.fetch_update(order, order, less).map_err(|_| {
            let message = "the batch answers more than 16 MiB: ask for less at once";
            Fault::new(FaultKind::TooLarge, message)
        })?;
        Ok(response)
    }
}

/// Runs a batch within [`BATCH_TIMEOUT`]. An operation fails if it is not finished by then, or if its response does
/// not fit into [`MAX_BODY_BYTES`] together with the others.
///
/// Errors: 400 for a body that is not a batch, 422 for too many operations; 401 and 403 if the batch itself needs
/// credentials.
pub async fn handle(
    service: &DecisionService,
    routes: &BatchRoutes,
    request: &Request<'_>,
) -> Result<Response, Fault> {
    let bounds = Bounds {
        deadline: Instant::now() + BATCH_TIMEOUT,
        free_bytes: AtomicUsize::new(MAX_BODY_BYTES),
        fetches: Semaphore::new(MAX_FETCHES),
    };
    let protocol = service.protocol;
    if protocol.endpoint_rules().checks_batch_credentials {
        check_credentials(service, request).await?;
    }
    let operations = protocol.read_batch(request.body)?;
    let most = service.batch_max_operations;
    if operations.len() > most {
        return Err(protocol.too_many_operations(most));
    }
    let started_at = now();
    let mut running: Vec<BoxFuture<'_, _>> = Vec::with_capacity(operations.len());
    for operation in &operations {
        running.push(run_operation(service, routes, operation, request, &bounds).boxed());
    }
    let done = stream::iter(running).buffered(service.batch_concurrency);
    let done: Vec<(Vec<u8>, bool)> = done.collect().await;
    let error_count = done.iter().filter(|(_, is_error)| *is_error).count() as u64;
    let batch = AnsweredBatch {
        items: done.into_iter().map(|(item, _)| item).collect(),
        error_count,
        times: Times {
            started_at,
            ended_at: now(),
        },
    };
    Ok(Response::json(protocol.write_batch(batch)))
}

/// Returns the item of an operation, and whether it failed.
async fn run_operation(
    service: &DecisionService,
    routes: &BatchRoutes,
    operation: &BatchOperation,
    batch: &Request<'_>,
    bounds: &Bounds,
) -> (Vec<u8>, bool) {
    // Most operations never wait, so the worker's other requests get a turn here.
    tokio::task::yield_now().await;
    let started_at = now();
    let protocol = service.protocol;
    let response = match protocol.check_operation(operation) {
        Ok(()) => {
            let call = call(service, routes, operation, batch, &bounds.fetches);
            in_time(bounds.deadline, call).await
        }
        Err(fault) => Err(fault),
    };
    let response = response.and_then(|response| bounds.take(response));
    let response = response.unwrap_or_else(|fault| error_response(protocol, &fault));
    let item = AnsweredOperation {
        operation,
        status: response.status,
        body: response.body.bytes(),
        request_id: new_uuid(),
        times: Times {
            started_at,
            ended_at: now(),
        },
    };
    (protocol.write_item(&item), response.status != 200)
}

/// Returns the response of a call before the deadline. After the deadline no call is started.
///
/// Errors: 504, and those of the call.
async fn in_time(
    deadline: Instant,
    call: impl Future<Output = Result<Response, Fault>>,
) -> Result<Response, Fault> {
    let late = || {
        let message = "the time of the batch was over before this operation was done";
        Err(Fault::new(FaultKind::UpstreamTimeout, message))
    };
    if Instant::now() >= deadline {
        return late();
    }
    timeout_at(deadline, call).await.unwrap_or_else(|_| late())
}

/// Calls the endpoint of an operation.
async fn call(
    service: &DecisionService,
    routes: &BatchRoutes,
    operation: &BatchOperation,
    batch: &Request<'_>,
    fetches: &Semaphore,
) -> Result<Response, Fault> {
    let protocol = service.protocol;
    let find = |method: &Method, path: &str| routes.find(method, path);
    let target = protocol.find_target(operation, &find)?;
    let (path, query) = operation.split_url();
    let query = operation.query(query)?;
    let headers = protocol.operation_headers(operation, batch.headers, &service.credentials)?;
    let _permits = match service.may_fetch(&headers) {
        true => Some((
            fetches.acquire().await,
            service.batch_fetches.acquire().await,
        )),
        false => None,
    };
    let request = Request {
        headers: &headers,
        path,
        query: &query,
        body: &protocol.operation_body(operation),
        caller: None,
        client_ip: None,
        now_ms: batch.now_ms,
    };
    match target {
        BatchTarget::Endpoint(index) => {
            let route = routes.routes.get(index);
            let Some((handle, errors)) = route.and_then(|one| Some((one.handle?, one.errors)))
            else {
                return Err(Fault::new(FaultKind::Internal, "the route has no endpoint"));
            };
            let response = handle(service, request).await;
            Ok(response.unwrap_or_else(|fault| errors(protocol, &fault)))
        }
        BatchTarget::Missing { fault, is_hidden } => {
            if is_hidden {
                authorize(service, &request).await?;
            }
            Err(fault)
        }
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
