//! `GET /v1/notifications/event-stream`: who listens is told what is decided. Source: docs/facts/decision-engine.md E.

use filters::decisions::Compat;
use filters::decisions::notice::Topic;
use filters::fault::{AgentForm, Fault, FaultKind};

use super::{Request, caller};
use crate::decisions::DecisionService;
use crate::decisions::notifications::Subscription;

/// A listener to the notices of the caller's project.
///
/// Errors: as other calls; 403 where nobody may listen; in document mode 400 for a filter that names no topic.
pub async fn listen(flags: &DecisionService, call: &Request<'_>) -> Result<Subscription, Fault> {
    let (sdk_key, _) = caller(flags, call).await?;
    let Some(notices) = &flags.notices else {
        let off = Fault::new(FaultKind::Forbidden, "Notification stream not enabled");
        return Err(off.with_agent_form(AgentForm::Text));
    };
    let is_raw = call.values("raw").next().is_some();
    Ok(notices.listen(&sdk_key, topics(flags.compat, call)?, is_raw, flags.compat))
}

/// The topics of `filter`, one or several behind commas; the agent of old passes over names it does not know.
fn topics(compat: Compat, call: &Request<'_>) -> Result<Vec<Topic>, Fault> {
    let mut topics = Vec::new();
    for filter in call.values("filter") {
        for name in filter.split(',').filter(|name| !name.is_empty()) {
            match (Topic::parse(name), compat) {
                (Some(topic), _) => topics.push(topic),
                (None, Compat::Agent) => {}
                (None, Compat::Document) => {
                    let message = format!(
                        "`filter` is {name:?}; decision, track and project_config_update are accepted"
                    );
                    return Err(Fault::new(FaultKind::Invalid, message).with_param("filter"));
                }
            }
        }
    }
    Ok(topics)
}
