//! The options of a list that is read page by page. Source: docs/facts/model-gateway.md 1.10.

use filters::fault::{Fault, quoted};
use filters::fault_code::FaultCode;

use crate::proxy::handler::Request;

/// The default and the maximum number of entries.
const SIZES: [usize; 2] = [20, 100];

/// A page of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ListPage {
    /// The id of the entry behind which it begins.
    pub(super) after: Option<String>,
    pub(super) limit: usize,
    /// Whether the oldest entry comes first.
    pub(super) is_ascending: bool,
}

impl ListPage {
    /// Errors: 400 that names the parameter.
    pub(super) fn parse(request: &Request<'_>) -> Result<Self, Fault> {
        let last = |name: &str| request.values(name).last();
        let [usual, most] = SIZES;
        let limit = match last("limit") {
            None => usual,
            Some(text) => match text.parse() {
                Ok(limit) if (1..=most).contains(&limit) => limit,
                _ => return Err(refused("limit", &text, "an integer from 1 to 100")),
            },
        };
        let is_ascending = match last("order").as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(other) => return Err(refused("order", other, "`asc` or `desc`")),
        };
        Ok(Self {
            after: last("after").map(Into::into),
            limit,
            is_ascending,
        })
    }
}

/// Returns the 400 for a parameter that is not what is accepted.
pub(super) fn refused(name: &str, value: &str, accepted: &str) -> Fault {
    let message = format!("`{name}` is {:?}; accepted is {accepted}", quoted(value));
    Fault::invalid(name.to_owned(), message).with_code(FaultCode::InvalidParameters)
}
