//! `:embedContent` and `:batchEmbedContents`: their requests become the one of `POST /v1/embeddings`, which every wire of vectors
//! reads, and its list becomes the vendor's. Source: docs/facts/contents.md 4.

use bytes::Bytes;

use super::contents::members::{all_members, object};
use super::contents::model_of_path;
use super::embeddings::EMBEDDINGS;
use crate::fault::Fault;
use crate::json::members::find;
use crate::json::{Error, Object, Type, Walker, quoted};
use crate::models::check::describe::describe;
use crate::models::check::read::{array, expect, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, read_member};
use crate::models::check::top::{check_model, members};
use crate::models::dialects::contents::canonical;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::metadata::Metadata;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Reported, Sink, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::usage::{Settlement, Usage};

/// How many requests a batch may have. Our choice: as many inputs as `POST /v1/embeddings` takes.
const MAX_REQUESTS: usize = 2048;

/// The uses of vectors that the vendor has words for, each with that of `input_type`; empty: none.
const TASKS: [(&str, &str); 9] = [
    ("TASK_TYPE_UNSPECIFIED", ""),
    ("SEMANTIC_SIMILARITY", ""),
    ("RETRIEVAL_QUERY", "query"),
    ("QUESTION_ANSWERING", "query"),
    ("FACT_VERIFICATION", "query"),
    ("CODE_RETRIEVAL_QUERY", "query"),
    ("RETRIEVAL_DOCUMENT", "document"),
    ("CLASSIFICATION", "classification"),
    ("CLUSTERING", "clustering"),
];

/// A front of vectors in this API.
#[derive(Debug)]
pub struct ContentEmbeddings {
    row: FrontRow,
    is_batch: bool,
}

/// The front of `POST /v1beta/models/{model}:embedContent`.
pub static EMBED: ContentEmbeddings = ContentEmbeddings {
    row: FrontRow::new(
        ("embed_content", "/v1beta/models/**:embedContent"),
        Operation::Embeddings,
        || describe::<Embedded>(include_str!("contents/embed.json"), &[&FIELDS]),
    )
    .speaking(Dialect::Contents)
    .also_at("/v1/models/**:embedContent"),
    is_batch: false,
};

/// The front of `POST /v1beta/models/{model}:batchEmbedContents`.
pub static BATCH_EMBED: ContentEmbeddings = ContentEmbeddings {
    row: FrontRow::new(
        (
            "batch_embed_contents",
            "/v1beta/models/**:batchEmbedContents",
        ),
        Operation::Embeddings,
        || include_str!("contents/batch_embed.json").to_owned(),
    )
    .speaking(Dialect::Contents)
    .also_at("/v1/models/**:batchEmbedContents"),
    is_batch: true,
};

/// What a request for a vector says.
#[derive(Debug, Default, PartialEq)]
struct Embedded {
    /// The text, as JSON.
    text: Option<String>,
    model: Option<String>,
    task: Option<&'static str>,
    dimensions: Option<u64>,
}

type Row = Field<Embedded>;

static FIELDS: [Row; 6] = [
    Row::text("model", |found, model| {
        found.model = Some(model.strip_prefix("models/").unwrap_or(model).to_owned());
        Ok(())
    })
    .doc("The model of the path, or nothing."),
    Row::own("content", |walk, found| {
        found.text = Some(content(walk)?);
        Ok(())
    })
    .required("a content with one text"),
    Row::text("taskType", |found, word| {
        let word = word.to_ascii_uppercase();
        let mut tasks = TASKS.iter();
        let task = tasks.find(|(known, _)| *known == word);
        let words: Vec<&str> = TASKS.iter().map(|(word, _)| *word).collect();
        let (_, task) = task.ok_or_else(|| {
            Reject::rule(format!(
                "is no task; accepted is one of {}",
                words.join(", ")
            ))
        })?;
        found.task = (!task.is_empty()).then_some(*task);
        Ok(())
    })
    .doc("What the vector is for, of models that make others for each use."),
    Row::nothing(
        "title",
        "is not taken; accepted is the title within the text",
    ),
    Row::integer("outputDimensionality", 1, U32, |found, length| {
        found.dimensions = Some(length);
    })
    .doc("The length of the vector, of models that can shorten it."),
    Row::flag("autoTruncate", |_, _| ()),
];

