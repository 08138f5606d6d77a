use super::*;

#[test]
fn what_is_no_batch_is_refused() {
    for body in [
        "",
        "[]",
        "[1]",
        "{\"operations\":1}",
        "{\"operations\":[1]}",
        "{\"operations\":[[]]}",
        "{\"operations\":[{\"method\":1}]}",
    ] {
        for protocol in [&Agent as &dyn Protocol, &Document] {
            assert!(protocol.read_batch(body.as_bytes()).is_err(), "{body}");
        }
    }
    for body in [
        "{\"operations\":[{\"body\":[]}]}",
        "{\"operations\":[{\"params\":{\"a\":1}}]}",
        "{\"operations\":[{\"headers\":{\"a\":true}}]}",
    ] {
        assert!(Agent.read_batch(body.as_bytes()).is_err(), "{body}");
        assert!(Document.read_batch(body.as_bytes()).is_ok(), "{body}");
    }
}
