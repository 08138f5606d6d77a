//! Prompts as lines, and what differs between two of them: for people, on the command line and the console.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;
use similar::algorithms::{Capture, Replace, diff_slices_deadline};
use similar::{Algorithm, DiffOp};

/// The number of unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 2;
/// The lines of a prompt that are compared, and the bytes of them. A long name before many values makes many times the bytes of a
/// prompt.
const MAX_LINES: usize = 10_000;
const MAX_LINE_BYTES: usize = 2 << 20;

/// A prompt as lines: one for each value, and one for each line of a text.
///
/// Shape: `path = value`. The lines of a text follow its path, indented.
#[derive(Debug, Default)]
pub struct PromptLines {
    lines: Vec<String>,
    bytes: usize,
    is_cut: bool,
}

/// What differs between two prompts.
#[derive(Debug, Default)]
pub struct PromptDifference {
    /// Changed lines with those around them; none if both are equal.
    pub lines: Vec<DifferenceLine>,
    /// Whether a prompt has more lines than are compared.
    pub is_cut: bool,
    /// Whether the time was over: more lines may be shown as changed than were.
    pub is_rough: bool,
}

/// A line of a difference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DifferenceLine {
    pub change: LineChange,
    pub text: String,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineChange {
    Kept,
    Removed,
    Added,
    /// Stands for kept lines that are not shown.
    Skipped,
}

impl fmt::Display for DifferenceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            LineChange::Kept => write!(f, " {}", self.text),
            LineChange::Removed => write!(f, "-{}", self.text),
            LineChange::Added => write!(f, "+{}", self.text),
            LineChange::Skipped => f.write_str("…"),
        }
    }
}

impl PromptLines {
    /// Makes the lines of the content of a version. Cost: at most 10,000 lines and 2 MiB.
    pub fn new(content: &Value) -> Self {
        let mut lines = Self::default();
        // A change of the settings comes before the messages, where it would be overlooked.
        for key in ["model", "parameters", "variables", "messages"] {
            if let Some(value) = content.get(key) {
                lines.write(key, value);
            }
        }
        lines
    }

    fn write(&mut self, path: &str, value: &Value) {
        if self.is_cut {
            return;
        }
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, member) in members {
                    self.write(&format!("{path}.{key}"), member);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    self.write(&format!("{path}[{at}]"), item);
                }
            }
            Value::String(text) if text.contains('\n') => {
                self.push(format!("{path} ="));
                for line in text.split('\n') {
                    self.push(format!("    {line}"));
                }
            }
            other => self.push(format!("{path} = {other}")),
        }
    }

    fn push(&mut self, line: String) {
        self.is_cut |= self.lines.len() >= MAX_LINES || self.bytes + line.len() > MAX_LINE_BYTES;
        if !self.is_cut {
            self.bytes += line.len();
            self.lines.push(line);
        }
    }
}

/// Returns the changed lines and the two around each. After the time `within` the rest counts as changed.
pub fn compare(old: &PromptLines, new: &PromptLines, within: Duration) -> PromptDifference {
    let begun = Instant::now();
    let mut found = Replace::new(Capture::new());
    let (old_lines, new_lines) = (&old.lines, &new.lines);
    let deadline = begun.checked_add(within);
    let Ok(()) = diff_slices_deadline(Algorithm::Myers, &mut found, old_lines, new_lines, deadline);
    let is_late = begun.elapsed() > within;
    let mut all = Vec::new();
    for found in found.into_inner().ops() {
        add(*found, (old_lines, new_lines), &mut all);
    }
    let lines = near_changes(&all);
    PromptDifference {
        is_cut: old.is_cut || new.is_cut,
        is_rough: is_late && !lines.is_empty(),
        lines,
    }
}

/// Adds the lines of a step: those that were removed before those that were added.
fn add<'l>(
    step: DiffOp,
    (old, new): (&'l [String], &'l [String]),
    all: &mut Vec<(LineChange, &'l str)>,
) {
    let [old, new] = [(old, step.old_range()), (new, step.new_range())]
        .map(|(lines, range)| lines.get(range).unwrap_or_default().iter());
    match step {
        DiffOp::Equal { .. } => all.extend(old.map(|line| (LineChange::Kept, &**line))),
        _ => {
            all.extend(old.map(|line| (LineChange::Removed, &**line)));
            all.extend(new.map(|line| (LineChange::Added, &**line)));
        }
    }
}

