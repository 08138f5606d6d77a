//! Forms: what is typed stays where it was refused, with the reason beside its field.

use std::borrow::Cow;

use maud::{Markup, html};

use crate::console::layout::csrf;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::store::{SeenKind, SeenThing, StoreError};

/// Why a form was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The name of the field; empty: it is about the whole form.
    pub(super) field: Cow<'static, str>,
    pub(super) message: String,
}

/// What comes after a change.
pub(super) type Done = Result<ConsoleReply, Refusal>;

/// A form that was refused, as it was sent.
pub(super) struct Typed<'r> {
    /// The name of the form.
    pub(super) form: &'static str,
    pub(super) request: &'r ConsoleRequest,
    pub(super) refusal: Refusal,
}

/// A field of a form.
pub(super) struct Field<'f> {
    pub(super) name: Cow<'f, str>,
    pub(super) label: Cow<'f, str>,
    pub(super) help: Cow<'f, str>,
    /// What it has unless something was typed.
    pub(super) value: Cow<'f, str>,
    pub(super) kind: FieldKind<'f>,
}

/// How a field is typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FieldKind<'f> {
    Line,
    /// A line that may not be empty.
    NeededLine,
    Lines,
    /// One of these words.
    Choice(&'f [&'f str]),
}

/// What a form consists of.
pub(super) struct FormContent<'f> {
    /// Its name, by which it is known where it was refused.
    pub(super) name: &'static str,
    /// The address that it is sent to.
    pub(super) action: &'f str,
    /// Values that no person types.
    pub(super) hidden: &'f [(&'f str, &'f str)],
    pub(super) fields: &'f [Field<'f>],
    /// More fields, behind this title.
    pub(super) more: Option<(&'f str, &'f [Field<'f>])>,
    pub(super) button: Markup,
}

impl Refusal {
    /// A value that cannot be.
    pub(super) fn invalid(field: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            status: 422,
            field: field.into(),
            message: message.into(),
        }
    }

    /// The form does not say what it was made from.
    pub(super) fn damaged() -> Self {
        let why = "seen: the form does not say what it was made from; nothing was done";
        Self::invalid("", why)
    }
}

impl From<StoreError> for Refusal {
    /// Puts the refusals of the commands beside the fields that they are about.
    fn from(error: StoreError) -> Self {
        let (status, field) = match &error {
            StoreError::InvalidName { kind: "key", .. } => (422, "label"),
            StoreError::InvalidName { .. } | StoreError::AlreadyExists { .. } => (422, "name"),
            StoreError::InvalidTerm(term) => (422, term.field),
            StoreError::NotFound { kind, .. } => (422, *kind),
            StoreError::Inactive { kind, .. } => (409, *kind),
            StoreError::PastExpiry => (422, "expires"),
            StoreError::NoAmount { .. } => (422, "amount"),
            StoreError::BeyondFree { .. } => (409, "amount"),
            StoreError::ChangedMeanwhile { .. }
            | StoreError::Revoked(_)
            | StoreError::Kept { .. } => (409, ""),
            _ => (503, ""),
        };
        Self {
            status,
            field: field.into(),
            message: error.to_string(),
        }
    }
}

/// Returns what the person saw, which the form carries.
pub(super) fn seen(
    request: &ConsoleRequest,
    kind: SeenKind,
    id: &str,
) -> Result<SeenThing, Refusal> {
    let text = request.field("seen").unwrap_or_default();
    SeenThing::parse(kind, id, &text).ok_or_else(Refusal::damaged)
}

/// Returns what a form is about, which its address says.
pub(super) fn subject(request: &ConsoleRequest, name: &'static str) -> Result<String, Refusal> {
    let missing = || Refusal::invalid("", format!("{name} is missing in the address"));
    let subject = request.query(name).ok_or_else(missing)?;
    without_controls("", name, subject)
}

