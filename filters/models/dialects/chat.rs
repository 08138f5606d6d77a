//! Members of chat completions. Source: docs/model-gateway.md 2.1, 2.2.

use super::NamedMember;

/// Returns what faults call a member of a history.
pub(super) fn member(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Turns => "messages",
        NamedMember::Role => "role",
        NamedMember::Content => "content",
        NamedMember::Calls => "tool_calls",
        NamedMember::AnsweredCall => "tool_call_id",
        NamedMember::FileId => "file.file_id",
    }
}
