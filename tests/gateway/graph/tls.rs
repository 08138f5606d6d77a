//! A service behind TLS: its certificate has to be valid before anything is sent to it.

use tempfile::TempDir;

use super::{DATA, at, limit, query, service};
use crate::support::client::ask;
use crate::support::loopback::own_address;
use crate::support::server::Server;
use crate::support::tls::{Authority, Front};

/// The gateway in front of it, as a process that has these authorities as the system's.
fn trusting(authority: &Authority, service: &Front) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (path, own) = (folder.path().display(), own_address());
    let toml = format!(
        "[listen]\naddress = \"{own}:0\"\n[admin]\naddress = \"{own}:0\"\n\
         [store]\nurl = \"sqlite:{path}/weirgate.db\"\nstate_dir = \"{path}\"\n\
         [graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n",
        service.url()
    );
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let authorities = folder.path().join("authorities.pem");
    std::fs::write(&authorities, authority.pem()).unwrap();
    let env = [("SSL_CERT_FILE", authorities.to_str().unwrap())];
    let server = Server::start_with_env(folder.path(), &env);
    (server, folder)
}

#[test]
fn a_service_whose_certificate_is_trusted_is_called_over_tls() {
    let service = service();
    let authority = Authority::new();
    let front = authority.vouch("localhost", &service);
    let (server, _folder) = trusting(&authority, &front);
    let answer = ask(server.address, &query());
    assert_eq!((answer.status(), answer.text()), (200, DATA));
    assert_eq!(limit(&answer), ("1500", "10"));
    let host = front.url().replace("https://", "");
    assert_eq!(service.request(0).header("host"), Some(host.as_str()));
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let service = service();
    let authority = Authority::new();
    let front = authority.vouch("elsewhere.test", &service);
    let (server, _folder) = trusting(&authority, &front);
    let answer = ask(server.address, &query());
    assert_eq!(answer.status(), 502, "{}", answer.text());
    assert!(service.requests().is_empty());
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let service = service();
    let front = Authority::new().vouch("localhost", &service);
    let gateway = at(&front.url(), "", "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 502, "{}", answer.text());
    assert_eq!(limit(&answer), ("1500", "10"));
    gateway.wait_metric("weirgate_graph_upstream_total{outcome=\"connect_failed\"} 1");
    assert!(service.requests().is_empty());
}
