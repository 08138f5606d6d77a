//! Forms that do their work once, however often they are sent: a page that is loaded again sends its form again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::access::random_text;
use super::request::ConsoleRequest;

/// The field that tells one form from another.
const FIELD: &str = "once";
/// The forms that are remembered.
const MAX_FORMS: usize = 1_000;

/// The forms that have done their work.
#[derive(Default)]
pub(super) struct DoneForms(Mutex<VecDeque<String>>);

/// The form was sent before, or has no mark of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SentBefore;

/// Returns the name and the value of the hidden field that each such form has.
pub(super) fn mark() -> (&'static str, String) {
    // Without randomness the form is refused.
    (FIELD, random_text().unwrap_or_default())
}

impl DoneForms {
    /// Lets a form do its work.
    ///
    /// Errors: it has done so.
    pub(super) fn begin(&self, request: &ConsoleRequest) -> Result<(), SentBefore> {
        let mark = request.field(FIELD).ok_or(SentBefore)?;
        let mut done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if done.contains(&mark) {
            return Err(SentBefore);
        }
        if done.len() >= MAX_FORMS {
            done.pop_front();
        }
        done.push_back(mark);
        Ok(())
    }
}
