//! `usage` and `metadata` of an answer. Source: docs/model-gateway.md 2.5, docs/decisions.md 3, 14.

use std::sync::Arc;

use super::usage::{Settlement, Usage};
use crate::json::Object;
use crate::money::{Factor, ServiceTier, Usd};

/// The names of a model at one of its providers, and the JSON texts of them that no request changes.
#[derive(Debug)]
pub struct UsedNames {
    /// `provider/model`, with `:region` where one is used.
    pub used_model: Arc<str>,
    metadata: Box<str>,
    attempt: Box<str>,
    log: Box<str>,
    region: Option<Box<str>>,
}

impl UsedNames {
    /// Writes the texts. `region` is that of the model string or of its provider's regions, `upstream_model` the provider's own
    /// model id.
    pub fn new(model: &str, provider: &str, region: Option<&str>, upstream_model: &str) -> Self {
        Self::at_home((model, provider, upstream_model), region, None)
    }

    /// Writes the texts of a call that may have no region. `home` is where its provider is, if that is known.
    pub fn at_home(
        (model, provider, upstream_model): (&str, &str, &str),
        region: Option<&str>,
        home: Option<&str>,
    ) -> Self {
        let used_model = match region {
            Some(region) => format!("{provider}/{model}:{region}"),
            None => format!("{provider}/{model}"),
        };
        let region = region.or(home);
        let metadata = members(|object| {
            object.text("used_model", &used_model);
            object.text("used_provider", provider);
            object.optional_text("used_region", region);
            object.text("underlying_used_model", upstream_model);
        });
        let attempt = members(|object| {
            object.text("provider", provider);
            object.text("model", upstream_model);
        });
        let log = members(|object| {
            object.text("used_model", &used_model);
            object.text("provider", provider);
        });
        let region = region.map(|region| members(|object| object.text("region", region)));
        Self {
            used_model: used_model.into(),
            metadata,
            attempt,
            log,
            region,
        }
    }

    /// Returns them as members of a log line.
    pub fn log(&self) -> &str {
        &self.log
    }
}

/// Returns the members that `write` writes, without the braces around them.
fn members(write: impl FnOnce(&mut Object<'_>)) -> Box<str> {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    write(&mut object);
    object.close();
    let inside = out.get(1..out.len().saturating_sub(1));
    String::from_utf8_lossy(inside.unwrap_or_default()).into()
}

/// `metadata` of an answer.
#[derive(Debug)]
pub struct Metadata<'a> {
    pub request_id: &'a str,
    /// The model string as sent.
    pub requested_model: &'a str,
    /// Members that say which managed prompt completed the request, without braces around them.
    pub managed: Option<&'a str>,
    pub requested_provider: Option<&'a str>,
    pub organization_id: &'a str,
    /// The project of its key.
    pub project_id: &'a str,
    /// The call's id in the ledger and in the log.
    pub log_id: Option<&'a str>,
    pub answer: AnswerMembers<'a>,
    /// Why the providers were chosen, as JSON, if the request asks for it.
    pub route: Option<&'a [u8]>,
}

/// The members of `metadata` that a replay repeats.
#[derive(Clone, Copy, Debug)]
pub enum AnswerMembers<'a> {
    /// Those of an answer that has just come.
    Fresh {
        used: &'a UsedNames,
        price: PriceNotes,
        /// One entry per attempt.
        routing: &'a [AttemptRecord],
    },
    /// Those of a replayed answer, as [`Self::to_json`] returned them.
    Replayed(&'a str),
}

impl AnswerMembers<'_> {
    /// Returns them as JSON, without braces.
    pub fn to_json(&self) -> Box<str> {
        members(|object| self.write(object))
    }

    fn write(&self, object: &mut Object<'_>) {
        match self {
            Self::Replayed(members) => object.members(members),
            Self::Fresh {
                used,
                price,
                routing,
            } => {
                object.members(&used.metadata);
                match price.discount {
                    Some(discount) => object.raw("discount", &discount.to_decimal()),
                    None => object.raw("discount", "null"),
                }
                price.write(object);
                object.array("routing", *routing, AttemptRecord::write);
            }
        }
    }
}

/// What the prices of a call depended on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriceNotes {
    pub requested_tier: ServiceTier,
    /// The tier that served the call: as the provider says, else as requested.
    pub used_tier: ServiceTier,
    /// Whether the call started at hours that have prices of their own.
    pub is_off_peak: bool,
    /// The share of all prices that is not billed.
    pub discount: Option<Factor>,
    /// Whether the cost is what the vendor's API would cost, and nothing is charged, because the caller brought a credential
    /// of its own.
    pub is_api_equivalent: bool,
}

/// Writes that the cost of a call on the caller's own credential is not charged here.
pub fn write_cost_basis(object: &mut Object<'_>) {
    object.text("cost_basis", "api_equivalent");
}

