//! What the inputs are for, where a request says so in `input_type`. The contract has no such member, but several
//! providers make better vectors of what they know the use of.

use crate::fault::Fault;

/// What vectors are for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InputType {
    /// What is searched for.
    Query,
    /// What is searched.
    Document,
    /// Sorting into classes.
    Classification,
    /// Finding groups.
    Clustering,
}

/// The words that say it: ours, and those of the providers.
const WORDS: [(&str, InputType); 6] = [
    ("query", InputType::Query),
    ("search_query", InputType::Query),
    ("document", InputType::Document),
    ("search_document", InputType::Document),
    ("classification", InputType::Classification),
    ("clustering", InputType::Clustering),
];

impl InputType {
    /// Reads the member's value, as JSON text; `None`: it is absent or null.
    ///
    /// Errors: 400, it is anything else than one of the words.
    pub fn read(value: Option<&[u8]>) -> Result<Option<Self>, Fault> {
        let Some(value) = value.filter(|value| *value != b"null") else {
            return Ok(None);
        };
        let word: Option<&str> = serde_json::from_slice(value).ok();
        let mut words = WORDS.iter();
        match word.and_then(|word| words.find(|(known, _)| *known == word)) {
            Some((_, found)) => Ok(Some(*found)),
            None => Err(refused()),
        }
    }
}

/// Returns the refusal of a use that a provider has no word for.
pub fn refused() -> Fault {
    let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    let message = format!(
        "`input_type` is none that the provider knows; usual are {}",
        words.join(", ")
    );
    Fault::invalid("input_type", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract: model-gateway 2.6 input_type
    #[test]
    fn a_use_is_one_of_the_words_or_nothing() {
        let read = |text: &str| InputType::read(Some(text.as_bytes()));
        assert_eq!(read("\"query\""), Ok(Some(InputType::Query)));
        assert_eq!(read("\"search_document\""), Ok(Some(InputType::Document)));
        assert_eq!(read("null"), Ok(None));
        assert_eq!(InputType::read(None), Ok(None));
        for bad in ["\"image\"", "7", "\"\""] {
            let fault = read(bad).expect_err(bad);
            assert_eq!(fault.param.as_deref(), Some("input_type"), "{bad}");
        }
    }
}
