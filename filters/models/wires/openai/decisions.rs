//! Typed decisions in OpenAI's words: a list of questions, and answers in their order.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::Object;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::typed_decisions::{Answer, AnswerKind, DecisionFacts, Question};
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decided::{input_tokens, is_option, number, write_answers};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::wire::Target;

/// Members of the API that requests may have beside those of the convention.
const PASSED: [&str; 3] = [
    "prompt_cache_key",
    "prompt_cache_options",
    "safety_identifier",
];

pub(super) static CODEC: OperationCodec<DecisionFacts> =
    OperationCodec::new("decisions", encode, |_, facts, _, _| {
        let facts = facts.clone();
        Box::new(WholeReply::new(move |body, sink| read(body, &facts, sink)))
    });

fn encode(
    request: &ModelRequest,
    facts: &DecisionFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut out = Vec::with_capacity(source.body.len() + 1024);
    let mut body = Object::open(&mut out);
    body.text("model", target.model);
    body.value("input", |out| facts.write_state(&source.body, out));
    body.array("questions", &facts.questions, |question, out| {
        write_question(question, out);
    });
    for key in PASSED {
        let member = source.member(key);
        if let Some(member) = member.filter(|member| !source.is_null(member)) {
            let value = std::str::from_utf8(source.value(member)).unwrap_or("null");
            body.raw(key, value);
        }
    }
    body.close();
    Ok(vec![out.into()])
}

fn write_question(question: &Question, out: &mut Vec<u8>) {
    let mut written = Object::open(out);
    let kind = match question.answers {
        AnswerKind::Noul => "predicate",
        AnswerKind::Choice(_) | AnswerKind::Score(_) => question.answers.as_str(),
    };
    written.text("type", kind);
    written.text("name", &question.id);
    written.text("instructions", &question.instructions);
    match &question.answers {
        AnswerKind::Noul => {}
        AnswerKind::Choice(options) => {
            written.array("choices", options, |(value, description), out| {
                let mut choice = Object::open(out);
                choice.text("value", value);
                choice.optional_text("description", description.as_deref());
                choice.close();
            });
        }
        AnswerKind::Score(levels) => written.array("levels", levels, |label, out| {
            let mut level = Object::open(out);
            level.text("label", label);
            level.close();
        }),
    }
    written.close();
}

/// A reply.
#[derive(Deserialize)]
struct DecisionReply<'a> {
    #[serde(borrow)]
    answers: Option<Vec<ReadAnswer<'a>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    usage: Option<Report>,
}

#[derive(Deserialize)]
struct ReadAnswer<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    probability: Option<&'a RawValue>,
    #[serde(borrow)]
    choice: Option<Cow<'a, str>>,
    #[serde(borrow)]
    score: Option<&'a RawValue>,
    #[serde(borrow)]
    confidence: Option<&'a RawValue>,
    #[serde(borrow, default)]
    probabilities: Vec<Probability<'a>>,
}

/// The probability of an option, whose value is its name, or of a level, whose value is its number.
#[derive(Deserialize)]
struct Probability<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    label: Option<Cow<'a, str>>,
    #[serde(borrow)]
    probability: &'a RawValue,
}

#[derive(Deserialize)]
struct Report {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

fn read(body: &[u8], facts: &DecisionFacts, sink: &mut dyn Sink) -> Result<(), Failure> {
    let bad = || Failure::malformed("the provider's reply does not answer the questions");
    let reply: DecisionReply<'_> = serde_json::from_slice(body).map_err(|_| bad())?;
    if let Some(error) = reply.error {
        return Err(classify_error(error.get()));
    }
    let answers = reply.answers.ok_or_else(bad)?;
    if answers.len() != facts.questions.len() {
        return Err(bad());
    }
    let pairs = facts.questions.iter().zip(&answers);
    let read: Option<Vec<Answer<'_>>> = pairs
        .map(|(question, read)| answer(question, read))
        .collect();
    write_answers(facts, &read.ok_or_else(bad)?, sink);
    if let Some(report) = reply.usage {
        let details = report.input_tokens_details.unwrap_or_default();
        let usage = Usage {
            prompt: report.input_tokens.unwrap_or(0),
            cached: details.cached_tokens.unwrap_or(0),
            cache_write: details.cache_write_tokens.unwrap_or(0),
            ..Usage::default()
        };
        input_tokens(usage, report.output_tokens, sink);
    }
    Ok(())
}

/// Reads an answer; `None`: it does not answer this question.
fn answer<'a>(question: &Question, read: &'a ReadAnswer<'a>) -> Option<Answer<'a>> {
    if read.kind == "refusal" {
        return Some(Answer::Refusal);
    }
    let confidence = read.confidence.and_then(number);
    match &question.answers {
        AnswerKind::Noul if read.kind == "predicate" => {
            read.probability.and_then(number).map(Answer::Noul)
        }
        AnswerKind::Choice(options) if read.kind == "choice" => {
            let choice = read.choice.as_deref().filter(|it| is_option(options, it))?;
            let options = read.probabilities.iter().map(|it| {
                let name: String = serde_json::from_str(it.value?.get()).ok()?;
                Some((name.into(), number(it.probability)?))
            });
            Some(Answer::Choice {
                choice: choice.into(),
                probabilities: options.collect::<Option<_>>()?,
                confidence,
            })
        }
        AnswerKind::Score(_) if read.kind == "score" => {
            let levels = read.probabilities.iter();
            let legend = levels.clone().map(|it| {
                let label = it.label.as_deref()?;
                Some((number(it.value?)?.into(), label.into()))
            });
            let probabilities = levels.map(|it| {
                let label = it.label.as_deref()?;
                Some((label.into(), number(it.probability)?))
            });
            Some(Answer::Score {
                score: read.score.and_then(number)?,
                legend: legend.collect::<Option<_>>()?,
                probabilities: probabilities.collect::<Option<_>>()?,
                confidence,
            })
        }
        _ => None,
    }
}
