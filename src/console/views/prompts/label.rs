//! The form that moves a label of a prompt to a version: the function and the refusals of `weirgate prompt label`.

use filters::models::prompts::reference::{VersionReference, check_movable_label};
use maud::{Markup, html};

use super::{OwnedPrompt, PATH, PROMPT, prompt};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{
    Done, Field, FieldKind, FormContent, Refusal, Typed, form, seen, subject, text,
};
use crate::console::views::links::link;
use crate::store::{PromptOwner, SeenKind, SeenThing};

/// The end of the path that the form is sent to.
pub(super) const FORM: &str = "prompt/label";

/// Does what the form asks for. Where that is refused, the page is shown again with what was typed.
pub(super) async fn change(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    match move_label(console, request).await {
        Ok(reply) => reply,
        Err(refusal) => {
            let typed = Typed {
                form: FORM,
                request,
                refusal,
            };
            prompt::page(console, request, Some(&typed)).await
        }
    }
}

async fn move_label(console: &Console, request: &ConsoleRequest) -> Done {
    let id = subject(request, "id")?;
    let seen = seen(request, SeenKind::Prompt, &id)?;
    let label = text(request, "label")?.unwrap_or_default();
    check_movable_label(&label).map_err(|said| Refusal::invalid("label", said))?;
    let missing = || Refusal::invalid("version", "a version is missing: its number or a label");
    let version = text(request, "version")?.ok_or_else(missing)?;
    let version = VersionReference::new(&version);
    let (actor, of) = (request.actor(), id.clone());
    let moved = console.with_store(|store| async move {
        let (organization, prompt) = store.prompt_by_id(&of).await?;
        let owner = PromptOwner {
            organization: &organization,
            project: prompt.project.as_deref(),
        };
        let editor = store.by(&actor).if_still(&seen);
        editor
            .label_prompt(owner, &prompt.name, &version, &label)
            .await
    });
    moved.await?;
    Ok(ConsoleReply::Redirect(link(PROMPT, &[("id", &id)])))
}

/// The form. `version` is what it proposes.
pub(super) fn show(
    of: &OwnedPrompt,
    (version, seen): (u64, &SeenThing),
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let fields = [
        Field {
            name: "label".into(),
            label: "Label".into(),
            help: "One that it has, or a new one. Requests that name neither label nor version get production.".into(),
            value: "".into(),
            kind: FieldKind::NeededLine,
        },
        Field {
            name: "version".into(),
            label: "Version".into(),
            help: "Its number, or a label that it has.".into(),
            value: version.to_string().into(),
            kind: FieldKind::NeededLine,
        },
    ];
    let content = FormContent {
        name: FORM,
        action: &of.link(&format!("{PATH}/{FORM}"), &[]),
        hidden: &[("seen", &seen.to_text())],
        fields: &fields,
        more: None,
        button: html! { button type="submit" { "Move the label" } },
    };
    html! {
        h3 { "Move a label" }
        (form(&content, request, typed))
    }
}
