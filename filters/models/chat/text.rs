//! Text of a request or a reply.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Error, Str, Walker};

/// Text that borrows from the body where it can.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The bytes from which on it takes longer to escape a text anew than to keep its JSON.
const LONG_BYTES: usize = 32;

/// What a block of a conversation says. A long text is written again as it stands in the body.
#[derive(Clone, Debug, Default)]
pub struct BlockText<'a> {
    text: Cow<'a, str>,
    /// The JSON string that it is in the body. `None`: it is short, or stands there otherwise.
    json: Option<&'a str>,
}

/// Text to be written: as it stands in the body, where it does, and else with new escapes.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a> {
    text: &'a str,
    json: Option<&'a str>,
}

impl<'a> BlockText<'a> {
    /// Reads the next value, a string.
    ///
    /// Errors: it is not a string, or it is broken.
    pub fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let (text, json) = walk.text_and_json()?;
        let json = Some(json).filter(|json| json.len() >= LONG_BYTES);
        Ok(Self { text, json })
    }

    /// Returns it as it is written.
    pub fn quoted(&self) -> Quoted<'_> {
        Quoted {
            text: &self.text,
            json: self.json,
        }
    }

    /// Returns the text.
    pub fn into_text(self) -> Cow<'a, str> {
        self.text
    }

    /// Appends a text.
    pub fn push(&mut self, more: &str) {
        self.json = None;
        self.text.to_mut().push_str(more);
    }
}

impl<'a> From<Cow<'a, str>> for BlockText<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self { text, json: None }
    }
}

impl<'a> From<Text<'a>> for BlockText<'a> {
    fn from(text: Text<'a>) -> Self {
        text.0.into()
    }
}

impl<'a> From<&'a str> for Quoted<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, json: None }
    }
}

impl Quoted<'_> {
    /// Writes the contents of the JSON string, without quotes.
    pub fn write_contents(&self, out: &mut Vec<u8>) {
        let json = self.json.and_then(|json| json.get(1..json.len() - 1));
        json.map_or(Str::Plain(self.text), Str::Raw)
            .write_contents(out);
    }
}

impl Serialize for Quoted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: Option<&RawValue> = self.json.and_then(|json| serde_json::from_str(json).ok());
        match json {
            Some(json) => json.serialize(serializer),
            None => self.text.serialize(serializer),
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Deref for BlockText<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl Deref for Quoted<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        self.text
    }
}
