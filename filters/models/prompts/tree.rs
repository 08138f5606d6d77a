//! The file of a prompt as a tree in which every value has its place.

use std::ops::Range;

use crate::json::{Error, Str, Type, Walker};

/// A value and the bytes of the file that it stands in.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: NodeValue,
    pub span: Range<usize>,
}

/// A value of a file. Members and items are in the order of the file.
#[derive(Clone, Debug)]
pub enum NodeValue {
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A number as JSON writes it.
    Number(Box<str>),
    /// A text without escapes.
    Text(Box<str>),
    List(Vec<Node>),
    Table(Vec<NodeMember>),
    /// A value that JSON does not have, by its name with an article.
    Other(&'static str),
    /// A value that was taken out, so that the places of its neighbours stay.
    Removed,
}

/// A member of a table.
#[derive(Clone, Debug)]
pub struct NodeMember {
    pub key: Box<str>,
    pub key_span: Range<usize>,
    pub node: Node,
}

impl Node {
    /// Parses JSON.
    ///
    /// Errors: the first place that is not JSON.
    pub fn parse_json(text: &str) -> Result<Self, Error> {
        let mut walk = Walker::over(text);
        let node = read(&mut walk)?;
        walk.end()?;
        Ok(node)
    }

    /// Returns the type of the value, as messages name it.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            NodeValue::Null | NodeValue::Removed => Type::Null.as_str(),
            NodeValue::Bool(_) => Type::Bool.as_str(),
            NodeValue::Number(_) => Type::Number.as_str(),
            NodeValue::Text(_) => Type::String.as_str(),
            NodeValue::List(_) => Type::Array.as_str(),
            NodeValue::Table(_) => Type::Object.as_str(),
            NodeValue::Other(name) => name,
        }
    }

    /// Returns the text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members, if it is a table.
    pub fn members(&self) -> Option<&[NodeMember]> {
        match &self.value {
            NodeValue::Table(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the member of this name.
    pub fn member(&self, key: &str) -> Option<&Self> {
        let mut members = self.members()?.iter();
        members
            .find(|member| &*member.key == key)
            .map(|member| &member.node)
    }

    /// Returns the value as JSON.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out, &mut |text, out| Str::Plain(text).write(out));
        String::from_utf8(out).unwrap_or_default()
    }

    /// Writes JSON; `write_text` writes each text that is a value, with its quotes.
    pub(super) fn write(&self, out: &mut Vec<u8>, write_text: &mut impl FnMut(&str, &mut Vec<u8>)) {
        match &self.value {
            NodeValue::Bool(flag) => out.extend_from_slice(flag.to_string().as_bytes()),
            NodeValue::Number(number) => out.extend_from_slice(number.as_bytes()),
            NodeValue::Text(text) => write_text(text, out),
            NodeValue::List(items) => {
                out.push(b'[');
                let mut is_first = true;
                for item in items.iter().filter(|item| !item.is_removed()) {
                    separate(&mut is_first, out);
                    item.write(out, write_text);
                }
                out.push(b']');
            }
            NodeValue::Table(members) => {
                out.push(b'{');
                let mut is_first = true;
                for member in members.iter().filter(|member| !member.node.is_removed()) {
                    separate(&mut is_first, out);
                    Str::Plain(&member.key).write(out);
                    out.push(b':');
                    member.node.write(out, write_text);
                }
                out.push(b'}');
            }
            NodeValue::Null | NodeValue::Other(_) | NodeValue::Removed => {
                out.extend_from_slice(b"null");
            }
        }
    }

    /// Returns whether it was taken out.
    pub fn is_removed(&self) -> bool {
        matches!(self.value, NodeValue::Removed)
    }
}

fn separate(is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
}

fn read(walk: &mut Walker<'_>) -> Result<Node, Error> {
    let kind = walk.peek()?;
    let start = walk.at();
    let value = match kind {
        Type::Null => {
            walk.null()?;
            NodeValue::Null
        }
        Type::Bool => NodeValue::Bool(walk.boolean()?),
        Type::Number => NodeValue::Number(walk.number()?.into()),
        Type::String => NodeValue::Text(walk.string()?.unescaped().into()),
        Type::Array => {
            let mut items = Vec::new();
            walk.array(|walk, _| {
                items.push(read(walk)?);
                Ok::<(), Error>(())
            })?;
            NodeValue::List(items)
        }
        Type::Object => {
            let mut members = Vec::new();
            walk.object(|walk, key| {
                let at = walk.key_at();
                members.push(NodeMember {
                    key_span: at..at + key.len() + 2,
                    key: key.into(),
                    node: read(walk)?,
                });
                Ok::<(), Error>(())
            })?;
            NodeValue::Table(members)
        }
    };
    Ok(Node {
        value,
        span: start..walk.at(),
    })
}
