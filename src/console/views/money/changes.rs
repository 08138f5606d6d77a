//! Changes: the functions and the refusals of the command line, in the name of the person who has signed in. Those of keys are here.

use filters::accounts::{KeyText, TermsFile};
use maud::html;

use super::account_changes::{add_member, change_member, change_organization};
use super::forms::{Form, debug, expiry, set_limits, set_rules};
use super::{PATH, key, member, organization};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Done, Refusal, Typed, seen, subject, text};
use crate::console::views::links::link;
use crate::store::{DEFAULT_PROJECT, IssuedKey, KeyChange, NewKey, SeenKind, check_expiry};

/// Does what a form asks for. Where that is refused, its page is shown again with what was typed.
pub(super) async fn change(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let Some(form) = Form::find(request.rest(PATH)) else {
        return ConsoleReply::not_found("There is no such form.");
    };
    let done = match form {
        Form::CreateKey => create_key(console, request).await,
        Form::UpdateKey => update_key(console, request).await,
        Form::DisableKey | Form::EnableKey | Form::RevokeKey => {
            set_state(console, request, form).await
        }
        Form::AddMember => add_member(console, request).await,
        Form::SetBudget | Form::RenameMember | Form::DeleteMember => {
            change_member(console, request, form).await
        }
        Form::AddCredit
        | Form::TakeCredit
        | Form::SetPlan
        | Form::SetRegions
        | Form::SetExport
        | Form::KeepBodies => change_organization(console, request, form).await,
    };
    let refusal = match done {
        Ok(reply) => return reply,
        Err(refusal) => refusal,
    };
    let typed = Typed {
        form: form.as_str(),
        request,
        refusal,
    };
    let (page, _) = form.as_str().split_once('/').unwrap_or_default();
    match page {
        "key" => key::page(console, request, Some(&typed)).await,
        "member" => member::page(console, request, Some(&typed)).await,
        _ => organization::page(console, request, Some(&typed)).await,
    }
}

async fn create_key(console: &Console, request: &ConsoleRequest) -> Done {
    let organization = subject(request, "name")?;
    let mut terms = TermsFile::default();
    set_limits(request, &mut terms)?;
    set_rules(request, &mut terms)?;
    let is_debug = debug(request)?.unwrap_or_default();
    let expires_at_ms = future(request)?;
    let label = request.field("label").unwrap_or_default();
    let project = text(request, "project")?;
    let project = project.unwrap_or_else(|| DEFAULT_PROJECT.to_owned());
    let (member, actor, now_ms) = (text(request, "member")?, request.actor(), request.now_ms);
    let again = "this form has made a key before, whose text was shown then";
    let begun = console.done_forms.begin(request);
    begun.map_err(|_| Refusal::invalid("", again))?;
    let name = organization.clone();
    let made = console.with_store(|store| async move {
        let new = NewKey {
            organization: &name,
            project: &project,
            label: &label,
            expires_at_ms,
            member: member.as_deref(),
            terms: &terms,
            is_debug,
        };
        store.by(&actor).create_key(&new, now_ms).await
    });
    let (text, issued) = made.await?;
    let warnings = console.unknown_names(&issued.terms);
    Ok(shown_once(&organization, (&text, &issued), &warnings))
}

/// The only page that has the text of a key.
fn shown_once(
    organization: &str,
    (text, issued): (&KeyText, &IssuedKey),
    warnings: &[String],
) -> ConsoleReply {
    let body = html! {
        (key::warnings(warnings))
        p.notice.good role="status" { "The key was made. Its text is shown this once, and nobody can show it again." }
        p { label for="key" { "The text of the key" } }
        p { input #key .code readonly size="60" autocomplete="off" value=(text.reveal()); }
        p { a href=(link(key::PATH, &[("id", &issued.id)])) { "The key and its limits" } }
        p { a href=(link(organization::PATH, &[("name", organization)])) { "Back to " (organization) } }
    };
    ConsoleReply::page("A new key", body)
}

async fn update_key(console: &Console, request: &ConsoleRequest) -> Done {
    let id = subject(request, "id")?;
    let seen = seen(request, SeenKind::Key, &id)?;
    let is_debug = debug(request)?;
    let expires_at_ms = expiry(request)?;
    let (label, member) = (
        request.field("label").unwrap_or_default(),
        text(request, "member")?,
    );
    let of = id.clone();
    let read = console.with_store(|store| async move { store.key(&of).await });
    let (_, key) = read.await?;
    if key.expires_at_ms != expires_at_ms {
        check_expiry(expires_at_ms, request.now_ms)?;
    }
    let mut terms = key.terms;
    set_limits(request, &mut terms)?;
    set_rules(request, &mut terms)?;
    let (actor, of) = (request.actor(), id.clone());
    let changed = console.with_store(|store| async move {
        let change = KeyChange {
            label: Some(label),
            expires_at_ms: Some(expires_at_ms),
            member: Some(member),
            terms: Some(terms),
            is_debug,
        };
        let editor = store.by(&actor).if_still(&seen);
        editor.update_key(&of, &change).await
    });
    changed.await?;
    Ok(back_to_key(&id))
}

async fn set_state(console: &Console, request: &ConsoleRequest, form: Form) -> Done {
    let id = subject(request, "id")?;
    let seen = seen(request, SeenKind::Key, &id)?;
    if form == Form::RevokeKey && request.field("confirm").is_none() {
        let why = "the box was not ticked: a key is revoked for good";
        return Err(Refusal::invalid("", why));
    }
    let (actor, now_ms, of) = (request.actor(), request.now_ms, id.clone());
    let changed = console.with_store(|store| async move {
        let editor = store.by(&actor).if_still(&seen);
        match form {
            Form::DisableKey => editor.disable_key(&of, Some(now_ms)).await,
            Form::EnableKey => editor.disable_key(&of, None).await,
            _ => editor.revoke_key(&of, now_ms).await,
        }
    });
    changed.await?;
    Ok(back_to_key(&id))
}

fn future(request: &ConsoleRequest) -> Result<Option<i64>, Refusal> {
    let expires_at_ms = expiry(request)?;
    check_expiry(expires_at_ms, request.now_ms)?;
    Ok(expires_at_ms)
}

fn back_to_key(id: &str) -> ConsoleReply {
    ConsoleReply::Redirect(link(key::PATH, &[("id", id)]))
}
