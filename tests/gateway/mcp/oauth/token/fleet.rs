//! Two processes on one PostgreSQL: what one issues, the other takes, and a code counts once.

use std::thread;

use tempfile::TempDir;

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::loopback::own_address;
use crate::support::oauth::{
    allowed, authorization, brought, call, client, code, error, exchange, form, page, refresh,
    tokens,
};
use crate::support::own_postgres::Postgres;
use crate::support::process::weirgate;
use crate::support::server::Server;
use crate::support::until;

/// Two processes of one store.
struct Fleet {
    processes: [Server; 2],
    key: String,
    _folders: [TempDir; 2],
    _postgres: Postgres,
}

fn start() -> Fleet {
    let postgres = Postgres::start();
    let secret = "0123456789abcdef0123456789abcdef";
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for folder in &folders {
        let listener = format!("{}:0", own_address());
        let toml = format!(
            "[listen]\naddress = \"{listener}\"\n[admin]\naddress = \"{listener}\"\n[models]\nfile = \"models.toml\"\n\
             [store]\nurl = \"{}\"\nsecret = {{ file = \"secret\" }}\n[providers.sandbox]\nkind = \"sandbox\"\n",
            postgres.url()
        );
        std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
        std::fs::write(folder.path().join("secret"), secret).unwrap();
        let models = "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"sandbox\"\nname = \"sandbox-chat\"\n\
                      input_price = \"1\"\noutput_price = \"1\"\n";
        std::fs::write(folder.path().join("models.toml"), models).unwrap();
    }
    let run = |arguments: &[&str]| {
        let output = weirgate(folders[0].path(), arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["org", "create", "acme"]);
    let key = run(&["key", "create", "--org", "acme"]);
    let processes = [0, 1].map(|at| Server::start(folders[at].path()));
    Fleet {
        processes,
        key: key.trim().to_owned(),
        _folders: folders,
        _postgres: postgres,
    }
}

#[test]
fn processes_of_one_store_are_one_server() {
    let fleet = start();
    let [one, other] = &fleet.processes;
    let id = client(one.address);
    let shown = page(one.address, &authorization(&id, "account:read", &[]));
    let answer = ask(other.address, &form(&shown, &fleet.key, "allow"));
    assert_eq!(answer.status(), 303, "{}", answer.text());
    let again = ask(one.address, &form(&shown, &fleet.key, "allow"));
    assert_eq!(brought(&again), brought(&answer));
    let denied = ask(one.address, &form(&shown, "", "deny"));
    assert_eq!(denied.status(), 400, "{}", denied.text());
    let given = allowed(one.address, &fleet.key, "account:read");
    let status =
        |server: &Server, token: &str| ask(server.address, &call(token, "get-account")).status();
    assert_eq!(status(other, &given.access), 200);
    let next = ask(other.address, &refresh(&given.client, &given.refresh));
    let next = tokens(&given.client, &next);
    assert_eq!(status(one, &next.access), 200);
    let same = ask(one.address, &refresh(&given.client, &given.refresh));
    assert_eq!(tokens(&given.client, &same).refresh, next.refresh);
    let fields = [("client_id", &*given.client), ("token", &*next.refresh)];
    let revoke = crate::support::oauth::post("/mcp/oauth/revoke", &fields);
    assert_eq!(ask(one.address, &revoke).status(), 200);
    for server in [one, other] {
        until("the token ends everywhere", || {
            status(server, &next.access) == 401
        });
    }
}

#[test]
fn a_code_counts_once_wherever_it_is_used() {
    let fleet = start();
    let [one, other] = &fleet.processes;
    let id = client(one.address);
    for _ in 0..8 {
        let code = code(one.address, &id, &fleet.key, "account:read");
        let request: Ask = exchange(&id, &code, &[]);
        let answers = thread::scope(|scope| {
            let tries = [one, other].map(|server| {
                let (address, request) = (server.address, &request);
                scope.spawn(move || ask(address, request))
            });
            tries.map(|it| it.join().unwrap())
        });
        let good = answers.iter().filter(|answer| answer.status() == 200);
        assert_eq!(good.count(), 1, "{answers:?}");
        let refused = answers.iter().find(|answer| answer.status() != 200);
        assert_eq!(error(refused.unwrap()), (400, "invalid_grant".to_owned()));
    }
}
