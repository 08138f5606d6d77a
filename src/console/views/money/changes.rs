//! Changes of keys and credit: the functions and the refusals of the command line, in the name of the person who has signed in.

use filters::accounts::{KeyText, TermsFile};
use filters::audit::Actor;
use jiff::Timestamp;
use maud::html;

use super::forms::{Form, Refusal, Typed, amount, expiry, set_limits};
use super::{PATH, key, organization};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::links::link;
use crate::store::{
    DEFAULT_PROJECT, IssuedKey, KeyChange, NewKey, SeenKind, SeenThing, check_amount, check_expiry,
};

/// What comes after a change.
type Done = Result<ConsoleReply, Refusal>;

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
        Form::AddCredit | Form::TakeCredit => move_credit(console, request, form).await,
    };
    let refusal = match done {
        Ok(reply) => return reply,
        Err(refusal) => refusal,
    };
    let typed = Typed {
        form,
        request,
        refusal,
    };
    match form {
        Form::CreateKey | Form::AddCredit | Form::TakeCredit => {
            organization::page(console, request, Some(&typed)).await
        }
        _ => key::page(console, request, Some(&typed)).await,
    }
}

async fn create_key(console: &Console, request: &ConsoleRequest) -> Done {
    let organization = subject(request, "name")?;
    let mut terms = TermsFile::default();
    set_limits(request, &mut terms)?;
    let expires_at_ms = future(request)?;
    let again = "this form has made a key before, whose text was shown then";
    let begun = console.done_forms.begin(request);
    begun.map_err(|_| Refusal::invalid("", again))?;
    let label = request.field("label").unwrap_or_default();
    let project = request.field("project");
    let project = project.unwrap_or_else(|| DEFAULT_PROJECT.to_owned());
    let (member, actor, now_ms) = (request.field("member"), actor(request), now_ms());
    let name = organization.clone();
    let made = console.with_store(|store| async move {
        let new = NewKey {
            organization: &name,
            project: &project,
            label: &label,
            expires_at_ms,
            member: member.as_deref(),
            terms: &terms,
            is_debug: false,
        };
        store.by(&actor).create_key(&new, now_ms).await
    });
    let (text, issued) = made.await?;
    Ok(shown_once(&organization, &text, &issued))
}

/// The only page that has the text of a key.
fn shown_once(organization: &str, text: &KeyText, issued: &IssuedKey) -> ConsoleReply {
    let body = html! {
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
    let mut limits = TermsFile::default();
    set_limits(request, &mut limits)?;
    let expires_at_ms = expiry(request)?;
    let (label, member) = (
        request.field("label").unwrap_or_default(),
        request.field("member"),
    );
    let (actor, now_ms, of) = (actor(request), now_ms(), id.clone());
    let changed = console.with_store(|store| async move {
        let (_, key) = store.key(&of).await?;
        if key.expires_at_ms != expires_at_ms {
            check_expiry(expires_at_ms, now_ms)?;
        }
        let terms = TermsFile {
            limit: limits.limit,
            limit_per: limits.limit_per,
            ..key.terms
        };
        let change = KeyChange {
            label: Some(label),
            expires_at_ms: Some(expires_at_ms),
            member: Some(member),
            terms: Some(terms),
            is_debug: None,
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
    let (actor, now_ms, of) = (actor(request), now_ms(), id.clone());
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

async fn move_credit(console: &Console, request: &ConsoleRequest, form: Form) -> Done {
    let name = subject(request, "name")?;
    let is_given = form == Form::AddCredit;
    let usd = amount(request, "amount")?;
    let usd = usd.ok_or_else(|| Refusal::invalid("amount", "an amount is missing"))?;
    check_amount(usd, is_given)?;
    let text = request.field("seen").unwrap_or_default();
    let (actor, now_ms, of) = (actor(request), now_ms(), name.clone());
    let changed = console.with_store(|store| async move {
        let id = store.organization(&of).await?.id;
        let Some(seen) = SeenThing::parse(SeenKind::Credit, &id, &text) else {
            return Ok(None);
        };
        let editor = store.by(&actor).if_still(&seen);
        match is_given {
            true => editor.add_credit(&of, usd, now_ms).await,
            false => editor.take_credit(&of, usd, now_ms).await,
        }
        .map(Some)
    });
    changed.await?.ok_or_else(damaged)?;
    let to = link(organization::PATH, &[("name", &name)]);
    Ok(ConsoleReply::Redirect(to))
}

/// Returns what a form is about, which its address says.
fn subject(request: &ConsoleRequest, name: &'static str) -> Result<String, Refusal> {
    let subject = request.query(name);
    subject.ok_or_else(|| Refusal::invalid("", format!("{name} is missing in the address")))
}

/// Returns what the person saw, which the form carries.
fn seen(request: &ConsoleRequest, kind: SeenKind, id: &str) -> Result<SeenThing, Refusal> {
    let text = request.field("seen").unwrap_or_default();
    SeenThing::parse(kind, id, &text).ok_or_else(damaged)
}

fn damaged() -> Refusal {
    Refusal::invalid(
        "",
        "seen: the form does not say what it was made from; nothing was done",
    )
}

fn future(request: &ConsoleRequest) -> Result<Option<i64>, Refusal> {
    let expires_at_ms = expiry(request)?;
    check_expiry(expires_at_ms, now_ms())?;
    Ok(expires_at_ms)
}

fn back_to_key(id: &str) -> ConsoleReply {
    ConsoleReply::Redirect(link(key::PATH, &[("id", id)]))
}

/// Returns who makes the change.
fn actor(request: &ConsoleRequest) -> Actor {
    Actor::on_console(&request.visitor.name, request.address)
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