/// Reads a text of one line; `None`: nothing was typed.
///
/// Errors: it has a control character, which no name has, and PostgreSQL no text.
pub(super) fn text(
    request: &ConsoleRequest,
    name: &'static str,
) -> Result<Option<String>, Refusal> {
    let text = request.field(name);
    text.map(|text| without_controls(name, name, text))
        .transpose()
}

/// Reads the texts of several lines, without those that are empty.
///
/// Errors: one has a control character.
pub(super) fn lines(request: &ConsoleRequest, name: &'static str) -> Result<Vec<String>, Refusal> {
    let text = request.field(name).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| without_controls(name, name, line.to_owned()))
        .collect()
}

fn without_controls(
    field: &'static str,
    name: &'static str,
    text: String,
) -> Result<String, Refusal> {
    match text.chars().any(char::is_control) {
        true => Err(Refusal::invalid(
            field,
            format!("{name} has a control character; accepted is a text without"),
        )),
        false => Ok(text),
    }
}

/// A form.
pub(super) fn form(
    content: &FormContent<'_>,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let typed = typed.filter(|typed| typed.form == content.name);
    let (title, more) = content.more.unwrap_or_default();
    let named = |field: &Field<'_>| typed.is_some_and(|it| it.refusal.field == field.name);
    let is_told = content.fields.iter().chain(more).any(named);
    let has_value = |field: &Field<'_>| !matches!(&*value(field, typed), "" | "no");
    html! {
        form.stacked method="post" action=(content.action) {
            (csrf(&request.visitor))
            @for (name, value) in content.hidden {
                input type="hidden" name=(name) value=(value);
            }
            @if let Some(typed) = typed.filter(|_| !is_told) {
                p.notice role="alert" { (typed.refusal.message) }
            }
            @for field in content.fields {
                (input(content.name, field, typed))
            }
            @if !more.is_empty() {
                details open[more.iter().any(|field| named(field) || has_value(field))] {
                    summary { (title) }
                    @for field in more {
                        (input(content.name, field, typed))
                    }
                }
            }
            (content.button)
        }
    }
}

/// What a field has: what was typed, else its own.
fn value<'v>(field: &'v Field<'_>, typed: Option<&Typed<'_>>) -> Cow<'v, str> {
    match typed {
        Some(typed) => typed.request.field_as_sent(&field.name).into(),
        None => Cow::Borrowed(&*field.value),
    }
}

fn input(form: &str, field: &Field<'_>, typed: Option<&Typed<'_>>) -> Markup {
    let id = format!("{}-{}", form.replace('/', "-"), field.name);
    let (help, problem) = (format!("{id}-help"), format!("{id}-problem"));
    let refusal = typed.map(|typed| &typed.refusal);
    let refusal = refusal.filter(|refusal| refusal.field == field.name);
    let described = match refusal {
        Some(_) => format!("{problem} {help}"),
        None => help.clone(),
    };
    let invalid = refusal.map(|_| "true");
    let value = value(field, typed);
    html! {
        label for=(id) { (field.label) }
        @match field.kind {
            FieldKind::Line | FieldKind::NeededLine => {
                input id=(id) name=(field.name) value=(value) required[field.kind == FieldKind::NeededLine] autocomplete="off"
                    maxlength="400" aria-describedby=(described) aria-invalid=[invalid];
            }
            FieldKind::Lines => {
                textarea.short id=(id) name=(field.name) autocomplete="off" spellcheck="false" aria-describedby=(described) aria-invalid=[invalid] {
                    // A browser drops a line break at the beginning.
                    "\n" (value)
                }
            }
            FieldKind::Choice(words) => {
                select id=(id) name=(field.name) aria-describedby=(described) aria-invalid=[invalid] {
                    @for word in words {
                        option value=(word) selected[*word == value] { (if word.is_empty() { "–" } else { word }) }
                    }
                }
            }
        }
        @if let Some(refusal) = refusal {
            p.notice id=(problem) role="alert" { (refusal.message) }
        }
        p.muted id=(help) { (field.help) }
    }
}
