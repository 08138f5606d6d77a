//! Contents as turns of a conversation. Contents of one speaker in a row are one turn, the responses of functions stand first in
//! that of the user, and each answers a call: by its id, else the first call of its name, else the first that is left.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::conversation::{each, members};
use super::media::{MediaForm, data_url, is_file_of_vendor};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{
    Block, BlockKind, Media, MediaKind, MediaSource, Role, State, Turn,
};
use crate::models::chat::text::{BlockText, Text};
use crate::models::dialects::Dialect;
use crate::models::dialects::contents::NO_SIGNATURE;
use crate::models::dialects::state::sealed_dialect;
use crate::models::fronts::signed_blocks::{SignedBlocks, results_turn};

/// What ids of calls begin with that have none.
const OWN_ID: &str = "call_wg_";

/// Turns in the making.
#[derive(Default)]
pub(super) struct ReadTurns<'a> {
    turns: Vec<Turn<'a>>,
    /// What the model says in a row.
    said: SignedBlocks<'a>,
    /// The responses of functions, and what else the user says in a row.
    results: Vec<Block<'a>>,
    asked: Vec<Turn<'a>>,
    calls: OpenCalls<'a>,
    /// How many calls had no id.
    made: u64,
}

/// The calls of the model's last turn that have no response yet.
///
/// Cost: each is looked at a few times, in whichever order the responses come.
#[derive(Default)]
struct OpenCalls<'a> {
    /// The id of each; `None`: it has a response.
    calls: Vec<Option<Text<'a>>>,
    by_id: HashMap<Cow<'a, str>, VecDeque<usize>>,
    by_name: HashMap<Cow<'a, str>, VecDeque<usize>>,
    /// No call before this one is left.
    first: usize,
}

impl<'a> OpenCalls<'a> {
    fn push(&mut self, id: Text<'a>, name: &Text<'a>) {
        let at = self.calls.len();
        self.by_id.entry(id.0.clone()).or_default().push_back(at);
        let named = self.by_name.entry(name.0.clone()).or_default();
        named.push_back(at);
        self.calls.push(Some(id));
    }

    /// Returns the id of the call that a response answers; `None`: none is left.
    fn answer(&mut self, id: Option<&str>, name: &str) -> Option<Text<'a>> {
        let by_id = id.and_then(|id| self.by_id.get_mut(id));
        let lists = [by_id, self.by_name.get_mut(name)];
        for list in lists.into_iter().flatten() {
            while let Some(at) = list.pop_front() {
                if let Some(id) = self.calls.get_mut(at).and_then(Option::take) {
                    return Some(id);
                }
            }
        }
        while let Some(call) = self.calls.get_mut(self.first) {
            self.first += 1;
            if let Some(id) = call.take() {
                return Some(id);
            }
        }
        None
    }
}

/// A part.
#[derive(Default)]
struct Part<'a> {
    text: Option<BlockText<'a>>,
    is_thought: bool,
    signature: Option<Text<'a>>,
    media: Option<(MediaSource<'a>, MediaForm)>,
    name: Option<Text<'a>>,
    call: Option<Call<'a>>,
    response: Option<Response<'a>>,
}

#[derive(Default)]
struct Call<'a> {
    id: Option<Text<'a>>,
    name: Text<'a>,
    args: &'a str,
}

#[derive(Default)]
struct Response<'a> {
    id: Option<Text<'a>>,
    name: Text<'a>,
    response: &'a str,
    media: Vec<Block<'a>>,
}

impl<'a> ReadTurns<'a> {
    /// Reads the next value of the body: instructions.
    pub(super) fn system(&mut self, walk: &mut Walker<'a>) -> Result<(), Error> {
        let at = offset(walk)?;
        let mut blocks = Vec::new();
        self.parts(walk, |_, part, at| {
            blocks.extend(part.into_block(at, false));
        })?;
        if !blocks.is_empty() {
            self.turns.push(Turn::new(Role::System, at, blocks));
        }
        Ok(())
    }

    /// Reads the next value of the body: contents.
    pub(super) fn contents(&mut self, walk: &mut Walker<'a>) -> Result<(), Error> {
        each(walk, |walk| {
            let at = offset(walk)?;
            match role(walk.clone())? {
                true => self.of_model(walk, at),
                false => self.of_user(walk, at),
            }
        })
    }

