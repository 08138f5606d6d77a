//! `POST /v1/decide`: one flag, several, or all.

use std::borrow::Cow;

use filters::decisions::answer as written;
use filters::decisions::ask;
use filters::decisions::decide::{Decision, decide};
use filters::decisions::keys::Keys;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::fault::Fault;

use super::DecisionContext;
use super::user_state::UserState;
use crate::proxy::response::Response;

/// One key: an object; several or none: a list, in the request's or the datafile's order.
///
/// Errors: 400 for too many keys, 413 for an answer that would be too long, and as [`decided`].
pub(super) async fn answer(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let body = asked.body()?.decide()?;
    let (user, compat) = (&body.user, asked.compat());
    let mut named = Keys::default();
    let mut times = 0;
    for key in asked.call.values("keys") {
        times += 1;
        named.name((), key, "keys")?;
    }
    let mut wanted: Vec<Cow<'_, str>> = named.into_vec().into_iter().map(|(_, key)| key).collect();
    if wanted.is_empty() {
        let keys = asked.loaded.project.flag_keys();
        wanted.extend(keys.map(Cow::Borrowed));
    }
    let all = decided(asked, &body, &wanted).await?;
    if let ([one], 1) = (all.as_slice(), times) {
        let mut out = Vec::with_capacity(1024);
        written::write_decided(one, &user.id, &user.attributes, compat, &mut out);
        return written::within(out).map(Response::json);
    }
    let is_listed = |one: &&Decision<'_>| one.is_enabled || !body.options.enabled_flags_only;
    let listed = all.iter().filter(is_listed);
    written::decided_list(listed, user, compat).map(Response::json)
}

/// Decides for one user, and tells whom it concerns: the profile is read once, and written once.
///
/// Errors: 500 where segments are wanted and not told, 413 for reasons that would fit no answer.
pub(super) async fn decided<'a>(
    asked: &'a DecisionContext<'a>,
    body: &ask::Decide<'_>,
    keys: &[impl AsRef<str>],
) -> Result<Vec<Decision<'a>>, Fault> {
    let project = &asked.loaded.project;
    let mut known = UserState::new(asked, &body.user, &body.forced, body.options).await;
    if body.fetch_segments {
        known.fetch_segments(body.segment_options).await?;
    }
    let all = known
        .decide(keys, |key, inputs| decide(project, key.as_ref(), inputs))
        .await?;
    let found: Vec<(&str, &str)> = all.iter().filter_map(|one| one.remembers).collect();
    known.remember(&found).await;
    let impressions = all.iter().flat_map(|decided| &decided.impressions);
    asked.tell(&body.user, impressions);
    for one in &all {
        asked.notify(Topic::Decision, || {
            notice::flag(
                one,
                &body.user,
                known.segments(),
                !one.impressions.is_empty(),
            )
        });
    }
    Ok(all)
}
