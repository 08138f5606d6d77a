//! Reads the file of a prompt, and goes on behind mistakes.

use std::ops::Range;

use super::prompt::{
    DefaultValue, Mistake, Prompt, PromptParameter, PromptVariable, Quote, VariableKind,
};
use super::template::{Template, TextPart, is_variable_name, text_parts};
use super::tree::{Node, NodeMember, NodeValue};
use crate::fault::quoted;

/// What a file may hold.
const MEMBERS: [&str; 4] = ["messages", "model", "parameters", "variables"];
/// What the declaration of a variable may hold.
const VARIABLE_MEMBERS: [&str; 3] = ["type", "default", "description"];
/// The maximum number of variables of a prompt.
const MAX_VARIABLES: usize = 256;

/// Reads a file.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) mistakes: Vec<Mistake>,
}

impl Reader {
    fn refuse(&mut self, path: &str, span: &Range<usize>, said: impl Into<String>) {
        self.mistakes.push(Mistake {
            path: path.to_owned(),
            span: span.clone(),
            said: said.into(),
            quote: None,
        });
    }

    pub(super) fn prompt(&mut self, root: &Node) -> Prompt {
        self.foreign_values(root, "");
        let known = self.members(
            root,
            "",
            &MEMBERS,
            "fields of a request stand in `parameters`",
        );
        let find = |key: &str| {
            known
                .iter()
                .find(|member| &*member.key == key)
                .map(|it| &it.node)
        };
        let model = find("model").and_then(|node| self.text(node, "model"));
        let parameters = find("parameters").map(|node| self.parameters(node));
        let mut variables = find("variables").map_or_else(Vec::new, |node| self.variables(node));
        let messages = match find("messages").map(|node| (node, &node.value)) {
            Some((_, NodeValue::List(messages))) => messages.as_slice(),
            Some((node, _)) => {
                let said = format!("is {}; accepted is an array of messages", node.type_name());
                self.refuse("messages", &node.span, said);
                &[]
            }
            None => {
                let heading = root.span.start..root.span.start;
                let said = "is missing; accepted is an array of messages";
                self.refuse("messages", &heading, said);
                &[]
            }
        };
        self.placeholders(messages, "messages");
        let template = Template::compile(messages, |name| number_of(name, &mut variables));
        if variables.len() > MAX_VARIABLES {
            let said = format!(
                "holds {} variables; accepted are at most {MAX_VARIABLES}",
                variables.len()
            );
            self.refuse("variables", &root.span, said);
        }
        Prompt {
            model,
            parameters: parameters.unwrap_or_default(),
            message_count: messages.len(),
            template,
            variables,
        }
    }

