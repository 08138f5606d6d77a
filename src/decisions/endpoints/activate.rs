//! `POST /v1/activate`: features and experiments by key or by type.

use filters::decisions::activate;
use filters::decisions::activate::Activation;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::decisions::selection::{ItemKind, item_filter, read_selection, read_switch};
use filters::decisions::{Options, response_body};
use filters::fault::Fault;

use super::context::DecisionContext;
use super::user_state::UserState;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns a list in the order of the query. Items selected by type are in the order of the datafile.
///
/// Errors: 400 for too many keys, unknown types, and switches that are neither on nor off; 413 for a response that
/// would be too long.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let user = context.read_body()?.activated_user()?;
    let (protocol, project) = (context.protocol(), &context.loaded.project);
    let rules = protocol.endpoint_rules().selection;
    let wanted = read_selection(request.query, project, rules)?;
    let is_listed = item_filter(request.query, rules)?;
    let is_tracked = read_switch(request.query, "disableTracking", rules)? != Some(true);
    let mut state = UserState::new(&context, &user, &[], Options::default()).await;
    let items: Vec<Activation<'_>> = state
        .decide(&wanted, |(kind, key), inputs| match kind {
            ItemKind::Feature => activate::feature(project, key, inputs),
            ItemKind::Experiment => activate::experiment(project, key, inputs),
        })
        .await?;
    if is_tracked {
        let impressions = items.iter().filter_map(|item| item.impression.as_ref());
        context.queue_impressions(&user, impressions);
    }
    let found: Vec<(&str, &str)> = items.iter().filter_map(|item| item.remembers).collect();
    state.remember(&found).await;
    for item in &items {
        if let Some(notice) = notice::activated(project, item, &user) {
            context.publish(Topic::Decision, || notice);
        }
    }
    let shape = protocol.result_shape();
    let listed = items.iter().filter(|item| is_listed(item));
    response_body::list(listed, |item, out| {
        response_body::write_activation(item, &user.id, shape, out);
    })
    .map(Response::json)
}
