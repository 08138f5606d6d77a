//! A request that the gateway itself makes on behalf of the caller, with its keys, its limits and its money: a search of the web
//! for a model, or a model that judges the calls of another one.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::ledger::SessionNames;
use filters::models::front::Front;
use filters::models::fronts::search::SEARCH;
use filters::models::metadata::AttemptRecord;
use filters::models::request::ModelRequest;
use filters::models::search_loop::{SearchFunction, SearchOutcome};
use filters::models::usage::Settlement;
use tokio::time::Instant;

use super::ModelExchange;
use super::planned_attempt::PlannedCall;
use crate::models::Models;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{End, Exchange};
use crate::proxy::own_call::OwnCall;

/// The most time of a request. Then it has failed.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most time that a search's provider may be silent. Then the next one is asked.
const SEARCH_SILENCE: Duration = Duration::from_secs(8);
/// The same of a model, which says nothing before its answer is whole.
pub(super) const MODEL_SILENCE: Duration = Duration::from_secs(18);

/// A request that has been answered.
pub(super) struct OwnReply {
    pub(super) body: Vec<u8>,
    /// What it took.
    pub(super) settlement: Option<Settlement>,
    /// The attempt that has succeeded.
    pub(super) record: Option<AttemptRecord>,
}

/// The request that an own one is for, and its session.
pub(super) type OnBehalf<'a> = (&'a RequestInfo, Option<&'a Arc<SessionNames>>);

/// Makes a request of providers that may be silent for so long, and logs why it failed.
///
/// Errors: its plan, or all its attempts, have failed.
pub(super) async fn ask(
    models: &Arc<Models>,
    (info, session): OnBehalf<'_>,
    request: Result<ModelRequest, Fault>,
    silence: Duration,
) -> Result<OwnReply, Fault> {
    let own = info.for_own_call(Instant::now());
    let exchange = request.and_then(|request| plan(models, &own, request));
    let asked = match exchange {
        Ok(mut exchange) => {
            exchange.set_session_names(session.map(Arc::clone));
            run(models, own, exchange, silence).await
        }
        Err(fault) => Err(fault),
    };
    if let Err(fault) = &asked {
        let request = info.id.as_str();
        log::warn!(
            "request {request}: a call on its behalf has failed: {}",
            fault.message
        );
    }
    asked
}

/// Searches the web. Not every provider can search for a country, so without one that can, it is left out.
pub(super) async fn search(
    models: &Arc<Models>,
    behalf: OnBehalf<'_>,
    function: &SearchFunction,
    query: &str,
) -> (SearchOutcome, Option<OwnReply>) {
    let is_local = function.has_country() && can_search(models, behalf.0, function, true);
    let request = SEARCH.parse(function.body(query, is_local).into());
    match ask(models, behalf, request, SEARCH_SILENCE).await {
        Ok(reply) => (
            SearchOutcome::read(&reply.body, function.most_results()),
            Some(reply),
        ),
        Err(_) => (SearchOutcome::Failed("unavailable"), None),
    }
}

/// Returns whether the caller has searches like this one.
pub(super) fn can_search(
    models: &Arc<Models>,
    info: &RequestInfo,
    function: &SearchFunction,
    is_local: bool,
) -> bool {
    let request = SEARCH.parse(function.body("any", is_local).into());
    let at = (info, Instant::now());
    request.is_ok_and(|request| PlannedCall::on_behalf(models, &request, at, false).is_ok())
}

fn plan(
    models: &Arc<Models>,
    info: &RequestInfo,
    request: ModelRequest,
) -> Result<Box<ModelExchange>, Fault> {
    let planned = PlannedCall::on_behalf(models, &request, (info, info.now), false)?;
    let PlannedCall {
        selection,
        attempts,
    } = planned;
    let models = Arc::clone(models);
    Ok(ModelExchange::new(
        models,
        Box::new(request),
        info,
        &selection,
        attempts,
    ))
}

async fn run(
    models: &Arc<Models>,
    info: RequestInfo,
    mut exchange: Box<ModelExchange>,
    silence: Duration,
) -> Result<OwnReply, Fault> {
    exchange.reserve(&info).await?;
    let state = exchange.state();
    let mut call = OwnCall {
        exchange: &mut *exchange,
        info,
        state,
        connector: Arc::clone(&models.own_connector),
        read_timeout: silence,
    };
    let body = tokio::time::timeout(TIMEOUT, call.run()).await;
    let mut info = call.info;
    info.now = Instant::now();
    let end = End {
        error: None,
        is_client_disconnected: false,
    };
    exchange.finish(&info, &end);
    let late = || Fault::new(FaultKind::UpstreamTimeout, "no provider answered in time");
    let body = body.map_err(|_| late())??;
    let settlement = exchange.call.billing.settlement().cloned();
    let records = exchange.call.log.records;
    let record = records.into_iter().rev().find(|record| record.succeeded);
    // Its times count from the beginning of this request, and not of the client's.
    let record = record.map(|record| AttemptRecord {
        ran: None,
        ..record
    });
    Ok(OwnReply {
        body,
        settlement,
        record,
    })
}
