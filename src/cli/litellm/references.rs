//! Values that the input takes from the environment, and secrets that it holds itself.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::fields::Field;
use super::findings::ImportFindings;

/// How the input names a variable.
const VARIABLE: &str = "os.environ/";

/// The variables of the importing process, and the names that were made for secrets of the input.
///
/// It has no `Debug`, because it holds secrets.
pub(super) struct References<'e> {
    environment: &'e BTreeMap<String, String>,
    /// By the text of the secret, which is never shown.
    made: BTreeMap<String, String>,
}

impl<'e> References<'e> {
    /// Starts with the environment of the process.
    pub(super) fn new(environment: &'e BTreeMap<String, String>) -> Self {
        Self {
            environment,
            made: BTreeMap::new(),
        }
    }

    /// Returns the variable that stands for a secret: the one that the field names, or one that is made for the text in it.
    pub(super) fn secret(
        &mut self,
        field: &Field<'_>,
        owner: &str,
        findings: &mut ImportFindings,
    ) -> Option<String> {
        let Some(text) = field.to_text() else {
            findings.wrong_kind(field, "a text");
            return None;
        };
        if let Some(variable) = text.strip_prefix(VARIABLE) {
            return Some(variable.to_owned());
        }
        let variable = self.variable_for(&text, owner);
        findings.secret(field, &variable);
        Some(variable)
    }

    fn variable_for(&mut self, text: &str, owner: &str) -> String {
        if let Some(known) = self.made.get(text) {
            return known.clone();
        }
        let upper = |char: char| match char.is_ascii_alphanumeric() {
            true => char.to_ascii_uppercase(),
            false => '_',
        };
        let owner: String = owner.chars().map(upper).collect();
        let base = format!("IMPORTED_{owner}_KEY");
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let is_free = |name: &String| !self.made.values().any(|made| made == name);
        let name = names.find(is_free).unwrap_or_else(|| base.clone());
        self.made.insert(text.to_owned(), name.clone());
        name
    }

    /// Returns the text of a field that is no secret. A variable is read now, because the configuration has none for such values.
    pub(super) fn text(&self, field: &Field<'_>, findings: &mut ImportFindings) -> Option<String> {
        let Some(text) = field.to_text() else {
            findings.wrong_kind(field, "a text");
            return None;
        };
        let Some(variable) = text.strip_prefix(VARIABLE) else {
            return Some(text);
        };
        let found = self
            .environment
            .get(variable)
            .filter(|text| !text.is_empty());
        if found.is_none() {
            let what = format!("it is in the variable {variable}, which is not set here");
            let cure = format!("set {variable} as for the other gateway, and import again");
            findings.left_out(field, what, cure);
        }
        found.cloned()
    }

    /// Returns the value of a variable that the other gateway reads by itself.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.get(name)?;
        Some(found.clone()).filter(|text| !text.is_empty())
    }
}

/// Returns whether a field names a variable.
pub(super) fn is_variable(field: &Field<'_>) -> bool {
    field
        .to_text()
        .is_some_and(|text| text.starts_with(VARIABLE))
}

/// Returns the reference to a variable, as configurations write it.
pub(super) fn to_reference(variable: &str) -> Value {
    Value::Table(Table::from_iter([(
        "env".to_owned(),
        Value::from(variable),
    )]))
}

/// What all readers of the input share.
pub(super) struct Reading<'e> {
    pub references: References<'e>,
    pub findings: ImportFindings,
}

impl<'e> Reading<'e> {
    /// Starts with the environment of the process.
    pub(super) fn new(environment: &'e BTreeMap<String, String>) -> Self {
        Self {
            references: References::new(environment),
            findings: ImportFindings::default(),
        }
    }

    /// Returns the text of a field that is no secret.
    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        self.references.text(field, &mut self.findings)
    }

    /// Returns the variable that stands for a secret, which `owner` needs.
    pub(super) fn secret(&mut self, field: &Field<'_>, owner: &str) -> Option<String> {
        self.references.secret(field, owner, &mut self.findings)
    }
}
