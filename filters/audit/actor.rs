//! Who changes accounts, and from where.

use std::borrow::Cow;
use std::fmt::Display;

/// Nobody has a longer name. Units: characters.
const MAX_CHARS: usize = 128;

/// Who changes accounts, and from where. It is what they say of themselves, not a proof.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Actor {
    name: Cow<'static, str>,
    origin: Cow<'static, str>,
}

/// The program itself, which nobody has told to do what it does.
pub static PROGRAM: Actor = Actor {
    name: Cow::Borrowed("weirgate"),
    origin: Cow::Borrowed("the program itself"),
};

impl Actor {
    /// Makes an actor who gives commands on a host.
    pub fn on_command_line(name: &str, host: &str) -> Self {
        Self::new(name, &format!("command line at {}", shown(host)))
    }

    /// Makes an actor who uses the console from an address.
    pub fn on_console(name: &str, address: impl Display) -> Self {
        Self::new(name, &format!("console from {address}"))
    }

    fn new(name: &str, origin: &str) -> Self {
        Self {
            name: shown(name).into(),
            origin: shown(origin).into(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns from where.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

/// Returns a text as an entry has it: without control characters, and not longer than any name.
fn shown(text: &str) -> String {
    let chars = text.trim().chars().take(MAX_CHARS);
    let text: String = chars
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    match text.is_empty() {
        true => "unknown".to_owned(),
        false => text,
    }
}
