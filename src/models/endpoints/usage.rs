//! `GET /v1/usage` and `GET /v1/usage/breakdown`: the usage and cost of calls, by time, or by model, provider, key, session
//! or agent.
//! Source: docs/model-gateway.md 2.18.
//!
//! A member's key sees its own calls, and every other key those of its organization. Limits are not enforced here, so
//! that a caller over a limit can see the reason.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind};
use filters::ledger::usage_query::{BreakdownQuery, UsageQuery, hour_text};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::ledger::StoreTurns;
use crate::models::Models;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;
use crate::store::Store;
use crate::store::ledger::{AgentOrigin, Usage, UsagePart, UsageScope};

/// How long a request waits for its turn at the store. The sum of a year may take that long, and calls need the store
/// too.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /v1/usage`.
pub struct GetUsage {
    pub turns: Arc<StoreTurns>,
}

/// `GET /v1/usage/breakdown`.
pub struct GetUsageBreakdown {
    pub turns: Arc<StoreTurns>,
}

/// Returns the turns that both endpoints take.
pub fn turns(models: &Models) -> Arc<StoreTurns> {
    let ledger = Arc::clone(&models.ledger);
    let busy = "too many others ask about usage now";
    Arc::new(StoreTurns::new(ledger, TURN_TIMEOUT, busy))
}

impl Endpoint for GetUsage {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let scope = scope(request.caller)?;
            let value = |name: &str| request.values(name).last();
            let asked = UsageQuery::parse(value, unix_ms(&request))?;
            let read = |store: Store| async move { store.usage_periods(&scope, asked).await };
            let periods = self.turns.with_store(read).await?;
            let data = periods.iter().map(|period| {
                let mut members = Map::new();
                members.insert("start".to_owned(), hour_text(period.first_hour).into());
                members.extend(to_members(&period.usage));
                Value::Object(members)
            });
            let [from, to] = asked.hours.bounds();
            let body = json!({
                "from": from,
                "to": to,
                "granularity": asked.granularity.as_str(),
                "data": data.collect::<Vec<Value>>(),
                "total": to_members(&Usage::sum(periods.iter().map(|period| &period.usage))),
            });
            Ok(Response::json(body.to_string().into_bytes()))
        })
    }
}

impl Endpoint for GetUsageBreakdown {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let scope = scope(request.caller)?;
            let value = |name: &str| request.values(name).last();
            let asked = BreakdownQuery::parse(value, unix_ms(&request))?;
            let read = |store: Store| async move { store.usage_parts(&scope, asked).await };
            let mut parts = self.turns.with_store(read).await?;
            let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
            let has_more = parts.len() > limit;
            parts.truncate(limit);
            let [from, to] = asked.hours.bounds();
            let body = json!({
                "from": from,
                "to": to,
                "group_by": asked.group.as_str(),
                "sort_by": asked.order.as_str(),
                "data": parts.into_iter().map(part).collect::<Vec<Value>>(),
                "has_more": has_more,
            });
            Ok(Response::json(body.to_string().into_bytes()))
        })
    }
}

/// Returns the calls that a caller may see.
fn scope(caller: Option<&Arc<Caller>>) -> Result<UsageScope, Fault> {
    let nobody = || Fault::new(FaultKind::Internal, "nobody calls");
    let caller = caller.ok_or_else(nobody)?;
    let is_own = caller.member.is_some();
    Ok(UsageScope {
        organization_id: Arc::clone(&caller.organization_id),
        key_id: is_own.then(|| Arc::clone(&caller.key_id)),
    })
}

fn unix_ms(request: &Request<'_>) -> i64 {
    i64::try_from(request.now_ms).unwrap_or(i64::MAX)
}

fn part(part: UsagePart) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), part.usage.name.as_str().into());
    members.extend(part.label.map(|label| ("label".to_owned(), label.into())));
    if let Some(AgentOrigin { session, parent }) = part.origin {
        members.insert("session_id".to_owned(), session.into());
        let parent = Some(parent).filter(|parent| !parent.is_empty());
        members.extend(parent.map(|parent| ("parent_agent_id".to_owned(), parent.into())));
    }
    members.extend(to_members(&part.usage));
    Value::Object(members)
}

fn to_members(usage: &Usage) -> Map<String, Value> {
    let members = [
        ("requests", usage.requests.into()),
        ("prompt_tokens", usage.prompt_tokens.into()),
        ("cached_tokens", usage.cached_tokens.into()),
        ("completion_tokens", usage.completion_tokens.into()),
        ("cost", usage.cost.to_string().into()),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    members.into_iter().collect()
}
