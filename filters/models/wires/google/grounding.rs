//! What an answer rests on: the searches of a candidate, and the pages that its text cites.
//! Source: docs/facts/wire-formats.md 4.8.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::Str;
use crate::models::chat::piece::{Citation, Piece};
use crate::models::chat::text::Text;
use crate::models::reply::Sink;

/// What a candidate has said of its grounds; the last report counts.
#[derive(Debug, Default)]
pub(super) struct Grounds {
    /// The text of the answer.
    text: String,
    /// Where its parts begin, in bytes.
    parts: Vec<usize>,
    report: Option<Box<str>>,
}

/// `groundingMetadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Report<'a> {
    #[serde(borrow)]
    web_search_queries: Vec<Text<'a>>,
    #[serde(borrow)]
    grounding_chunks: Vec<Chunk<'a>>,
    #[serde(borrow)]
    grounding_supports: Vec<Support<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    web: Option<Page<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page<'a> {
    #[serde(borrow)]
    uri: Text<'a>,
    #[serde(borrow)]
    title: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Support<'a> {
    #[serde(borrow)]
    segment: Segment<'a>,
    grounding_chunk_indices: Vec<usize>,
}

/// A piece of the text, in bytes of its part.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Segment<'a> {
    start_index: usize,
    end_index: usize,
    part_index: usize,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

impl Grounds {
    /// Takes a part of the answer; thoughts and calls are parts without text.
    pub(super) fn part(&mut self, text: &str) {
        self.parts.push(self.text.len());
        self.text.push_str(text);
    }

    /// Takes a report. Returns the searches that it names.
    pub(super) fn report(&mut self, raw: &RawValue) -> u64 {
        let Ok(report) = serde_json::from_str::<Report<'_>>(raw.get()) else {
            return 0;
        };
        let queries = report.web_search_queries.len() as u64;
        let rests_on_pages = !report.grounding_chunks.is_empty();
        if rests_on_pages {
            self.report = Some(raw.get().into());
        }
        queries.max(u64::from(rests_on_pages))
    }

    /// Hands out the citations: one for each page of each piece of the text.
    pub(super) fn cite(&self, choice: u32, sink: &mut dyn Sink) {
        let report = self.report.as_deref().unwrap_or("{}");
        let report: Report<'_> = serde_json::from_str(report).unwrap_or_default();
        let mut citations = Vec::new();
        for support in &report.grounding_supports {
            let (start, end) = self.place(&support.segment);
            let chunks = support.grounding_chunk_indices.iter();
            let pages = chunks.filter_map(|at| report.grounding_chunks.get(*at)?.web.as_ref());
            citations.extend(pages.map(|page| {
                Piece::Citation(Citation::Page {
                    url: Str::Plain(&page.uri),
                    title: page.title.as_deref().map(Str::Plain),
                    start,
                    end,
                })
            }));
        }
        if !citations.is_empty() {
            sink.pieces(choice, &citations);
        }
    }

    /// Returns the first character of a segment and the one behind it.
    ///
    /// The parts of a stream are pieces of those that the provider counts, so what the segment says of its text decides.
    fn place(&self, segment: &Segment<'_>) -> (u64, u64) {
        let begin = self.parts.get(segment.part_index).copied().unwrap_or(0);
        let span = |begin: usize| {
            let start = begin.checked_add(segment.start_index)?;
            let end = begin.checked_add(segment.end_index)?;
            let text = self.text.get(start..end)?;
            let is_it = segment.text.as_deref().is_none_or(|said| said == text);
            is_it.then_some((start, end))
        };
        let found = || {
            let said = segment.text.as_deref().filter(|said| !said.is_empty())?;
            let start = self.text.find(said)?;
            Some((start, start + said.len()))
        };
        let (start, end) = span(begin)
            .or_else(|| span(0))
            .or_else(found)
            .unwrap_or_default();
        let chars = |until: usize| {
            let before = self.text.get(..until).unwrap_or_default();
            before.chars().count() as u64
        };
        (chars(start), chars(end))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    /// The places of the citations.
    #[derive(Default)]
    struct Places(Vec<(u64, u64)>);

    impl Sink for Places {
        fn pieces(&mut self, _: u32, pieces: &[Piece<'_>]) {
            for piece in pieces {
                if let Piece::Citation(Citation::Page { start, end, .. }) = piece {
                    self.0.push((*start, *end));
                }
            }
        }
    }

    fn citations(parts: &[&str], segment: Value) -> Value {
        let mut grounds = Grounds::default();
        parts.iter().for_each(|part| grounds.part(part));
        let report = json!({"webSearchQueries": ["a", "b"], "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}, {"map": 1}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0, 1, 7]}]});
        let raw = serde_json::value::to_raw_value(&report).unwrap();
        assert_eq!(grounds.report(&raw), 2);
        let mut places = Places::default();
        grounds.cite(0, &mut places);
        assert_eq!(places.0.len(), 1);
        json!(places.0[0])
    }

    #[test]
    fn places_count_characters_of_the_answer_and_not_bytes_of_a_part() {
        let cases = [
            // "Größe" has seven bytes and five characters.
            (
                vec!["Größe 😀 gut"],
                json!({"startIndex": 13, "endIndex": 16, "text": "gut"}),
                json!([8, 11]),
            ),
            (vec!["Größe"], json!({"endIndex": 7}), json!([0, 5])),
            (
                vec!["ö", "abc"],
                json!({"partIndex": 1, "startIndex": 1, "endIndex": 3, "text": "bc"}),
                json!([2, 4]),
            ),
            // A stream cuts the only part in two.
            (
                vec!["öa", "bc"],
                json!({"startIndex": 3, "endIndex": 5, "text": "bc"}),
                json!([2, 4]),
            ),
            (
                vec!["öa", "bc"],
                json!({"startIndex": 90, "endIndex": 95, "text": "bc"}),
                json!([2, 4]),
            ),
            (
                vec!["öa"],
                json!({"startIndex": 1, "endIndex": 95}),
                json!([0, 0]),
            ),
        ];
        for (parts, segment, expected) in cases {
            assert_eq!(citations(&parts, segment.clone()), expected, "{segment}");
        }
    }
}
