//! What an import could not take over as it is: each with its place, what came of it, and a cure.
//!
//! No finding shows a value that may be a secret: of values that are not understood only their kind is told.

use serde::Serialize;
use serde_json::{Value, json};

use super::fields::{Field, Fields};

/// What became of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Nothing stands for it.
    LeftOut,
    /// Something stands for it that does not do exactly the same.
    Differs,
    /// A secret, of which only the name of a variable was written.
    Secret,
}

impl Outcome {
    /// Returns the words for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::LeftOut => "left out",
            Self::Differs => "differs",
            Self::Secret => "secret",
        }
    }
}

/// A field that was not taken over as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ImportFinding {
    /// The place in the input, as `model_list[2].litellm_params.rpm`.
    pub path: String,
    /// The line of the input, from 1.
    pub line: u64,
    pub outcome: Outcome,
    /// What kind of value is there.
    pub kind: &'static str,
    pub what: String,
    pub cure: String,
}

impl ImportFinding {
    /// Returns it as JSON.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "path": self.path,
            "line": self.line,
            "outcome": self.outcome,
            "value": self.kind,
            "what": self.what,
            "cure": self.cure,
        })
    }
}

/// A row of fields that have no counterpart: their names with blanks between, what becomes of them, and the cure.
pub(super) type UntranslatedRow = (&'static str, &'static str, &'static str);

/// All findings of an import.
#[derive(Default)]
pub(super) struct ImportFindings(Vec<ImportFinding>);

impl ImportFindings {
    /// Notes that nothing stands for a field.
    pub(super) fn left_out(
        &mut self,
        field: &Field<'_>,
        what: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.add(field, Outcome::LeftOut, (what.into(), cure.into()));
    }

    /// Notes that what stands for a field does not do exactly the same.
    pub(super) fn differs(
        &mut self,
        field: &Field<'_>,
        what: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.add(field, Outcome::Differs, (what.into(), cure.into()));
    }

    /// Notes a secret that is expected in a variable.
    pub(super) fn secret(&mut self, field: &Field<'_>, variable: &str) {
        let what =
            format!("a secret stands in the file; {variable} stands for it in what was written");
        let cure = format!(
            "set {variable} in the environment of the server; better, make a new secret, because this one was written down"
        );
        self.add(field, Outcome::Secret, (what, cure));
    }

    /// Notes that a value has another kind than the field takes.
    pub(super) fn wrong_kind(&mut self, field: &Field<'_>, accepted: &str) {
        let what = format!(
            "a {} stands there, and {accepted} is expected",
            field.kind()
        );
        self.left_out(field, what, "correct it, and import again");
    }

    /// Notes all fields of a table that nobody has taken. `known` says what becomes of those that have no counterpart.
    pub(super) fn leave(&mut self, fields: Fields<'_>, known: &[UntranslatedRow]) {
        for (name, field) in fields.into_rest() {
            let mut rows = known.iter();
            let row = rows.find(|(names, _, _)| names.split(' ').any(|known| known == name));
            match row {
                Some((_, what, cure)) => self.left_out(&field, *what, *cure),
                None => self.left_out(
                    &field,
                    "the importer does not know this field",
                    "look up what it does, and compare with docs/interface.md; take it out if it is a typo",
                ),
            }
        }
    }

    fn add(&mut self, field: &Field<'_>, outcome: Outcome, (what, cure): (String, String)) {
        self.0.push(ImportFinding {
            path: field.path.clone(),
            line: field.line(),
            outcome,
            kind: field.kind(),
            what,
            cure,
        });
    }

    /// Returns them in the order of the file.
    pub(super) fn into_sorted(mut self) -> Vec<ImportFinding> {
        self.0.sort_by(|one, other| {
            (one.line, &one.path, &one.what).cmp(&(other.line, &other.path, &other.what))
        });
        self.0.dedup();
        self.0
    }
}
