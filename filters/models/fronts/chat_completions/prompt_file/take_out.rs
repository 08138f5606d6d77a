//! Takes values at fault out of a tree.

use std::ops::Range;

use crate::models::prompts::tree::{Node, NodeValue};

/// The value at fault, or the one that lacks a value.
#[derive(Debug)]
pub(super) struct Culprit {
    pub(super) span: Range<usize>,
    pub(super) path: String,
    /// It lacks only what was taken out before.
    pub(super) is_echo: bool,
}

/// Takes the value at a path out of a tree or, if the value is not there, the one that lacks it. `place` is where the tree
/// stands in the file.
///
/// Errors: that is the tree itself, which stays.
pub(super) fn take_out(node: &mut Node, path: &str, place: &str) -> Result<Culprit, Culprit> {
    let span = node.span.clone();
    let lacks = |path: String, is_echo| Culprit {
        span: span.clone(),
        path,
        is_echo,
    };
    let (child, rest, inner) = match step(path) {
        Step::End => return Err(lacks(place.to_owned(), false)),
        Step::Member(key, rest) => {
            let inner = format!("{place}.{key}");
            let NodeValue::Table(members) = &mut node.value else {
                return Err(lacks(inner, false));
            };
            let member = members.iter_mut().find(|member| &*member.key == key);
            match member.map(|member| &mut member.node) {
                Some(child) if child.is_removed() => return Err(lacks(inner, true)),
                Some(child) => (child, rest, inner),
                None => return Err(lacks(inner, false)),
            }
        }
        Step::Item(index, rest) => {
            let NodeValue::List(items) = &mut node.value else {
                return Err(lacks(place.to_owned(), false));
            };
            let mut kept = items
                .iter_mut()
                .enumerate()
                .filter(|(_, item)| !item.is_removed());
            match kept.nth(index) {
                Some((at, child)) => (child, rest, format!("{place}[{at}]")),
                None => return Err(lacks(place.to_owned(), true)),
            }
        }
    };
    take_out(child, rest, &inner).or_else(|culprit| {
        child.value = NodeValue::Removed;
        Ok(culprit)
    })
}

/// The first step of a path.
enum Step<'p> {
    End,
    Member(&'p str, &'p str),
    Item(usize, &'p str),
}

fn step(path: &str) -> Step<'_> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return Step::End;
    }
    if let Some((index, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) {
        return Step::Item(index.parse().unwrap_or(usize::MAX), rest);
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (key, rest) = path.split_at(end);
    Step::Member(key, rest)
}
