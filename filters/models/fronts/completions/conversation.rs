//! A checked body as a [`Conversation`], for wires of other dialects: its one prompt is what the user says.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{AnswerForm, Block, BlockKind, Conversation, Role, Turn};
use crate::models::chat::text::{BlockText, Text};
use crate::models::dialects::Dialect;
use crate::models::dialects::completions::find_parameter;
use crate::models::request::{ModelRequest, Source};

/// Reads the conversation of a checked request.
///
/// Cost: one pass over the members. Errors: an internal fault, because the checks have passed.
pub(super) fn read(request: &ModelRequest) -> Result<Conversation<'_>, Fault> {
    let source = &request.source;
    let body = std::str::from_utf8(&source.body).unwrap_or_default();
    let stop = stops(source).into_iter().map(Text);
    let mut options = Vec::new();
    for member in &source.members {
        let value = body.get(member.value.clone()).unwrap_or_default();
        if let Some(parameter) = find_parameter(&member.key).filter(|_| value != "null")
            && let Ok(raw) = serde_json::from_str::<&RawValue>(value)
        {
            options.push((parameter, Cow::Borrowed(raw)));
        }
    }
    let turn = turn(body, source).map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked request does not parse: {error}"))
    })?;
    Ok(Conversation {
        dialect: Dialect::Completions,
        body,
        turns: turn.into_iter().collect(),
        tools: Vec::new(),
        choice: None,
        form: AnswerForm::Text,
        stop: stop.collect(),
        options,
    })
}

/// Returns the stop sequences of a checked request.
pub(super) fn stops(source: &Source) -> Vec<Cow<'_, str>> {
    let Some(member) = source.member("stop") else {
        return Vec::new();
    };
    let said = source.value(member);
    let list = serde_json::from_slice::<Vec<Text<'_>>>(said);
    let list = list.or_else(|_| serde_json::from_slice(said).map(|text| vec![text]));
    let list = list.unwrap_or_default().into_iter().map(|text| text.0);
    list.filter(|text| !text.is_empty()).collect()
}

/// Returns what the user says. Only hosts of the dialect get several prompts.
fn turn<'a>(body: &'a str, source: &Source) -> Result<Option<Turn<'a>>, Error> {
    let Some(member) = source.member("prompt") else {
        return Ok(None);
    };
    let mut walk = Walker::over(body.get(member.value.clone()).unwrap_or_default());
    let mut blocks = Vec::new();
    let mut block = |walk: &mut Walker<'a>| {
        walk.peek()?;
        let at = u32::try_from(member.value.start + walk.at()).unwrap_or(u32::MAX);
        let text = BlockKind::Text(BlockText::read(walk)?);
        blocks.push(Block::new(text, at));
        Ok::<(), Error>(())
    };
    match walk.peek()? {
        Type::Array => walk.array(|walk, _| block(walk))?,
        _ => block(&mut walk)?,
    }
    let at = u32::try_from(member.value.start).unwrap_or(u32::MAX);
    Ok(Some(Turn::new(Role::User, at, blocks)))
}
