//! Names of functions: the wire takes at most 64 letters, digits, `_` and `-`. Others are said otherwise, and mapped back in
//! replies.

use std::collections::{HashMap, HashSet};

use crate::models::chat::conversation::{BlockKind, Conversation};

/// The most characters of a name.
const MAX_CHARS: usize = 64;

/// The names that are said otherwise.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    said: HashMap<String, String>,
}

impl ToolNames {
    /// Reads the names of a conversation's functions and calls.
    ///
    /// Cost: a list of all names.
    pub(super) fn read(chat: &Conversation<'_>) -> Self {
        let blocks = chat.turns.iter().flat_map(|turn| &turn.blocks);
        let called = blocks.filter_map(|block| match &block.kind {
            BlockKind::Call { name, .. } => Some(&**name),
            _ => None,
        });
        let names = chat.functions().map(|function| &*function.name);
        Self::map(&names.chain(called).collect::<Vec<&str>>())
    }

    fn map(names: &[&str]) -> Self {
        let mut said = HashMap::new();
        if names.iter().all(|name| is_sayable(name)) {
            return Self { said };
        }
        let (sayable, others): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| is_sayable(name));
        let mut taken: HashSet<String> = sayable.into_iter().map(str::to_owned).collect();
        for name in others {
            if said.contains_key(name) {
                continue;
            }
            let own = unique(name, &taken);
            taken.insert(own.clone());
            said.insert(name.to_owned(), own);
        }
        Self { said }
    }

    /// Returns a name as the wire says it.
    pub(super) fn to_wire<'n>(&'n self, name: &'n str) -> &'n str {
        self.said.get(name).map_or(name, String::as_str)
    }

    /// Returns the same names by what the wire says.
    pub(super) fn reversed(self) -> HashMap<String, String> {
        let pairs = self.said.into_iter();
        pairs.map(|(name, said)| (said, name)).collect()
    }
}

fn is_accepted(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_sayable(name: &str) -> bool {
    (1..=MAX_CHARS).contains(&name.len()) && name.chars().all(is_accepted)
}

/// Returns a name of accepted characters that is not taken.
fn unique(name: &str, taken: &HashSet<String>) -> String {
    let accepted = name.chars().map(|c| if is_accepted(c) { c } else { '_' });
    let clean: String = accepted.take(MAX_CHARS).collect();
    if !clean.is_empty() && !taken.contains(&clean) {
        return clean;
    }
    let numbered = (1_u32..).map(|number| {
        let end = format!("_{number}");
        let start: String = clean.chars().take(MAX_CHARS - end.len()).collect();
        start + &end
    });
    let mut free = numbered.filter(|numbered| !taken.contains(numbered));
    free.next().unwrap_or(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_said_are_mapped_there_and_back() {
        let long = "x".repeat(70);
        let all = ["a.b", "a_b", "a/b", "", &long, "plain", "a.b"];
        let names = ToolNames::map(&all);
        let said: Vec<&str> = all.iter().map(|name| names.to_wire(name)).collect();
        assert_eq!(
            said,
            ["a_b_1", "a_b", "a_b_2", "_1", &long[..64], "plain", "a_b_1"]
        );
        assert!(said.iter().all(|name| is_sayable(name)));
        let back = names.reversed();
        assert_eq!(back.get("a_b_2").map(String::as_str), Some("a/b"));
        assert_eq!(back.get("a_b"), None);
        assert!(ToolNames::map(&["f", "g"]).said.is_empty());
    }
}
