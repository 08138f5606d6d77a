//! Managed prompts: their versions and labels, what differs between two versions, and how one is rendered.

mod difference;
mod label;
mod list;
mod messages;
mod prompt;
mod render;

use filters::models::prompts::reference::VersionReference;
use http::Method;
use serde_json::Value;

use super::links::{bad_parameter, link, name_of};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::store::{Store, StoreError, StoredPrompt, StoredVersion};

/// The view of all prompts. The others are below it.
pub(super) const PATH: &str = "/console/prompts";
/// The page that renders a version, which changes nothing.
pub(super) const RENDER: &str = "/console/prompts/render";
/// The page of a prompt, whose id is a parameter.
const PROMPT: &str = "/console/prompts/prompt";
/// The page of the difference of two versions.
const DIFFERENCE: &str = "/console/prompts/difference";
/// The rows of a page.
const PAGE_ROWS: usize = 50;

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let rest = request.rest(PATH);
    if request.method == Method::POST {
        return match rest {
            label::FORM => label::change(console, request).await,
            _ => ConsoleReply::not_found("There is no such form."),
        };
    }
    match rest {
        "" => list::show(console, request).await,
        "prompt" => prompt::page(console, request, None).await,
        "difference" => difference::show(console, request).await,
        _ => ConsoleReply::not_found("There is no such page."),
    }
}

pub(super) async fn render(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    match request.rest(RENDER) {
        "" => render::show(console, request).await,
        _ => ConsoleReply::not_found("There is no such page."),
    }
}

/// A prompt with the name of its organization.
struct OwnedPrompt {
    organization: String,
    prompt: StoredPrompt,
}

impl OwnedPrompt {
    async fn read(store: &Store, id: &str) -> Result<Self, StoreError> {
        let (organization, prompt) = store.prompt_by_id(id).await?;
        Ok(Self {
            organization,
            prompt,
        })
    }

    /// Returns the address of a page about it.
    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let id = [("id", &*self.prompt.id)];
        link(path, &[&id[..], more].concat())
    }

    /// Returns the labels of a version.
    fn labels(&self, version: u64) -> Vec<&str> {
        let labels = self.prompt.labels.iter();
        let labels = labels.filter(|(_, number)| *number == version);
        labels.map(|(label, _)| &**label).collect()
    }
}

/// Returns the id of the prompt that a page is about.
fn asked_id(request: &ConsoleRequest) -> Result<String, Box<ConsoleReply>> {
    match name_of("id", request.query("id"))? {
        id if id.is_empty() => Err(bad_parameter("id: the id of a prompt is missing")),
        id => Ok(id),
    }
}

/// Returns the version that a parameter names, if it names one.
fn asked_version(
    request: &ConsoleRequest,
    parameter: &str,
) -> Result<Option<VersionReference>, Box<ConsoleReply>> {
    let text = name_of(parameter, request.query(parameter))?;
    Ok((!text.is_empty()).then(|| VersionReference::new(&text)))
}

/// Returns the content of a version.
fn parse_content(version: &StoredVersion) -> Result<Value, StoreError> {
    serde_json::from_str(&version.content).map_err(|_| StoreError::Damaged("content"))
}

/// Says why the store has not answered.
fn refusal(error: &StoreError) -> ConsoleReply {
    match error {
        StoreError::NotFound { .. } => ConsoleReply::not_found(&error.to_string()),
        error => ConsoleReply::failed(error),
    }
}
