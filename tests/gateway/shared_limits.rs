//! Limits of money over several processes with one PostgreSQL.

use std::net::SocketAddr;

use filters::accounts::TermsFile;
use weirgate::store::KeyChange;

use super::chat_completions::{PLAIN, reply};
use super::money::Place;
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client::{self, ask_at_once};
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// What a key may spend, in calls.
const LIMIT: usize = 10;

#[test]
fn a_limit_that_processes_meet_at_once_is_spent_once_by_each_at_most() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places = [0, 1, 2].map(|_| Place::new(&postgres.url(), &upstream, CENT));
    let key = places[0].fund("100");
    places[0].store(async |store| {
        let terms = TermsFile {
            limit: Some("0.10".to_owned()),
            ..TermsFile::default()
        };
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store.update_key(&id, &wanted).await.unwrap();
    });
    let servers = places.each_ref().map(|place| Server::start(place.path()));
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let (served, refused) = ask_at_once(&addresses, &ask, 300);
    println!("{served} calls of a limit of {LIMIT}");
    assert_eq!(served + refused, 300);
    assert!(
        (LIMIT..=LIMIT * servers.len()).contains(&served),
        "{served}"
    );
    // A moment later each process knows of all that was spent.
    for address in addresses {
        until("it holds", || client::ask(address, &ask).status() == 402);
    }
    assert_eq!(upstream.requests().len(), served);
}
