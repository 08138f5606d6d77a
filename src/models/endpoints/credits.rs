//! `GET /v1/credits`: the remaining credit of the calling key's organization. Source: docs/facts/model-gateway.md
//! 1.19.
//!
//! The response has the members that clients of the AI SDK read. No amount is rounded.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::json::Object;
use futures::future::BoxFuture;

use crate::models::Models;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// `GET /v1/credits`.
pub struct Credits {
    pub models: Arc<Models>,
}

impl Endpoint for Credits {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let Some(caller) = request.caller else {
                return Err(Fault::new(FaultKind::Internal, "nobody calls"));
            };
            let credit = self.models.ledger.credit(&caller.organization_id).await?;
            let mut out = Vec::with_capacity(96);
            let mut body = Object::open(&mut out);
            body.text("balance", &credit.balance().to_string());
            body.text("total_used", &credit.used.to_string());
            body.close();
            Ok(Response::json(out))
        })
    }
}
