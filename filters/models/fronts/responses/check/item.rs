//! `input`: a text, or items.

use std::borrow::Cow;

use super::Findings;
use super::part::{content, native, part, text};
use super::tool::tools;
use super::top::text_or_list;
use crate::json::{Type, Walker};
use crate::models::check::deferred::Deferred;
use crate::models::check::read::{OneOf, array, expect, object_of_set, one_of, required, string};
use crate::models::check::reject::Reject;
use crate::models::dialects::compaction::{self, Compaction};
use crate::models::dialects::responses::is_own_id;
use crate::models::stateful::ItemReference;

const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];

/// The maximum number of items. Source: docs/hostile-input.md 28.
const MAX_ITEMS: usize = 100_000;

/// What is said of an item that names one of an earlier response.
const NO_REFERENCES: &str = "refers to an item of a stored response, which this gateway does not keep unless `[responses] store` is true; accepted is the item itself";

const ITEM: [&str; 14] = [
    "type",
    "role",
    "content",
    "id",
    "call_id",
    "name",
    "namespace",
    "arguments",
    "input",
    "output",
    "summary",
    "encrypted_content",
    "tools",
    "result",
];

/// `input`.
pub(super) fn input(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let accepted = "a string or an array of items";
    let count = text_or_list(walk, found, accepted, |walk, found, at| {
        if at >= MAX_ITEMS {
            let said = format!("is one of more than {MAX_ITEMS} items");
            return Err(Reject::rule(said));
        }
        if found.compaction == Compaction::Item {
            let said = "stands behind a `compaction_trigger`; accepted is that as the last item";
            return Err(Reject::rule(said));
        }
        found.place = ("content", at, 0);
        walk.peek()?;
        let (start, states) = (walk.at(), found.states);
        item(walk, found)?;
        if found.states > states {
            found.special.push(start..walk.at());
        }
        if let Some(id) = found.reference.take() {
            found.state.refer(ItemReference { id, index: at }, || {
                let rule = Reject::rule(NO_REFERENCES).within("type");
                rule.within_item(at).within("input")
            });
        }
        Ok(())
    })?;
    let said = count - usize::from(found.compaction == Compaction::Item);
    found.has_input = said > 0;
    Ok(())
}

/// What an item holds: JSON, but for what is read in place.
#[derive(Default)]
struct ItemMembers<'a> {
    kind: Option<Cow<'a, str>>,
    role: Option<&'static str>,
    content: Option<Deferred<'a>>,
    output: Option<Deferred<'a>>,
    tools: Option<Deferred<'a>>,
    id: Option<&'a str>,
    call_id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Option<&'a str>,
    input: Option<&'a str>,
    summary: Option<&'a str>,
    encrypted_content: Option<&'a str>,
    result: Option<&'a str>,
}

impl<'a> ItemMembers<'a> {
    fn slot(&mut self, key: &str) -> &mut Option<&'a str> {
        match key {
            "id" => &mut self.id,
            "call_id" => &mut self.call_id,
            "name" => &mut self.name,
            "arguments" => &mut self.arguments,
            "input" => &mut self.input,
            "summary" => &mut self.summary,
            "encrypted_content" => &mut self.encrypted_content,
            _ => &mut self.result,
        }
    }
}

/// An item. Its members count once its type is known. Nearly all clients write the type first, so that what it holds is read in
/// place, once.
fn item(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut members = ItemMembers::default();
    object_of_set(walk, &ITEM, |walk, key| {
        match key {
            "type" => members.kind = Some(string(walk)?.unescaped()),
            "role" => members.role = Some(one_of(walk, &ROLES)?),
            "namespace" => _ = string(walk)?,
            "content" => members.content = Some(in_place(walk, &members.kind, key, found)?),
            "output" => members.output = Some(in_place(walk, &members.kind, key, found)?),
            "tools" => members.tools = Some(in_place(walk, &members.kind, key, found)?),
            _ => *members.slot(key) = Some(walk.skip()?),
        }
        Ok(())
    })?;
    if let Some(id) = members.id {
        text(Some(id), "id")?;
        let id = Walker::over(id).text()?;
        found.states += usize::from(is_own_id(&id));
    }
    let kind = members.kind.take();
    match kind.as_deref() {
        // The vendor lets a message be without its type.
        None if members.role.is_some() => message(members, found),
        Some("message") => message(members, found),
        kind => typed(
            required(kind, "type", "the type of the item")?,
            members,
            found,
        ),
    }
}

