//! Writes frames of event streams of AWS.

/// Returns a frame with headers of these types and values, whose values come as they stand in a frame.
pub(crate) fn frame(headers: &[(&str, u8, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, kind, value) in headers {
        block.push(name.len() as u8);
        block.extend_from_slice(name.as_bytes());
        block.push(*kind);
        block.extend_from_slice(value);
    }
    let all = 16 + block.len() + payload.len();
    let mut frame = Vec::with_capacity(all);
    frame.extend_from_slice(&(all as u32).to_be_bytes());
    frame.extend_from_slice(&(block.len() as u32).to_be_bytes());
    seal(&mut frame);
    frame.extend_from_slice(&block);
    frame.extend_from_slice(payload);
    seal(&mut frame);
    frame
}

/// Returns a frame of an event.
pub(crate) fn event(name: &str, payload: &[u8]) -> Vec<u8> {
    said("event", ":event-type", name, payload)
}

/// Returns a frame of an exception.
#[allow(dead_code, reason = "some tests have no exceptions")]
pub(crate) fn exception(name: &str, payload: &[u8]) -> Vec<u8> {
    said("exception", ":exception-type", name, payload)
}

fn said(kind: &str, key: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let (kind, name) = (text(kind), text(name));
    let json = text("application/json");
    let headers: [(&str, u8, &[u8]); 3] = [
        (":message-type", 7, &kind),
        (key, 7, &name),
        (":content-type", 7, &json),
    ];
    frame(&headers, payload)
}

/// Returns the value of a header that is a text.
pub(crate) fn text(value: &str) -> Vec<u8> {
    let mut bytes = (value.len() as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

fn seal(bytes: &mut Vec<u8>) {
    let checksum = crc32fast::hash(bytes).to_be_bytes();
    bytes.extend_from_slice(&checksum);
}
