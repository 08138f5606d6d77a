//! `POST /v1/track`: a conversion.

use filters::decisions::Compat;
use filters::decisions::event;
use filters::decisions::event::Head;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::fault::{Fault, FaultKind};
use filters::json::Object;

use super::DecisionContext;
use crate::proxy::response::Response;

/// An empty object; what was wrong with the event, where something was. The agent of old repeats the request.
pub(super) fn answer(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let mut body = asked.body()?;
    let user = match asked.compat() {
        Compat::Document => body.user()?,
        Compat::Agent => body.some_user()?,
    };
    let tags = body.event_tags()?;
    let key = asked.call.values("eventKey").next().unwrap_or_default();
    if key.is_empty() {
        let message = "missing required path parameter: eventKey";
        return Err(Fault::new(FaultKind::Invalid, message).with_param("eventKey"));
    }
    let project = &asked.loaded.project;
    let uuid = crate::decisions::new_uuid();
    let visitor = event::conversion(project, &key, &tags, &asked.moment(&user, &uuid));
    let mut out = Vec::new();
    let mut answer = Object::open(&mut out);
    if asked.compat() == Compat::Agent {
        answer.text("userId", &user.id);
        answer.text("eventKey", &key);
    }
    match visitor {
        Some(visitor) => {
            let told = || notice::track(&key, &user, &tags, &visitor);
            asked.notify(Topic::Track, told);
            asked.flags.events.send(Head::of(project), visitor);
        }
        None => answer.text("error", &format!("event with key \"{key}\" not found")),
    }
    answer.close();
    Ok(Response::json(out))
}
