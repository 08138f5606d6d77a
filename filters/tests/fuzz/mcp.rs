//! Messages of the Model Context Protocol, and the ids of its sessions.

use filters::mcp::message::{self, Message};
use filters::mcp::revision::Revision;
use filters::mcp::session::{Session, SessionIds};
use serde_json::{Value, json};

use crate::run::run;
use crate::{damage, grammar};

#[test]
fn a_message_is_read_or_refused_with_its_id() {
    run("mcp: messages", |choices| {
        let id = json!({"$one": ["$number", "$text"]});
        let params = json!({"name?": "$text", "requestId?": "$any", "_meta?": {"progressToken?": "$any"}, "arguments?": "$any"});
        let call = json!({"jsonrpc": "2.0", "id?": id, "method": "$text", "params?": params});
        let response = json!({"jsonrpc": "2.0", "id": id, "result": "$any"});
        let message = json!({"$one": [call, response]});
        let valid = grammar::compose(choices, &message);
        let text = grammar::write(choices, &valid);
        assert!(message::read(&text).is_ok(), "{valid}");
        let value = damage::tree(choices, valid);
        let text = grammar::write(choices, &value);
        let text = damage::bytes(choices, text);
        match message::read(&text) {
            Ok(Message::Call(call)) => assert!(call.id.is_string() || call.id.is_number()),
            Ok(Message::Notification(notification)) => {
                let id = notification.cancelled_id();
                assert!(id.is_none() || notification.method == "notifications/cancelled");
            }
            Ok(Message::Response) => {}
            Err(error) => {
                assert_eq!(error.status, 400);
                let body: Value = serde_json::from_slice(&error.body()).unwrap();
                assert_eq!(body["error"]["code"], error.code);
            }
        }
    });
}

#[test]
fn an_id_is_of_its_key_and_its_time() {
    let ids = SessionIds::new(&[7; 32]).unwrap();
    run("mcp: sessions", |choices| {
        let mut nonce = [0; 16];
        nonce.iter_mut().for_each(|byte| *byte = choices.byte());
        let session = Session {
            ends_s: choices.number(),
            nonce,
            revision: *choices.pick(&Revision::ALL),
        };
        let (key, other) = (choices.text(), choices.text());
        let id = ids.write(&session, &key);
        let before = session.ends_s.saturating_sub(1);
        let expected = Some(session).filter(|session| session.ends_s > 0);
        assert_eq!(ids.read(id.as_bytes(), &key, before), expected);
        assert_eq!(ids.read(id.as_bytes(), &key, session.ends_s), None);
        assert_eq!(
            ids.read(id.as_bytes(), &other, before).is_some(),
            key == other && expected.is_some()
        );
        let damaged = damage::bytes(choices, id.clone().into_bytes());
        assert_eq!(
            ids.read(&damaged, &key, before).is_some(),
            damaged == id.as_bytes() && expected.is_some()
        );
    });
}
