//! `POST /v1/decide`: one flag, several, or all.

use std::borrow::Cow;

use filters::fault::Fault;
use filters::flags::answer as written;
use filters::flags::ask;
use filters::flags::decide::{Decided, decide};
use filters::flags::notice::{self, Topic};

use super::Asked;
use super::known::Known;
use crate::reply::Answer;

/// One key: an object; several or none: a list, in the request's or the datafile's order.
pub(super) async fn answer(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let body = asked.body()?.decide()?;
    let mut wanted: Vec<Cow<'_, str>> = Vec::new();
    let mut named = 0;
    for key in asked.call.values("keys") {
        named += 1;
        if !wanted.contains(&key) {
            wanted.push(key);
        }
    }
    let is_one = named == 1;
    if wanted.is_empty() {
        let keys = asked.loaded.project.flag_keys();
        wanted.extend(keys.map(Cow::Borrowed));
    }
    let all = decided(asked, &body, &wanted).await?;
    let mut out = Vec::with_capacity(1024);
    if let [one] = all.as_slice()
        && is_one
    {
        write(asked, &body, one, &mut out);
        return Ok(Answer::json(out));
    }
    let is_listed = |one: &&Decided<'_>| one.is_enabled || !body.options.enabled_flags_only;
    out.push(b'[');
    for (at, decided) in all.iter().filter(is_listed).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(asked, &body, decided, &mut out);
    }
    out.push(b']');
    Ok(Answer::json(out))
}

/// Decides for one user, and tells whom it concerns: the profile is read once, and written once.
///
/// Errors: 500 where segments are wanted and not told.
pub(super) async fn decided<'a>(
    asked: &'a Asked<'a>,
    body: &ask::Decide<'_>,
    keys: &[impl AsRef<str>],
) -> Result<Vec<Decided<'a>>, Fault> {
    let project = &asked.loaded.project;
    let mut known = Known::new(asked, &body.user, &body.forced, body.options).await;
    if body.fetch_segments {
        known.fetch_segments(body.segment_options).await?;
    }
    let all = known
        .decide(
            keys,
            |key, inputs| decide(project, key.as_ref(), inputs),
            |decided: &Decided<'a>| decided.wants.clone(),
        )
        .await;
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

fn write(asked: &Asked<'_>, body: &ask::Decide<'_>, decided: &Decided<'_>, out: &mut Vec<u8>) {
    let user = &body.user;
    written::write_decided(decided, &user.id, &user.attributes, asked.compat(), out);
}
