//! Bodies of requests: decide, activate, track, override, lookup, save.
//! Source: docs/decision-agent.md 2.2, docs/facts/decision-engine.md E.
//!
//! Keys match whatever their case, unknown ones are ignored, null counts as absent. Of keys that are one but for their
//! case the last counts that is not null; in document mode of keys that are one to the byte it is the last alone.

use std::borrow::Cow;

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::inputs::{Forced, Profile};
use super::members::{BorrowedObject, BorrowedValue};
use super::options::{Options, UnknownOption};
use super::pairs::CaselessObject;
use super::segment::OdpEvent;
use crate::fault::{Fault, FaultKind};
use crate::form;

/// How a body is read where the protocols differ.
#[derive(Debug)]
pub struct BodyRules {
    /// Members whose names are equal to the byte all count, so that a null does not hide the value before it. Otherwise
    /// only the last of them counts.
    pub keeps_equal_names: bool,
    /// Identifiers are read as texts: null is an empty one, and another type makes the body unreadable.
    pub reads_identifiers_as_texts: bool,
    /// A conversion need not name its user.
    pub tracks_anonymous_users: bool,
    /// Returns the fault of a body that cannot be read for this reason.
    pub unreadable: fn(&str) -> Fault,
}

/// A body that is a JSON object, or nothing at all.
#[derive(Debug)]
pub struct DecisionBody<'b> {
    members: CaselessObject<'b>,
    rules: &'static BodyRules,
}

/// What `POST /v1/decide` is asked.
#[derive(Debug, Default)]
pub struct Decide<'b> {
    /// Who asks.
    pub user: DecisionUser<'b>,
    /// What to leave out or to add.
    pub options: Options,
    /// What is forced.
    pub forced: Vec<Forced>,
    /// Segments have to be fetched first.
    pub fetch_segments: bool,
    /// How, beside that.
    pub segment_options: SegmentOptions,
}

/// What a caller says of segments that were fetched before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SegmentOptions {
    /// They are neither read nor kept.
    pub ignore_cache: bool,
    /// They are forgotten first.
    pub reset_cache: bool,
}

/// A user and what is known of them.
#[derive(Debug, Default)]
pub struct DecisionUser<'b> {
    /// The id.
    pub id: Cow<'b, str>,
    /// The attributes.
    pub attributes: BorrowedObject<'b>,
}

/// What `POST /v1/override` is asked.
#[derive(Debug, Default)]
pub struct Override<'b> {
    /// For whom.
    pub user_id: Cow<'b, str>,
    /// In which experiment.
    pub experiment_key: Cow<'b, str>,
    /// What comes out; empty: the override is removed.
    pub variation_key: Cow<'b, str>,
}

impl<'b> DecisionBody<'b> {
    /// Reads a body; an empty one and `null` are an empty object.
    ///
    /// Errors: 400 for what is no JSON object.
    pub fn parse(body: &'b [u8], rules: &'static BodyRules) -> Result<Self, Fault> {
        let mut read = Self {
            members: CaselessObject::default(),
            rules,
        };
        if body.trim_ascii().is_empty() {
            return Ok(read);
        }
        let members = if rules.keeps_equal_names {
            read_json(body)
        } else {
            read_json::<BorrowedObject<'b>>(body).map(|all| all.map(CaselessObject::from))
        };
        match members {
            Ok(members) => read.members = members.unwrap_or_default(),
            Err(error) => return Err((rules.unreadable)(&format!("no JSON object: {error}"))),
        }
        Ok(read)
    }

