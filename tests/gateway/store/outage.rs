//! What goes on while the store is away.

use std::time::Duration;

use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client;
use crate::support::own_postgres::Postgres;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::upstream::Upstream;
use crate::support::{WAIT_TIMEOUT, every};

#[test]
fn decisions_and_graph_go_on_while_the_store_is_away() {
    let mut postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let service = Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#));
    let mut place = Place::new(&postgres.url(), &upstream, CENT);
    let more = format!(
        "[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n\
         [graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n[server]",
        service.url()
    );
    place.set("[server]", &more);
    let key = place.fund("1");
    let server = Server::start(place.path());
    let chat = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let decide = Ask::post("/v1/decide?keys=dark_mode", r#"{"userId":"ada"}"#)
        .header("X-Platform-SDK-Key", "sandbox");
    let query = Ask::post("/content/v2?auth=k1", r#"{"query":"{ a }"}"#);
    let others_answer = |server: &Server| {
        for ask in [&decide, &query] {
            let answer = client::ask(server.address, ask);
            assert_eq!(answer.status(), 200, "{}", answer.text());
        }
    };
    assert_eq!(client::ask(server.address, &chat).status(), 200);
    others_answer(&server);
    postgres.kill();
    let is_refused = |_| {
        others_answer(&server);
        client::ask(server.address, &chat).status() == 503
    };
    // There is credit for so many calls.
    let mut calls = every(Duration::from_millis(250), WAIT_TIMEOUT);
    assert!(calls.any(is_refused), "credit is spent on");
    for _ in every(Duration::from_millis(100), Duration::from_secs(1)) {
        others_answer(&server);
    }
    assert_eq!(client::ask(server.address, &chat).status(), 503);
    // A start needs no store either.
    server.kill();
    let server = Server::start(place.path());
    others_answer(&server);
    assert_eq!(client::ask(server.address, &chat).status(), 503);
}