impl PriceNotes {
    /// Writes the tiers, where one of them is not the usual one, the hours, where they have prices of their own, and that the cost
    /// is not charged, where that is so.
    ///
    /// Source: docs/facts/model-gateway.md 8.1.
    pub fn write(&self, object: &mut Object<'_>) {
        let tiers = [self.requested_tier, self.used_tier];
        if tiers != [ServiceTier::Standard; 2] {
            object.text("requested_service_tier", self.requested_tier.as_str());
            object.text("used_service_tier", self.used_tier.as_str());
        }
        if self.is_off_peak {
            object.text("price_period", "off_peak");
        }
        if self.is_api_equivalent {
            write_cost_basis(object);
        }
    }
}

/// One attempt, as the client sees it. Source: docs/decisions.md 3.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    pub used: Arc<UsedNames>,
    /// The status of the reply; 0 without one.
    pub status_code: u16,
    /// `none` on success.
    pub error_type: &'static str,
    pub succeeded: bool,
    /// 16 hex digits that stand for the credential.
    pub api_key_hash: Option<Arc<str>>,
    /// `platform` or `byok`.
    pub credential_source: &'static str,
    /// Id and label of the caller's BYOK key; `None`: a platform key was used.
    pub provider_key: Option<(Arc<str>, Arc<str>)>,
    /// What the caller owes for an attempt that was cancelled; `None`: nothing.
    pub owed: Option<Owed>,
    /// When it ran; `None`: it was not begun. The client is not told.
    pub ran: Option<AttemptRun>,
}

/// When an attempt ran, in microseconds since its request began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AttemptRun {
    pub begun_us: u64,
    /// When the head of the reply came.
    pub answered_us: Option<u64>,
    pub ended_us: u64,
}

/// What the caller owes for a cancelled attempt.
#[derive(Clone, Debug)]
pub struct Owed {
    /// The attempt's own id in the ledger.
    pub log_id: Box<str>,
    /// The cost; `None` if the price is unknown.
    pub cost: Option<Usd>,
}

impl Metadata<'_> {
    /// Returns about as many bytes as [`Self::write`] writes.
    pub fn capacity(&self) -> usize {
        let answer = match self.answer {
            AnswerMembers::Fresh { routing, .. } => 256 * routing.len(),
            AnswerMembers::Replayed(members) => members.len(),
        };
        512 + answer + self.route.map_or(0, <[u8]>::len)
    }

    /// Writes a JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text("request_id", self.request_id);
        object.text("requested_model", self.requested_model);
        object.text_or_null("requested_provider", self.requested_provider);
        self.answer.write(&mut object);
        object.optional_text("log_id", self.log_id);
        object.text("organization_id", self.organization_id);
        object.text("project_id", self.project_id);
        if matches!(self.answer, AnswerMembers::Replayed(_)) {
            object.bool("cached", true);
        }
        if let Some(managed) = self.managed {
            object.members(managed);
        }
        self.write_route(&mut object);
        object.close();
    }

    /// Writes why the providers were chosen, if the request asks for it.
    pub fn write_route(&self, object: &mut Object<'_>) {
        if let Some(route) = self.route {
            object.value("route", |out| out.extend_from_slice(route));
        }
    }
}

impl AttemptRecord {
    /// Appends the attempt as a JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(out, |_| ());
    }

    /// Appends the attempt as a JSON object with the members that `more` writes.
    pub fn write_with(&self, out: &mut Vec<u8>, more: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::open(out);
        object.members(&self.used.attempt);
        object.number("status_code", u64::from(self.status_code));
        object.text("error_type", self.error_type);
        object.bool("succeeded", self.succeeded);
        if let Some(region) = &self.used.region {
            object.members(region);
        }
        object.optional_text("apiKeyHash", self.api_key_hash.as_deref());
        object.text("credentialSource", self.credential_source);
        if let Some((id, label)) = &self.provider_key {
            object.text("providerKeyId", id);
            object.text("providerKeyLabel", label);
        }
        if let Some(owed) = &self.owed {
            object.text("logId", &owed.log_id);
            match &owed.cost {
                Some(cost) => object.value("cost", |out| cost.write(out)),
                None => object.raw("cost", "null"),
            }
        }
        more(&mut object);
        object.close();
    }
}

/// About as many bytes as [`write_usage`] writes.
pub const USAGE_CAPACITY: usize = 1024;

