//! The audit log: who changed what.

use maud::{Markup, html};

use crate::console::Console;
use crate::console::parts::{TableColumn, number, pager, table, text, time};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::links::name_of;
use crate::store::{AuditFilter, AuditPage, HashedEntry};

/// The path of the view.
pub(super) const PATH: &str = "/console/audit";
/// The entries on one page.
const PAGE_ENTRIES: u32 = 50;

const COLUMNS: [TableColumn; 7] = [
    number("Number"),
    text("When (UTC)"),
    text("Who says so"),
    text("From where"),
    text("What"),
    text("About"),
    text("Before and after"),
];

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let asked = || -> Result<_, Box<ConsoleReply>> {
        let value = |name: &str| -> Result<Option<String>, Box<ConsoleReply>> {
            let value = name_of(name, request.query(name))?;
            Ok(Some(value).filter(|value| !value.is_empty()))
        };
        let filter = AuditFilter {
            actor: value("actor")?,
            action: value("action")?,
            below: request.query("below").and_then(|below| below.parse().ok()),
            ..AuditFilter::default()
        };
        Ok((value("organization")?, filter))
    };
    let (organization, filter) = match asked() {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let wanted = organization.clone();
    let reading = console.with_store(|store| async move {
        let mut filter = filter;
        if let Some(name) = &wanted {
            filter.organization_id = Some(store.audited_organization(name).await?);
        }
        store.audit_entries(&filter, PAGE_ENTRIES).await
    });
    let (page, problem) = match reading.await {
        Ok(page) => (page, None),
        Err(error) if organization.is_some() => (AuditPage::default(), Some(error.to_string())),
        Err(error) => return ConsoleReply::failed(&error),
    };
    ConsoleReply::page("Audit", render(request, &page, problem.as_deref()))
}

fn render(request: &ConsoleRequest, page: &AuditPage, problem: Option<&str>) -> Markup {
    let rows: Vec<Vec<Markup>> = page.entries.iter().map(row).collect();
    let last = page.entries.last().filter(|_| page.has_more);
    let next = last.map(|last| {
        let kept = request.query_without(&["below"]);
        format!("{PATH}?{kept}&below={}", last.entry.number)
    });
    html! {
        p { "Changes of accounts, the newest first: by the command line and by this console. " code { "weirgate audit --verify" } " walks along the chain of hashes." }
        form.filters method="get" action=(PATH) {
            @for (name, label) in [("organization", "Organization"), ("actor", "Who"), ("action", "Action or kind")] {
                div {
                    label for=(name) { (label) }
                    input id=(name) name=(name) value=(request.query(name).unwrap_or_default());
                }
            }
            button type="submit" { "Filter" }
        }
        @if let Some(problem) = problem {
            p.notice role="alert" { (problem) }
        }
        (table("Entries", &COLUMNS, &rows, "No entry is so."))
        (pager(next.as_deref()))
    }
}

fn row(hashed: &HashedEntry) -> Vec<Markup> {
    let entry = &hashed.entry;
    vec![
        html! { (entry.number) },
        time(entry.at_ms),
        html! { (entry.actor) },
        html! { (entry.origin) },
        html! { (entry.action) },
        html! {
            (entry.name)
            @if !entry.organization.is_empty() && entry.organization != entry.name {
                " " span.muted { "of " (entry.organization) }
            }
            div.muted { code { (entry.subject_id) } }
        },
        html! {
            @for (title, fields) in [("before", &entry.before), ("after", &entry.after)] {
                @if let Some(fields) = fields {
                    div { span.muted { (title) " " } code { (fields) } }
                }
            }
        },
    ]
}