    /// Returns the members of a table, each once. A null is not a value.
    fn members<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        known: &[&str],
        hint: &str,
    ) -> Vec<&'n NodeMember> {
        let Some(members) = node.members() else {
            let said = format!("is {}; accepted is an object", node.type_name());
            let path = if path.is_empty() { "the file" } else { path };
            self.refuse(path, &node.span, said);
            return Vec::new();
        };
        let mut found: Vec<&NodeMember> = Vec::new();
        for member in members {
            let inner = join(path, &member.key);
            if !known.is_empty() && !known.contains(&&*member.key) {
                let separator = if hint.is_empty() { "" } else { "; " };
                let said = format!(
                    "is unknown; accepted are {}{separator}{hint}",
                    known.join(", ")
                );
                self.refuse(&inner, &member.key_span, said);
            } else if found.iter().any(|other| other.key == member.key) {
                self.refuse(&inner, &member.key_span, "stands twice; accepted is once");
            } else if !matches!(member.node.value, NodeValue::Null) {
                found.push(member);
            }
        }
        found
    }

    fn text(&mut self, node: &Node, path: &str) -> Option<Box<str>> {
        if let Some(text) = node.text() {
            return Some(text.into());
        }
        let said = format!("is {}; accepted is a string", node.type_name());
        self.refuse(path, &node.span, said);
        None
    }

    fn parameters(&mut self, node: &Node) -> Vec<PromptParameter> {
        let members = self.members(node, "parameters", &[], "");
        let parameter = |member: &&NodeMember| PromptParameter {
            key: member.key.clone(),
            json: member.node.to_json().into(),
        };
        members.iter().map(parameter).collect()
    }

    fn variables(&mut self, node: &Node) -> Vec<PromptVariable> {
        let mut variables = Vec::new();
        for member in self.members(node, "variables", &[], "") {
            let path = join("variables", &member.key);
            if !is_variable_name(&member.key) {
                let said = "is no name of a variable; accepted are a letter or `_`, then letters, digits, `_`, `.` and `-`";
                self.refuse(&path, &member.key_span, said);
            }
            variables.push(self.variable(member, &path));
        }
        variables
    }

    /// A table, or the default alone.
    fn variable(&mut self, member: &NodeMember, path: &str) -> PromptVariable {
        let (mut kind, mut default, mut description) = (None, None, None);
        if member.node.members().is_some() {
            for inner in self.members(&member.node, path, &VARIABLE_MEMBERS, "") {
                let path = join(path, &inner.key);
                match &*inner.key {
                    "type" => kind = self.kind(&inner.node, &path),
                    "default" => default = self.default(&inner.node, &path).map(|it| (it, inner)),
                    _ => description = self.text(&inner.node, &path),
                }
            }
        } else {
            default = self.default(&member.node, path).map(|it| (it, member));
        }
        if let (Some(kind), Some((value, at))) = (kind, &default)
            && value.kind() != kind
        {
            let (came, accepted) = (at.node.type_name(), VariableKind::accepted(Some(kind)));
            let said = format!("is {came}; accepted is {accepted}, as its type says");
            self.refuse(&join(path, "default"), &at.node.span, said);
        }
        let default = default.map(|(value, _)| value);
        PromptVariable {
            name: member.key.clone(),
            kind: kind.or(default.as_ref().map(DefaultValue::kind)),
            default,
            description,
            is_used: false,
        }
    }

    fn kind(&mut self, node: &Node, path: &str) -> Option<VariableKind> {
        let word = node.text().unwrap_or_default();
        let kind = VariableKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word);
        if kind.is_none() {
            let came = node.text().map_or_else(
                || node.type_name().to_owned(),
                |word| format!("{:?}", quoted(word)),
            );
            let said = format!("is {came}; accepted is one of string, number, boolean");
            self.refuse(path, &node.span, said);
        }
        kind
    }

    fn default(&mut self, node: &Node, path: &str) -> Option<DefaultValue> {
        match &node.value {
            NodeValue::Text(text) => Some(DefaultValue::Text(text.clone())),
            NodeValue::Number(number) => Some(DefaultValue::Number(number.clone())),
            NodeValue::Bool(flag) => Some(DefaultValue::Bool(*flag)),
            // It is refused already.
            NodeValue::Other(_) => None,
            _ => {
                let accepted = VariableKind::accepted(None);
                let said = format!("is {}; accepted is {accepted}", node.type_name());
                self.refuse(path, &node.span, said);
                None
            }
        }
    }

    /// Refuses braces around something that is not a name: what looks like a slip would go to a model.
    fn placeholders(&mut self, nodes: &[Node], path: &str) {
        for (at, node) in nodes.iter().enumerate() {
            self.placeholders_of(node, &format!("{path}[{at}]"));
        }
    }

    fn placeholders_of(&mut self, node: &Node, path: &str) {
        match &node.value {
            NodeValue::Text(text) => {
                let mut seen: Vec<&str> = Vec::new();
                for part in text_parts(text) {
                    let TextPart::Malformed(braces) = part else {
                        continue;
                    };
                    let before = seen.iter().filter(|known| **known == braces).count();
                    seen.push(braces);
                    self.mistakes.push(Mistake {
                        path: path.to_owned(),
                        span: node.span.clone(),
                        said: format!(
                            "holds {:?}; accepted is {{{{name}}}}: a letter or `_`, then letters, digits, `_`, `.` and `-` \
                             (for the braces themselves, use a variable whose default they are)",
                            quoted(braces)
                        ),
                        quote: Some(Quote {
                            text: braces.to_owned(),
                            before,
                        }),
                    });
                }
            }
            NodeValue::List(items) => self.placeholders(items, path),
            NodeValue::Table(members) => {
                for member in members {
                    self.placeholders_of(&member.node, &join(path, &member.key));
                }
            }
            _ => {}
        }
    }

    /// Refuses values that JSON does not have.
    fn foreign_values(&mut self, node: &Node, path: &str) {
        match &node.value {
            NodeValue::Other(name) => {
                let said = format!("is {name}; accepted are values that JSON has");
                self.refuse(path, &node.span, said);
            }
            NodeValue::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.foreign_values(item, &format!("{path}[{at}]"));
                }
            }
            NodeValue::Table(members) => {
                for member in members {
                    self.foreign_values(&member.node, &join(path, &member.key));
                }
            }
            _ => {}
        }
    }
}

/// Returns the number of a variable. One that is not declared may be anything, and has no default.
fn number_of(name: &str, variables: &mut Vec<PromptVariable>) -> usize {
    let known = variables
        .iter()
        .position(|variable| &*variable.name == name);
    let number = known.unwrap_or_else(|| {
        variables.push(PromptVariable {
            name: name.into(),
            kind: None,
            default: None,
            description: None,
            is_used: true,
        });
        variables.len() - 1
    });
    if let Some(variable) = variables.get_mut(number) {
        variable.is_used = true;
    }
    number
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
