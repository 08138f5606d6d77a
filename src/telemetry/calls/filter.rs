//! Which of the calls somebody wants to see.

use filters::money::Usd;

use super::KeptCall;

/// The maximum bytes of a value of a filter. An id or a name is shorter.
const MAX_VALUE_BYTES: usize = 256;

/// Which calls are wanted: those that fit all that is said.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CallFilter {
    pub request_id: Option<String>,
    pub organization: Option<String>,
    /// The id of an API key, or its label.
    pub key: Option<String>,
    /// A part of the model's name: of that asked for, or of that used.
    pub model: Option<String>,
    /// A provider that was asked.
    pub provider: Option<String>,
    pub session: Option<String>,
    pub status: Option<StatusFilter>,
    /// The least cost.
    pub cost: Option<Usd>,
}

/// How a call has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StatusFilter {
    /// A status, such as 429.
    Code(u16),
    /// The first digit of a status: 4 of `4xx`.
    Class(u16),
    /// An outcome of the log.
    Outcome(&'static str),
}

/// The outcomes of the log. Source: docs/interface.md, Logs.
const OUTCOMES: [&str; 6] = ["ok", "refused", "failed", "broken", "client_gone", "queued"];

/// A value that a filter does not take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidFilter {
    pub field: &'static str,
    pub came: String,
    pub accepted: &'static str,
}

impl std::fmt::Display for InvalidFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            field,
            came,
            accepted,
        } = self;
        write!(f, "{field} is {came:?}; {accepted} is accepted")
    }
}

impl std::error::Error for InvalidFilter {}

/// The names of the fields, in the order of a form.
pub const FILTER_FIELDS: [&str; 8] = [
    "request_id",
    "organization",
    "key",
    "model",
    "provider",
    "session",
    "status",
    "cost",
];

impl CallFilter {
    /// Reads the fields of a form, of which `value` gives each that there is. An empty one says nothing.
    ///
    /// Errors: a value is too long, or is no status or no amount.
    pub fn parse<'v>(value: impl Fn(&str) -> Option<&'v str>) -> Result<Self, InvalidFilter> {
        let text = |field: &'static str| {
            let value = value(field)
                .map(str::trim)
                .filter(|value| !value.is_empty());
            match value {
                Some(value) if value.len() > MAX_VALUE_BYTES => Err(InvalidFilter {
                    field,
                    came: format!("{}…", value.chars().take(40).collect::<String>()),
                    accepted: "a text of up to 256 bytes",
                }),
                value => Ok(value.map(str::to_owned)),
            }
        };
        let status = text("status")?;
        let status = status
            .map(|status| StatusFilter::parse(&status))
            .transpose()?;
        let cost = text("cost")?;
        let cost = cost.map(|cost| parse_cost(&cost)).transpose()?;
        Ok(Self {
            request_id: text("request_id")?,
            organization: text("organization")?,
            key: text("key")?,
            model: text("model")?,
            provider: text("provider")?,
            session: text("session")?,
            status,
            cost,
        })
    }

    /// Returns whether all calls match.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a line may match, before it is parsed: names without characters that JSON escapes stand in it as they are, and
    /// so does the status.
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        let names = [
            &self.request_id,
            &self.organization,
            &self.key,
            &self.provider,
            &self.session,
        ];
        let mut plain = names.into_iter().flatten().filter(|name| is_plain(name));
        let is_there = |text: &str| memchr::memmem::find(line, text.as_bytes()).is_some();
        let status = self.status.as_ref();
        status.is_none_or(|status| is_there(&status.in_line())) && plain.all(|name| is_there(name))
    }

    /// Returns whether a call matches.
    pub fn matches(&self, call: &KeptCall) -> bool {
        let is = |wanted: &Option<String>, came: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == came)
        };
        let key = self.key.as_ref();
        let provider = self.provider.as_ref();
        let asked = |provider: &String| {
            let mut attempts = call.attempts.iter();
            *provider == call.provider || attempts.any(|attempt| attempt.provider == *provider)
        };
        is(&self.request_id, &call.request_id)
            && is(&self.organization, &call.organization)
            && is(&self.session, &call.session_id)
            && key.is_none_or(|key| *key == call.key_id || *key == call.key_label)
            && self.is_of_model([&call.model, &call.used_model])
            && provider.is_none_or(asked)
            && self
                .status
                .as_ref()
                .is_none_or(|status| status.matches(call))
            && self
                .cost
                .is_none_or(|least| call.cost.is_some_and(|cost| cost >= least))
    }

    /// Returns whether a call that runs matches. What is known at its end alone matches none.
    pub fn matches_open(&self, call: &super::OpenCallFacts) -> bool {
        let caller = call.caller.as_deref();
        let is = |wanted: &Option<String>, came: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| came == Some(wanted))
        };
        let key = self.key.as_deref();
        let of_key = |key| caller.is_some_and(|it| [&*it.key_id, &*it.key_label].contains(&key));
        is(&self.request_id, call.request_id.to_str().ok())
            && is(
                &self.organization,
                caller.map(|caller| &*caller.organization),
            )
            && is(&self.provider, call.provider.as_deref())
            && key.is_none_or(of_key)
            && self.is_of_model([call.model.as_deref().unwrap_or_default()])
            && self.session.is_none()
            && self.status.is_none()
            && self.cost.is_none()
    }

    fn is_of_model<const N: usize>(&self, models: [&str; N]) -> bool {
        let wanted = self.model.as_deref();
        wanted.is_none_or(|wanted| models.iter().any(|model| contains(model, wanted)))
    }
}

impl StatusFilter {
    /// Errors: it is no status, no class of them and no outcome.
    fn parse(text: &str) -> Result<Self, InvalidFilter> {
        let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
        let class = class.and_then(|class| class.parse().ok());
        let class = class
            .filter(|class| (1..=5).contains(class))
            .map(Self::Class);
        let code = text.parse().ok().filter(|code| (100..=599).contains(code));
        let outcome = OUTCOMES.into_iter().find(|outcome| *outcome == text);
        let found = class
            .or(code.map(Self::Code))
            .or(outcome.map(Self::Outcome));
        found.ok_or_else(|| InvalidFilter {
            field: "status",
            came: text.to_owned(),
            accepted: "a status such as 429, a class such as 5xx, or an outcome: ok, refused, failed, broken, client_gone, queued",
        })
    }

    /// Returns the beginning of the member that the line of each call has that matches.
    fn in_line(&self) -> String {
        match self {
            Self::Code(status) | Self::Class(status) => format!("\"status\":{status}"),
            Self::Outcome(outcome) => format!("\"outcome\":\"{outcome}\""),
        }
    }

    fn matches(&self, call: &KeptCall) -> bool {
        match self {
            Self::Code(code) => call.status == *code,
            Self::Class(class) => call.status / 100 == *class,
            Self::Outcome(outcome) => call.outcome == *outcome,
        }
    }
}

fn parse_cost(text: &str) -> Result<Usd, InvalidFilter> {
    Usd::parse(text).map_err(|_| InvalidFilter {
        field: "cost",
        came: text.to_owned(),
        accepted: "an amount in USD such as 0.05",
    })
}

/// Returns whether JSON escapes nothing of a text.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\/".contains(&byte))
}

/// Returns whether a text has a part, whatever the case of its letters.
fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}
