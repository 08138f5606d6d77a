//! What the tests of several fronts need.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;

use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::reply::Writer;
use crate::models::usage::{Settlement, Usage};

#[path = "../../tests/grammars/mod.rs"]
#[allow(unreachable_pub, reason = "other tests have it, too")]
pub(super) mod grammars;

/// Ends a response of JSON at an unknown price, and returns it.
pub(super) fn complete(writer: &mut dyn Writer, usage: Usage) -> Value {
    end(writer, usage);
    serde_json::from_slice(&writer.take()).unwrap()
}

/// Ends a response at an unknown price.
pub(super) fn end(writer: &mut dyn Writer, usage: Usage) {
    let used = UsedNames::new("m", "here", None, "up");
    let metadata = Metadata {
        request_id: "1",
        requested_model: "m",
        managed: None,
        requested_provider: None,
        organization_id: "",
        project_id: "",
        log_id: None,
        route: None,
        answer: AnswerMembers::Fresh {
            used: &used,
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&Settlement { usage, cost: None }, &metadata);
}

#[test]
fn messages_name_the_path_of_the_first_front_of_each_operation() {
    for front in super::FRONTS {
        let row = front.row();
        let mut fronts = super::FRONTS.iter().map(|front| front.row());
        let first = fronts.find(|first| first.operation == row.operation);
        assert_eq!(first.unwrap().path, row.operation.row().path);
    }
}
