//! Notices for subscribers: decisions, conversions, new datafiles. Source: docs/facts/decision-engine.md E.
//!
//! Names and order are those of the original agent: members are named as in Go, and maps are sorted.

use serde_json::{Map, Value};

use super::activate::Activation;
use super::decide::{Decision, DecisionSource};
use super::encode;
use super::project::Project;
use super::request_body::DecisionUser;
use super::response_body::write_map;
use crate::json::{Object, Str};

/// The topic of a notice, by the names of the parameter `filter`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Topic {
    Decision,
    /// A conversion.
    Track,
    /// A new datafile.
    Project,
}

impl Topic {
    /// Returns the topic with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "decision" => Some(Self::Decision),
            "track" => Some(Self::Track),
            "project_config_update" => Some(Self::Project),
            _ => None,
        }
    }
}

/// Returns the notice of a flag's decision. `is_dispatched` tells whether an event is sent for it.
pub fn flag(
    decided: &Decision<'_>,
    user: &DecisionUser<'_>,
    segments: &[String],
    is_dispatched: bool,
) -> Vec<u8> {
    object(|notice| {
        notice.text("Type", "flag");
        write_user(notice, user, segments);
        notice.object("DecisionInfo", |info| {
            info.bool("decisionEventDispatched", is_dispatched);
            info.bool("enabled", decided.is_enabled);
            info.text("experimentId", decided.experiment_id);
            info.text("flagKey", &decided.flag_key);
            info.array("reasons", &decided.reasons, |reason, out| {
                Str::Plain(reason).write(out);
            });
            info.text("ruleKey", decided.rule_key);
            info.value("variables", |out| write_map(&decided.variables, out));
            info.text("variationId", decided.variation_id);
            info.text("variationKey", decided.variation_key);
        });
    })
}

/// Returns the notice of an activated item, or `None` without a decision.
pub fn activated(
    project: &Project,
    item: &Activation<'_>,
    user: &DecisionUser<'_>,
) -> Option<Vec<u8>> {
    let kind = match item.kind {
        "feature" => "all-feature-variables",
        "experiment" if project.is_flag_experiment(&item.experiment_key) => "feature-test",
        "experiment" => "ab-test",
        _ => return None,
    };
    Some(object(|notice| {
        notice.text("Type", kind);
        write_user(notice, user, &[]);
        notice.object("DecisionInfo", |info| match item.kind {
            "feature" => info.object("feature", |feature| write_feature(feature, item)),
            _ => write_experiment(info, item),
        });
    }))
}

fn write_feature(feature: &mut Object<'_>, item: &Activation<'_>) {
    let is_tested = !item.experiment_key.is_empty();
    let source = if is_tested {
        DecisionSource::FeatureTest
    } else {
        DecisionSource::Rollout
    };
    feature.bool("featureEnabled", item.is_enabled);
    feature.text("featureKey", &item.feature_key);
    feature.text("source", source.as_str());
    feature.object("sourceInfo", |info| {
        if is_tested {
            write_experiment(info, item);
        }
    });
    feature.value("variableValues", |out| write_map(&item.variables, out));
}

fn write_experiment(info: &mut Object<'_>, item: &Activation<'_>) {
    info.text("experimentKey", &item.experiment_key);
    info.text("variationKey", item.variation_key);
}

/// Returns the notice of a conversion. `event` is the visitor that is sent.
pub fn track(
    key: &str,
    user: &DecisionUser<'_>,
    tags: &Map<String, Value>,
    event: &[u8],
) -> Vec<u8> {
    object(|notice| {
        notice.text("EventKey", key);
        write_user(notice, user, &[]);
        notice.value("EventTags", |out| encode::write_object(tags, out));
        notice.value("ConversionEvent", |out| out.extend_from_slice(event));
    })
}

/// Returns the notice of a new datafile.
pub fn project(project: &Project) -> Vec<u8> {
    object(|notice| {
        notice.text("Type", "project_config_update");
        notice.text("Revision", &project.revision);
    })
}

/// Frames a notice as an event of the stream, with its number if the stream has numbers. `is_raw` asks for the JSON
/// alone.
pub(super) fn frame(json: &[u8], number: Option<u64>, is_raw: bool) -> Vec<u8> {
    if is_raw {
        return [json, b"\n"].concat();
    }
    let id = number
        .map(|number| format!("id: {number}\n"))
        .unwrap_or_default();
    [id.as_bytes(), b"data: ", json, b"\n\n"].concat()
}

fn object(members: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut notice = Object::open(&mut out);
    members(&mut notice);
    notice.close();
    out
}

fn write_user(notice: &mut Object<'_>, user: &DecisionUser<'_>, segments: &[String]) {
    notice.object("UserContext", |context| {
        context.text("ID", &user.id);
        context.value("Attributes", |out| {
            encode::write_members(&user.attributes, out)
        });
        context.array("QualifiedSegments", segments, |segment, out| {
            Str::Plain(segment).write(out);
        });
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::decisions::protocol::{Agent, Document, Protocol};

    #[test]
    fn a_notice_is_one_event_and_numbered_where_clients_may_lose_some() {
        let json = b"{\"a\":\"<\"}";
        let text =
            |raw, protocol: &dyn Protocol| String::from_utf8(protocol.frame(json, 7, raw)).unwrap();
        assert_eq!(text(false, &Document), "id: 7\ndata: {\"a\":\"<\"}\n\n");
        assert_eq!(text(false, &Agent), "data: {\"a\":\"\\u003c\"}\n\n");
        assert_eq!(text(true, &Document), "{\"a\":\"<\"}\n");
    }

    #[test]
    fn a_topic_has_the_name_of_the_filter() {
        for (name, topic) in [
            ("decision", Some(Topic::Decision)),
            ("track", Some(Topic::Track)),
            ("project_config_update", Some(Topic::Project)),
            ("Decision", None),
        ] {
            assert_eq!(Topic::parse(name), topic, "{name}");
        }
    }
}
