//! Ids of events, predictions and requests. They are not secrets.

/// Returns a random UUID as text.
pub fn new_uuid() -> String {
    let mut random = [0; 16];
    fastrand::fill(&mut random);
    uuid::Builder::from_random_bytes(random)
        .into_uuid()
        .to_string()
}
