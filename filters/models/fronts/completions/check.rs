//! The 400 rules of a request, in one pass over its bytes. Members that are not listed reach hosts of the dialect.
//! Source: docs/completions.md.

use bytes::Bytes;

use super::Completions;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::chat::facts::ChatFacts;
use crate::models::check::read::{Limit, array, expect, integer, limit, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, plain_request, read_all};
use crate::models::dialects::Dialect;
use crate::models::parameter::{AskedParameters, Parameter};
use crate::models::request::{ModelRequest, NativeNeed, Needs, Payload, Source, Strategy};
use crate::money::CostInputs;

/// The most prompts of a request. Our choice: as many as inputs of embeddings.
const MAX_PROMPTS: usize = 2048;
/// The most stop sequences. Our choice: the vendor takes 4.
const MAX_STOPS: usize = 64;
/// The bytes of text that a token stands for, in estimates.
const TOKEN_BYTES: u64 = 4;
const PROMPT: &str =
    "a string, an array of strings, an array of integers, or an array of arrays of integers";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    is_stream: bool,
    includes_usage: bool,
    strategy: Option<Strategy>,
    free_models_only: bool,
    no_reasoning: bool,
    max_tokens: Option<Limit>,
    choices: Option<u32>,
    best_of: Option<u32>,
    prompts: usize,
    are_tokens: bool,
    /// Whether a prompt has no text.
    is_empty: bool,
    text_bytes: u64,
    user: Option<Box<str>>,
    asked: AskedParameters,
    /// The first member that only hosts of the dialect know.
    native: Option<NativeNeed>,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 21] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("prompt", prompt).required(PROMPT),
    Row::text("suffix", |found, suffix| {
        found.text_bytes += suffix.len() as u64;
        if !suffix.is_empty() {
            found.asked.set.insert(Parameter::Suffix);
            found.need("suffix");
        }
        Ok(())
    })
    .doc("What follows the text that is made. Hosts of this dialect alone know it."),
    Row::own("max_tokens", |walk, found| {
        let limit = limit(walk)?;
        found.asked.add_number(Parameter::MaxTokens, limit.number);
        found.max_tokens = Some(limit);
        Ok(())
    }),
    Row::number("temperature", |found, number| {
        found.asked.add_number(Parameter::Temperature, number);
    }),
    Row::number("top_p", |found, number| {
        found.asked.add_number(Parameter::TopP, number);
    }),
    Row::integer("n", 1, 128, |found, n| {
        found.choices = u32::try_from(n).ok()
    })
    .doc("How many texts of each prompt."),
    Row::flag("stream", |found, stream| found.is_stream = stream)
        .doc("True: the reply is an event stream."),
    Row::object("stream_options", &STREAM_OPTIONS),
    Row::integer("logprobs", 0, U32, |found, _| {
        found.asked.set.insert(Parameter::Logprobs);
        found.need("logprobs");
    })
    .doc("The most likely tokens of each place. Hosts of this dialect alone know it."),
    Row::flag("echo", |found, echo| {
        if echo {
            found.asked.set.insert(Parameter::Echo);
            found.need("echo");
        }
    })
    .doc("True: the text begins with the prompt. Hosts of this dialect alone know it."),
    Row::own("stop", stop),
    Row::number("presence_penalty", |found, number| {
        found.asked.add_number(Parameter::PresencePenalty, number);
    }),
    Row::number("frequency_penalty", |found, number| {
        found.asked.add_number(Parameter::FrequencyPenalty, number);
    }),
    Row::integer("best_of", 1, 128, |found, count| {
        found.best_of = u32::try_from(count).ok()
    })
    .doc("How many texts are made, of which the best `n` are returned. Hosts of this dialect alone choose."),
    Row::own("logit_bias", logit_bias),
    Row::text("user", |found, user| {
        if !user.is_empty() {
            found.asked.set.insert(Parameter::User);
            found.user = Some(user.into());
        }
        Ok(())
    })
    .doc("The end user."),
    Row::own("seed", |walk, found| {
        expect(walk, Type::Number, "an integer")?;
        walk.number()?;
        found.asked.set.insert(Parameter::Seed);
        Ok(())
    }),
    Row::choice("routing", &Strategy::WORDS, |found, word| {
        found.strategy = Strategy::from_word(word);
    })
    .doc("What chooses the provider; not beside a model that names one."),
    Row::flag("free_models_only", |found, flag| {
        found.free_models_only = flag
    })
    .doc("With `auto`: only models that cost nothing."),
    Row::flag("no_reasoning", |found, flag| found.no_reasoning = flag)
        .doc("With `auto`: no reasoning models."),
];

static STREAM_OPTIONS: [Row; 1] = [Row::flag("include_usage", |found, flag| {
    found.includes_usage = flag;
})];

impl Findings {
    /// Notes a member that only hosts of the dialect know.
    fn need(&mut self, member: &'static str) {
        self.need_as(member, format!("`{member}`"));
    }

    /// Notes a member of which only hosts of the dialect know such a value.
    fn need_as(&mut self, member: &'static str, what: String) {
        let native = || NativeNeed::new(Dialect::Completions, member, what);
        self.native.get_or_insert_with(native);
    }
}

