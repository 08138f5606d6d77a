//! Typed decisions: the words are those of the convention, but for the state, which is the input.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::{Object, Str};
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

pub(super) static CODEC: OperationCodec<DecisionFacts> =
    OperationCodec::new("/decisions", encode, |_, facts, _, _| {
        let facts = facts.clone();
        Box::new(WholeReply::new(move |body, sink| read(body, &facts, sink)))
    });

fn encode(
    request: &ModelRequest,
    facts: &DecisionFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut out = Vec::with_capacity(source.body.len() + 256);
    let mut body = Object::open(&mut out);
    body.text("model", target.model);
    body.value("input", |out| facts.write_state(&source.body, out));
    body.value("questions", |out| {
        out.push(b'{');
        for (at, question) in facts.questions.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            Str::Plain(&question.id).write(out);
            out.push(b':');
            write_question(question, out);
        }
        out.push(b'}');
    });
    body.close();
    Ok(vec![out.into()])
}

fn write_question(question: &Question, out: &mut Vec<u8>) {
    let mut written = Object::open(out);
    written.text("type", question.answers.as_str());
    written.text("instructions", &question.instructions);
    match &question.answers {
        AnswerKind::Noul => {}
        AnswerKind::Choice(options) => written.value("criteria", |out| {
            out.push(b'{');
            for (at, (option, description)) in options.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                Str::Plain(option).write(out);
                out.push(b':');
                // It wants a description of each.
                Str::Plain(description.as_deref().unwrap_or(option)).write(out);
            }
            out.push(b'}');
        }),
        AnswerKind::Score(levels) => written.array("criteria", levels, |level, out| {
            Str::Plain(level).write(out);
        }),
    }
    written.close();
}

/// A reply. Members of answers are ordered by their names, because their order means nothing.
#[derive(Deserialize)]
struct DecisionReply<'a> {
    #[serde(borrow)]
    answers: Option<BTreeMap<Cow<'a, str>, ReadAnswer<'a>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    prompt_feedback: Option<Feedback>,
    usage: Option<Report>,
}

#[derive(Deserialize)]
struct ReadAnswer<'a> {
    #[serde(borrow)]
    noul: Option<&'a RawValue>,
    #[serde(borrow)]
    choice: Option<Cow<'a, str>>,
    #[serde(borrow)]
    score: Option<&'a RawValue>,
    #[serde(borrow)]
    confidence: Option<&'a RawValue>,
    #[serde(borrow)]
    probabilities: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(borrow)]
    legend: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    total_input_tokens: Option<u64>,
    total_cached_tokens: Option<u64>,
    total_output_tokens: Option<u64>,
}

fn read(body: &[u8], facts: &DecisionFacts, sink: &mut dyn Sink) -> Result<(), Failure> {
    let bad = || Failure::malformed("the provider's reply does not answer the questions");
    let reply: DecisionReply<'_> = serde_json::from_slice(body).map_err(|_| bad())?;
    if let Some(error) = reply.error {
        return Err(classify_error(error.get()));
    }
    let blocked = reply.prompt_feedback.and_then(|it| it.block_reason);
    let answers = match (reply.answers, blocked) {
        (Some(answers), _) => answers,
        (None, Some(reason)) => {
            let message = format!("the prompt was blocked: {reason}");
            return Err(Failure::refused(400, &message));
        }
        (None, None) => return Err(bad()),
    };
    let read = facts.questions.iter().map(|question| {
        let read = answers.get(&*question.id)?;
        answer(question, read)
    });
    let read: Option<Vec<Answer<'_>>> = read.collect();
    write_answers(facts, &read.ok_or_else(bad)?, sink);
    if let Some(report) = reply.usage {
        let usage = Usage {
            prompt: report.total_input_tokens.unwrap_or(0),
            cached: report.total_cached_tokens.unwrap_or(0),
            ..Usage::default()
        };
        input_tokens(usage, report.total_output_tokens, sink);
    }
    Ok(())
}

/// Reads an answer; `None`: it does not answer this question.
fn answer<'a>(question: &'a Question, read: &'a ReadAnswer<'a>) -> Option<Answer<'a>> {
    let confidence = read.confidence.and_then(number);
    let probabilities = || {
        let all = read.probabilities.iter().flatten();
        let all = all.map(|(name, raw)| Some((Cow::Borrowed(&**name), number(raw)?)));
        all.collect::<Option<Vec<_>>>()
    };
    match &question.answers {
        AnswerKind::Noul => read.noul.and_then(number).map(Answer::Noul),
        AnswerKind::Choice(options) => {
            let choice = read.choice.as_deref().filter(|it| is_option(options, it))?;
            Some(Answer::Choice {
                choice: choice.into(),
                probabilities: probabilities()?,
                confidence,
            })
        }
        AnswerKind::Score(levels) => Some(Answer::Score {
            score: read.score.and_then(number)?,
            legend: legend(read.legend, levels)?,
            probabilities: probabilities()?,
            confidence,
        }),
    }
}

/// Returns the names of the levels by their numbers: those of the reply, or those of the question from 0.
fn legend<'a>(
    read: Option<&'a RawValue>,
    levels: &'a [Box<str>],
) -> Option<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Legend {
        Named(BTreeMap<String, String>),
        Listed(Vec<String>),
    }
    let numbered = |names: Vec<Cow<'a, str>>| {
        let numbers = (0..names.len()).map(|number| number.to_string().into());
        numbers.zip(names).collect()
    };
    let Some(read) = read else {
        return Some(numbered(
            levels.iter().map(|level| (&**level).into()).collect(),
        ));
    };
    Some(match serde_json::from_str(read.get()).ok()? {
        Legend::Listed(names) => numbered(names.into_iter().map(Into::into).collect()),
        Legend::Named(names) => {
            let names = names.into_iter();
            names
                .map(|(number, name)| (number.into(), name.into()))
                .collect()
        }
    })
}