    /// The user that has to be there. Errors: 400 for none, for an empty id, for attributes that are no object.
    pub fn user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        let user = self.some_user()?;
        if user.id.is_empty() {
            let message = "missing \"userId\" in request payload";
            return Err(Fault::new(FaultKind::Invalid, message).with_param("userId"));
        }
        Ok(user)
    }

    /// The user of a conversion. Errors: as [`Self::user`], unless a conversion need not name one.
    pub fn tracked_user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        if self.rules.tracks_anonymous_users {
            self.some_user()
        } else {
            self.user()
        }
    }

    /// The user, if there is one. Errors: 400 for a wrong type.
    fn some_user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        Ok(DecisionUser {
            id: self.text("userId")?,
            attributes: self.object("userAttributes")?,
        })
    }

    /// What a decision is asked. Errors: 400 naming the member that is wrong.
    pub fn decide(mut self) -> Result<Decide<'b>, Fault> {
        let user = self.user()?;
        let options = self.texts("decideOptions")?;
        let options = Options::parse(options.iter().map(|option| &**option)).map_err(
            |UnknownOption(option)| {
                let message = format!("invalid option: {option}");
                Fault::new(FaultKind::Invalid, message).with_param("decideOptions")
            },
        )?;
        let mut segment_options = SegmentOptions::default();
        for option in self.texts("fetchSegmentsOptions")? {
            match &*option {
                "IGNORE_CACHE" => segment_options.ignore_cache = true,
                "RESET_CACHE" => segment_options.reset_cache = true,
                _ => {
                    let message = format!("invalid option: {option}");
                    let fault = Fault::new(FaultKind::Invalid, message);
                    return Err(fault.with_param("fetchSegmentsOptions"));
                }
            }
        }
        Ok(Decide {
            user,
            options,
            forced: self.forced()?,
            fetch_segments: self.truth("fetchSegments")?,
            segment_options,
        })
    }

    /// What is asked of an override. Errors: 400 for no user or no experiment.
    pub fn overriding(mut self) -> Result<Override<'b>, Fault> {
        let asked = Override {
            user_id: self.text("userId")?,
            experiment_key: self.text("experimentKey")?,
            variation_key: self.text("variationKey")?,
        };
        for (name, value) in [
            ("userId", &asked.user_id),
            ("experimentKey", &asked.experiment_key),
        ] {
            if value.is_empty() {
                let message = format!("{name} cannot be empty");
                return Err(Fault::new(FaultKind::Invalid, message).with_param(name));
            }
        }
        Ok(asked)
    }

    /// An event that segments are made of. Errors: 400 and 500 as [`OdpEvent`] says.
    pub fn segment_event(mut self) -> Result<OdpEvent, Fault> {
        let (kind, action) = (self.text("type")?, self.text("action")?);
        let mut identifiers = self.object("identifiers")?.into_map();
        if self.rules.reads_identifiers_as_texts {
            let nulls = identifiers.values_mut().filter(|value| value.is_null());
            nulls.for_each(|null| *null = Value::from(""));
            if !identifiers.values().all(Value::is_string) {
                return Err(self.wrong("identifiers"));
            }
        }
        let data = self.object("data")?.into_map();
        OdpEvent::new(kind.into_owned(), action.into_owned(), identifiers, data)
    }

    /// The tags of an event. Errors: 400 for what is no object.
    pub fn event_tags(&mut self) -> Result<Map<String, Value>, Fault> {
        self.object("eventTags").map(BorrowedObject::into_map)
    }

    /// A profile to keep: `{experimentBucketMap: {id: {variation_id}}}`. Errors: 400 for another shape.
    pub fn profile(&mut self) -> Result<Profile, Fault> {
        let mut profile = Profile::new();
        for (experiment, decision) in self.object("experimentBucketMap")?.iter() {
            let variation = match decision {
                BorrowedValue::Object(decision) => {
                    decision.get("variation_id").and_then(BorrowedValue::as_str)
                }
                _ => None,
            };
            let variation = variation.ok_or_else(|| self.wrong("experimentBucketMap"))?;
            profile.insert(experiment.into(), variation.into());
        }
        Ok(profile)
    }

    fn forced(&mut self) -> Result<Vec<Forced>, Fault> {
        let items = self.list("forcedDecisions")?.into_iter();
        items
            .map(|item| {
                let Value::Object(members) = item else {
                    return Err(self.wrong("forcedDecisions"));
                };
                let mut item = DecisionBody {
                    members: BorrowedObject::from(members).into(),
                    rules: self.rules,
                };
                let rule = item.text("ruleKey")?;
                Ok(Forced {
                    flag_key: item.text("flagKey")?.into(),
                    rule_key: Some(rule).filter(|rule| !rule.is_empty()).map(Into::into),
                    variation_key: item.text("variationKey")?.into(),
                })
            })
            .collect()
    }

    /// Takes out the last member of this name that is not null. It can be asked for once.
    fn member(&mut self, name: &str) -> Option<BorrowedValue<'b>> {
        self.members.take(name)
    }

    fn text(&mut self, name: &str) -> Result<Cow<'b, str>, Fault> {
        match self.member(name) {
            None => Ok(Cow::default()),
            Some(BorrowedValue::Text(text)) => Ok(text),
            Some(_) => Err(self.wrong(name)),
        }
    }

    fn truth(&mut self, name: &str) -> Result<bool, Fault> {
        match self.member(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name)),
        }
    }

    fn object(&mut self, name: &str) -> Result<BorrowedObject<'b>, Fault> {
        match self.member(name) {
            None => Ok(BorrowedObject::default()),
            Some(BorrowedValue::Object(object)) => Ok(object),
            Some(_) => Err(self.wrong(name)),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Value>, Fault> {
        match self.member(name) {
            None => Ok(Vec::new()),
            Some(BorrowedValue::List(items)) => Ok(items),
            Some(_) => Err(self.wrong(name)),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, Fault> {
        let items = self.list(name)?.into_iter();
        items
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(self.wrong(name)),
            })
            .collect()
    }

    fn wrong(&self, member: &str) -> Fault {
        let why = format!("`{member}` is of a type that is not accepted");
        (self.rules.unreadable)(&why).with_param(member)
    }
}

/// Checks that a body is declared as JSON; without a body nothing has to be declared. Errors: 415.
pub fn check_media_type(headers: &HeaderMap, body: &[u8]) -> Result<(), Fault> {
    let is_json = form::media_type(headers).eq_ignore_ascii_case(b"application/json");
    if body.is_empty() || is_json {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::MediaType,
        "`Content-Type` is missing or not JSON; `application/json` is accepted",
    ))
}

/// An object or null. A body that is one text needs no look at each of its strings; another is refused where it stops to
/// be one.
fn read_json<'b, T: Deserialize<'b>>(body: &'b [u8]) -> serde_json::Result<Option<T>> {
    match str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
