//! Ids of events, predictions and requests. They are names and no secrets.

/// Returns a random UUID as text.
pub fn new_uuid() -> String {
    let mut random = [0; 16];
    fastrand::fill(&mut random);
    uuid::Builder::from_random_bytes(random)
        .into_uuid()
        .to_string()
}
