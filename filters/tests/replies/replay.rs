//! A stored reply makes the response that its reply made, and the other kind as well.

use filters::models::metadata::AnswerMembers;
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::usage::Settlement;
use serde_json::Value;

use crate::families::Case;
use crate::rules::{read_stream, read_whole};
use crate::{complete, identity, request};

/// Checks the record of a reply that was `answered`.
pub(crate) fn check(
    case: &Case,
    recorder: ReplyRecorder,
    settlement: &Settlement,
    is_stream: bool,
    answered: &[u8],
) {
    let name = &*case.name;
    let Some(events) = recorder.into_events() else {
        return assert!(!is_storable(is_stream, answered), "{name}: was not stored");
    };
    let members = AnswerMembers::Replayed("\"a\":1");
    let reply = CachedReply::new(events, settlement.usage, ("", "", ""), &members, 0);
    // Ids of calls are made up from the id of the response, so the replay has the same one here.
    let (id, created) = identity_of(answered);
    let replay = |is_stream| {
        let request = request(is_stream, &case.members);
        let mut writer = request.front.writer(&request, identity());
        writer.identity(Some(&id), Some(created));
        reply.replay(&mut *writer).unwrap();
        complete(&mut *writer, settlement);
        writer.take().to_vec()
    };
    let again = replay(is_stream);
    assert_eq!(again, answered, "{name}");
    let (whole, streamed) = (replay(false), replay(true));
    // Choices without an end are completed by the writers, and not stored.
    assert_eq!(
        read_whole(name, &whole),
        read_stream(name, &streamed),
        "{name}: replayed whole and streamed"
    );
}

/// Returns whether an answer has content and was not filtered.
fn is_storable(is_stream: bool, answered: &[u8]) -> bool {
    let read = if is_stream { read_stream } else { read_whole };
    let answer = read("", answered);
    let choices = answer["choices"].as_array().unwrap();
    choices.iter().any(|choice| choice["content"] != "")
        && choices
            .iter()
            .all(|choice| choice["finish"] != "content_filter")
}

/// Returns the id and the time of a response.
fn identity_of(answered: &[u8]) -> (String, u64) {
    let text = String::from_utf8(answered.to_vec()).unwrap();
    let first = text.split("\n\n").next().unwrap();
    let first: Value = serde_json::from_str(first.strip_prefix("data: ").unwrap_or(first)).unwrap();
    let id = first["id"].as_str().unwrap();
    (id.to_owned(), first["created"].as_u64().unwrap())
}
