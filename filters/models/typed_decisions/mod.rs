//! Typed decisions: what wires need to know of a request, and what an answer looks like.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{Object, Str, Walker};

/// What a front found in a request for decisions.
#[derive(Clone, Debug, Default)]
pub struct DecisionFacts {
    pub state: Range<usize>,
    /// The questions, in the order of the request.
    pub questions: Vec<Question>,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    pub id: Box<str>,
    pub instructions: Box<str>,
    pub answers: AnswerKind,
}

/// How a question is answered.
#[derive(Clone, Debug)]
pub enum AnswerKind {
    /// By the probability that it is so.
    Noul,
    /// By one of these options, some of which are described.
    Choice(Vec<(Box<str>, Option<Box<str>>)>),
    /// By a place among these levels, the lowest first.
    Score(Vec<Box<str>>),
}

impl AnswerKind {
    /// Returns the word of `type`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Noul => "noul",
            Self::Choice(_) => "choice",
            Self::Score(_) => "score",
        }
    }
}

impl DecisionFacts {
    /// Writes the state as a JSON string: a text as it is, anything else as its JSON.
    pub fn write_state(&self, body: &[u8], out: &mut Vec<u8>) {
        let json = body.get(self.state.clone()).unwrap_or_default();
        let json = std::str::from_utf8(json).unwrap_or_default();
        match Walker::over(json).string() {
            Ok(text) => text.write(out),
            Err(_) => Str::Plain(json).write(out),
        }
    }
}

/// An answer. Numbers are JSON texts, as the provider wrote them.
#[derive(Clone, Debug)]
pub enum Answer<'a> {
    /// The probability that it is so.
    Noul(&'a str),
    /// The option, the probability of each, and how sure the choice is.
    Choice {
        choice: Cow<'a, str>,
        /// Each option with its probability.
        probabilities: Vec<(Cow<'a, str>, &'a str)>,
        /// How sure it is, where the provider says.
        confidence: Option<&'a str>,
    },
    /// A place among the levels, which may lie between two of them.
    Score {
        score: &'a str,
        /// The numbers of the levels, each with its name.
        legend: Vec<(Cow<'a, str>, Cow<'a, str>)>,
        /// Each level with its probability.
        probabilities: Vec<(Cow<'a, str>, &'a str)>,
        /// How sure it is, where the provider says.
        confidence: Option<&'a str>,
    },
    /// The provider does not answer it.
    Refusal,
}

impl Answer<'_> {
    /// Writes a member of `answers`: the question's name, and the answer.
    pub fn write(&self, id: &str, out: &mut Vec<u8>) {
        Str::Plain(id).write(out);
        out.push(b':');
        let mut answer = Object::open(out);
        match self {
            Self::Noul(probability) => {
                answer.text("type", "noul");
                answer.raw("noul", probability);
            }
            Self::Choice {
                choice,
                probabilities,
                confidence,
            } => {
                answer.text("type", "choice");
                answer.text("choice", choice);
                answer.value("probabilities", |out| {
                    write_map(probabilities, write_raw, out)
                });
                write_confidence(&mut answer, *confidence);
            }
            Self::Score {
                score,
                legend,
                probabilities,
                confidence,
            } => {
                answer.text("type", "score");
                answer.raw("score", score);
                answer.value("legend", |out| {
                    write_map(legend, |name, out| Str::Plain(name).write(out), out)
                });
                answer.value("probabilities", |out| {
                    write_map(probabilities, write_raw, out)
                });
                write_confidence(&mut answer, *confidence);
            }
            Self::Refusal => answer.text("type", "refusal"),
        }
        answer.close();
    }
}

fn write_confidence(answer: &mut Object<'_>, confidence: Option<&str>) {
    answer.raw("confidence", confidence.unwrap_or("null"));
}

fn write_raw(number: &&str, out: &mut Vec<u8>) {
    out.extend_from_slice(number.as_bytes());
}

/// Writes an object whose keys are any strings.
fn write_map<T>(
    members: &[(Cow<'_, str>, T)],
    write: impl Fn(&T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (at, (key, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        Str::Plain(key).write(out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}