/// Writes `usage` as a JSON object.
///
/// `cost` is null where the price is not known.
pub fn write_usage(settlement: &Settlement, out: &mut Vec<u8>) {
    let usage = &settlement.usage;
    let mut object = Object::open(out);
    object.number("prompt_tokens", usage.prompt);
    object.number("completion_tokens", usage.completion);
    object.number("total_tokens", usage.total());
    if let Some(reasoning) = usage.reasoning {
        object.number("reasoning_tokens", reasoning);
    }
    object.object("prompt_tokens_details", |details| {
        details.number("cached_tokens", usage.cached);
        details.number("cache_write_tokens", usage.cache_write);
        details.number("audio_tokens", usage.audio_prompt);
        details.number("video_tokens", usage.video_prompt);
        if usage.cache_write > 0 {
            write_cache_creation(usage, details);
        }
    });
    object.object("completion_tokens_details", |details| {
        details.number("reasoning_tokens", usage.reasoning.unwrap_or(0));
        details.number("image_tokens", usage.image_completion);
        details.number("audio_tokens", usage.audio_completion);
    });
    match &settlement.cost {
        Some(cost) => {
            object.value("cost", |out| cost.total.write(out));
            object.value("cost_details", |out| cost.details.write(out));
        }
        None => object.raw("cost", "null"),
    }
    if usage.is_api_equivalent {
        write_cost_basis(&mut object);
    }
    if usage.estimated {
        object.text("info", "estimated");
    }
    object.close();
}

fn write_cache_creation(usage: &Usage, details: &mut Object<'_>) {
    details.number("cache_creation_tokens", usage.cache_write);
    if usage.cache_write_5m.is_some() || usage.cache_write_1h.is_some() {
        details.object("cache_creation", |written| {
            let (five, hour) = (usage.cache_write_5m, usage.cache_write_1h);
            written.number("ephemeral_5m_input_tokens", five.unwrap_or(0));
            written.number("ephemeral_1h_input_tokens", hour.unwrap_or(0));
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn written(region: Option<&str>) -> Value {
        let used = UsedNames::new("m\"1", "p\n", region, "up\\m");
        let record = AttemptRecord {
            used: Arc::new(UsedNames::new("m\"1", "p\n", region, "up\\m")),
            status_code: 200,
            error_type: "none",
            succeeded: true,
            api_key_hash: None,
            credential_source: "platform",
            provider_key: None,
            owed: None,
            ran: None,
        };
        let metadata = Metadata {
            route: None,
            request_id: "1",
            requested_model: "m",
            managed: None,
            requested_provider: None,
            organization_id: "o",
            project_id: "p",
            log_id: Some("l"),
            answer: AnswerMembers::Fresh {
                used: &used,
                price: PriceNotes::default(),
                routing: &[record],
            },
        };
        let mut out = Vec::new();
        metadata.write(&mut out);
        let mut log = Object::open(&mut out);
        log.members(used.log());
        log.close();
        let mut values = serde_json::Deserializer::from_slice(&out).into_iter::<Value>();
        json!([
            values.next().unwrap().unwrap(),
            values.next().unwrap().unwrap()
        ])
    }

    /// Contract: model-gateway 2.5 metadata
    /// Contract: model-gateway 2.5 metadata.routing[]
    #[test]
    fn names_are_escaped_once_and_stand_where_they_belong() {
        let attempt = json!({"provider": "p\n", "model": "up\\m", "status_code": 200, "error_type": "none",
            "succeeded": true, "region": "eu", "credentialSource": "platform"});
        let expected = json!([
            {"request_id": "1", "requested_model": "m", "requested_provider": null, "used_model": "p\n/m\"1:eu",
                "used_provider": "p\n", "used_region": "eu", "underlying_used_model": "up\\m", "log_id": "l", "organization_id": "o",
                "project_id": "p", "discount": null, "routing": [attempt]},
            {"used_model": "p\n/m\"1:eu", "provider": "p\n"},
        ]);
        assert_eq!(written(Some("eu")), expected);
        let without = written(None);
        assert!(without[0].get("used_region").is_none());
        assert!(without[0]["routing"][0].get("region").is_none());
        assert_eq!(without[1]["used_model"], "p\n/m\"1");
    }

    /// Contract: model-gateway 2.5 usage.prompt_tokens_details
    /// Contract: model-gateway 2.5 usage.completion_tokens_details
    #[test]
    fn usage_tells_what_each_token_stands_for() {
        let usage = Usage {
            prompt: 100,
            completion: 50,
            reasoning: Some(7),
            cached: 11,
            cache_write: 12,
            cache_write_5m: Some(3),
            cache_write_1h: Some(9),
            audio_prompt: 13,
            video_prompt: 14,
            image_completion: 15,
            audio_completion: 16,
            ..Usage::default()
        };
        let mut out = Vec::new();
        write_usage(&Settlement { usage, cost: None }, &mut out);
        let told: Value = serde_json::from_slice(&out).unwrap();
        let written = json!({"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 9});
        let expected = json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150, "reasoning_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 11, "cache_write_tokens": 12, "cache_creation_tokens": 12,
                "cache_creation": written, "audio_tokens": 13, "video_tokens": 14},
            "completion_tokens_details": {"reasoning_tokens": 7, "image_tokens": 15, "audio_tokens": 16}, "cost": null});
        assert_eq!(told, expected);
    }
}
