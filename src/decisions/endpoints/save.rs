//! `POST /v1/save`: replaces the profile of a user.

use bytes::Bytes;
use filters::fault::Fault;

use super::context::DecisionContext;
use super::lookup::{check_profiles, or_outage};
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Stores the profile, and returns an empty body.
///
/// Errors: as [`lookup`](super::lookup::handle), and 400 for a body that is not a profile.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    check_profiles(&context)?;
    let mut body = context.read_body()?;
    let (user, profile) = (body.user()?, body.profile()?);
    let profiles = context.profiles()?;
    let stored = profiles.replace(&context.sdk_key, &user.id, profile).await;
    or_outage(&context, stored)?;
    Ok(Response::json(Bytes::new()))
}