    /// Returns the turns.
    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        self.end_said();
        self.end_asked();
        self.turns
    }

    fn of_model(&mut self, walk: &mut Walker<'a>, at: u32) -> Result<(), Error> {
        self.end_asked();
        if !self.said.has_begun() {
            self.calls = OpenCalls::default();
        }
        self.parts(walk, |turns, part, part_at| {
            turns.said.begin(at);
            turns.say(part, part_at);
        })
    }

    fn of_user(&mut self, walk: &mut Walker<'a>, at: u32) -> Result<(), Error> {
        self.end_said();
        let mut blocks = Vec::new();
        self.parts(walk, |turns, part, part_at| match part.response {
            Some(response) => turns.result(response, part_at),
            None => blocks.extend(part.into_block(part_at, false)),
        })?;
        if !blocks.is_empty() {
            self.asked.push(Turn::new(Role::User, at, blocks));
        }
        Ok(())
    }

    /// Hands out the parts of the next value, a content.
    fn parts(
        &mut self,
        walk: &mut Walker<'a>,
        mut take: impl FnMut(&mut Self, Part<'a>, u32),
    ) -> Result<(), Error> {
        members(walk, |walk, key, _| match key {
            "parts" => each(walk, |walk| {
                let at = offset(walk)?;
                let part = Part::read(walk)?;
                take(self, part, at);
                Ok(())
            }),
            _ => walk.skip().map(|_| ()),
        })
    }

    /// Takes what the model has said.
    fn say(&mut self, mut part: Part<'a>, at: u32) {
        let mut signature = part.signature.take().and_then(state);
        let is_foreign = |state: &mut State<'_>| state.dialect != Some(Dialect::Contents);
        if let Some(state) = signature.take_if(is_foreign) {
            let mut block = Block::new(BlockKind::Redacted, at);
            block.states.push(state);
            self.said.push(block);
        }
        let block = match part.call.take() {
            Some(call) => Some(Block::new(self.call(call), at)),
            // What it has thought goes back in its state alone.
            None if part.is_thought => None,
            None => part.into_block(at, true),
        };
        match (block, signature) {
            (Some(block), Some(state)) => self.said.push_signed(block, state),
            (Some(block), None) => self.said.push(block),
            (None, Some(state)) => self.said.sign(state),
            (None, None) => {}
        }
    }

    fn call(&mut self, call: Call<'a>) -> BlockKind<'a> {
        let id = call.id.unwrap_or_else(|| {
            self.made += 1;
            Text(Cow::Owned(format!("{OWN_ID}{}", self.made)))
        });
        self.calls.push(id.clone(), &call.name);
        let input = match call.args {
            "" => "{}",
            args => args,
        };
        BlockKind::Call {
            id,
            name: call.name,
            input: Text(input.into()),
        }
    }

    fn result(&mut self, response: Response<'a>, at: u32) {
        let (text, is_error) = text_of(response.response);
        let mut content = Vec::with_capacity(1 + response.media.len());
        if !text.is_empty() {
            content.push(Block::new(BlockKind::Text(text.into()), at));
        }
        content.extend(response.media);
        let call = self.calls.answer(response.id.as_deref(), &response.name);
        let result = BlockKind::Result {
            call: call.or(response.id),
            content,
            is_error,
        };
        self.results.push(Block::new(result, at));
    }

    fn end_said(&mut self) {
        self.turns.extend(self.said.take_turn());
    }

    fn end_asked(&mut self) {
        self.turns.extend(results_turn(&mut self.results));
        self.turns.append(&mut self.asked);
    }
}

/// Returns whether the content that comes next is the model's.
fn role(mut walk: Walker<'_>) -> Result<bool, Error> {
    let mut is_models = false;
    members(&mut walk, |walk, key, kind| {
        match (key, kind) {
            ("role", Type::String) => is_models = walk.text()? == "model",
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    Ok(is_models)
}

/// Returns the state of a signature; `None`: it says that there is none.
fn state(signature: Text<'_>) -> Option<State<'_>> {
    if signature.is_empty() || *signature == *NO_SIGNATURE {
        return None;
    }
    Some(State {
        dialect: Some(sealed_dialect(&signature).unwrap_or(Dialect::Contents)),
        text: signature,
        item: "",
    })
}

/// Returns the text of a function's response, and whether it failed. Clients wrap one text in `output`, `result` or `error`.
fn text_of(response: &str) -> (Cow<'_, str>, bool) {
    let (mut count, mut is_error, mut only) = (0, false, None);
    let walked = members(&mut Walker::over(response), |walk, key, kind| {
        count += 1;
        is_error |= key == "error";
        match (key, kind) {
            ("output" | "result" | "error" | "content", Type::String) => only = Some(walk.text()?),
            _ => _ = walk.skip()?,
        }
        Ok(())
    });
    let is_error = is_error && count == 1;
    match only.filter(|_| walked.is_ok() && count == 1) {
        Some(text) => (text, is_error),
        None => (Cow::Borrowed(response), is_error),
    }
}

impl<'a> Part<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut part = Self::default();
        members(walk, |walk, key, kind| {
            match (key, kind) {
                ("text", Type::String) => part.text = Some(BlockText::read(walk)?),
                ("thought", Type::Bool) => part.is_thought = walk.boolean()?,
                ("thoughtSignature", Type::String) => part.signature = Some(Text(walk.text()?)),
                ("inlineData" | "fileData", Type::Object) => {
                    let (source, form, name) = media(walk)?;
                    part.media = Some((source, form));
                    part.name = name;
                }
                ("functionCall", Type::Object) => part.call = Some(Call::read(walk)?),
                ("functionResponse", Type::Object) => part.response = Some(Response::read(walk)?),
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        Ok(part)
    }

    /// Returns the block that it is; `None`: other dialects have no words for it.
    fn into_block(self, at: u32, is_models: bool) -> Option<Block<'a>> {
        if let Some(text) = self.text.filter(|text| !text.is_empty()) {
            return Some(Block::new(BlockKind::Text(text), at));
        }
        let (source, form) = self.media?;
        let kind = match form {
            MediaForm::Image if is_models => MediaKind::Drawn,
            MediaForm::Image => MediaKind::Image,
            MediaForm::Audio(_) => MediaKind::Audio,
            // Videos are for hosts of the dialect.
            MediaForm::Video => return None,
            MediaForm::Document(_) => MediaKind::Document,
        };
        let media = BlockKind::Media(Media {
            kind,
            source,
            name: self.name,
            detail: None,
        });
        Some(Block::new(media, at))
    }
}

impl<'a> Call<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut call = Self::default();
        members(walk, |walk, key, kind| {
            match (key, kind) {
                ("id", Type::String) => call.id = filled(walk)?,
                ("name", Type::String) => call.name = Text(walk.text()?),
                ("args", Type::Object) => call.args = walk.skip()?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        Ok(call)
    }
}

impl<'a> Response<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut response = Self::default();
        members(walk, |walk, key, kind| {
            match (key, kind) {
                ("id", Type::String) => response.id = filled(walk)?,
                ("name", Type::String) => response.name = Text(walk.text()?),
                ("response", Type::Object) => response.response = walk.skip()?,
                ("parts", _) => each(walk, |walk| {
                    let at = offset(walk)?;
                    let part = Part::read(walk)?;
                    response.media.extend(part.into_block(at, false));
                    Ok(())
                })?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        Ok(response)
    }
}

fn filled<'a>(walk: &mut Walker<'a>) -> Result<Option<Text<'a>>, Error> {
    let text = walk.text()?;
    Ok((!text.is_empty()).then_some(Text(text)))
}

type ReadMedia<'a> = (MediaSource<'a>, MediaForm, Option<Text<'a>>);

/// Reads media: their data, or the address of a file.
fn media<'a>(walk: &mut Walker<'a>) -> Result<ReadMedia<'a>, Error> {
    let (mut media_type, mut data, mut uri, mut name) = (Cow::Borrowed(""), None, None, None);
    members(walk, |walk, key, kind| {
        match (key, kind) {
            ("mimeType", Type::String) => media_type = walk.text()?,
            ("data", Type::String) => data = Some(walk.text()?),
            ("fileUri", Type::String) => uri = Some(walk.text()?),
            ("displayName", Type::String) => name = filled(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    let form = MediaForm::read(&media_type);
    let source = match (data, uri, &form) {
        (Some(data), _, MediaForm::Audio(format)) => MediaSource::Data {
            data: Text(data),
            format: Text(Cow::Owned(format.clone())),
        },
        (Some(data), ..) => MediaSource::Url(Text(data_url(&media_type, &data))),
        (None, Some(uri), _) if is_file_of_vendor(&uri) => MediaSource::Id(Text(uri)),
        (None, uri, _) => MediaSource::Url(Text(uri.unwrap_or_default())),
    };
    Ok((source, form, name))
}

/// Returns the offset in the body of the value that comes next.
fn offset(walk: &mut Walker<'_>) -> Result<u32, Error> {
    walk.peek()?;
    Ok(u32::try_from(walk.at()).unwrap_or(u32::MAX))
}
