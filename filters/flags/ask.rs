//! Bodies of requests: decide, activate, track, override, lookup, save. Source: decision-agent 2.2, facts E.
//!
//! Keys match whatever their case, unknown ones are ignored, null counts as absent.

use serde_json::{Map, Value};

use super::Compat;
use super::inputs::{Forced, Profile};
use super::options::{Options, UnknownOption};
use super::segment::Event;
use crate::fault::{Fault, Kind};

/// A body that is a JSON object, or nothing at all.
#[derive(Debug, Default)]
pub struct Body {
    members: Map<String, Value>,
    compat: Compat,
}

/// What `POST /v1/decide` is asked.
#[derive(Debug, Default)]
pub struct Decide {
    /// Who asks.
    pub user: User,
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
pub struct User {
    /// The id.
    pub id: String,
    /// The attributes.
    pub attributes: Map<String, Value>,
}

/// What `POST /v1/override` is asked.
#[derive(Debug, Default)]
pub struct Override {
    /// For whom.
    pub user_id: String,
    /// In which experiment.
    pub experiment_key: String,
    /// What comes out; empty: the override is removed.
    pub variation_key: String,
}

impl Body {
    /// Reads a body; an empty one and `null` are an empty object.
    ///
    /// Errors: 400 for what is no JSON object.
    pub fn parse(body: &[u8], compat: Compat) -> Result<Self, Fault> {
        let mut read = Self {
            members: Map::new(),
            compat,
        };
        if body.trim_ascii().is_empty() {
            return Ok(read);
        }
        match serde_json::from_slice::<Option<Map<String, Value>>>(body) {
            Ok(members) => read.members = members.unwrap_or_default(),
            Err(error) => return Err(read.unreadable(&format!("no JSON object: {error}"))),
        }
        Ok(read)
    }

    /// The user that has to be there. Errors: 400 for none, for an empty id, for attributes that are no object.
    pub fn user(&self) -> Result<User, Fault> {
        let user = self.some_user()?;
        if user.id.is_empty() {
            let message = "missing \"userId\" in request payload";
            return Err(Fault::new(Kind::Invalid, message).with_param("userId"));
        }
        Ok(user)
    }

    /// The user, if there is one. Errors: 400 for a wrong type.
    pub fn some_user(&self) -> Result<User, Fault> {
        Ok(User {
            id: self.text("userId")?,
            attributes: self.object("userAttributes")?,
        })
    }

    /// What a decision is asked. Errors: 400 naming the member that is wrong.
    pub fn decide(&self) -> Result<Decide, Fault> {
        let user = self.user()?;
        let options = self.texts("decideOptions")?;
        let options = Options::parse(options.iter().map(|option| &**option)).map_err(
            |UnknownOption(option)| {
                let message = format!("invalid option: {option}");
                Fault::new(Kind::Invalid, message).with_param("decideOptions")
            },
        )?;
        let mut segment_options = SegmentOptions::default();
        for option in self.texts("fetchSegmentsOptions")? {
            match &*option {
                "IGNORE_CACHE" => segment_options.ignore_cache = true,
                "RESET_CACHE" => segment_options.reset_cache = true,
                _ => {
                    let message = format!("invalid option: {option}");
                    let fault = Fault::new(Kind::Invalid, message);
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
    pub fn overriding(&self) -> Result<Override, Fault> {
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
                return Err(Fault::new(Kind::Invalid, message).with_param(name));
            }
        }
        Ok(asked)
    }

    /// An event that segments are made of. Errors: 400 and 500 as [`Event`] says.
    pub fn segment_event(&self) -> Result<Event, Fault> {
        let (kind, action) = (self.text("type")?, self.text("action")?);
        let identifiers = self.object("identifiers")?;
        // To the agent of old, identifiers that are no texts are a body that cannot be read.
        let is_wrong = !identifiers.values().all(Value::is_string);
        if is_wrong && self.compat == Compat::Agent {
            return Err(self.wrong("identifiers"));
        }
        Event::new(kind, action, identifiers, self.object("data")?)
    }

    /// The tags of an event. Errors: 400 for what is no object.
    pub fn event_tags(&self) -> Result<Map<String, Value>, Fault> {
        self.object("eventTags")
    }

    /// A profile to keep: `{experimentBucketMap: {id: {variation_id}}}`. Errors: 400 for another shape.
    pub fn profile(&self) -> Result<Profile, Fault> {
        let mut profile = Profile::new();
        for (experiment, decision) in self.object("experimentBucketMap")? {
            let variation = decision.get("variation_id").and_then(Value::as_str);
            let variation = variation.ok_or_else(|| self.wrong("experimentBucketMap"))?;
            profile.insert(experiment.into(), variation.into());
        }
        Ok(profile)
    }

    fn forced(&self) -> Result<Vec<Forced>, Fault> {
        let wrong = || self.wrong("forcedDecisions");
        let Some(items) = self.member("forcedDecisions") else {
            return Ok(Vec::new());
        };
        let items = items.as_array().ok_or_else(wrong)?.iter();
        items
            .map(|item| {
                let item = Self {
                    members: item.as_object().ok_or_else(wrong)?.clone(),
                    compat: self.compat,
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

    /// The last member of this name that is not null.
    fn member(&self, name: &str) -> Option<&Value> {
        let mut members = self.members.iter().rev();
        members
            .find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null())
            .map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Result<String, Fault> {
        match self.member(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(self.wrong(name)),
        }
    }

    fn truth(&self, name: &str) -> Result<bool, Fault> {
        match self.member(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name)),
        }
    }

    fn object(&self, name: &str) -> Result<Map<String, Value>, Fault> {
        match self.member(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(_) => Err(self.wrong(name)),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<Box<str>>, Fault> {
        let wrong = || self.wrong(name);
        let Some(value) = self.member(name) else {
            return Ok(Vec::new());
        };
        let items = value.as_array().ok_or_else(wrong)?.iter();
        items
            .map(|item| item.as_str().map(Into::into).ok_or_else(wrong))
            .collect()
    }

    fn wrong(&self, member: &str) -> Fault {
        let why = format!("`{member}` is of a type that is not accepted");
        self.unreadable(&why).with_param(member)
    }

    /// The agent of old has one word for whatever cannot be read.
    fn unreadable(&self, why: &str) -> Fault {
        const WORD: &str = "error parsing request body";
        match self.compat {
            Compat::Agent => Fault::new(Kind::Invalid, WORD).with_detail(why.to_owned()),
            Compat::Document => Fault::new(Kind::Invalid, format!("{WORD}: {why}")),
        }
    }
}
