//! A checked body as a [`Conversation`]. What is not of the type that the checks demand counts as absent.
//!
//! [`message`] reads messages and [`part`] their parts, [`carried`] the state that replies have handed out, [`turns`] puts
//! all of it into its order, and [`tools`] reads what the model may call.

mod carried;
mod message;
mod part;
mod tools;
mod turns;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::chat::{find_image_parameter, find_parameter};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// Reads the conversation of a checked request.
///
/// Cost: one pass; text without escapes is borrowed from the body. Errors: an internal fault, because the checks have passed.
pub(super) fn read(request: &ModelRequest) -> Result<Conversation<'_>, Fault> {
    let body = std::str::from_utf8(&request.source.body).unwrap_or_default();
    let mut conversation = Conversation {
        dialect: Dialect::Chat,
        body,
        turns: Vec::new(),
        tools: Vec::new(),
        choice: None,
        form: AnswerForm::Text,
        stop: Vec::new(),
        options: Vec::new(),
    };
    let read = Walker::over(body).object(|walk, key| member(walk, &key, &mut conversation));
    read.map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked request does not parse: {error}"))
    })?;
    Ok(conversation)
}

fn member<'a>(
    walk: &mut Walker<'a>,
    key: &str,
    conversation: &mut Conversation<'a>,
) -> Result<(), Error> {
    match key {
        "messages" => each(walk, |walk| {
            conversation.turns.push(message::read(walk)?);
            Ok(())
        }),
        "tools" => each(walk, |walk| {
            let tool = tools::tool(conversation.body, walk.skip()?);
            conversation.tools.extend(tool);
            Ok(())
        }),
        "tool_choice" => {
            conversation.choice = tools::choice(walk.skip()?);
            Ok(())
        }
        "response_format" => {
            let form = tools::form(conversation.body, walk.skip()?);
            conversation.form = form.unwrap_or_default();
            Ok(())
        }
        "image_config" => members(walk, |walk, key| {
            option(walk, find_image_parameter(key), conversation).map(|_| ())
        }),
        "stop" => {
            let stop = option(walk, find_parameter(key), conversation)?;
            let texts = serde_json::from_str(stop);
            let texts = texts.or_else(|_| serde_json::from_str(stop).map(|text| vec![text]));
            conversation.stop = texts.unwrap_or_default();
            Ok(())
        }
        _ => option(walk, find_parameter(key), conversation).map(|_| ()),
    }
}

/// Keeps a member that a mapping's table treats; returns its JSON.
fn option<'a>(
    walk: &mut Walker<'a>,
    parameter: Option<Parameter>,
    conversation: &mut Conversation<'a>,
) -> Result<&'a str, Error> {
    let value = walk.skip()?;
    if let Some(parameter) = parameter.filter(|_| value != "null") {
        let value = raw(value).map(|value| (parameter, Cow::Borrowed(value)));
        conversation.options.extend(value);
    }
    Ok(value)
}

/// Walks an array; anything else is skipped.
fn each<'a>(
    walk: &mut Walker<'a>,
    mut item: impl FnMut(&mut Walker<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    match walk.peek()? {
        Type::Array => walk.array(|walk, _| item(walk)),
        _ => walk.skip().map(|_| ()),
    }
}

/// Walks an object; anything else is skipped.
fn members<'a>(
    walk: &mut Walker<'a>,
    mut member: impl FnMut(&mut Walker<'a>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    match walk.peek()? {
        Type::Object => walk.object(|walk, key| member(walk, &key)),
        _ => walk.skip().map(|_| ()),
    }
}

/// A string; `None` for anything else.
fn text<'a>(walk: &mut Walker<'a>) -> Result<Option<Text<'a>>, Error> {
    match walk.peek()? {
        Type::String => Ok(Some(Text(walk.text()?))),
        _ => walk.skip().map(|_| None),
    }
}

/// A JSON value; `None` for null.
fn value<'a>(walk: &mut Walker<'a>) -> Result<Option<&'a RawValue>, Error> {
    let value = walk.skip()?;
    Ok(raw(value).filter(|_| value != "null"))
}

fn raw(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// Returns the offset of the next value.
fn offset(walk: &mut Walker<'_>) -> Result<u32, Error> {
    walk.peek()?;
    Ok(u32::try_from(walk.at()).unwrap_or(u32::MAX))
}
