//! `POST /v1/lookup` and `/v1/save`: what a user got before.

use bytes::Bytes;
use filters::decisions::{Compat, answer as written};
use filters::fault::{Fault, FaultKind};

use super::DecisionContext;
use crate::decisions::profiles::Profiles;
use crate::proxy::response::Response;
use crate::redis::Unavailable;

/// The profile of a user.
///
/// Errors: 500 where none are kept, 503 where Redis keeps them and does not answer.
pub(super) async fn lookup(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    kept_at_all(asked)?;
    let user = asked.body()?.user()?;
    let found = profiles(asked)?.of(&asked.sdk_key, &user.id).await;
    let profile = found.or_else(|Unavailable| unreachable(asked))?;
    Ok(Response::json(written::profile(&user.id, &profile)))
}

/// Puts a profile in the place of the user's; an empty answer.
///
/// Errors: as [`lookup`].
pub(super) async fn save(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    kept_at_all(asked)?;
    let mut body = asked.body()?;
    let (user, profile) = (body.user()?, body.profile()?);
    let profiles = profiles(asked)?;
    let kept = profiles.replace(&asked.sdk_key, &user.id, profile).await;
    kept.or_else(|Unavailable| unreachable(asked))?;
    Ok(Response::json(Bytes::new()))
}

/// The agent of old answers as if there were no profile, and loses what it cannot keep.
fn unreachable<T: Default>(asked: &DecisionContext<'_>) -> Result<T, Fault> {
    if asked.compat() == Compat::Agent {
        return Ok(T::default());
    }
    let message = "profiles cannot be reached right now: try again in a second";
    let fault = Fault::new(FaultKind::Unavailable, message).with_retry_after_s(1);
    Err(fault.with_detail("shared.redis does not answer"))
}

/// Where no profiles are kept the agent of old does not look at the body.
fn kept_at_all(asked: &DecisionContext<'_>) -> Result<(), Fault> {
    match asked.compat() {
        Compat::Agent => profiles(asked).map(drop),
        Compat::Document => Ok(()),
    }
}

fn profiles<'a>(asked: &'a DecisionContext<'_>) -> Result<&'a Profiles, Fault> {
    let profiles = asked.flags.profiles.as_ref();
    profiles.ok_or_else(|| Fault::new(FaultKind::Internal, "no user profile service found"))
}
