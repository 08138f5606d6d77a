//! The forms of money: what is typed stays where a change was refused, with the reason beside its field.

use filters::accounts::TermsFile;
use filters::money::{Period, Usd};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::console::layout::csrf;
use crate::console::request::ConsoleRequest;
use crate::store::StoreError;

/// The forms, by the end of the path that they are sent to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    CreateKey,
    UpdateKey,
    DisableKey,
    EnableKey,
    RevokeKey,
    AddCredit,
    TakeCredit,
}

/// Why a form was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The name of the field; empty: it is about the whole form.
    pub(super) field: &'static str,
    pub(super) message: String,
}

/// A form that was refused, as it was sent.
pub(super) struct Typed<'r> {
    pub(super) form: Form,
    pub(super) request: &'r ConsoleRequest,
    pub(super) refusal: Refusal,
}

/// A field of a form.
pub(super) struct Field<'f> {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) help: &'static str,
    /// What it has unless something was typed.
    pub(super) value: &'f str,
    pub(super) is_required: bool,
}

impl Form {
    const ALL: [Self; 7] = [
        Self::CreateKey,
        Self::UpdateKey,
        Self::DisableKey,
        Self::EnableKey,
        Self::RevokeKey,
        Self::AddCredit,
        Self::TakeCredit,
    ];

    /// Returns the end of its path.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::CreateKey => "organization/create-key",
            Self::UpdateKey => "key/update",
            Self::DisableKey => "key/disable",
            Self::EnableKey => "key/enable",
            Self::RevokeKey => "key/revoke",
            Self::AddCredit => "organization/add-credit",
            Self::TakeCredit => "organization/take-credit",
        }
    }

    pub(super) fn find(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == path)
    }
}

impl Refusal {
    /// A value that cannot be.
    pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: 422,
            field,
            message: message.into(),
        }
    }
}

impl From<StoreError> for Refusal {
    /// Puts the refusals of the commands beside the fields that they are about.
    fn from(error: StoreError) -> Self {
        let (status, field) = match &error {
            StoreError::InvalidName { .. } => (422, "label"),
            StoreError::InvalidTerm(term) => (422, term.field),
            StoreError::NotFound { kind, .. } => (422, *kind),
            StoreError::Inactive { kind, .. } => (409, *kind),
            StoreError::PastExpiry => (422, "expires"),
            StoreError::NoAmount { .. } => (422, "amount"),
            StoreError::BeyondFree { .. } => (409, "amount"),
            StoreError::ChangedMeanwhile { .. } | StoreError::Revoked(_) => (409, ""),
            _ => (503, ""),
        };
        Self {
            status,
            field,
            message: error.to_string(),
        }
    }
}

/// A form with its fields. `hidden` are values that no person types.
pub(super) fn form(
    (form, action): (Form, &str),
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
    hidden: &[(&str, &str)],
    fields: &[Field<'_>],
    button: &Markup,
) -> Markup {
    let typed = typed.filter(|typed| typed.form == form);
    let named = |field: &Field<'_>| typed.is_some_and(|it| it.refusal.field == field.name);
    let is_told = fields.iter().any(named);
    html! {
        form.stacked method="post" action=(action) {
            (csrf(&request.visitor))
            @for (name, value) in hidden {
                input type="hidden" name=(name) value=(value);
            }
            @if let Some(typed) = typed.filter(|_| !is_told) {
                p.notice role="alert" { (typed.refusal.message) }
            }
            @for field in fields {
                (input(form, field, typed))
            }
            (button)
        }
    }
}

fn input(form: Form, field: &Field<'_>, typed: Option<&Typed<'_>>) -> Markup {
    let id = format!("{}-{}", form.as_str().replace('/', "-"), field.name);
    let (help, problem) = (format!("{id}-help"), format!("{id}-problem"));
    let refusal = typed.map(|typed| &typed.refusal);
    let refusal = refusal.filter(|refusal| refusal.field == field.name);
    let value = match typed {
        Some(typed) => typed.request.field(field.name).unwrap_or_default(),
        None => field.value.to_owned(),
    };
    let described = match refusal {
        Some(_) => format!("{problem} {help}"),
        None => help.clone(),
    };
    html! {
        label for=(id) { (field.label) }
        input id=(id) name=(field.name) value=(value) required[field.is_required] autocomplete="off" maxlength="400"
            aria-describedby=(described) aria-invalid=[refusal.map(|_| "true")];
        @if let Some(refusal) = refusal {
            p.notice id=(problem) role="alert" { (refusal.message) }
        }
        p.muted id=(help) { (field.help) }
    }
}

/// The fields of limits: of the lifetime, then of each period.
pub(super) const LIMIT_FIELDS: [(&str, &str, &str); 5] = [
    (
        "limit",
        "Limit, in USD",
        "The most it may ever spend. Empty: no limit.",
    ),
    (
        "limit_hour",
        "Limit per hour, in USD",
        "Of the calendar in UTC. Empty: no limit.",
    ),
    (
        "limit_day",
        "Limit per day, in USD",
        "Of the calendar in UTC. Empty: no limit.",
    ),
    (
        "limit_week",
        "Limit per week, in USD",
        "From Monday on, in UTC. Empty: no limit.",
    ),
    (
        "limit_month",
        "Limit per month, in USD",
        "Of the calendar in UTC. Empty: no limit.",
    ),
];

/// Returns the limits of terms, in the order of [`LIMIT_FIELDS`].
pub(super) fn limits_of(terms: &TermsFile) -> [&str; 5] {
    let period = |period: Period| {
        let limit = terms.limit_per.get(period.as_str());
        limit.map_or("", String::as_str)
    };
    let [hour, day, week, month] = Period::ALL.map(period);
    [
        terms.limit.as_deref().unwrap_or_default(),
        hour,
        day,
        week,
        month,
    ]
}

/// Puts the limits of a form into terms, whose other parts stay.
pub(super) fn set_limits(request: &ConsoleRequest, terms: &mut TermsFile) -> Result<(), Refusal> {
    let [lifetime, periods @ ..] = LIMIT_FIELDS.map(|(name, ..)| name);
    amount(request, lifetime)?;
    terms.limit = request.field(lifetime);
    for (period, name) in Period::ALL.into_iter().zip(periods) {
        amount(request, name)?;
        match request.field(name) {
            Some(usd) => terms.limit_per.insert(period.as_str().to_owned(), usd),
            None => terms.limit_per.remove(period.as_str()),
        };
    }
    Ok(())
}

/// Reads an amount; `None`: nothing was typed.
pub(super) fn amount(request: &ConsoleRequest, name: &'static str) -> Result<Option<Usd>, Refusal> {
    let Some(text) = request.field(name) else {
        return Ok(None);
    };
    let usd = Usd::parse(&text);
    usd.map(Some)
        .map_err(|error| Refusal::invalid(name, error.to_string()))
}

/// Reads when a key expires; `None`: never.
pub(super) fn expiry(request: &ConsoleRequest) -> Result<Option<i64>, Refusal> {
    let Some(text) = request.field("expires") else {
        return Ok(None);
    };
    let at = text.parse::<Timestamp>().map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        let accepted = "accepted is a time such as 2031-01-01T00:00:00Z";
        Refusal::invalid("expires", format!("{shown:?} is no time; {accepted}"))
    })?;
    Ok(Some(at.as_millisecond()))
}

/// Writes a time as the field has it.
pub(super) fn time_text(unix_ms: Option<i64>) -> String {
    let at = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}
