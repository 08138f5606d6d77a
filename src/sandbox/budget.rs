//! Limits the size of the sandbox's responses, which are made from schemas and queries of strangers.

use filters::json::count_values;
use serde_json::Value;

/// The size of a value without its texts, in bytes.
const VALUE_BYTES: usize = 64;

/// The maximum number of values in a request. Each becomes part of a tree, which is much larger than its text.
const MAX_REQUEST_VALUES: usize = 256 << 10;

/// Parses a request. Returns `None` if it is not JSON, or has too many values.
pub(super) fn parse(body: &[u8]) -> Option<Value> {
    let has_few = count_values(body) <= MAX_REQUEST_VALUES;
    has_few.then(|| serde_json::from_slice(body).ok())?
}

/// The bytes that a response may still take.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
}

/// The response is larger than its budget.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLarge;

impl TooLarge {
    /// The message for the client.
    pub(super) const MESSAGE: &str = "The answer is too large.";
}

impl From<TooLarge> for String {
    fn from(_: TooLarge) -> String {
        TooLarge::MESSAGE.to_owned()
    }
}

impl Budget {
    /// Returns a budget of this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes }
    }

    /// Spends the size of a text, or the time to read it.
    pub(super) fn spend_text(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }

    /// Spends the size of values, or the time to read them.
    pub(super) fn spend_values(&mut self, values: usize) -> Result<(), TooLarge> {
        self.spend_text(values.saturating_mul(VALUE_BYTES))
    }

    /// Spends the size of a value. Returns a copy of the value.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, TooLarge> {
        self.spend_copy(value)?;
        Ok(value.clone())
    }

    fn spend_copy(&mut self, value: &Value) -> Result<(), TooLarge> {
        self.spend_values(1)?;
        match value {
            Value::String(text) => self.spend_text(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.spend_copy(item)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                self.spend_text(name.len())?;
                self.spend_copy(value)
            }),
            _ => Ok(()),
        }
    }
}
