//! What clouds say otherwise than the vendors of their wires. Source: docs/facts/clouds.md 2.

use serde_json::{Value, json};

use super::{CloudWire, Dialect, Vendor};
use crate::support::script::{Reply, Step};

/// What Azure's filter says of a text.
fn filtered() -> Value {
    json!({"hate": {"filtered": false, "severity": "safe"}, "violence": {"filtered": false, "severity": "safe"}})
}

/// Makes a reply of a wire one of a cloud.
pub fn said_by(cloud: &CloudWire, reply: Reply, is_stream: bool) -> Reply {
    let is_azure_chat = cloud.vendor == Vendor::Azure && cloud.dialect == Dialect::Chat;
    match (is_azure_chat, is_stream) {
        (true, true) => with_filter_chunks(&reply),
        _ => reply,
    }
}

/// Azure's streams begin with a chunk without choices, and tell late what the filter has found, in chunks without a delta.
fn with_filter_chunks(reply: &Reply) -> Reply {
    let prompt = json!([{"prompt_index": 0, "content_filter_results": filtered()}]);
    let first = json!({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": prompt});
    let offsets = json!({"check_offset": 0, "start_offset": 0, "end_offset": 5});
    let found = json!([{"index": 0, "finish_reason": null, "logprobs": null, "content_filter_results": filtered(),
        "content_filter_offsets": offsets}]);
    let late =
        json!({"id": "", "object": "", "created": 0, "model": "", "choices": found}).to_string();
    let steps = reply.steps();
    // The head, the chunks, the usage, the mark of the end, the end of the body.
    let usage = steps.len() - 3;
    let mut said = Reply::empty();
    for (at, step) in steps.iter().enumerate() {
        let Step::Send(bytes) = step else {
            panic!("the reply has another step than bytes: {step:?}");
        };
        if at == 1 {
            said = said.event(&first.to_string());
        }
        if at == 3 || at == usage {
            said = said.event(&late);
        }
        said = said.bytes(bytes);
    }
    said
}
