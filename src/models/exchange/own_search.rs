//! A search of the web that the gateway runs for a model: a call of `POST /v1/search` on behalf of the caller, with its keys, its
//! limits and its money.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use filters::models::front::Front;
use filters::models::fronts::search::SEARCH;
use filters::models::metadata::AttemptRecord;
use filters::models::search_loop::{SearchFunction, SearchOutcome};
use filters::models::usage::Settlement;
use tokio::time::Instant;

use super::ModelExchange;
use super::planned_attempt::PlannedCall;
use crate::models::Models;
use crate::models::planner::PlanContext;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{End, Exchange};
use crate::proxy::own_call::OwnCall;

/// The most time between two pieces of a search's reply.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// A search that has ended.
pub(super) struct DoneSearch {
    pub(super) found: SearchOutcome,
    /// What it took, if it was charged.
    pub(super) settlement: Option<Settlement>,
    /// The attempt that has found something.
    pub(super) record: Option<AttemptRecord>,
}

impl DoneSearch {
    /// Returns a search that has found nothing and costs nothing.
    pub(super) fn failed(found: SearchOutcome) -> Self {
        Self {
            found,
            settlement: None,
            record: None,
        }
    }
}

/// Runs a search.
pub(super) async fn run(
    models: &Arc<Models>,
    info: &RequestInfo,
    function: &SearchFunction,
    query: &str,
) -> DoneSearch {
    let own = info.for_own_call(Instant::now());
    let reply = match plan(models, &own, function, query) {
        Ok(exchange) => ask(models, own, exchange).await,
        Err(fault) => Err(fault),
    };
    match reply {
        Ok((reply, settlement, record)) => DoneSearch {
            found: SearchOutcome::read(&reply, function.most_results()),
            settlement,
            record,
        },
        Err(fault) => {
            let request = info.id.as_str();
            log::warn!(
                "request {request}: a search for its model has failed: {}",
                fault.message
            );
            DoneSearch::failed(SearchOutcome::Failed("unavailable"))
        }
    }
}

/// Returns whether the caller has searches at all.
pub(super) fn is_offered(
    models: &Arc<Models>,
    info: &RequestInfo,
    function: &SearchFunction,
) -> bool {
    let own = info.for_own_call(Instant::now());
    plan(models, &own, function, "offered").is_ok()
}

/// Plans a search; where no provider can search for the user's country, without it.
fn plan(
    models: &Arc<Models>,
    info: &RequestInfo,
    function: &SearchFunction,
    query: &str,
) -> Result<Box<ModelExchange>, Fault> {
    let planned = plan_at(models, info, function.body(query, true));
    match planned {
        Err(_) if function.has_country() => plan_at(models, info, function.body(query, false)),
        planned => planned,
    }
}

fn plan_at(
    models: &Arc<Models>,
    info: &RequestInfo,
    body: Vec<u8>,
) -> Result<Box<ModelExchange>, Fault> {
    let request = Box::new(SEARCH.parse(body.into())?);
    let caller = info.caller.as_deref();
    let byok_keys = models.byok_keys.of_caller(caller);
    let byok: Vec<&str> = byok_keys.iter().flat_map(|keys| keys.providers()).collect();
    let context = PlanContext {
        caller,
        byok_providers: &byok,
        session: None,
        no_fallback: false,
        explains: false,
        now_ms: models.clock.ms_at(info.now),
        now_s: info.unix_s(),
    };
    let resolution = models.planner.resolve(&request, &context, false)?;
    let byok_keys = byok_keys.as_deref();
    let planned = PlannedCall::new(models, &request, resolution, (&context, byok_keys))?;
    let PlannedCall {
        selection,
        attempts,
    } = planned;
    Ok(ModelExchange::new(
        Arc::clone(models),
        request,
        info,
        &selection,
        attempts,
    ))
}

/// Runs the planned attempts. Returns the reply, what it took, and the attempt that has succeeded.
async fn ask(
    models: &Arc<Models>,
    info: RequestInfo,
    mut exchange: Box<ModelExchange>,
) -> Result<(Vec<u8>, Option<Settlement>, Option<AttemptRecord>), Fault> {
    exchange.reserve(&info).await?;
    let state = exchange.state();
    let mut call = OwnCall {
        exchange: &mut *exchange,
        info,
        state,
        connector: Arc::clone(&models.own_connector),
        read_timeout: READ_TIMEOUT,
    };
    let reply = call.run().await;
    let mut info = call.info;
    info.now = Instant::now();
    let end = End {
        error: None,
        is_client_disconnected: false,
    };
    exchange.finish(&info, &end);
    let settlement = exchange.call.billing.settlement().cloned();
    let records = exchange.call.log.records;
    let record = records.into_iter().rev().find(|record| record.succeeded);
    Ok((reply?, settlement, record))
}
