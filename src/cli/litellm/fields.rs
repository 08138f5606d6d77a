//! Reads tables of the input field by field, so that none is passed over in silence.

use serde_json::Value;

use super::findings::ImportFindings;
use super::yaml::{YamlNode, YamlValue};

/// A field of the input.
#[derive(Clone, Debug)]
pub(super) struct Field<'n> {
    /// Its place, as `model_list[2].litellm_params.rpm`.
    pub path: String,
    node: &'n YamlNode,
}

impl<'n> Field<'n> {
    /// Returns the root of a document.
    pub(super) fn root(node: &'n YamlNode) -> Self {
        Self {
            path: String::new(),
            node,
        }
    }

    /// Returns the line on which its value begins, from 1.
    pub(super) fn line(&self) -> u64 {
        self.node.line
    }

    /// Returns the word for what its value is.
    pub(super) fn kind(&self) -> &'static str {
        self.node.value.kind()
    }

    /// Returns its text; that of a number or a boolean too, because texts without quotes may be read as such.
    pub(super) fn to_text(&self) -> Option<String> {
        match &self.node.value {
            YamlValue::Text(text) | YamlValue::Number(text) => Some(text.clone()),
            YamlValue::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    /// Returns its number as JSON writes it, also that of a text that is one.
    pub(super) fn to_number(&self) -> Option<String> {
        match &self.node.value {
            YamlValue::Number(number) => Some(number.clone()),
            YamlValue::Text(text) => {
                let number: serde_json::Number = serde_json::from_str(text.trim()).ok()?;
                Some(number.to_string())
            }
            _ => None,
        }
    }

    /// Returns it as JSON.
    pub(super) fn to_json(&self) -> String {
        to_json(self.node).to_string()
    }

    /// Returns its number as a whole one that is not negative; fractions are cut off.
    pub(super) fn to_count(&self) -> Option<u64> {
        let number: f64 = self.to_number()?.parse().ok()?;
        // A double beyond this is no count that anybody has written.
        ((0.0..=1e15).contains(&number)).then_some(number as u64)
    }

    /// Returns its seconds, of which a begun one counts.
    pub(super) fn to_seconds(&self) -> Option<u64> {
        let number: f64 = self.to_number()?.parse().ok()?;
        ((0.0..=1e9).contains(&number)).then_some(number.ceil() as u64)
    }

    /// Returns its boolean.
    pub(super) fn to_bool(&self) -> Option<bool> {
        match &self.node.value {
            YamlValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns its items, or itself alone if it is no list.
    pub(super) fn items(&self) -> Vec<Field<'n>> {
        let YamlValue::List(items) = &self.node.value else {
            return vec![self.clone()];
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, node)| Field {
                path: format!("{}[{index}]", self.path),
                node,
            })
            .collect()
    }

    /// Returns the texts of its items.
    pub(super) fn to_texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Field::to_text).collect()
    }

    /// Returns its fields, if it is a table.
    pub(super) fn to_fields(&self) -> Option<Fields<'n>> {
        let YamlValue::Table(table) = &self.node.value else {
            return None;
        };
        let to_field = |name: &str, node: &'n YamlNode| Field {
            path: match self.path.is_empty() {
                true => name.to_owned(),
                false => format!("{}.{name}", self.path),
            },
            node,
        };
        let members = table
            .iter()
            .filter(|(_, node)| node.value != YamlValue::Null);
        let rest = members.map(|(name, node)| (name.as_str(), to_field(name, node)));
        Some(Fields {
            rest: rest.collect(),
        })
    }
}

fn to_json(node: &YamlNode) -> Value {
    match &node.value {
        YamlValue::Null => Value::Null,
        YamlValue::Bool(value) => Value::Bool(*value),
        YamlValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        YamlValue::Text(text) => Value::from(text.as_str()),
        YamlValue::List(items) => items.iter().map(to_json).collect(),
        YamlValue::Table(table) => {
            let members = table.iter();
            Value::Object(
                members
                    .map(|(name, node)| (name.clone(), to_json(node)))
                    .collect(),
            )
        }
    }
}

/// The fields of a table that nobody has taken yet. One without a value says nothing, and is not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'n> {
    rest: Vec<(&'n str, Field<'n>)>,
}

impl<'n> Fields<'n> {
    /// Returns the fields of a table; of anything else none, which is noted.
    pub(super) fn read(field: Option<Field<'n>>, findings: &mut ImportFindings) -> Self {
        let Some(field) = field else {
            return Self::default();
        };
        field.to_fields().unwrap_or_else(|| {
            findings.wrong_kind(&field, "a table");
            Self::default()
        })
    }

    /// Takes a field.
    pub(super) fn take(&mut self, name: &str) -> Option<Field<'n>> {
        let at = self.rest.iter().position(|(known, _)| *known == name)?;
        Some(self.rest.remove(at).1)
    }

    /// Returns whether no field is there.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns whether a field is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.has_any(|known| known == name)
    }

    /// Returns whether one of the wanted fields is there.
    pub(super) fn has_any(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.rest.iter().any(|(name, _)| is_wanted(name))
    }

    /// Takes the fields that are wanted.
    pub(super) fn take_all(&mut self, is_wanted: impl Fn(&str) -> bool) -> Vec<Field<'n>> {
        let rest = std::mem::take(&mut self.rest).into_iter();
        let (taken, rest): (Vec<_>, Vec<_>) = rest.partition(|(name, _)| is_wanted(name));
        self.rest = rest;
        taken.into_iter().map(|(_, field)| field).collect()
    }

    /// Adds the fields of another table that this one does not have.
    pub(super) fn add_missing(&mut self, other: &Self) {
        for (name, field) in &other.rest {
            if !self.rest.iter().any(|(known, _)| known == name) {
                self.rest.push((name, field.clone()));
            }
        }
    }

    /// Takes a field that has to be a text.
    pub(super) fn take_text(
        &mut self,
        name: &str,
        findings: &mut ImportFindings,
    ) -> Option<(Field<'n>, String)> {
        let field = self.take(name)?;
        let text = field.to_text();
        if text.is_none() {
            findings.wrong_kind(&field, "a text");
        }
        Some((field, text?))
    }

    /// Takes a field that has to be a boolean.
    pub(super) fn take_bool(
        &mut self,
        name: &str,
        findings: &mut ImportFindings,
    ) -> Option<(Field<'n>, bool)> {
        let field = self.take(name)?;
        let value = field.to_bool();
        if value.is_none() {
            findings.wrong_kind(&field, "true or false");
        }
        Some((field, value?))
    }

    /// Takes a field that has to be a count.
    pub(super) fn take_count(
        &mut self,
        name: &str,
        findings: &mut ImportFindings,
    ) -> Option<(Field<'n>, u64)> {
        let field = self.take(name)?;
        let count = field.to_count();
        if count.is_none() {
            findings.wrong_kind(&field, "a number");
        }
        Some((field, count?))
    }

    /// Takes a field that has to be seconds.
    pub(super) fn take_seconds(
        &mut self,
        name: &str,
        findings: &mut ImportFindings,
    ) -> Option<(Field<'n>, u64)> {
        let field = self.take(name)?;
        let seconds = field.to_seconds();
        if seconds.is_none() {
            findings.wrong_kind(&field, "a number of seconds");
        }
        Some((field, seconds?))
    }

    /// Returns what nobody has taken, by name.
    pub(super) fn into_rest(self) -> impl Iterator<Item = (&'n str, Field<'n>)> {
        self.rest.into_iter()
    }
}
