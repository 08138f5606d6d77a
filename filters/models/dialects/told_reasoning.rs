//! Reasoning within the state that belongs to it, for clients that keep state but not what was thought.

use serde::Deserialize;

use crate::json::Object;

/// What such a state begins with. No provider's state does.
const HEAD: &str = "{\"reasoning\":";

/// Reasoning, and the state of its maker.
#[derive(Debug, Deserialize, Eq, PartialEq)]
pub struct ToldReasoning {
    pub reasoning: String,
    /// Empty: its maker makes none.
    pub signature: String,
}

impl ToldReasoning {
    /// Returns a state that holds both.
    pub fn write(reasoning: &str, signature: &str) -> String {
        let mut out = Vec::with_capacity(reasoning.len() + signature.len() + 48);
        let mut object = Object::open(&mut out);
        object.text("reasoning", reasoning);
        object.text("signature", signature);
        object.close();
        String::from_utf8(out).unwrap_or_default()
    }

    /// Reads a state; `None`: it holds no reasoning.
    pub fn read(state: &str) -> Option<Self> {
        let is_told = state.starts_with(HEAD);
        is_told.then(|| serde_json::from_str(state).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_comes_back_with_its_signature() {
        for (reasoning, signature) in [("", ""), ("a \"b\"\n", "EqQB+/="), ("é", "")] {
            let told = ToldReasoning {
                reasoning: reasoning.to_owned(),
                signature: signature.to_owned(),
            };
            let state = ToldReasoning::write(reasoning, signature);
            assert_eq!(ToldReasoning::read(&state), Some(told));
        }
        for other in ["", "{}", "EqQB", "{\"reasoning\":1}", "{\"reasoning\":"] {
            assert_eq!(ToldReasoning::read(other), None, "{other}");
        }
    }
}
