//! The forms of money, and the fields that several of them have.

use filters::accounts::TermsFile;
use filters::money::{Period, Usd};
use jiff::Timestamp;

use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Field, FieldKind, Refusal, lines, text};
use crate::store::IssuedKey;

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
    SetPlan,
    SetRegions,
    SetExport,
    KeepBodies,
    AddMember,
    SetBudget,
    RenameMember,
    DeleteMember,
}

impl Form {
    const ALL: [Self; 15] = [
        Self::CreateKey,
        Self::UpdateKey,
        Self::DisableKey,
        Self::EnableKey,
        Self::RevokeKey,
        Self::AddCredit,
        Self::TakeCredit,
        Self::SetPlan,
        Self::SetRegions,
        Self::SetExport,
        Self::KeepBodies,
        Self::AddMember,
        Self::SetBudget,
        Self::RenameMember,
        Self::DeleteMember,
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
            Self::SetPlan => "organization/plan",
            Self::SetRegions => "organization/regions",
            Self::SetExport => "organization/export-content",
            Self::KeepBodies => "organization/keep-bodies",
            Self::AddMember => "organization/add-member",
            Self::SetBudget => "member/budget",
            Self::RenameMember => "member/rename",
            Self::DeleteMember => "member/delete",
        }
    }

    pub(super) fn find(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == path)
    }
}

/// The name of a field, its label, and its help.
type FieldWords = (&'static str, &'static str, &'static str);

const LABEL: FieldWords = ("label", "Label", "What you call the key. It may be empty.");
const PROJECT: FieldWords = ("project", "Project", "Empty: the project default.");
const MEMBER: FieldWords = (
    "member",
    "Member",
    "Who owns it. Empty: the organization alone.",
);
const EXPIRES: FieldWords = (
    "expires",
    "Expires",
    "A time such as 2031-01-01T00:00:00Z. Empty: never.",
);
/// The fields of limits: of the lifetime, then of each period.
const LIMITS: [FieldWords; 5] = [
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
/// The fields of lists, which have the names of terms.
const LISTS: [FieldWords; 6] = [
    (
        "allow_models",
        "Models that it may use",
        "One a line: an id, an alias, or either behind its provider. Empty: all.",
    ),
    (
        "deny_models",
        "Models that it may not use",
        "One a line. Empty: none.",
    ),
    (
        "allow_providers",
        "Providers that may serve it",
        "One a line. Empty: all.",
    ),
    (
        "deny_providers",
        "Providers that may not serve it",
        "One a line. Empty: none.",
    ),
    (
        "allow_ips",
        "Addresses that it may be used from",
        "One block a line, such as 203.0.113.0/24. Empty: all.",
    ),
    (
        "deny_ips",
        "Addresses that it may not be used from",
        "One block a line. Empty: none.",
    ),
];
const PRICES: [FieldWords; 2] = [
    (
        "max_input_price",
        "Highest input price, in USD",
        "For a million tokens. Empty: any.",
    ),
    (
        "max_output_price",
        "Highest output price, in USD",
        "For a million tokens. Empty: any.",
    ),
];
const DEBUG: FieldWords = (
    "debug",
    "May ask why a provider was chosen",
    "With the header x-weirgate-debug.",
);
const SWITCH: &[&str] = &["no", "yes"];

/// The fields of a key: those that one always sees, and its rules.
pub(super) struct KeyFields {
    pub(super) fields: Vec<Field<'static>>,
    pub(super) rules: Vec<Field<'static>>,
}

impl KeyFields {
    /// Returns the fields of a key with what it has, or of a new one.
    pub(super) fn new(key: Option<&IssuedKey>) -> Self {
        let terms = key.map(|key| key.terms.clone()).unwrap_or_default();
        let text = |of: fn(&IssuedKey) -> String| key.map(of).unwrap_or_default();
        let label = field(LABEL, text(|key| key.label.clone()), FieldKind::Line);
        let member = text(|key| key.member.clone().unwrap_or_default());
        let expires = text(|key| time_text(key.expires_at_ms));
        let mut fields = vec![label];
        if key.is_none() {
            fields.push(field(PROJECT, String::new(), FieldKind::Line));
        }
        fields.push(field(MEMBER, member, FieldKind::Line));
        fields.push(field(EXPIRES, expires, FieldKind::Line));
        let limits = LIMITS.into_iter().zip(limits_of(&terms));
        fields.extend(limits.map(|(words, usd)| field(words, usd.to_owned(), FieldKind::Line)));
        let debug = key.is_some_and(|key| key.is_debug);
        let lists = LISTS.into_iter().zip(lists_of(&terms));
        let lists = lists.map(|(words, list)| field(words, list.join("\n"), FieldKind::Lines));
        let prices = [&terms.max_input_price, &terms.max_output_price];
        let prices = PRICES.into_iter().zip(prices);
        let prices = prices
            .map(|(words, price)| field(words, price.clone().unwrap_or_default(), FieldKind::Line));
        let switch = if debug { "yes" } else { "no" };
        let debug = field(DEBUG, switch.to_owned(), FieldKind::Choice(SWITCH));
        Self {
            fields,
            rules: lists.chain(prices).chain([debug]).collect(),
        }
    }
}

/// Makes a field.
pub(super) fn field<'f>(
    (name, label, help): FieldWords,
    value: String,
    kind: FieldKind<'f>,
) -> Field<'f> {
    Field {
        name: name.into(),
        label: label.into(),
        help: help.into(),
        value: value.into(),
        kind,
    }
}

