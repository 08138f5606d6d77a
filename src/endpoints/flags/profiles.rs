//! `POST /v1/lookup` and `/v1/save`: what a user got before.

use bytes::Bytes;
use filters::fault::{Fault, Kind};
use filters::flags::answer as written;

use super::Asked;
use crate::flags::Profiles;
use crate::reply::Answer;

/// The profile of a user.
pub(super) fn lookup(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let user = asked.body()?.user()?;
    let profile = profiles(asked)?.of(&asked.sdk_key, &user.id);
    Ok(Answer::json(written::profile(&user.id, &profile)))
}

/// Puts a profile in the place of the user's; an empty answer.
pub(super) fn save(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let body = asked.body()?;
    let (user, profile) = (body.user()?, body.profile()?);
    profiles(asked)?.replace(&asked.sdk_key, &user.id, profile);
    Ok(Answer::json(Bytes::new()))
}

fn profiles<'a>(asked: &'a Asked<'_>) -> Result<&'a Profiles, Fault> {
    let profiles = asked.flags.profiles.as_ref();
    profiles.ok_or_else(|| Fault::new(Kind::Internal, "no user profile service found"))
}
