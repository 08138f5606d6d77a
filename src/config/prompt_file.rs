//! Reads the file of a managed prompt, in TOML or JSON. It finds every problem at once, each with its place.

use std::ops::Range;

use filters::models::fronts::chat_completions::prompt_file::check_prompt;
use filters::models::prompts::prompt::{Mistake, Prompt};
use filters::models::prompts::tree::{Node, NodeMember, NodeValue};

use super::document::{self, SourceSpan, Table, Value};
use super::problem::Problem;
use super::reporter::Reporter;
use super::walk::Finding;

/// A valid file of a prompt.
pub struct ReadPrompt {
    pub prompt: Prompt,
    /// The prompt as JSON, for the store.
    pub json: String,
    /// Possible mistakes.
    pub warnings: Vec<Problem>,
}

/// Reads the text of the file `name`: JSON if the name ends with `.json`, TOML if it ends with `.toml`, or else as
/// the first character suggests.
///
/// Errors: all problems, in the order of the file.
pub fn read_prompt(name: &str, text: &str) -> Result<ReadPrompt, Vec<Problem>> {
    let reporter = Reporter {
        name,
        text,
        hidden: &[],
    };
    let is_json = match name.rsplit_once('.') {
        Some((_, "json")) => true,
        Some((_, "toml")) => false,
        _ => text.trim_start().starts_with('{'),
    };
    let (root, syntax) = if is_json {
        parse_json(text)
    } else {
        parse_toml(text)
    };
    let checked = root.map(|root| check_prompt(&root));
    let to_problems = |mistakes: Vec<Mistake>| {
        let findings = mistakes
            .into_iter()
            .map(|mistake| to_finding(mistake, text));
        findings.collect::<Vec<_>>()
    };
    match checked {
        Some(Ok(good)) if syntax.is_empty() => Ok(ReadPrompt {
            prompt: good.prompt,
            json: good.json,
            warnings: reporter.to_problems(to_problems(good.warnings)),
        }),
        checked => {
            let mistakes = checked.and_then(Result::err).unwrap_or_default();
            let findings = document::without_echoes(text, syntax, to_problems(mistakes));
            Err(reporter.to_problems(findings))
        }
    }
}

fn parse_json(text: &str) -> (Option<Node>, Vec<Finding>) {
    match Node::parse_json(text) {
        Ok(root) => (Some(root), Vec::new()),
        Err(error) => {
            let finding = Finding {
                key: String::new(),
                at: SourceSpan::Bytes(error.at..error.at + 1),
                message: error.to_string(),
                cure: "mend the syntax; https://www.json.org shows the forms".to_owned(),
            };
            (None, vec![finding])
        }
    }
}

fn parse_toml(text: &str) -> (Option<Node>, Vec<Finding>) {
    let (root, syntax) = document::parse(text);
    (Some(to_node(root)), syntax)
}

fn to_node(node: document::Node) -> Node {
    let span = to_byte_range(&node.at);
    let value = match node.value {
        Value::Bool(flag) => NodeValue::Bool(flag),
        Value::Integer(number) => NodeValue::Number(number.to_string().into()),
        Value::Float(text) => to_number(&text),
        Value::Text(text) => NodeValue::Text(text.into()),
        Value::Date(_) => NodeValue::Other("a date"),
        Value::List(items) => NodeValue::List(items.into_iter().map(to_node).collect()),
        Value::Table(table) => NodeValue::Table(to_members(table)),
    };
    Node { value, span }
}

/// TOML also allows underscores, a leading `+`, `inf` and `nan`.
fn to_number(text: &str) -> NodeValue {
    let digits = text.replace('_', "");
    let number = digits.strip_prefix('+').unwrap_or(&digits);
    match serde_json::from_str::<serde_json::Number>(number) {
        Ok(_) => NodeValue::Number(number.into()),
        Err(_) => NodeValue::Other("a number that is not finite"),
    }
}

/// Returns the members in the order of the file, which matters in schemas.
fn to_members(table: Table) -> Vec<NodeMember> {
    let members = table.into_iter().map(|(key, (at, node))| NodeMember {
        key: key.into(),
        key_span: to_byte_range(&at),
        node: to_node(node),
    });
    let mut members: Vec<_> = members.collect();
    members.sort_by_key(|member| member.key_span.start);
    members
}

fn to_byte_range(at: &SourceSpan) -> Range<usize> {
    match at {
        SourceSpan::Bytes(bytes) => bytes.clone(),
        SourceSpan::Variable(_) | SourceSpan::Nowhere => 0..0,
    }
}

fn to_finding(mistake: Mistake, text: &str) -> Finding {
    let whole = mistake.span;
    // In a long text the quotation may be far from the beginning.
    let quoted = mistake.quote.as_ref().and_then(|quote| {
        let inner = text.get(whole.clone())?;
        // The last braces are the unclosed ones.
        let words = quote.text.as_str();
        let at = if words.ends_with("}}") {
            inner
                .match_indices(words)
                .nth(quote.before)
                .map(|(at, _)| at)
        } else {
            inner.rfind(words)
        };
        let at = whole.start + at?;
        Some(at..at + words.len())
    });
    Finding {
        key: mistake.path,
        at: SourceSpan::Bytes(quoted.unwrap_or(whole)),
        message: mistake.said,
        cure: String::new(),
    }
}
