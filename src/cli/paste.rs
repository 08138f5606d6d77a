//! Texts to paste into clients, for people and for programs.

use serde_json::{Map, Value};

/// A text for one place of one client.
pub(super) struct Paste {
    pub(super) client: &'static str,
    /// Where the text goes: a shell, or a file.
    pub(super) place: &'static str,
    pub(super) text: String,
    /// The next step, if there is one.
    pub(super) then: Option<&'static str>,
}

impl Paste {
    /// Returns the fields for programs.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        let fields = [
            ("client", self.client.into()),
            ("place", self.place.into()),
            ("text", self.text.as_str().into()),
            ("then", self.then.into()),
        ];
        let fields = fields.into_iter();
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Writes the paste for people.
    pub(super) fn write(&self, out: &mut String) {
        let then = self.then;
        let then = then.map_or_else(String::new, |then| format!("; {then}"));
        out.push_str(&format!("\n{} ({}{then}):\n", self.client, self.place));
        for line in self.text.lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
}