/// Reads the members of a request.
fn embedded(walk: &mut Walker<'_>) -> Result<Embedded, Reject> {
    let mut found = Embedded::default();
    members(walk, |walk, key| {
        match read_member(&[&FIELDS], walk, &canonical(key), &mut found)? {
            true => Ok(()),
            false => Ok(walk.skip().map(|_| ())?),
        }
    })?;
    required(found.text.as_ref(), "content", "a content with one text")?;
    Ok(found)
}

/// A content: `{parts: [{text}]}`. Several parts would become one vector at the vendor.
fn content(walk: &mut Walker<'_>) -> Result<String, Reject> {
    let mut text = None;
    object(walk, &["parts", "role"], |walk, key| {
        if key == "role" {
            return string(walk).map(|_| ());
        }
        let one = |walk: &mut Walker<'_>| {
            let mut said = None;
            all_members(walk, &["text"], |walk, _, known| match known {
                Some(_) => {
                    expect(walk, Type::String, "a string")?;
                    said = Some(walk.skip()?.to_owned());
                    Ok(())
                }
                None => Err(Reject::rule("is not taken here; accepted is `text` alone")),
            })?;
            required(said, "text", "a text")
        };
        match walk.peek()? {
            Type::Object => text = Some(one(walk)?),
            Type::Array => {
                let count = array(walk, |walk, _| {
                    text = Some(one(walk)?);
                    Ok(())
                })?;
                if count > 1 {
                    let said = format!("holds {count} parts; accepted is one, a text");
                    return Err(Reject::rule(said));
                }
            }
            _ => return Err(other(walk, "an array of parts")),
        }
        Ok(())
    })?;
    required(text, "parts", "an array with one text")
}

impl ContentEmbeddings {
    fn itself(&self) -> &'static Self {
        match self.is_batch {
            true => &BATCH_EMBED,
            false => &EMBED,
        }
    }

    /// Returns the body of `POST /v1/embeddings` that asks for the same.
    fn rewritten(&self, head: &ClientHead<'_>, body: &Bytes) -> Result<String, Reject> {
        let model = model_of_path(head.path);
        let mut walk = Walker::new(body)?;
        let mut all = Vec::new();
        match self.is_batch {
            false => all.push(embedded(&mut walk)?),
            true => {
                let mut has_requests = false;
                members(&mut walk, |walk, key| match key {
                    "requests" => {
                        has_requests = true;
                        array(walk, |walk, at| {
                            if at >= MAX_REQUESTS {
                                let said = format!("is one of more than {MAX_REQUESTS} requests");
                                return Err(Reject::rule(said));
                            }
                            all.push(embedded(walk)?);
                            Ok(())
                        })
                        .map(|_| ())
                    }
                    _ => Ok(walk.skip().map(|_| ())?),
                })?;
                let has_some = has_requests && !all.is_empty();
                required(
                    has_some.then_some(()),
                    "requests",
                    "an array of at least one request",
                )?;
            }
        }
        walk.end()?;
        check_model(&model).map_err(|it| it.within("model"))?;
        self.check_alike(&model, &all)?;
        let first = all.first();
        let texts: Vec<&str> = all.iter().filter_map(|it| it.text.as_deref()).collect();
        let mut out = format!(
            "{{\"model\":{},\"input\":[{}]",
            quoted(&model),
            texts.join(",")
        );
        if let Some(task) = first.and_then(|it| it.task) {
            out.extend([",\"input_type\":", &quoted(task)]);
        }
        if let Some(dimensions) = first.and_then(|it| it.dimensions) {
            out.push_str(&format!(",\"dimensions\":{dimensions}"));
        }
        out.push('}');
        Ok(out)
    }

    /// Checks that all requests of a batch ask for the same of the model in the path.
    fn check_alike(&self, model: &str, all: &[Embedded]) -> Result<(), Reject> {
        let within = |reject: Reject, at: usize| match self.is_batch {
            true => reject.within_item(at).within("requests"),
            false => reject,
        };
        let (mut task, mut dimensions) = (None, None);
        for (at, one) in all.iter().enumerate() {
            if let Some(other) = one.model.as_deref().filter(|other| *other != model) {
                let shown: String = other.chars().take(64).collect();
                let said = format!("is {shown:?}; accepted is the model in the path, or nothing");
                return Err(within(Reject::rule(said).within("model"), at));
            }
            let said = "differs from the first request's; accepted is the same in all requests";
            if *task.get_or_insert(one.task) != one.task {
                return Err(within(Reject::rule(said).within("taskType"), at));
            }
            if *dimensions.get_or_insert(one.dimensions) != one.dimensions {
                return Err(within(
                    Reject::rule(said).within("outputDimensionality"),
                    at,
                ));
            }
        }
        Ok(())
    }

    /// Returns a fault of the rewritten body with the path that it has in this API.
    fn named(&self, fault: Fault) -> Fault {
        let Some(param) = &fault.param else {
            return fault;
        };
        let place = match param.strip_prefix("input") {
            Some(place) => place,
            None => return fault,
        };
        let path = match self.is_batch {
            true => format!("requests{place}.content"),
            false => "content".to_owned(),
        };
        let said = fault.message.replacen(&**param, &path, 1);
        let mut named = fault.with_param(path);
        named.message = said.into();
        named
    }
}

