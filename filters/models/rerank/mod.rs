//! Reranking: what wires need to know of a request, and what a result looks like.

use std::ops::Range;
use std::sync::Arc;

use crate::json::{Error, Object, Type, Walker, write_number};

/// What a front found in a request to rank documents.
#[derive(Clone, Debug)]
pub struct RerankFacts {
    /// Where each document stands in the body.
    pub documents: Arc<[Range<usize>]>,
    /// Whether one of them is an object with a `text`, and no string.
    pub has_objects: bool,
    /// The most results, where the client asked for fewer than documents.
    pub top_n: Option<usize>,
    /// Whether results repeat their documents.
    pub returns_documents: bool,
}

impl RerankFacts {
    /// Returns the most results of a reply.
    pub fn most_results(&self) -> usize {
        let all = self.documents.len();
        self.top_n.map_or(all, |most| most.min(all))
    }

    /// Returns a document as it stands in the body of the request.
    pub fn document<'b>(&self, body: &'b [u8], index: usize) -> &'b str {
        let place = self.documents.get(index).cloned().unwrap_or_default();
        let json = body.get(place).unwrap_or_default();
        std::str::from_utf8(json).unwrap_or_default()
    }

    /// Writes the texts of all documents as a JSON array of strings.
    ///
    /// Errors: a document is not one, which does not happen to a checked request.
    pub fn write_texts(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        out.push(b'[');
        for index in 0..self.documents.len() {
            if index > 0 {
                out.push(b',');
            }
            let json = self.document(body, index);
            let mut walk = Walker::over(json);
            match walk.peek()? {
                Type::Object => walk.object(|walk, key| match &*key {
                    "text" => {
                        walk.string()?.write(out);
                        Ok(())
                    }
                    _ => walk.skip().map(|_| ()),
                })?,
                _ => out.extend_from_slice(json.as_bytes()),
            }
        }
        out.push(b']');
        Ok(())
    }
}

/// Writes a result: `{"index":…,"relevance_score":…,"document":{"text":…}}`. `score` is a JSON number. A document that came
/// as an object goes back as it came.
pub fn write_result(index: usize, score: &str, document: Option<&str>, out: &mut Vec<u8>) {
    let mut result = Object::open(out);
    result.value("index", |out| write_number(index as u64, out));
    result.raw("relevance_score", score);
    match document {
        Some(object) if object.starts_with('{') => result.raw("document", object),
        Some(text) => result.object("document", |document| document.raw("text", text)),
        None => {}
    }
    result.close();
}
