//! What of a request a prompt has written, for its errors, its `metadata` and its log line.

use super::library::FoundPrompt;
use crate::fault::Fault;
use crate::json::Object;

/// The prompt of a request, and what it has written.
#[derive(Clone, Debug)]
pub struct Managed {
    /// The model string as the caller sent it; `None`: the prompt has named the model.
    pub requested_model: Option<Box<str>>,
    /// Members of `metadata` and of the log line, as JSON without braces around them.
    ///
    /// Shape: `"prompt":{"id","version","label"}`; the label only if the prompt was found by it. Our choice: the contract
    /// leaves open how an answer names its prompt.
    pub members: Box<str>,
    /// The members that the prompt has filled.
    filled: Vec<Box<str>>,
    message_count: usize,
    /// The prompt as messages name it.
    name: Box<str>,
}

impl Managed {
    /// Notes what `found` has filled.
    pub fn new(
        found: &FoundPrompt,
        requested_model: Option<Box<str>>,
        filled: Vec<Box<str>>,
    ) -> Self {
        let mut members = br#""prompt":"#.to_vec();
        let mut object = Object::open(&mut members);
        object.text("id", &found.name);
        object.number("version", found.version);
        object.optional_text("label", found.label.as_deref());
        object.close();
        Self {
            requested_model,
            members: String::from_utf8(members).unwrap_or_default().into(),
            filled,
            message_count: found.prompt.message_count,
            name: format!("the prompt `{}`, version {}", found.name, found.version).into(),
        }
    }

    /// Returns a fault of the request that says what the prompt has written, and that counts the caller's messages as the
    /// caller does.
    #[must_use]
    pub fn explain(&self, mut fault: Fault) -> Fault {
        let Some(param) = fault.param.clone() else {
            return fault;
        };
        let end = param.find(['.', '[']).unwrap_or(param.len());
        let (member, inner) = param.split_at(end);
        let mut is_filled = self.filled.iter().any(|filled| &**filled == member);
        if member == "messages"
            && let Some((index, rest)) = index_of(inner)
        {
            is_filled = index < self.message_count;
            if !is_filled {
                let own = format!("messages[{}]{rest}", index - self.message_count);
                let message = fault
                    .message
                    .replace(&format!("`{param}`"), &format!("`{own}`"));
                fault.message = message.into();
                fault.param = Some(own);
            }
        }
        if is_filled {
            fault.message = format!("{} (written by {})", fault.message, self.name).into();
        }
        fault
    }
}

/// Returns the index at the start of a path, and the rest behind it.
fn index_of(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}
