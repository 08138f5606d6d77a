//! Limits of money over several processes with one PostgreSQL.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use filters::accounts::{Plan, TermsFile};
use filters::audit::PROGRAM;
use filters::money::Usd;
use weirgate::store::KeyChange;

use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client::{self, Client, ask_at_once};
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// What may be spent, in calls of a cent.
const LIMIT: usize = 10;
/// The number of processes.
const PROCESSES: usize = 3;

/// Processes on one store, with one organization and one key.
struct Fleet {
    // The order is that in which they are dropped.
    servers: Vec<Server>,
    places: [Place; PROCESSES],
    upstream: Upstream,
    postgres: Postgres,
    ask: Ask,
}

impl Fleet {
    /// A change of a limit counts within a second, and nothing that a client sees tells when.
    fn pass_a_second() {
        std::thread::sleep(Duration::from_millis(1500));
    }

    /// Starts the processes after `change`.
    fn start(change: impl FnOnce(&Place)) -> Fleet {
        let postgres = Postgres::start();
        let upstream = Upstream::always(reply());
        let places = [0; PROCESSES].map(|_| {
            let mut place = Place::new(&postgres.url(), &upstream, CENT);
            let plan = "cycle_usd = \"0.10\"\nweekly_premium_pct = 100\ndaily_pct = 100";
            place.set("[models]\n", &format!("[plans.lite]\n{plan}\n[models]\n"));
            place
        });
        let key = places[0].fund("100");
        change(&places[0]);
        let servers = places.iter().map(|place| Server::start(place.path()));
        Fleet {
            servers: servers.collect(),
            ask: Ask::post("/v1/chat/completions", PLAIN).key(&key),
            places,
            upstream,
            postgres,
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| server.address).collect()
    }

    /// Asks all processes in turn until they have refused for longer than what one of them holds may be out of reach.
    /// Returns the number of served calls, and the code of the last refusal.
    fn spend(&self) -> (usize, String) {
        let (mut served, mut code) = (0, String::new());
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(1500) {
            for address in self.addresses() {
                let answer = client::ask(address, &self.ask);
                if answer.status() == 200 {
                    served += 1;
                    since = Instant::now();
                } else {
                    assert_eq!(answer.status(), 402, "{}", answer.text());
                    code = answer.json()["error"]["code"].as_str().unwrap().to_owned();
                }
            }
        }
        (served, code)
    }

    /// Spends what is left at once, and then call by call. Returns how much was served.
    fn spend_at_once(&self) -> (usize, String) {
        let (served, refused) = ask_at_once(&self.addresses(), &self.ask, 300);
        assert_eq!(served + refused, 300);
        let (more, code) = self.spend();
        (served + more, code)
    }

    fn limit_key(&self, usd: &str) {
        limit_key(&self.places[0], usd);
    }
}

fn limit_key(place: &Place, usd: &str) {
    let terms = TermsFile {
        limit: Some(usd.to_owned()),
        ..TermsFile::default()
    };
    change_key(
        place,
        &KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        },
    );
}

fn change_key(place: &Place, change: &KeyChange) {
    place.store(async |store| {
        let id = store.keys("acme").await.unwrap().remove(0).id;
        store.by(&PROGRAM).update_key(&id, change).await.unwrap();
    });
}

fn give_to(place: &Place, member: &str, budget: &str) {
    place.store(async |store| {
        store
            .by(&PROGRAM)
            .add_member("acme", member, 0)
            .await
            .unwrap();
        let budget = Some(Usd::parse(budget).unwrap());
        store
            .by(&PROGRAM)
            .set_budget("acme", member, budget)
            .await
            .unwrap();
    });
    change_key(
        place,
        &KeyChange {
            member: Some(Some(member.to_owned())),
            ..KeyChange::default()
        },
    );
}

/// Asserts that calls which fit were served, and of each process one more at most.
fn assert_spent(served: usize, fits: usize) {
    let range = fits..=fits + PROCESSES;
    assert!(range.contains(&served), "{served} of a limit of {fits}");
}

fn assert_held(change: impl FnOnce(&Place), code: &str) {
    let fleet = Fleet::start(change);
    let (served, said) = fleet.spend_at_once();
    assert_spent(served, LIMIT);
    assert_eq!(said, code);
    assert_eq!(fleet.upstream.requests().len(), served);
}