/// Leaves out the lines that are far from every change.
fn near_changes(all: &[(LineChange, &str)]) -> Vec<DifferenceLine> {
    let is_change = |at: usize| all.get(at).is_some_and(|(it, _)| *it != LineChange::Kept);
    let is_near =
        |at: usize| (at.saturating_sub(CONTEXT_LINES)..=at + CONTEXT_LINES).any(&is_change);
    let mut shown = Vec::new();
    let mut last = None;
    for (at, (change, text)) in all.iter().enumerate().filter(|(at, _)| is_near(*at)) {
        if last.is_some_and(|last| last + 1 != at) {
            shown.push(DifferenceLine {
                change: LineChange::Skipped,
                text: String::new(),
            });
        }
        last = Some(at);
        shown.push(DifferenceLine {
            change: *change,
            text: (*text).to_owned(),
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn lines(all: impl IntoIterator<Item = impl ToString>) -> PromptLines {
        PromptLines {
            lines: all.into_iter().map(|line| line.to_string()).collect(),
            ..PromptLines::default()
        }
    }

    fn text(difference: &PromptDifference) -> String {
        let lines = difference.lines.iter().map(ToString::to_string);
        lines.collect::<Vec<_>>().join(" ")
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
            let difference = compare(&lines(old.chars()), &lines(new.chars()), LONG);
            assert_eq!(text(&difference), shown, "{old} {new}");
            assert!(!difference.is_rough && !difference.is_cut);
        }
    }

    #[test]
    fn a_text_of_several_lines_is_compared_line_by_line() {
        let content = json!({"messages": [{"role": "user", "content": "a\nb"}], "model": "m"});
        let expected = [
            "model = \"m\"",
            "messages[0].role = \"user\"",
            "messages[0].content =",
            "    a",
            "    b",
        ];
        assert_eq!(PromptLines::new(&content).lines, expected);
    }

    #[test]
    fn after_its_time_the_rest_counts_as_changed_and_both_prompts_are_whole() {
        let old: Vec<usize> = (0..3_000).collect();
        let new: Vec<usize> = (0..3_000).map(|at| at * 7 % 3_001).collect();
        let difference = compare(&lines(&old), &lines(&new), Duration::ZERO);
        assert!(difference.is_rough);
        let of = |left_out: LineChange| {
            let mut all = Vec::new();
            for line in difference.lines.iter().filter(|it| it.change != left_out) {
                assert_ne!(line.change, LineChange::Skipped);
                all.push(line.text.parse::<usize>().ok());
            }
            all.into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(of(LineChange::Added), old);
        assert_eq!(of(LineChange::Removed), new);
        let same = compare(&lines(&old), &lines(&old), Duration::ZERO);
        assert!(!same.is_rough && same.lines.is_empty());
    }

    #[test]
    fn hostile_prompts_are_compared_in_bounded_time_and_memory() {
        // Nothing in common, each other line in common, and all lines the same but one.
        let other = |at: usize| {
            if at.is_multiple_of(2) {
                "same".to_owned()
            } else {
                format!("new {at}")
            }
        };
        let old = lines((0..MAX_LINES).map(|at| {
            if at.is_multiple_of(2) {
                "same".to_owned()
            } else {
                format!("old {at}")
            }
        }));
        for new in [
            lines((0..MAX_LINES).rev()),
            lines((0..MAX_LINES).map(other)),
            lines((0..MAX_LINES).map(|_| "same")),
        ] {
            let begun = Instant::now();
            let difference = compare(&old, &new, Duration::from_millis(50));
            assert!(difference.lines.len() <= 4 * MAX_LINES);
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}");
        }
        let key = "k".repeat(100_000);
        let wide = json!({"parameters": {key: vec![0; 50_000]}});
        let wide = PromptLines::new(&wide);
        assert!(wide.is_cut && wide.bytes <= MAX_LINE_BYTES);
        let long = json!({"messages": [{"content": "\n".repeat(200_000)}]});
        let long = PromptLines::new(&long);
        assert!(long.is_cut && long.lines.len() == MAX_LINES);
        assert!(compare(&long, &wide, Duration::ZERO).is_cut);
    }
}
