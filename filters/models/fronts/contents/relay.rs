//! A response of a provider that speaks this API itself: its chunks or its whole reply pass as they came, so that what the vendor
//! adds reaches the client. Replaced are the model and, of hosts that are not the vendor's, the state, which is sealed. What comes
//! from the reason of the end on waits for the cost.

use std::borrow::Cow;

use crate::json::members::{joined, replaced, with_member};
use crate::json::{Error, Object, Walker, quoted};
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;

/// What passes through.
#[derive(Debug)]
pub(super) struct Relay {
    maker: OwnedMaker,
    /// The model as the client calls it.
    model: Box<str>,
    /// The last chunk, once one said the reason of the end, or the whole reply, which gets the cost.
    end: Option<String>,
}

impl Relay {
    pub(super) fn new(maker: &OwnedMaker, model: &str) -> Self {
        Self {
            maker: maker.clone(),
            model: model.into(),
            end: None,
        }
    }

    /// Takes a chunk, or the whole reply. Returns what goes out now; `is_end`: the reason of the end has come.
    pub(super) fn take(&mut self, data: &str, is_end: bool) -> Option<String> {
        let told = self.told(data).unwrap_or_else(|_| data.to_owned());
        match is_end || self.end.is_some() {
            true => self.end.replace(told),
            false => Some(told),
        }
    }

    fn told(&self, data: &str) -> Result<String, Error> {
        let told = with_member(data, "modelVersion", &quoted(&self.model))?;
        if self.maker.speaks_bare(Dialect::Contents) || !told.contains("thoughtSignature") {
            return Ok(told);
        }
        replaced(&told, "candidates", |candidates| {
            each(candidates, |candidate| {
                replaced(candidate, "content", |content| {
                    replaced(content, "parts", |parts| {
                        each(parts, |part| self.sealed(part))
                    })
                })
            })
        })
    }

    fn sealed(&self, part: &str) -> Result<String, Error> {
        replaced(part, "thoughtSignature", |signature| {
            let mut walk = Walker::over(signature);
            let Ok(signature) = walk.text() else {
                return Ok(signature.to_owned());
            };
            let maker = self.maker.borrow();
            Ok(quoted(&maker.seal(Dialect::Contents, &signature)))
        })
    }

    /// Returns the last chunk, or the whole reply, with the members that `more` writes.
    pub(super) fn complete(&mut self, more: impl FnOnce(&mut Object<'_>)) -> String {
        let end = self.end.take().map_or(Cow::Borrowed("{}"), Cow::Owned);
        let mut added = Vec::new();
        let mut object = Object::open(&mut added);
        more(&mut object);
        object.close();
        let added = String::from_utf8(added).unwrap_or_default();
        joined(&end, added.strip_prefix('{').unwrap_or_default())
    }
}

/// Returns an array with each item as `told` returns it. Anything else stays.
fn each(array: &str, told: impl Fn(&str) -> Result<String, Error>) -> Result<String, Error> {
    if !array.starts_with('[') {
        return Ok(array.to_owned());
    }
    let mut out = String::with_capacity(array.len() + 128);
    out.push('[');
    Walker::over(array).array(|walk, at| {
        out.push_str(if at > 0 { "," } else { "" });
        let item = walk.skip()?;
        match item.starts_with('{') {
            true => out.push_str(&told(item)?),
            false => out.push_str(item),
        }
        Ok::<(), Error>(())
    })?;
    out.push(']');
    Ok(out)
}
