//! The rules of a prompt's file: its messages, its model and its parameters are checked as those of a request.
//!
//! A check of a request ends with the first rule that is broken. Here the value at fault is taken out and the rest is
//! checked again, so that all mistakes of a file are found by the same rules.

use bytes::Bytes;

use super::check::{check_member, check_together};
use crate::models::check::reject::Reject;
use crate::models::prompts::prompt::{Mistake, Prompt};
use crate::models::prompts::tree::{Node, NodeMember, NodeValue};

mod take_out;
#[cfg(test)]
mod tests;

use self::take_out::take_out;

/// The most mistakes that are told of one member.
const MAX_MISTAKES: usize = 100;

/// Members that no prompt fills, and why.
const UNFILLED: [(&str, &str); 6] = [
    ("model", "stands beside `parameters`, not in it"),
    ("messages", "stands beside `parameters`, not in it"),
    ("prompt", "names another prompt, which no prompt does"),
    (
        "stream",
        "is the caller's alone: it decides what the caller has to read",
    ),
    (
        "stream_options",
        "is the caller's alone: it decides what the caller has to read",
    ),
    ("user", "is the caller's alone: it names the caller's user"),
];

/// A good file.
#[derive(Debug)]
pub struct CheckedPrompt {
    pub prompt: Prompt,
    /// The file as JSON, for the store.
    pub json: String,
    /// What may be a slip.
    pub warnings: Vec<Mistake>,
}

/// Checks a file.
///
/// Errors: all mistakes, in no order.
pub fn check_prompt(root: &Node) -> Result<CheckedPrompt, Vec<Mistake>> {
    let compiled = Prompt::compile(root);
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    if let Some(node) = root.member("model").filter(|node| node.text().is_some()) {
        mistakes.extend(model_mistakes(node));
    }
    let messages = root.member("messages");
    if let Some(node) = messages.filter(|node| matches!(node.value, NodeValue::List(_))) {
        mistakes.extend(member_mistakes("messages", "messages", node));
    }
    for parameter in parameters(root) {
        let path = format!("parameters.{}", parameter.key);
        if let Some((_, why)) = UNFILLED.iter().find(|(key, _)| *key == &*parameter.key) {
            mistakes.push(mistake(path, parameter, why));
            continue;
        }
        let found = member_mistakes(&parameter.key, &path, &parameter.node);
        if found.is_empty()
            && check_member(&parameter.key, &parameter.node.to_json())
                .is_ok_and(|is_known| !is_known)
        {
            let said = "is no field that the gateway knows: it reaches only providers that take unknown fields";
            warnings.push(mistake(path, parameter, said));
        }
        mistakes.extend(found);
    }
    match compiled {
        Err(of_file) => Err(of_file.into_iter().chain(mistakes).collect()),
        Ok(_) if !mistakes.is_empty() => Err(mistakes),
        Ok(prompt) => {
            together(root, &prompt).map_or(Ok(()), |mistake| Err(vec![mistake]))?;
            warnings.extend(unused_variables(root, &prompt));
            Ok(CheckedPrompt {
                prompt,
                json: root.to_json(),
                warnings,
            })
        }
    }
}

/// Returns whether a prompt or a variation may fill the member of a request.
pub fn is_field(key: &str) -> bool {
    let is_unfilled = UNFILLED.iter().any(|(unfilled, _)| *unfilled == key);
    !is_unfilled && !matches!(check_member(key, "null"), Ok(false))
}

fn mistake(path: String, at: &NodeMember, said: &str) -> Mistake {
    Mistake {
        path,
        span: at.key_span.clone(),
        said: said.to_owned(),
        quote: None,
    }
}

fn parameters(root: &Node) -> &[NodeMember] {
    let parameters = root.member("parameters");
    parameters.and_then(Node::members).unwrap_or_default()
}

fn model_mistakes(node: &Node) -> Vec<Mistake> {
    let model = node.text().unwrap_or_default();
    let said = if model.starts_with('@') {
        "names a prompt; accepted is a model id"
    } else if model.contains("{{") {
        "holds a variable; accepted are variables in `messages` alone"
    } else {
        return member_mistakes("model", "model", node);
    };
    vec![Mistake {
        path: "model".to_owned(),
        span: node.span.clone(),
        said: said.to_owned(),
        quote: None,
    }]
}

/// Returns all rules that the member of a request breaks; `path` is where it stands in the file.
fn member_mistakes(key: &str, path: &str, node: &Node) -> Vec<Mistake> {
    let mut rest = node.clone();
    let mut found = Vec::new();
    while found.len() < MAX_MISTAKES {
        let Err(reject) = check_member(key, &rest.to_json()) else {
            break;
        };
        let (inner, said) = said_of(reject);
        let inner = inner.strip_prefix(key).unwrap_or_default();
        let (culprit, is_whole) = match take_out(&mut rest, inner, path) {
            Ok(culprit) => (culprit, false),
            Err(culprit) => (culprit, true),
        };
        if !culprit.is_echo {
            found.push(Mistake {
                path: culprit.path,
                span: culprit.span,
                said,
                quote: None,
            });
        }
        if is_whole {
            break;
        }
    }
    found
}

/// Returns the place and the words of a refusal.
fn said_of(reject: Reject) -> (String, String) {
    match reject {
        Reject::Rule { path, said, .. } => (path, said.into_owned()),
        Reject::Syntax(error) => (String::new(), error.to_string()),
    }
}

/// Checks what holds between members. A choice of tools may be about tools of the caller.
fn together(root: &Node, prompt: &Prompt) -> Option<Mistake> {
    let model = prompt.model.as_deref().unwrap_or("any");
    let messages = root.member("messages").map(Node::to_json);
    let mut body = serde_json::json!({ "model": model }).to_string();
    body.pop();
    body.push_str(",\"messages\":");
    body.push_str(&messages.unwrap_or_default());
    let has_tools = prompt.parameters.iter().any(|it| &*it.key == "tools");
    let said = prompt
        .parameters
        .iter()
        .filter(|it| has_tools || &*it.key != "tool_choice");
    for parameter in said {
        body.push_str(&format!(
            ",{}:{}",
            serde_json::Value::from(&*parameter.key),
            parameter.json
        ));
    }
    body.push('}');
    let (path, said) = said_of(check_together(&Bytes::from(body)).err()?);
    let head = path.split(['.', '[']).next().unwrap_or_default();
    let in_parameters = parameters(root).iter().find(|member| &*member.key == head);
    let node = in_parameters
        .map(|member| &member.node)
        .or_else(|| root.member(head));
    let prefix = if in_parameters.is_some() {
        "parameters."
    } else {
        ""
    };
    Some(Mistake {
        path: format!("{prefix}{path}"),
        span: node.map_or_else(|| root.span.clone(), |node| node.span.clone()),
        said,
        quote: None,
    })
}

fn unused_variables<'n>(root: &'n Node, prompt: &Prompt) -> Vec<Mistake> {
    let declared = root
        .member("variables")
        .and_then(Node::members)
        .unwrap_or_default();
    let unused = prompt
        .variables()
        .iter()
        .filter(|variable| !variable.is_used);
    let unused =
        unused.filter_map(|variable| declared.iter().find(|member| member.key == variable.name));
    let to_mistake = |member: &'n NodeMember| {
        let said = "is declared, but no message holds it";
        mistake(format!("variables.{}", member.key), member, said)
    };
    unused.map(to_mistake).collect()
}