impl Front for ContentEmbeddings {
    fn row(&'static self) -> &'static FrontRow {
        &self.row
    }

    fn read(&self, head: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        let body = match head.path.is_empty() {
            true => body,
            false => self
                .rewritten(head, &body)
                .map_err(Reject::into_fault)?
                .into(),
        };
        let request = EMBEDDINGS.parse(body).map_err(|fault| self.named(fault))?;
        Ok(Received::Complete(ModelRequest {
            front: self.itself(),
            ..request
        }))
    }

    fn name_of(&'static self, member: NamedMember, _: &Source) -> &'static str {
        match member {
            NamedMember::Turns | NamedMember::Media if self.is_batch => "requests",
            NamedMember::Turns | NamedMember::Media => "content",
            member => Dialect::Contents.name_of(member),
        }
    }

    fn explain(&self, fault: Fault) -> Fault {
        self.named(fault)
    }

    fn writer(&self, _: &ModelRequest, _: ReplyIdentity) -> Box<dyn Writer> {
        Box::new(VectorWriter {
            is_batch: self.is_batch,
            ..VectorWriter::default()
        })
    }
}

/// Writes the vectors. Nothing goes out before all of them are there, so any provider may still fail.
#[derive(Debug, Default)]
struct VectorWriter {
    is_batch: bool,
    /// Objects with vectors, with commas between them.
    vectors: Vec<u8>,
    /// The length of these up to the last part that has ended.
    ended_bytes: usize,
    out: Vec<u8>,
    usage: Option<Usage>,
}

impl Sink for VectorWriter {
    fn item(&mut self, items: &[u8]) {
        // Several items of a list may come as one slice.
        let list = ["[", std::str::from_utf8(items).unwrap_or_default(), "]"].concat();
        _ = Walker::over(&list).array(|walk, _| {
            let values = find(walk.skip()?, "embedding").unwrap_or("[]");
            if !self.vectors.is_empty() {
                self.vectors.push(b',');
            }
            let mut vector = Object::open(&mut self.vectors);
            vector.raw("values", values);
            vector.close();
            Ok::<(), Error>(())
        });
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for VectorWriter {
    fn has_content(&self) -> bool {
        !self.out.is_empty()
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            ..Reported::default()
        }
    }

    fn end_part(&mut self) {
        self.ended_bytes = self.vectors.len();
        self.usage = None;
    }

    fn begin_part(&mut self) {
        self.vectors.truncate(self.ended_bytes);
        self.usage = None;
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let vectors = std::mem::take(&mut self.vectors);
        let mut response = Object::open(&mut self.out);
        match self.is_batch {
            true => response.value("embeddings", |out| {
                out.push(b'[');
                out.extend_from_slice(&vectors);
                out.push(b']');
            }),
            false => response.value("embedding", |out| out.extend_from_slice(&vectors)),
        }
        response.object("usageMetadata", |usage| {
            usage.number("promptTokenCount", settlement.usage.prompt);
            usage.number("totalTokenCount", settlement.usage.total());
        });
        if metadata.route.is_some() {
            response.object("weirgate", |own| {
                own.object("metadata", |told| metadata.write_route(told));
            });
        }
        response.close();
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use http::HeaderMap;
    use serde_json::{Value, json};

    use super::*;

    fn read(front: &ContentEmbeddings, body: &Value) -> Result<ModelRequest, Fault> {
        let headers = HeaderMap::new();
        let head = ClientHead {
            path: "/v1beta/models/m:x",
            query: "",
            headers: &headers,
        };
        match front.read(&head, body.to_string().into())? {
            Received::Complete(request) => Ok(request),
            _ => panic!("only whole requests are expected"),
        }
    }

    fn asked(front: &ContentEmbeddings, body: &Value) -> Value {
        let request = read(front, body).unwrap();
        serde_json::from_slice(&request.source.body).unwrap()
    }

    #[test]
    fn a_request_for_vectors_is_one_that_every_wire_reads() {
        let content = |text: &str| json!({"parts": [{"text": text}]});
        let one = json!({"content": content("a\"b"), "task_type": "RETRIEVAL_QUERY", "outputDimensionality": 8});
        let expected =
            json!({"model": "m", "input": ["a\"b"], "input_type": "query", "dimensions": 8});
        assert_eq!(asked(&EMBED, &one), expected);
        let batch = json!({"requests": [
            {"model": "models/m", "content": content("a")},
            {"model": "models/m", "content": {"role": "user", "parts": {"text": "b"}}, "taskType": "SEMANTIC_SIMILARITY"}]});
        let expected = json!({"model": "m", "input": ["a", "b"]});
        assert_eq!(asked(&BATCH_EMBED, &batch), expected);
    }

    #[test]
    fn a_refusal_names_the_field_in_the_words_of_this_api() {
        let content = json!({"parts": [{"text": "a"}]});
        for (front, body, param) in [
            (&EMBED, json!({}), "content"),
            (&EMBED, json!({"content": {"parts": []}}), "content.parts"),
            (
                &EMBED,
                json!({"content": {"parts": [{"text": ""}]}}),
                "content",
            ),
            (
                &EMBED,
                json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]}}),
                "content.parts",
            ),
            (
                &EMBED,
                json!({"content": {"parts": [{"inlineData": {}}]}}),
                "content.parts[0].inlineData",
            ),
            (&EMBED, json!({"content": content, "title": "t"}), "title"),
            (
                &EMBED,
                json!({"content": content, "taskType": "COOKING"}),
                "taskType",
            ),
            (
                &EMBED,
                json!({"content": content, "outputDimensionality": 0}),
                "outputDimensionality",
            ),
            (
                &EMBED,
                json!({"content": content, "model": "models/n"}),
                "model",
            ),
            (&BATCH_EMBED, json!({"requests": []}), "requests"),
            (
                &BATCH_EMBED,
                json!({"requests": [{"content": content}, {"content": content, "taskType": "CLUSTERING"}]}),
                "requests[1].taskType",
            ),
            (
                &BATCH_EMBED,
                json!({"requests": [{"content": {"parts": [{"text": ""}]}}]}),
                "requests[0].content",
            ),
        ] {
            let fault = read(front, &body).unwrap_err();
            assert_eq!(
                (fault.status(), fault.param.as_deref()),
                (400, Some(param)),
                "{body}: {fault}"
            );
            assert!(fault.message.contains(param), "{fault}");
        }
    }
}