/// Returns the lists of terms, in the order of [`LISTS`].
fn lists_of(terms: &TermsFile) -> [&[String]; 6] {
    [
        &terms.allow_models,
        &terms.deny_models,
        &terms.allow_providers,
        &terms.deny_providers,
        &terms.allow_ips,
        &terms.deny_ips,
    ]
}

/// Puts the rules of a form into terms. Those that the form lacks stay.
///
/// Errors: a text with a control character. What no rule may be is found when the terms are checked.
pub(super) fn set_rules(request: &ConsoleRequest, terms: &mut TermsFile) -> Result<(), Refusal> {
    let lists = [
        &mut terms.allow_models,
        &mut terms.deny_models,
        &mut terms.allow_providers,
        &mut terms.deny_providers,
        &mut terms.allow_ips,
        &mut terms.deny_ips,
    ];
    let is_sent = |name: &str| request.has_field(name);
    for ((name, ..), list) in LISTS.into_iter().zip(lists).filter(|(it, _)| is_sent(it.0)) {
        *list = lines(request, name)?;
    }
    let prices = [&mut terms.max_input_price, &mut terms.max_output_price];
    let prices = PRICES.into_iter().zip(prices);
    for ((name, ..), price) in prices.filter(|(it, _)| is_sent(it.0)) {
        *price = text(request, name)?;
    }
    Ok(())
}

/// Reads whether requests may ask why their providers were chosen; `None`: the form does not say.
pub(super) fn debug(request: &ConsoleRequest) -> Result<Option<bool>, Refusal> {
    let (name, ..) = DEBUG;
    match request.field(name).as_deref() {
        None => Ok(None),
        Some("yes") => Ok(Some(true)),
        Some("no") => Ok(Some(false)),
        Some(word) => {
            let shown: String = word.chars().take(80).collect();
            Err(Refusal::invalid(
                name,
                format!("{name} is {shown:?}; accepted is yes or no"),
            ))
        }
    }
}

/// Returns the limits of terms, in the order of [`LIMITS`].
fn limits_of(terms: &TermsFile) -> [&str; 5] {
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
    let [lifetime, periods @ ..] = LIMITS.map(|(name, ..)| name);
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
fn time_text(unix_ms: Option<i64>) -> String {
    let at = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}
