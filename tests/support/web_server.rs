//! Web servers in front of a gateway. Each runs with its file of `examples/`, in which only addresses, certificates and the
//! number of connections are replaced.
//!
//! They are Debian's `nginx-light`, `haproxy` and `caddy` (`make test-tools`), and the test fails if one is missing. A shell
//! between the test process and the server holds a pipe to the former; when that closes, however the process ended, it
//! ends the server.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use super::loopback::own_address;
use super::{WAIT_TIMEOUT, every};

/// The name under which the examples serve.
pub const HOST: &str = "gateway.example.com";

/// The port of every server: their addresses differ.
const PORT: u16 = 18_443;

/// `$1`: the file of the output, then the command. Its end is that of the pipe.
const SCRIPT: &str = r#"
log=$1
shift
"$@" >"$log" 2>&1 &
server=$!
read -r _ || true
kill "$server" 2>/dev/null
wait "$server"
"#;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Haproxy,
    Caddy,
}

/// A running server. It ends when dropped.
pub struct WebServer {
    pub address: SocketAddr,
    shell: Child,
    leash: Option<ChildStdin>,
    _folder: TempDir,
}

impl WebServer {
    /// Starts a server in front of the gateway whose listeners are these, and waits until it accepts connections.
    pub fn start(kind: Kind, (public, admin): (SocketAddr, SocketAddr)) -> WebServer {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from((own_address(), PORT));
        let command = prepare(kind, folder.path(), address, (public, admin));
        let log = folder.path().join("log");
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(&log)
            .args(command)
            .stdin(Stdio::piped())
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .spawn()
            .unwrap();
        let leash = shell.stdin.take();
        let server = WebServer {
            address,
            shell,
            leash,
            _folder: folder,
        };
        let pause = std::time::Duration::from_millis(20);
        let accepts = |_| TcpStream::connect(address).is_ok();
        assert!(
            every(pause, WAIT_TIMEOUT).any(accepts),
            "{kind:?} does not start; is Debian's package installed (make test-tools)?\n{}",
            std::fs::read_to_string(&log).unwrap_or_default()
        );
        server
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.leash.take());
        _ = self.shell.wait();
    }
}

/// Writes the configuration into a folder, and returns the command that serves it at the address.
fn prepare(
    kind: Kind,
    folder: &Path,
    address: SocketAddr,
    (public, admin): (SocketAddr, SocketAddr),
) -> Vec<String> {
    let (place, gateway) = (address.to_string(), public.to_string());
    let path = |name: &str| folder.join(name).display().to_string();
    match kind {
        Kind::Nginx => {
            let site = example("nginx/weirgate.conf");
            let site = replace(&site, "443 ssl http2", &place);
            let is_kept = |line: &&str| !line.trim_start().starts_with("ssl_");
            let site: Vec<&str> = site.lines().filter(is_kept).collect();
            let site = replace(&site.join("\n"), "127.0.0.1:8080", &gateway);
            std::fs::write(path("site.conf"), site).unwrap();
            std::fs::write(path("nginx.conf"), nginx_conf(folder)).unwrap();
            let name = path("nginx.conf");
            ["nginx", "-e", "stderr", "-c", &name]
                .map(str::to_owned)
                .into()
        }
        Kind::Haproxy => {
            let text = example("haproxy/haproxy.cfg");
            let tls = ":443 ssl crt /etc/haproxy/gateway.pem alpn h2,http/1.1";
            let text = replace(&text, tls, &place);
            let server = format!("{gateway} check port {}", admin.port());
            let text = replace(&text, "127.0.0.1:8080 check port 8081", &server);
            // Each connection takes two descriptors of the process, of which the suite may have few.
            let text = replace(&text, "maxconn 8000", "maxconn 400");
            std::fs::write(path("haproxy.cfg"), text).unwrap();
            let name = path("haproxy.cfg");
            ["haproxy", "-db", "-f", &name].map(str::to_owned).into()
        }
        Kind::Caddy => {
            let text = example("caddy/Caddyfile");
            let site = format!("http://{HOST}:{PORT} {{\n\tbind {}\n", address.ip());
            let text = replace(&text, &format!("{HOST} {{\n"), &site);
            let text = replace(&text, "127.0.0.1:8080", &gateway);
            std::fs::write(path("Caddyfile"), format!("{{\n\tadmin off\n}}\n{text}")).unwrap();
            let name = path("Caddyfile");
            ["caddy", "run", "--adapter", "caddyfile", "--config", &name]
                .map(str::to_owned)
                .into()
        }
    }
}

/// What Debian's nginx.conf has around the files of `conf.d`. Nothing is written outside of the folder.
fn nginx_conf(folder: &Path) -> String {
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {folder}/{name};\n"));
    format!(
        "daemon off;\nuser root;\npid {folder}/pid;\nworker_processes 1;\nevents {{}}\nhttp {{\naccess_log off;\n{}include {folder}/site.conf;\n}}\n",
        temporary.concat()
    )
}

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Replaces a part that has to be there once.
fn replace(text: &str, part: &str, by: &str) -> String {
    assert_eq!(text.matches(part).count(), 1, "{part} in\n{text}");
    text.replacen(part, by, 1)
}
