//! Tickets for the stream of changes. A browser opens an event stream without headers, so its credentials are in the URL.
//!
//! A ticket is an encrypted SDK key with its last day. It is the same for a whole day, because clients open the stream anew when its
//! URL changes.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use filters::accounts::Pepper;

use crate::encryption::{SealError, StableSeal};

/// The purposes of the derived keys.
const PURPOSE: &str = "tickets of flag streams, version 1";
const NONCE_PURPOSE: &str = "nonces of tickets of flag streams, version 1";
/// The days for which a ticket is valid after the day on which it is made.
const VALID_DAYS: u64 = 1;
const DAY_MS: u64 = 86_400_000;

/// Makes and reads tickets.
pub struct StreamTickets(StableSeal);

impl StreamTickets {
    /// Makes the tickets of all servers with this secret.
    ///
    /// Errors: never, because the derived keys have the lengths of their ciphers.
    pub fn new(pepper: &Pepper) -> Result<Self, SealError> {
        let (key, nonce_key) = (pepper.derive(PURPOSE), pepper.derive(NONCE_PURPOSE));
        StableSeal::new(&key, &nonce_key, PURPOSE.as_bytes()).map(Self)
    }

    /// Returns the ticket for an SDK key. `now_ms` is unix time in milliseconds.
    pub fn write(&self, sdk_key: &str, now_ms: u64) -> Option<String> {
        let last_day = now_ms / DAY_MS + VALID_DAYS;
        let bytes = [&last_day.to_be_bytes(), sdk_key.as_bytes()].concat();
        let sealed = self.0.encrypt(&bytes).ok()?;
        Some(BASE64.encode(sealed))
    }

    /// Returns the SDK key of a ticket, or `None` for one that is damaged or of an earlier day.
    pub fn read(&self, ticket: &str, now_ms: u64) -> Option<Box<str>> {
        let bytes = self.0.decrypt(&BASE64.decode(ticket).ok()?).ok()?;
        let (last_day, sdk_key) = bytes.split_first_chunk()?;
        let is_valid = now_ms / DAY_MS <= u64::from_be_bytes(*last_day);
        let sdk_key = std::str::from_utf8(sdk_key).ok()?;
        is_valid.then(|| sdk_key.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn tickets(fill: u8) -> StreamTickets {
        StreamTickets::new(&Pepper::parse(&[fill; 32]).unwrap()).unwrap()
    }

    #[test]
    fn a_ticket_is_the_same_for_a_day_and_good_until_the_end_of_the_next() {
        let tickets = tickets(1);
        let ticket = tickets.write("key", 0).unwrap();
        assert_eq!(tickets.write("key", DAY_MS - 1).unwrap(), ticket);
        assert_ne!(tickets.write("key", DAY_MS).unwrap(), ticket);
        assert_ne!(tickets.write("other", 0).unwrap(), ticket);
        let read = |now_ms| tickets.read(&ticket, now_ms);
        assert_eq!(read(2 * DAY_MS - 1).as_deref(), Some("key"));
        assert_eq!(read(2 * DAY_MS), None);
    }

    #[test]
    fn a_ticket_is_read_whole_and_with_the_same_secret_alone() {
        let ticket = tickets(1).write("key", 0).unwrap();
        assert!(!ticket.contains("key"));
        assert_eq!(tickets(2).read(&ticket, 0), None);
        for cut in 0..ticket.len() {
            let changed = format!("{}{}", ticket.split_at(cut).0, "A");
            assert_eq!(tickets(1).read(&changed, 0), None);
        }
    }
}