type ReadMember = fn(&mut Walker<'_>, &mut Findings) -> Result<(), Reject>;

/// Returns what reads a member of an item of this type; `None`: nothing of it counts.
fn reader(kind: &str, key: &str) -> Option<ReadMember> {
    match (kind, key) {
        ("message", "content") => Some(|walk, found| content(walk, found, "content")),
        ("reasoning", "content") => {
            Some(|walk, found| array(walk, |walk, _| part(walk, found)).map(|_| ()))
        }
        ("function_call_output" | "custom_tool_call_output", "output") => {
            Some(|walk, found| content(walk, found, "output"))
        }
        ("additional_tools" | "tool_search_output", "tools") => Some(tools),
        _ => None,
    }
}

/// Reads a member in place where the type is known, and keeps it for later where it is not.
fn in_place<'a>(
    walk: &mut Walker<'a>,
    kind: &Option<Cow<'_, str>>,
    key: &str,
    found: &mut Findings,
) -> Result<Deferred<'a>, Reject> {
    let read = kind.as_deref().and_then(|kind| reader(kind, key));
    match read {
        Some(read) => Deferred::read(walk, |walk| read(walk, found)),
        None => Deferred::keep(walk),
    }
}

/// Checks a member that has to be there.
fn finish(
    held: Option<Deferred<'_>>,
    (kind, key): (&str, &'static str),
    accepted: &str,
    found: &mut Findings,
) -> Result<(), Reject> {
    let held = required(held, key, accepted)?;
    held.finish(|walk| match reader(kind, key) {
        Some(read) => read(walk, found),
        None => Ok(walk.skip().map(|_| ())?),
    })
    .map_err(|reject| reject.within(key))
}

fn message(members: ItemMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    let role = required(members.role, "role", OneOf(&ROLES))?;
    if matches!(role, "user" | "assistant") && !found.has_turn {
        found.has_turn = true;
        found.needs.assistant_first = role == "assistant";
    }
    let accepted = "a string or an array of parts";
    finish(members.content, ("message", "content"), accepted, found)
}

fn typed(kind: &str, members: ItemMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    match kind {
        "function_call" => {
            filled(members.call_id, "call_id")?;
            filled(members.name, "name")?;
            found.text_bytes += text(members.arguments, "arguments")?.len() as u64;
            Ok(())
        }
        "custom_tool_call" => {
            filled(members.call_id, "call_id")?;
            filled(members.name, "name")?;
            found.text_bytes += text(members.input, "input")?.len() as u64;
            Ok(())
        }
        "function_call_output" | "custom_tool_call_output" => {
            filled(members.call_id, "call_id")?;
            let accepted = "a string or an array of parts";
            finish(members.output, (kind, "output"), accepted, found)
        }
        "tool_search_call" => {
            let arguments = required(members.arguments, "arguments", "an object")?;
            found.text_bytes += arguments.len() as u64;
            let mut walk = Walker::over(arguments);
            expect(&mut walk, Type::Object, "an object").map_err(|it| it.within("arguments"))
        }
        "additional_tools" | "tool_search_output" => {
            finish(members.tools, (kind, "tools"), "an array of tools", found)
        }
        "reasoning" => reasoning(members, found),
        "compaction" => compacted(members, found),
        "compaction_trigger" => {
            found.compaction = Compaction::Item;
            Ok(())
        }
        "image_generation_call" => drawn(members, found),
        "item_reference" => {
            filled(members.id, "id")?;
            let id = members.id.map(|id| Walker::over(id).text()).transpose()?;
            found.reference = id.map(Into::into);
            Ok(())
        }
        // What the vendor has run, which other providers do without, and what the gateway has run, which all do without.
        "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "mcp_call"
        | "mcp_list_tools" => Ok(()),
        kind => native("items", kind, found),
    }
}

/// A summary of the history, which says what it holds to any model, or to the vendor's alone.
fn compacted(members: ItemMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    let content = filled(members.encrypted_content, "encrypted_content")?;
    let content = Walker::over(content).text()?;
    found.states += 1;
    if !compaction::is_summary(&content) {
        return native("items", "compaction", found);
    }
    let Some(summary) = compaction::open(&content) else {
        let said = "is damaged; accepted is the text of a `compaction` item as it came";
        return Err(Reject::rule(said).within("encrypted_content"));
    };
    found.text_bytes += summary.len() as u64;
    Ok(())
}

/// A reasoning item. Its state is in `encrypted_content`; without any it belongs to nobody.
fn reasoning(members: ItemMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    if let Some(summary) = members.summary {
        let mut walk = Walker::over(summary);
        let read = array(&mut walk, |walk, _| part(walk, found));
        read.map_err(|it| it.within("summary"))?;
    }
    if members.content.is_some() {
        finish(members.content, ("reasoning", "content"), "an array", found)?;
    }
    if members.encrypted_content.is_some() {
        text(members.encrypted_content, "encrypted_content")?;
    }
    found.states += 1;
    Ok(())
}

/// An image that the model has drawn. Models that draw get it back, others do not; so it needs no vision.
fn drawn(members: ItemMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    if members.result.is_some() {
        found.media_bytes += text(members.result, "result")?.len() as u64;
        found.images += 1;
    }
    Ok(())
}

/// Returns the JSON of a text that says something.
fn filled<'a>(json: Option<&'a str>, key: &'static str) -> Result<&'a str, Reject> {
    match text(json, key)? {
        "" => Err(Reject::rule("is empty; accepted is a text that is not").within(key)),
        _ => Ok(json.unwrap_or_default()),
    }
}
