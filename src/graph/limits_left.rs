//! `GET /v1/graph/limits`: a tenant's limits and their remainders. The request itself does not count.
//!
//! The credential identifies the tenant, as in a request to the service. For a public key the response only contains
//! the operations that the key may call.

use std::collections::HashSet;
use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::graph::GraphOperation;
use filters::graph::credentials::{
    CredentialKind, Identity, PresentedCredential, VerificationInputs,
};
use filters::limits::{Subject, WindowKey};
use futures::future::{BoxFuture, try_join_all};
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::Graph;
use super::admission::read_claims;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// Responds with a tenant's limits.
pub(super) struct LimitsLeft {
    pub(super) graph: Arc<Graph>,
}

impl Endpoint for LimitsLeft {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let graph = &*self.graph;
            let identity = identify(graph, &request).await?;
            let tenant = identity.tenant.ok_or_else(|| {
                let message = "the credential is of no tenant; accepted is what the graph service takes in `Authorization`, or in `auth`";
                Fault::new(FaultKind::Unauthenticated, message).with_code(FaultCode::UnknownTenant)
            })?;
            let is_public = identity.kind == CredentialKind::Single;
            let operations = find_wanted(graph, &request, is_public)?;
            let left = operations
                .iter()
                .map(|operation| describe_left(graph, &tenant, operation));
            let data: Vec<Value> = try_join_all(left).await?;
            let body = json!({"tenant": &*tenant, "window_s": graph.window_s, "data": data});
            Ok(Response::json(body.to_string().into_bytes()))
        })
    }
}

/// Returns the tenant of a request. Its credential is verified as in a request to the service.
async fn identify(graph: &Graph, request: &Request<'_>) -> Result<Identity, Fault> {
    let query = Some(request.query).filter(|query| !query.is_empty());
    let presented = PresentedCredential::from_request(request.headers, query)?;
    let claims = match presented {
        PresentedCredential::Bearer(token) => {
            read_claims(graph, token, request.now_ms / 1000).await
        }
        _ => None,
    };
    let now_ms = i64::try_from(request.now_ms).unwrap_or(i64::MAX);
    let path_and_query = match query {
        None => request.path.to_owned(),
        Some(query) => format!("{}?{query}", request.path),
    };
    let inputs = VerificationInputs {
        method: "GET",
        path_and_query: &path_and_query,
        body_md5: Some(Md5::digest(request.body).into()),
        now_ms,
        accepts_single_key: true,
        claims: claims.as_ref(),
    };
    Ok(graph.tenants.identify(&presented, &inputs, &graph.nonces))
}

/// Returns the operations that a request asks for, or all that its credential may call if it names none.
///
/// Errors: 400 for another name.
fn find_wanted<'g>(
    graph: &'g Graph,
    request: &Request<'_>,
    is_public: bool,
) -> Result<Vec<&'g GraphOperation>, Fault> {
    let all = graph.operations.all().map(|operation| &**operation);
    // Several rows may belong to one operation with one window.
    let mut seen = HashSet::new();
    let all = all.filter(|operation| seen.insert(operation.id));
    let all = all.filter(|operation| !is_public || operation.accepts_single_key);
    let Some(name) = request.values("operation").last() else {
        return Ok(all.collect());
    };
    let found: Vec<&GraphOperation> = all.filter(|operation| *operation.name == *name).collect();
    if found.is_empty() {
        let shown = filters::fault::quoted(&name);
        let message = format!(
            "`operation` is {shown:?}; accepted is a method and a path of the service, such as `POST /content/v2`, that the credential may call"
        );
        return Err(Fault::invalid("operation", message));
    }
    Ok(found)
}

async fn describe_left(
    graph: &Graph,
    tenant: &Arc<str>,
    operation: &GraphOperation,
) -> Result<Value, Fault> {
    let limit = graph.limits.limit(Some(tenant), operation);
    let key = WindowKey {
        subject: Subject::Named(Arc::clone(tenant)),
        row: operation.id,
    };
    let remaining = graph.counters.remaining(&key, limit).await?;
    Ok(json!({"operation": operation.name, "limit": limit, "remaining": remaining}))
}