/// Contract: model-gateway 8 8
#[test]
fn a_key_s_limit_that_processes_meet_at_once_is_exceeded_by_a_call_of_each_at_most() {
    assert_held(|place| limit_key(place, "0.10"), "key_limit_reached");
}

#[test]
fn a_member_s_budget_that_processes_meet_at_once_is_exceeded_by_a_call_of_each_at_most() {
    assert_held(
        |place| give_to(place, "ada", "0.10"),
        "member_budget_reached",
    );
}

#[test]
fn a_plan_that_processes_meet_at_once_is_exceeded_by_a_call_of_each_at_most() {
    let plan = |place: &Place| {
        place.store(async |store| {
            store
                .by(&PROGRAM)
                .set_plan("acme", Plan::Lite, 1)
                .await
                .unwrap()
        });
    };
    assert_held(plan, "plan_credits_used");
}

#[test]
fn a_limit_holds_and_is_spent_whole_though_a_process_is_killed_meanwhile() {
    const CALLS: usize = 60;
    let mut fleet = Fleet::start(|place| limit_key(place, "0.60"));
    let (addresses, ask) = (fleet.addresses(), fleet.ask.clone());
    let callers: Vec<_> = (0..PROCESSES * 8)
        .map(|n| {
            let (address, ask) = (addresses[n % PROCESSES], ask.clone());
            std::thread::spawn(move || {
                for _ in 0..3 {
                    let mut client = Client::connect(address);
                    client.send(&ask);
                    if client.try_head().is_err() {
                        // The process is killed.
                        return;
                    }
                }
            })
        })
        .collect();
    until("some calls", || fleet.upstream.requests().len() >= 6);
    fleet.servers.remove(0).kill();
    callers.into_iter().for_each(|caller| _ = caller.join());
    // It returns with its journal; its lease is free again, and what it had not stored is counted.
    fleet.servers.push(Server::start(fleet.places[0].path()));
    _ = fleet.spend_at_once();
    let spent = || fleet.places[0].credit().used.units() / Usd::parse("0.01").unwrap().units();
    until("all is stored", || spent() >= CALLS as i128);
    // A process that stops has stored all its calls.
    fleet.servers.into_iter().for_each(Server::stop);
    assert_spent(usize::try_from(spent()).unwrap(), CALLS);
}

#[test]
fn a_limit_that_is_raised_or_lowered_while_it_is_leased_counts_within_a_second() {
    let fleet = Fleet::start(|place| limit_key(place, "0.05"));
    let (mut spent, _) = fleet.spend_at_once();
    assert_spent(spent, 5);
    // Each process holds a part of the raised limit.
    fleet.limit_key("1.00");
    for address in fleet.addresses() {
        until("it is raised", || {
            let status = client::ask(address, &fleet.ask).status();
            spent += usize::from(status == 200);
            status == 200
        });
    }
    fleet.limit_key(&format!("0.{:02}", spent + 4));
    Fleet::pass_a_second();
    let (served, _) = fleet.spend_at_once();
    assert_spent(served, 4);
}

#[test]
fn a_key_that_is_given_to_another_member_is_held_to_the_budget_of_that_one() {
    let fleet = Fleet::start(|place| give_to(place, "ada", "0.03"));
    let (served, code) = fleet.spend();
    assert_spent(served, 3);
    assert_eq!(code, "member_budget_reached");
    give_to(&fleet.places[0], "bob", "0.04");
    Fleet::pass_a_second();
    let (served, code) = fleet.spend_at_once();
    assert_spent(served, 4);
    assert_eq!(code, "member_budget_reached");
}

#[test]
fn a_leased_limit_serves_while_the_store_is_away_for_a_moment() {
    let mut fleet = Fleet::start(|place| limit_key(place, "1.00"));
    // The parts of the limit and of the credit.
    for address in fleet.addresses() {
        assert_eq!(client::ask(address, &fleet.ask).status(), 200);
    }
    fleet.postgres.kill();
    for address in fleet.addresses() {
        assert_eq!(client::ask(address, &fleet.ask).status(), 200);
    }
    fleet.postgres.start_again();
    fleet.places[0].used("0.06");
    for address in fleet.addresses() {
        until("it goes on", || {
            client::ask(address, &fleet.ask).status() == 200
        });
    }
}
