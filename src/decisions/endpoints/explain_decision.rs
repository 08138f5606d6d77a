//! `POST /v1/decide/explain`: the decisions of `/v1/decide`, with each rule of the flags. It sends no event and no
//! notice, and stores nothing about the user.

use std::sync::Arc;

use filters::decisions::Options;
use filters::decisions::decide::{Decision, PredictionRequest, decide};
use filters::decisions::explain::explain;
use filters::decisions::request_body;
use filters::decisions::request_body::{DecisionUser, SegmentOptions};
use filters::decisions::response_body;
use filters::fault::Fault;
use http::HeaderMap;
use serde_json::Value;

use super::context::DecisionContext;
use super::decide::wanted_keys;
use super::user_state::{UserItem, UserState};
use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::state::DatafileState;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// A decision with the rules of its flag.
struct Explained<'p> {
    decision: Decision<'p>,
    rules: Value,
    /// The rules as JSON.
    text: String,
}

impl UserItem for Explained<'_> {
    fn wants(&self) -> Option<&PredictionRequest<'_>> {
        self.decision.wants.as_ref()
    }

    fn reason_bytes(&self) -> usize {
        self.decision.reason_bytes() + self.text.len()
    }
}

/// A decision about a flag, with how the user meets each of its rules.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedDecision {
    pub flag_key: String,
    pub is_enabled: bool,
    /// The keys of the variation and of the rule, or empty texts.
    pub variation_key: String,
    pub rule_key: String,
    /// Variables: key, value as JSON.
    pub variables: Vec<(String, String)>,
    pub reasons: Vec<String>,
    /// The rules as `POST /v1/decide/explain` shows them, in the order of
    /// [`FlagDescription`](filters::decisions::description::FlagDescription).
    pub rules: Vec<Value>,
}

impl From<Explained<'_>> for ExplainedDecision {
    fn from(explained: Explained<'_>) -> Self {
        let Explained {
            decision, rules, ..
        } = explained;
        let variables = decision.variables.iter();
        Self {
            flag_key: decision.flag_key.into_owned(),
            is_enabled: decision.is_enabled,
            variation_key: decision.variation_key.to_owned(),
            rule_key: decision.rule_key.to_owned(),
            variables: variables
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            reasons: decision.reasons,
            rules: match rules {
                Value::Array(rules) => rules,
                _ => Vec::new(),
            },
        }
    }
}

/// Returns a list of decisions with their rules, in the order of the request or the datafile. Options about caches
/// have no effect.
///
/// Errors: as [`super::decide::handle`].
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let body = context.read_body()?.into_decide()?;
    let wanted = wanted_keys(&context, request)?;
    let all = explain_all(&context, &body, &wanted).await?;
    let shape = context.protocol().result_shape();
    let is_listed =
        |one: &&Explained<'_>| one.decision.is_enabled || !body.options.enabled_flags_only;
    let listed = response_body::list(all.iter().filter(is_listed), |one, out| {
        let (user, decision) = (&body.user, &one.decision);
        response_body::write_decision(decision, &user.id, &user.attributes, shape, out);
        out.pop();
        out.extend_from_slice(b",\"rules\":");
        out.extend_from_slice(one.text.as_bytes());
        out.push(b'}');
    });
    listed.map(Response::json)
}

impl DecisionService {
    /// Returns decisions about these flags for a user, as `POST /v1/decide/explain` makes them, by the datafile in force. It
    /// reads overrides, the profile and predictions as a decision does, sends no event and no notice, and stores nothing
    /// about the user.
    ///
    /// Errors: the project has no usable datafile; 403 and 502 if segments are wanted and cannot be fetched; 413 for reasons
    /// that would fit no response.
    pub async fn explain_user(
        &self,
        (datafile, loaded): (&DatafileState, &Arc<LoadedDatafile>),
        (user, fetch_segments): (DecisionUser<'_>, bool),
        keys: &[&str],
    ) -> Result<Vec<ExplainedDecision>, Fault> {
        let headers = HeaderMap::new();
        let request = Request {
            headers: &headers,
            path: "",
            query: "",
            body: b"",
            caller: None,
            client_ip: None,
            now_ms: 0,
        };
        let context = DecisionContext {
            request: &request,
            service: self,
            sdk_key: datafile.sdk_key().into(),
            loaded: Arc::clone(loaded),
        };
        let body = request_body::Decide {
            user,
            fetch_segments,
            ..request_body::Decide::default()
        };
        let all = explain_all(&context, &body, keys).await?;
        Ok(all.into_iter().map(ExplainedDecision::from).collect())
    }
}

async fn explain_all<'a>(
    context: &'a DecisionContext<'a>,
    body: &request_body::Decide<'_>,
    keys: &[impl AsRef<str>],
) -> Result<Vec<Explained<'a>>, Fault> {
    let options = Options {
        disable_decision_event: true,
        include_reasons: true,
        ignore_cmab_cache: false,
        reset_cmab_cache: false,
        invalidate_user_cmab_cache: false,
        ..body.options
    };
    let project = &context.loaded.project;
    let mut state = UserState::new(context, &body.user, &body.forced, options).await;
    if body.fetch_segments {
        Box::pin(state.fetch_segments(SegmentOptions::default())).await?;
    }
    let all = state.decide(keys, |key, inputs| {
        let decision = decide(project, key.as_ref(), inputs);
        let rules = Value::from(explain(project, key.as_ref(), inputs, &decision));
        let text = rules.to_string();
        Explained {
            decision,
            rules,
            text,
        }
    });
    all.await
}
