//! All prompts, or those of one organization.

use maud::{Markup, html};

use super::{PAGE_ROWS, PATH, PROMPT, refusal};
use crate::console::Console;
use crate::console::parts::{TableColumn, number, pager, table, text, time};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::links::{link, name_of};
use crate::console::views::spend_limits::organization_link;
use crate::store::{PageQuery, PromptSummary};

const COLUMNS: [TableColumn; 6] = [
    text("Prompt"),
    text("Organization"),
    text("Project"),
    number("Versions"),
    text("Labels"),
    text("Newest version (UTC)"),
];

/// Which prompts are listed.
struct PromptsQuery {
    organization: String,
    search: String,
    after: String,
}

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let asked = match PromptsQuery::parse(request) {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let (organization, search, after) = (
        asked.organization.clone(),
        asked.search.clone(),
        asked.after.clone(),
    );
    let page = console.with_store(|store| async move {
        let page = PageQuery {
            search: &search,
            after: Some(&*after).filter(|after| !after.is_empty()),
            limit: PAGE_ROWS,
        };
        let organization = Some(&*organization).filter(|name| !name.is_empty());
        store.prompts_page(organization, page).await
    });
    let page = match page.await {
        Ok(page) => page,
        Err(error) => return refusal(&error),
    };
    let rows: Vec<Vec<Markup>> = page.rows.iter().map(row).collect();
    let next = page.next.as_deref().map(|after| asked.link(after));
    let body = html! {
        p.muted {
            "Messages, a model and parameters under a name, which requests give as " code { "@prompt/NAME" } ". "
            code { "weirgate prompt put" } " stores a version."
        }
        @if !console.app().models.prompts_enabled {
            p.notice.warning role="status" { "Requests that name prompts are refused: " code { "prompts.enabled" } " is false." }
        }
        (asked.form())
        (table("Prompts, by name", &COLUMNS, &rows, "There is no such prompt."))
        (pager(next.as_deref()))
    };
    ConsoleReply::page("Prompts", body)
}

impl PromptsQuery {
    fn parse(request: &ConsoleRequest) -> Result<Self, Box<ConsoleReply>> {
        let value = |name: &str| name_of(name, request.query(name));
        Ok(Self {
            organization: value("organization")?,
            search: value("search")?,
            after: value("after")?,
        })
    }

    /// Returns the address of the page behind a prompt.
    fn link(&self, after: &str) -> String {
        let pairs = [
            ("organization", &*self.organization),
            ("search", &self.search),
            ("after", after),
        ];
        link(PATH, &pairs)
    }

    fn form(&self) -> Markup {
        html! {
            form.filters method="get" action=(PATH) role="search" {
                div {
                    label for="search" { "Name begins with" }
                    input #search name="search" type="search" value=(self.search);
                }
                div {
                    label for="organization" { "Organization" }
                    input #organization name="organization" value=(self.organization);
                }
                button type="submit" { "Find" }
            }
        }
    }
}

fn row(prompt: &PromptSummary) -> Vec<Markup> {
    let (newest, newest_at_ms) = prompt.newest;
    vec![
        html! { a href=(link(PROMPT, &[("id", &prompt.id)])) { (prompt.name) } },
        organization_link(&prompt.organization),
        html! { @match &prompt.project { Some(project) => (project), None => span.muted { "all" } } },
        html! { (prompt.versions) },
        html! {
            @for (label, version) in &prompt.labels { div { (label) " is " (version) } }
        },
        html! { (newest) ", " (time(newest_at_ms)) },
    ]
}