/// Checks a body.
///
/// Cost: one pass; allocates for names, never for texts. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let read = read_all(&[&FIELDS], &body, |walk, _, _| {
        Ok(walk.skip().map(|_| ())?)
    });
    let (mut found, members) = read.map_err(Reject::into_fault)?;
    together(&mut found).map_err(Reject::into_fault)?;
    Ok(complete(found, Source::new(body, members)))
}

fn complete(found: Findings, source: Source) -> ModelRequest {
    let choices = found.choices.unwrap_or(1);
    let made = u64::from(choices.max(found.best_of.unwrap_or(1)));
    let payload = Payload::Chat(ChatFacts {
        includes_usage: found.includes_usage,
        ..ChatFacts::default()
    });
    let limit = found.max_tokens;
    let request = plain_request(&Completions, found.model, source, payload);
    ModelRequest {
        is_stream: found.is_stream,
        strategy: found.strategy,
        session: found.user,
        needs: Needs {
            choices,
            max_tokens: limit.as_ref().map(|limit| limit.count),
            odd_max_tokens: limit.and_then(|limit| limit.odd),
            context_tokens: found.text_bytes / 8,
            free_models_only: found.free_models_only,
            no_reasoning: found.no_reasoning,
            // A text has no room for images.
            image_output: Some(false),
            native: found.native,
            ..Needs::default()
        },
        asked: found.asked,
        cost_inputs: CostInputs {
            choices: made.saturating_mul(found.prompts as u64),
            ..request.cost_inputs
        },
        text_bytes: found.text_bytes,
        ..request
    }
}

/// What holds between members, and what follows from them.
fn together(found: &mut Findings) -> Result<(), Reject> {
    let choices = found.choices.unwrap_or(1);
    if let Some(best_of) = found.best_of {
        if best_of < choices {
            let said = format!("is {best_of}; accepted is at least `n`, which is {choices}");
            return Err(Reject::rule(said).within("best_of"));
        }
        if best_of > choices {
            found.asked.set.insert(Parameter::BestOf);
            found.need("best_of");
        }
    }
    if found.are_tokens {
        found.need_as("prompt", "tokens".to_owned());
    } else if found.prompts > 1 {
        found.need_as("prompt", "several prompts".to_owned());
    } else if found.is_empty {
        found.need_as("prompt", "empty text".to_owned());
    }
    Ok(())
}

fn prompt(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => text(walk, found),
        Type::Array => prompts(walk, found),
        _ => Err(other(walk, PROMPT)),
    }
}

/// An array: of texts, of tokens, which are one prompt together, or of arrays of tokens.
fn prompts(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut first = None;
    let count = array(walk, |walk, _| {
        let item = walk.peek()?;
        match (*first.get_or_insert(item), item) {
            (Type::String, Type::String) => text(walk, found),
            (Type::Number, Type::Number) => token(walk),
            (Type::Array, Type::Array) => {
                let count = array(walk, |walk, _| token(walk))?;
                tokens(count, found)
            }
            (Type::String | Type::Number | Type::Array, _) => {
                Err(other(walk, "an item of the same type as the first"))
            }
            _ => Err(other(walk, "a string, an integer or an array of integers")),
        }
    })?;
    match first {
        None => Err(Reject::rule("is empty; accepted is at least one prompt")),
        Some(Type::Number) => tokens(count, found),
        Some(_) => Ok(()),
    }
}

fn text(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let bytes = string(walk)?.len() as u64;
    found.is_empty |= bytes == 0;
    add(bytes, found)
}

fn token(walk: &mut Walker<'_>) -> Result<(), Reject> {
    integer(walk, 0, U32).map(|_| ())
}

fn tokens(count: usize, found: &mut Findings) -> Result<(), Reject> {
    found.are_tokens = true;
    add(TOKEN_BYTES.saturating_mul(count as u64), found)
}

fn add(bytes: u64, found: &mut Findings) -> Result<(), Reject> {
    if found.prompts >= MAX_PROMPTS {
        let said = format!("is one of more than {MAX_PROMPTS} prompts");
        return Err(Reject::rule(said));
    }
    found.prompts += 1;
    found.text_bytes = found.text_bytes.saturating_add(bytes);
    Ok(())
}

fn stop(walk: &mut Walker<'_>, _: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => walk.skip().map(|_| ()).map_err(Reject::from),
        Type::Array => match array(walk, |walk, _| string(walk).map(|_| ()))? {
            count if count > MAX_STOPS => Err(Reject::rule(format!(
                "holds {count} sequences; accepted are at most {MAX_STOPS}"
            ))),
            _ => Ok(()),
        },
        _ => Err(other(walk, "a string or an array of strings")),
    }
}

fn logit_bias(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    expect(walk, Type::Object, "an object of numbers by token")?;
    walk.object(|walk, key| {
        found.asked.set.insert(Parameter::LogitBias);
        match walk.peek()? {
            Type::Number => walk.skip().map(|_| ()).map_err(Reject::from),
            _ => Err(other(walk, "a number").within(&key)),
        }
    })
}
