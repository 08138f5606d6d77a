//! One prompt: its versions and labels, what a version says, and who has changed it.

use filters::models::prompts::reference::VersionReference;
use maud::{Markup, html};
use serde_json::Value;

use super::messages::messages;
use super::{
    DIFFERENCE, OwnedPrompt, PAGE_ROWS, PROMPT, RENDER, asked_id, asked_version, difference, label,
    parse_content, refusal,
};
use crate::console::Console;
use crate::console::parts::{number, pager, table, text, time};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::Typed;
use crate::console::views::spend_limits::organization_link;
use crate::store::{
    AuditFilter, HashedEntry, SeenKind, SeenThing, Store, StoreError, StoredVersion,
};

/// The entries of the audit log that are shown.
const MAX_ENTRIES: u32 = 20;

/// What the page shows.
struct PromptPage {
    of: OwnedPrompt,
    version: StoredVersion,
    entries: Vec<HashedEntry>,
    /// The prompt as the form has it; `None`: nothing may be changed.
    seen: Option<SeenThing>,
}

/// The page. `typed` is what was typed into its form that was refused.
pub(super) async fn page(
    console: &Console,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> ConsoleReply {
    let asked = || -> Result<_, Box<ConsoleReply>> {
        Ok((asked_id(request)?, asked_version(request, "version")?))
    };
    let (id, version) = match asked() {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let is_writable = console.is_writable();
    let gathered =
        console.with_store(|store| async move { gather(&store, &id, version, is_writable).await });
    let rendered = match gathered.await {
        Ok(page) => parse_content(&page.version).map(|content| (page, content)),
        Err(error) => Err(error),
    };
    match rendered {
        Ok((page, content)) => {
            let body = render(&page, &content, request, typed);
            let status = typed.map_or(200, |typed| typed.refusal.status);
            ConsoleReply::refused(status, format!("Prompt {}", page.of.prompt.name), body)
        }
        Err(error) => refusal(&error),
    }
}

async fn gather(
    store: &Store,
    id: &str,
    version: Option<VersionReference>,
    is_writable: bool,
) -> Result<PromptPage, StoreError> {
    let seen = match is_writable {
        true => Some(store.see(SeenKind::Prompt, id).await?),
        false => None,
    };
    let of = OwnedPrompt::read(store, id).await?;
    // What requests get by the name alone, else the newest.
    let usual = of.prompt.find(&VersionReference::default());
    let usual = usual.or(of.prompt.versions.last().map(|it| it.0));
    let version = version.unwrap_or(VersionReference::Number(usual.unwrap_or_default()));
    let version = store.prompt_version(&of.prompt, &version).await?;
    let organization_id = store.organization(&of.organization).await?.id;
    let filter = AuditFilter {
        organization_id: Some(organization_id),
        action: Some("prompt".to_owned()),
        subject_id: Some(id.to_owned()),
        ..AuditFilter::default()
    };
    let entries = store.audit_entries(&filter, MAX_ENTRIES).await?.entries;
    Ok(PromptPage {
        of,
        version,
        entries,
        seen,
    })
}

fn render(
    page: &PromptPage,
    content: &Value,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let of = &page.of;
    let number = page.version.number;
    html! {
        p { a href=(super::PATH) { "All prompts" } }
        dl.pairs {
            dt { "In requests" } dd { code { "@prompt/" (of.prompt.name) } }
            dt { "Organization" } dd { (organization_link(&of.organization)) }
            dt { "Project" } dd { @match &of.prompt.project { Some(project) => (project), None => "all that have none of this name" } }
            dt { "Id" } dd { code { (of.prompt.id) } }
        }
        h2 { "Versions" }
        (versions(of, request))
        h2 { "Labels" }
        (labels(of))
        @if let Some(seen) = &page.seen { (label::show(of, (number, seen), request, typed)) }
        h2 { "Compare two versions" }
        (difference::form(of, ["production", "latest"]))
        h2 { "Version " (number) }
        (version(of, &page.version, content))
        h2 { "Who has changed it" }
        (changes(&page.entries))
    }
}

/// The versions, the newest first, a page at a time.
fn versions(of: &OwnedPrompt, request: &ConsoleRequest) -> Markup {
    let columns = [
        number("Version"),
        text("Made (UTC)"),
        text("Labels"),
        text("Difference"),
        text("Render"),
    ];
    let below: u64 = request
        .query("below")
        .and_then(|below| below.parse().ok())
        .unwrap_or(u64::MAX);
    let all = &of.prompt.versions;
    let end = all.partition_point(|(number, _)| *number < below);
    let older = all.get(..end).unwrap_or_default();
    let mut shown = older.iter().enumerate().rev().take(PAGE_ROWS);
    let rows = shown.clone().map(|(at, (number, made_at_ms))| {
        let version = number.to_string();
        let before = at.checked_sub(1).and_then(|at| older.get(at));
        let named = |path| of.link(path, &[("version", &version)]);
        vec![
            html! { a href=(named(PROMPT)) { (number) } },
            time(*made_at_ms),
            html! { (of.labels(*number).join(", ")) },
            html! {
                @match before {
                    Some((before, _)) => {
                        a href=(of.link(DIFFERENCE, &[("from", &before.to_string()), ("to", &version)])) { (before) " to " (number) }
                    }
                    None => { span.muted { "the first" } }
                }
            },
            html! { a href=(named(RENDER)) { "render " (number) } },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let last = shown.next_back().filter(|(at, _)| *at > 0);
    let next = last.map(|(_, (number, _))| of.link(PROMPT, &[("below", &number.to_string())]));
    html! {
        (table("Versions, the newest first", &columns, &rows, "There is no older version."))
        (pager(next.as_deref()))
    }
}

fn labels(of: &OwnedPrompt) -> Markup {
    let columns = [text("Label"), number("Version")];
    let rows = of.prompt.labels.iter().map(|(label, version)| {
        let to = of.link(PROMPT, &[("version", &version.to_string())]);
        vec![html! { (label) }, html! { a href=(to) { (version) } }]
    });
    let rows: Vec<_> = rows.collect();
    table("Labels, by name", &columns, &rows, "It has no label.")
}

/// What a version says.
fn version(of: &OwnedPrompt, version: &StoredVersion, content: &Value) -> Markup {
    let member = |name: &str| content.get(name).filter(|value| !value.is_null());
    let is_empty = |value: &&Value| value.as_object().is_none_or(|it| !it.is_empty());
    let json = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    html! {
        dl.pairs {
            dt { "Made" } dd { (time(version.created_at_ms)) }
            dt { "Labels" } dd {
                @match &*of.labels(version.number).join(", ") { "" => "none", labels => (labels) }
            }
            dt { "Model" } dd {
                @match member("model").and_then(Value::as_str) { Some(model) => (model), None => "that of the request" }
            }
        }
        @for (name, title) in [("parameters", "Parameters"), ("variables", "Variables")] {
            @if let Some(value) = member(name).filter(is_empty) {
                h3 { (title) }
                pre.text tabindex="0" { (json(value)) }
            }
        }
        h3 { "Messages" }
        (messages(content.get("messages").unwrap_or(&Value::Null)))
    }
}

/// The changes of a prompt, the newest first.
fn changes(entries: &[HashedEntry]) -> Markup {
    let columns = [
        text("When (UTC)"),
        text("Who says so"),
        text("From where"),
        text("What"),
        text("Before and after"),
    ];
    let rows = entries.iter().map(|hashed| {
        let entry = &hashed.entry;
        vec![
            time(entry.at_ms),
            html! { (entry.actor) },
            html! { (entry.origin) },
            html! { (entry.action) },
            html! {
                @for (title, fields) in [("before", &entry.before), ("after", &entry.after)] {
                    @if let Some(fields) = fields {
                        div { span.muted { (title) " " } code { (fields) } }
                    }
                }
            },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let caption = format!("Entries of the audit log, the newest {MAX_ENTRIES}");
    table(
        &caption,
        &columns,
        &rows,
        "The audit log has no entry of it.",
    )
}
