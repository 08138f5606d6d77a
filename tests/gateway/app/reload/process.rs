//! Reloads of a process, as an operator starts them: by a signal, and by a changed file. Listeners come and go.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use tempfile::TempDir;

use super::{Load, rest_of};
use crate::support::ask::Ask;
use crate::support::client::{Client, ask};
use crate::support::loopback::own_address;
use crate::support::script::{Gate, Reply};
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// A configuration in a folder of its own.
struct Folder {
    folder: TempDir,
    public: SocketAddr,
    admin: SocketAddr,
    service: String,
    more: String,
}

/// An address at which nothing listens.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((own_address(), 0)).unwrap();
    listener.local_addr().unwrap()
}

impl Folder {
    fn new(service: &Upstream, more: &str) -> Folder {
        let folder = Folder {
            folder: tempfile::tempdir().unwrap(),
            public: free_address(),
            admin: free_address(),
            service: service.url(),
            more: more.to_owned(),
        };
        folder.write();
        folder
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self) {
        let path = self.path().display();
        let toml = format!(
            "{}\n[listen]\naddress = \"{}\"\n[admin]\naddress = \"{}\"\n\
             [store]\nurl = \"sqlite:{path}/weirgate.db\"\nstate_dir = \"{path}\"\n\
             [graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n\
             limits = {{ \"POST /content/v2\" = 1000000 }}\n",
            self.more, self.public, self.admin, self.service,
        );
        std::fs::write(self.path().join("weirgate.toml"), toml).unwrap();
    }
}

fn query() -> Ask {
    Ask::post("/content/v2?auth=k1", r#"{"query":"{ a }"}"#)
}

fn service() -> Upstream {
    Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#))
}

fn wait_for_metric(admin: SocketAddr, line: &str) {
    let line = format!("\n{line}\n");
    until(&line, || {
        // The listener may not be there yet.
        TcpStream::connect(admin).is_ok()
            && ask(admin, &Ask::get("/metrics")).text().contains(&line)
    });
}

fn is_refused(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

#[test]
fn a_signal_moves_both_listeners_and_connections_stay() {
    let gate = Gate::default();
    let held = gate.clone();
    let service = Upstream::answering(move |request| match request.path.contains("held") {
        true => Reply::chunked(200, &[("content-type", "application/json")])
            .chunk("{\"data\":")
            .wait(&held)
            .chunk("1}")
            .end(),
        false => Reply::json(200, r#"{"data":{"a":1}}"#),
    });
    let mut folder = Folder::new(&service, "");
    let server = Server::start(folder.path());
    let (old, old_admin) = (folder.public, folder.admin);
    let mut running = Client::connect(old);
    running.send(&Ask::post(
        "/content/v2?auth=k1&held=1",
        r#"{"query":"{ a }"}"#,
    ));
    assert_eq!(running.head().status, 200);
    running.chunk().unwrap();
    (folder.public, folder.admin) = (free_address(), free_address());
    folder.write();
    server.signal("HUP");
    wait_for_metric(
        folder.admin,
        "weirgate_config_reloads_total{result=\"ok\"} 1",
    );
    assert_eq!(ask(folder.public, &query()).status(), 200);
    until("the old listeners to close", || {
        is_refused(old) && is_refused(old_admin)
    });
    // What ran on the old listener ends as if nothing had happened.
    gate.open();
    assert_eq!(rest_of(&mut running), "1}");
    assert_eq!(
        running.ask(&query()).status(),
        200,
        "on the same connection"
    );
}

#[test]
fn an_address_in_use_changes_nothing_and_is_named() {
    let service = service();
    let mut folder = Folder::new(&service, "");
    let server = Server::start(folder.path());
    let (before, taken) = (
        folder.public,
        TcpListener::bind((own_address(), 0)).unwrap(),
    );
    let load = Load::start(before, [query()]);
    folder.public = taken.local_addr().unwrap();
    folder.write();
    server.signal("HUP");
    wait_for_metric(
        folder.admin,
        "weirgate_config_reloads_total{result=\"failed\"} 1",
    );
    let said = ask(folder.admin, &Ask::get("/readyz?verbose"));
    assert_eq!(said.status(), 200);
    let address = folder.public.to_string();
    for part in ["listen.address", &address] {
        assert!(said.text().contains(part), "{part}: {}", said.text());
    }
    wait_for_metric(folder.admin, "weirgate_config_last_reload_successful 0");
    assert!(load.end()[0] > 0);
    // The cure is enough.
    drop(taken);
    server.signal("HUP");
    wait_for_metric(folder.admin, "weirgate_config_last_reload_successful 1");
    assert_eq!(ask(folder.public, &query()).status(), 200);
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_a_changed_one_is_noticed() {
    let service = service();
    let mut folder = Folder::new(&service, "[server]\nwatch = true");
    let server = Server::start(folder.path());
    folder.more = "[server]\nwatch = true\nthreds = 2".to_owned();
    folder.write();
    wait_for_metric(
        folder.admin,
        "weirgate_config_reloads_total{result=\"refused\"} 1",
    );
    let said = ask(folder.admin, &Ask::get("/readyz?verbose"));
    for part in ["weirgate.toml:3:1", "server.threds", "threads"] {
        assert!(said.text().contains(part), "{part}: {}", said.text());
    }
    assert_eq!(ask(server.address, &query()).status(), 200);
    folder.more = "[server]\nwatch = true\n[log]\naccess = false".to_owned();
    folder.write();
    wait_for_metric(
        folder.admin,
        "weirgate_config_reloads_total{result=\"ok\"} 1",
    );
    wait_for_metric(folder.admin, "weirgate_config_last_reload_successful 1");
}
