//! The reason of a refusal: the field, the value that came, the values accepted. Paths are built on the way out, so
//! that a request without faults pays nothing for them.

use std::borrow::Cow;

use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::json::{Error, Type, Walker};
use crate::models::dialects::Dialect;

/// The longest value that a message quotes.
const QUOTED_CHARS: usize = 40;

/// A refusal on its way out.
#[derive(Debug)]
pub(crate) enum Reject {
    /// The text is not JSON, or over its limits.
    Syntax(Error),
    /// A rule is broken at `path`.
    Rule {
        path: String,
        /// What is said of the field: follows its name.
        said: Cow<'static, str>,
        code: Option<FaultCode>,
    },
}

impl From<Error> for Reject {
    fn from(error: Error) -> Self {
        Self::Syntax(error)
    }
}

impl Reject {
    /// A rule about the field at hand.
    pub(crate) fn rule(said: impl Into<Cow<'static, str>>) -> Self {
        Self::Rule {
            path: String::new(),
            said: said.into(),
            code: None,
        }
    }

    /// The same with a `code`.
    pub(crate) fn with_code(mut self, with: FaultCode) -> Self {
        if let Self::Rule { code, .. } = &mut self {
            *code = Some(with);
        }
        self
    }

    /// The same, one level further out: inside the member `key`.
    pub(crate) fn within(mut self, key: &str) -> Self {
        if let Self::Rule { path, .. } = &mut self {
            let joint = if path.is_empty() || path.starts_with('[') {
                ""
            } else {
                "."
            };
            *path = format!("{key}{joint}{path}");
        }
        self
    }

    /// The same, one level further out: inside the item `index`.
    pub(crate) fn within_item(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The same, with the path as a dialect writes it.
    pub(crate) fn in_dialect(mut self, dialect: Dialect) -> Self {
        if let Self::Rule { path, .. } = &mut self {
            *path = dialect.path(std::mem::take(path));
        }
        self
    }

    /// The fault for the caller.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Syntax(error) => Fault::new(
                FaultKind::Invalid,
                format!("the body is not a valid JSON object: {error}"),
            )
            .with_code(FaultCode::InvalidJson),
            Self::Rule { path, said, code } => {
                let path = quoted(&path);
                let fault = Fault::invalid(&*path, format!("`{path}` {said}"));
                match code {
                    Some(code) => fault.with_code(code),
                    None => fault.with_code(FaultCode::InvalidParameters),
                }
            }
        }
    }
}

/// The value that stands next is not what is accepted.
pub(crate) fn other(walk: &mut Walker<'_>, accepted: &str) -> Reject {
    let found = match walk.peek() {
        Ok(found) => found,
        Err(error) => return error.into(),
    };
    // The value is read to its end first, to distinguish broken JSON from a wrong value.
    let text = match walk.skip() {
        Ok(text) => text,
        Err(error) => return error.into(),
    };
    let is_short = text.chars().count() <= QUOTED_CHARS;
    let quoted = match found {
        Type::String | Type::Number if is_short => format!("{} ({text})", found.as_str()),
        Type::Bool => format!("the boolean {text}"),
        _ => found.as_str().to_owned(),
    };
    Reject::rule(format!("is {quoted}; accepted is {accepted}"))
}
