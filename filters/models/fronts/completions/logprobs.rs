//! The probabilities of the tokens of a whole text, which may come in pieces.

use crate::json::{Error, Object, Walker};

/// The lists of an object of probabilities, an item for each token.
const LISTS: [&str; 4] = ["tokens", "token_logprobs", "top_logprobs", "text_offset"];

/// What has come of them.
#[derive(Debug, Default)]
pub(super) enum KeptLogprobs {
    #[default]
    None,
    /// One object, as it came.
    Whole(Box<str>),
    /// The insides of the lists of several.
    Joined([String; LISTS.len()]),
}

impl KeptLogprobs {
    /// Adds an object.
    pub(super) fn add(&mut self, json: &str) {
        let mut lists = match std::mem::take(self) {
            Self::None => {
                *self = Self::Whole(json.into());
                return;
            }
            Self::Whole(first) => {
                let mut lists = Default::default();
                join(&mut lists, &first);
                lists
            }
            Self::Joined(lists) => lists,
        };
        join(&mut lists, json);
        *self = Self::Joined(lists);
    }

    /// Writes the object, or null.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend_from_slice(b"null"),
            Self::Whole(json) => out.extend_from_slice(json.as_bytes()),
            Self::Joined(lists) => {
                let mut object = Object::open(out);
                for (key, list) in LISTS.iter().zip(lists) {
                    object.value(key, |out| {
                        out.push(b'[');
                        out.extend_from_slice(list.as_bytes());
                        out.push(b']');
                    });
                }
                object.close();
            }
        }
    }
}

/// Appends the lists of an object. What is not a list adds nothing.
fn join(lists: &mut [String; LISTS.len()], json: &str) {
    // What is not an object has no lists.
    _ = Walker::over(json).object(|walk, key| {
        let value = walk.skip()?;
        let mut kept = LISTS.iter().zip(&mut *lists);
        let kept = kept.find(|(known, _)| **known == key);
        let items = value
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let (Some((_, kept)), Some(items)) = (kept, items)
            && !items.trim().is_empty()
        {
            if !kept.is_empty() {
                kept.push(',');
            }
            kept.push_str(items);
        }
        Ok::<(), Error>(())
    });
    // What the provider said was read before, so that it walks.
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&str]) -> String {
        let mut kept = KeptLogprobs::default();
        for piece in pieces {
            kept.add(piece);
        }
        let mut out = Vec::new();
        kept.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_object_stays_as_it_came_and_the_lists_of_several_are_joined() {
        assert_eq!(written(&[]), "null");
        let own = r#"{"tokens": ["a"], "own": 1}"#;
        assert_eq!(written(&[own]), own);
        let more = r#"{"tokens":[],"token_logprobs":[-1],"top_logprobs":null}"#;
        let last = r#"{"tokens":["b","c"],"token_logprobs":[-2,-3],"text_offset":[0,1]}"#;
        let joined = r#"{"tokens":["a","b","c"],"token_logprobs":[-1,-2,-3],"top_logprobs":[],"text_offset":[0,1]}"#;
        assert_eq!(written(&[own, more, last]), joined);
        assert!(written(&["3", "[]"]).starts_with(r#"{"tokens":[]"#));
    }
}
