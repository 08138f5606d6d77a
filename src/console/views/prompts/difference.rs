//! What differs between two versions of a prompt, line by line.

use std::time::Duration;

use filters::models::prompts::reference::{LATEST, PRODUCTION, VersionReference};
use maud::{Markup, html};

use super::{DIFFERENCE, OwnedPrompt, PROMPT, asked_id, asked_version, parse_content, refusal};
use crate::console::Console;
use crate::console::parts::{TableColumn, Tone, badge, count, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::models::prompt_lines::{
    DifferenceLine, LineChange, PromptDifference, PromptLines, compare,
};
use crate::store::{Store, StoreError, StoredVersion};

/// How long two versions are compared.
const MAX_TIME: Duration = Duration::from_millis(150);
/// The lines that are shown.
const MAX_LINES: usize = 2_000;
const COLUMNS: [TableColumn; 2] = [text("Change"), text("Line")];

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let asked = || -> Result<_, Box<ConsoleReply>> {
        let version = |name, label: &str| -> Result<VersionReference, Box<ConsoleReply>> {
            let asked = asked_version(request, name)?;
            Ok(asked.unwrap_or_else(|| VersionReference::Label(label.into())))
        };
        Ok((
            asked_id(request)?,
            version("from", PRODUCTION)?,
            version("to", LATEST)?,
        ))
    };
    let (id, from, to) = match asked() {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let read = console.with_store(|store| async move { read(&store, &id, [&from, &to]).await });
    let (of, versions) = match read.await {
        Ok(read) => read,
        Err(error) => return refusal(&error),
    };
    let [from, to] = versions.each_ref().map(|version| version.number);
    // Long prompts take time, which requests must not wait for.
    let comparing = console
        .background()
        .spawn_blocking(move || compared(&versions));
    let difference = match comparing.await {
        Ok(Ok(difference)) => difference,
        Ok(Err(error)) => return refusal(&error),
        Err(_) => return ConsoleReply::failed(&"the comparison ended: the log says why"),
    };
    let name = &of.prompt.name;
    let body = html! {
        p { a href=(of.link(PROMPT, &[])) { "The prompt " (name) } }
        (form(&of, [&from.to_string(), &to.to_string()]))
        (lines(&difference, [from, to]))
    };
    ConsoleReply::page(format!("Versions {from} and {to} of {name}"), body)
}

async fn read(
    store: &Store,
    id: &str,
    [from, to]: [&VersionReference; 2],
) -> Result<(OwnedPrompt, [StoredVersion; 2]), StoreError> {
    let of = OwnedPrompt::read(store, id).await?;
    let from = store.prompt_version(&of.prompt, from).await?;
    let to = store.prompt_version(&of.prompt, to).await?;
    Ok((of, [from, to]))
}

fn compared([from, to]: &[StoredVersion; 2]) -> Result<PromptDifference, StoreError> {
    let from = PromptLines::new(&parse_content(from)?);
    let to = PromptLines::new(&parse_content(to)?);
    Ok(compare(&from, &to, MAX_TIME))
}

/// The form that asks for the difference of two versions.
pub(super) fn form(of: &OwnedPrompt, [from, to]: [&str; 2]) -> Markup {
    html! {
        form.filters method="get" action=(DIFFERENCE) {
            input type="hidden" name="id" value=(of.prompt.id);
            @for (name, label, value) in [("from", "From version or label", from), ("to", "To version or label", to)] {
                div {
                    label for=(name) { (label) }
                    input id=(name) name=(name) value=(value) autocomplete="off";
                }
            }
            button type="submit" { "Compare" }
        }
    }
}

fn lines(difference: &PromptDifference, [from, to]: [u64; 2]) -> Markup {
    let all = difference.lines.as_slice();
    let rows: Vec<Vec<Markup>> = all.iter().take(MAX_LINES).map(row).collect();
    let counted = |change| all.iter().filter(|line| line.change == change).count() as u64;
    html! {
        @if difference.is_cut {
            p.notice.warning { "A version has too many lines: the last ones are not compared." }
        }
        @if difference.is_rough {
            p.notice.warning {
                "The comparison was ended after " (MAX_TIME.as_millis()) " ms: lines that are the same may be shown as changed. "
                code { "weirgate prompt diff" } " takes more time."
            }
        }
        @if all.len() > MAX_LINES {
            p.notice.warning {
                "The first " (count(MAX_LINES as u64)) " of " (count(all.len() as u64)) " lines are shown. "
                code { "weirgate prompt diff" } " shows them all."
            }
        }
        @if !all.is_empty() {
            p { (count(counted(LineChange::Removed))) " lines removed, " (count(counted(LineChange::Added))) " added." }
        }
        (table(&format!("From version {from} to version {to}"), &COLUMNS, &rows, "Both versions say the same."))
    }
}

fn row(line: &DifferenceLine) -> Vec<Markup> {
    let change = match line.change {
        LineChange::Kept => html! { span.muted { "same" } },
        LineChange::Removed => badge(Tone::Bad, "− removed"),
        LineChange::Added => badge(Tone::Good, "+ added"),
        LineChange::Skipped => html! { span.muted { "…" } },
    };
    let text = match line.change {
        LineChange::Skipped => html! { span.muted { "lines that are the same" } },
        LineChange::Removed => html! { del { code.text { (line.text) } } },
        LineChange::Added => html! { ins { code.text { (line.text) } } },
        LineChange::Kept => html! { code.text { (line.text) } },
    };
    vec![change, text]
}
