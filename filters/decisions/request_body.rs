//! Bodies of requests: decide, activate, track, override, lookup, save.
//! Source: docs/decision-agent.md 2.2, docs/facts/decision-engine.md E.
//!
//! Keys match in any case, unknown keys are ignored, and null counts as absent. Among keys that differ only in case,
//! the last one that is not null counts. [`BodyRules`] decide among equal keys.

use std::borrow::Cow;

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::borrowed_object::{BorrowedObject, BorrowedValue};
use super::caseless_object::CaselessObject;
use super::inputs::{ForcedDecision, Profile};
use super::odp::OdpEvent;
use super::options::{Options, UnknownOption};
use crate::fault::{Fault, FaultKind, quoted};
use crate::form;

/// The rules of reading a body where the protocols differ.
#[derive(Debug)]
pub struct BodyRules {
    /// Members with exactly equal names all count, so that a null does not hide an earlier value. Otherwise only the
    /// last of them counts.
    pub keeps_equal_names: bool,
    /// Identifiers are read as strings: null is an empty one, and another type makes the body unreadable.
    pub reads_identifiers_as_texts: bool,
    /// A forced decision has to name its flag and its variation. Otherwise an absent name is an empty one.
    pub requires_forced_keys: bool,
    /// A call of activate need not name its user.
    pub activates_anonymous_users: bool,
    /// The kind of fault for an event with data that the customer-data platform does not accept.
    pub unsendable: FaultKind,
    /// Returns the fault of a body that is unreadable for this reason.
    pub unreadable: fn(&str) -> Fault,
}

/// A body that is a JSON object, or is empty.
#[derive(Debug)]
pub struct DecisionBody<'b> {
    members: CaselessObject<'b>,
    rules: &'static BodyRules,
}

/// The body of `POST /v1/decide`.
#[derive(Debug, Default)]
pub struct Decide<'b> {
    pub user: DecisionUser<'b>,
    pub options: Options,
    pub forced: Vec<ForcedDecision>,
    pub fetch_segments: bool,
    pub segment_options: SegmentOptions,
}

/// The use of cached segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SegmentOptions {
    /// Neither read nor write the cache.
    pub ignore_cache: bool,
    pub reset_cache: bool,
}

/// A user and the user's attributes.
#[derive(Debug, Default)]
pub struct DecisionUser<'b> {
    pub id: Cow<'b, str>,
    pub attributes: BorrowedObject<'b>,
}

/// The body of `POST /v1/override`.
#[derive(Debug, Default)]
pub struct Override<'b> {
    pub user_id: Cow<'b, str>,
    pub experiment_key: Cow<'b, str>,
    /// The key of the variation. An empty text removes the override.
    pub variation_key: Cow<'b, str>,
}

impl<'b> DecisionBody<'b> {
    /// Reads a body. An empty body and `null` count as an empty object.
    ///
    /// Errors: 400 for a body that is not a JSON object.
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

    /// Reads the user. Errors: 400 without a user, for an empty id, and for attributes that are not an object.
    pub fn user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        let user = self.optional_user()?;
        if user.id.is_empty() {
            let message = "missing \"userId\" in request payload";
            return Err(Fault::new(FaultKind::Invalid, message).with_param("userId"));
        }
        Ok(user)
    }

    /// Reads the user of a call of activate. Errors: as [`Self::user`], unless the protocol allows calls without a
    /// user.
    pub fn activated_user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        if self.rules.activates_anonymous_users {
            self.optional_user()
        } else {
            self.user()
        }
    }

    /// Reads the user, with an empty id if none is named. Errors: 400 for a wrong type.
    pub fn optional_user(&mut self) -> Result<DecisionUser<'b>, Fault> {
        Ok(DecisionUser {
            id: self.text("userId")?,
            attributes: self.object("userAttributes")?,
        })
    }

    /// Reads a request for decisions. Errors: 400 that names the wrong member.
    pub fn into_decide(mut self) -> Result<Decide<'b>, Fault> {
        let user = self.user()?;
        let options = self.texts("decideOptions")?;
        let options = Options::parse(options.iter().map(|option| &**option)).map_err(
            |UnknownOption(option)| {
                let message = format!("invalid option: {}", quoted(&option));
                Fault::new(FaultKind::Invalid, message).with_param("decideOptions")
            },
        )?;
        let mut segment_options = SegmentOptions::default();
        for option in self.texts("fetchSegmentsOptions")? {
            match &*option {
                "IGNORE_CACHE" => segment_options.ignore_cache = true,
                "RESET_CACHE" => segment_options.reset_cache = true,
                _ => {
                    let message = format!("invalid option: {}", quoted(&option));
                    let fault = Fault::new(FaultKind::Invalid, message);
                    return Err(fault.with_param("fetchSegmentsOptions"));
                }
            }
        }
        Ok(Decide {
            user,
            options,
            forced: self.forced()?,
            fetch_segments: self.boolean("fetchSegments")?,
            segment_options,
        })
    }

    /// Reads an override. Errors: 400 without a user or an experiment.
    pub fn into_override(mut self) -> Result<Override<'b>, Fault> {
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

    /// Reads an event for the customer-data platform. Errors: 400, and the protocol's fault for data that cannot be
    /// sent.
    pub fn into_odp_event(mut self) -> Result<OdpEvent, Fault> {
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
        let event = OdpEvent::new(kind.into_owned(), action.into_owned(), identifiers, data)?;
        match event.is_sendable() {
            true => Ok(event),
            false => {
                let fault = Fault::new(self.rules.unsendable, "ODP data is not valid");
                Err(fault.with_param("data"))
            }
        }
    }

    /// Reads the tags of an event. Errors: 400 for another type.
    pub fn event_tags(&mut self) -> Result<Map<String, Value>, Fault> {
        self.object("eventTags").map(BorrowedObject::into_map)
    }

    /// Reads a profile to store: `{experimentBucketMap: {id: {variation_id}}}`. Errors: 400 for another shape.
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

    fn forced(&mut self) -> Result<Vec<ForcedDecision>, Fault> {
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
                Ok(ForcedDecision {
                    flag_key: item.forced_key("flagKey")?.into(),
                    rule_key: Some(rule).filter(|rule| !rule.is_empty()).map(Into::into),
                    variation_key: item.forced_key("variationKey")?.into(),
                })
            })
            .collect()
    }

    /// Reads a name of a forced decision.
    fn forced_key(&mut self, name: &str) -> Result<Cow<'b, str>, Fault> {
        let is_there = self.members.all(name).next().is_some();
        let key = self.text(name)?;
        if is_there || !self.rules.requires_forced_keys {
            return Ok(key);
        }
        let message = format!("missing \"{name}\" of a forced decision in request payload");
        Err(Fault::new(FaultKind::Invalid, message).with_param("forcedDecisions"))
    }

    /// Removes and returns the last member with this name that is not null.
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

    fn boolean(&mut self, name: &str) -> Result<bool, Fault> {
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

/// Checks that a body is declared as JSON. An empty body needs no declaration. Errors: 415.
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

/// Reads an object or null. A body is checked for UTF-8 as a whole, which is faster than string by string.
fn read_json<'b, T: Deserialize<'b>>(body: &'b [u8]) -> serde_json::Result<Option<T>> {
    match str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    }
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
