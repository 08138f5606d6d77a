//! Shows a prompt as lines, and the differences between two prompts.

use serde_json::Value;

/// The number of unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 2;
/// Versions are shown as wholly replaced if the product of their numbers of changed lines is larger.
const MAX_COMPARED: usize = 16 << 20;

/// Returns a line per value. A text of several lines gives one line for each.
///
/// Shape: `path = value`. The lines of a text follow its path, indented.
pub(super) fn to_lines(content: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    // A change of the settings comes before the messages, where it would be overlooked.
    for key in ["model", "parameters", "variables", "messages"] {
        if let Some(value) = content.get(key) {
            write_lines(key, value, &mut lines);
        }
    }
    lines
}

fn write_lines(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                write_lines(&format!("{path}.{key}"), member, lines);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                write_lines(&format!("{path}[{at}]"), item, lines);
            }
        }
        Value::String(text) if text.contains('\n') => {
            lines.push(format!("{path} ="));
            lines.extend(text.split('\n').map(|line| format!("    {line}")));
        }
        other => lines.push(format!("{path} = {other}")),
    }
}

/// Returns the changed lines after `-` or `+`, the lines around them after a space, and `…` for skipped lines.
/// Returns no lines if both are equal.
pub(super) fn diff(old: &[String], new: &[String]) -> Vec<String> {
    let marked = marked(old, new);
    let is_change = |at: &usize| marked.get(*at).is_some_and(|(mark, _)| *mark != ' ');
    let is_near = |at: usize| {
        let near = at.saturating_sub(CONTEXT_LINES)..=at + CONTEXT_LINES;
        near.into_iter().any(|at| is_change(&at))
    };
    let mut shown = Vec::new();
    let mut last = None;
    for (at, (mark, line)) in marked.iter().enumerate().filter(|(at, _)| is_near(*at)) {
        if last.is_some_and(|last| last + 1 != at) {
            shown.push("…".to_owned());
        }
        last = Some(at);
        shown.push(format!("{mark}{line}"));
    }
    shown
}

/// Returns all lines of both, marked, by their longest common subsequence.
fn marked<'l>(old: &'l [String], new: &'l [String]) -> Vec<(char, &'l str)> {
    let both = old.iter().zip(new);
    let head = both.take_while(|(old, new)| old == new).count();
    let (same_head, old) = old.split_at(head);
    let (_, new) = new.split_at(head);
    let both = old.iter().rev().zip(new.iter().rev());
    let tail = both.take_while(|(old, new)| old == new).count();
    let (old, same_tail) = old.split_at(old.len() - tail);
    let (new, _) = new.split_at(new.len() - tail);
    let mut lines: Vec<(char, &str)> = same_head.iter().map(|line| (' ', &**line)).collect();
    lines.extend(changed(old, new));
    lines.extend(same_tail.iter().map(|line| (' ', &**line)));
    lines
}

fn changed<'l>(old: &'l [String], new: &'l [String]) -> Vec<(char, &'l str)> {
    let width = new.len() + 1;
    let is_small = old.len().saturating_mul(new.len()) <= MAX_COMPARED;
    // `common[a * width + b]` is the number of lines that `old[a..]` and `new[b..]` have in common.
    let mut common = vec![0_u32; if is_small { (old.len() + 1) * width } else { 0 }];
    let at = |common: &[u32], a: usize, b: usize| common.get(a * width + b).copied().unwrap_or(0);
    if is_small {
        for (a, old_line) in old.iter().enumerate().rev() {
            for (b, new_line) in new.iter().enumerate().rev() {
                let best = match old_line == new_line {
                    true => at(&common, a + 1, b + 1) + 1,
                    false => at(&common, a + 1, b).max(at(&common, a, b + 1)),
                };
                if let Some(place) = common.get_mut(a * width + b) {
                    *place = best;
                }
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(a), new.get(b)) {
            (Some(old), Some(new)) if is_small && old == new => {
                lines.push((' ', &**old));
                (a, b) = (a + 1, b + 1);
            }
            (Some(old), new) if new.is_none() || at(&common, a + 1, b) >= at(&common, a, b + 1) => {
                lines.push(('-', &**old));
                a += 1;
            }
            (_, Some(new)) => {
                lines.push(('+', &**new));
                b += 1;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.chars().map(String::from).collect()
    }

    #[test]
    fn only_what_differs_is_shown_with_the_lines_around_it() {
        for (old, new, shown) in [
            ("abc", "abc", ""),
            ("", "ab", "+a +b"),
            ("ab", "", "-a -b"),
            ("abcdefgh", "abcxefgh", " b  c -d +x  e  f"),
            ("axbyc", "abc", " a -x  b -y  c"),
            ("abcdefghij", "Xbcdefghiy", "-a +X  b  c …  h  i -j +y"),
        ] {
            assert_eq!(
                diff(&lines(old), &lines(new)).join(" "),
                shown,
                "{old} {new}"
            );
        }
    }

    #[test]
    fn a_text_of_several_lines_is_compared_line_by_line() {
        let content =
            serde_json::json!({"messages": [{"role": "user", "content": "a\nb"}], "model": "m"});
        let expected = [
            "model = \"m\"",
            "messages[0].role = \"user\"",
            "messages[0].content =",
            "    a",
            "    b",
        ];
        assert_eq!(to_lines(&content), expected);
    }
}
