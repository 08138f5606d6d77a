//! The gateway as every test starts it: in this process, with an address and a store that no other test uses.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filters::audit::PROGRAM;
use filters::limits::QuotaGroup;
use filters::money::Usd;
use tempfile::TempDir;
use weirgate::app::{RefusedReload, Reloaded, Running, boot};
use weirgate::config;
use weirgate::store::{NewKey, Store, StoreSettings};
use weirgate::telemetry::logging::AccessLog;

use super::ask::Ask;
use super::client::{self, Answer};
use super::described;
use super::loopback::own_address;
use super::{POLL, every};

/// A gateway with one organization and one key.
pub struct Gateway {
    /// Stops when dropped.
    pub running: Running,
    log: Lines,
    /// The key.
    pub key: String,
    /// The folder of its store.
    pub folder: TempDir,
    store_url: String,
    toml: String,
    env: Vec<(String, String)>,
}

/// A model that costs a cent a call, whatever the messages are.
pub const CENT: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "0"
output_price = "0"
request_price = "0.01"
capabilities = ["streaming", "cancellation"]
"#;

/// A catalogue of two models, `chat` at both providers and `other` at the first.
pub const MODELS: &str = r#"
[[models]]
id = "chat"
family = "test"
aliases = ["nick"]
created = 2026-01-02
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "2.5"
cached_input_price = "1.25"
output_price = "10"
max_output = 4096
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "json_object", "json_schema", "reasoning", "n", "cancellation"]
[[models.providers]]
provider = "second"
name = "chat-at-second"
input_price = "5"
output_price = "20"
max_output = 16384
[[models]]
id = "only-first"
family = "test"
[[models.providers]]
provider = "first"
name = "only"
input_price = "1"
output_price = "1"
max_output = 16384
capabilities = ["streaming", "cancellation"]
"#;

impl Gateway {
    /// A gateway whose providers `first` and `second` are these; `first` is cheaper and so tried first.
    pub fn between(first: &str, second: &str) -> Gateway {
        Self::with(first, second, "")
    }

    /// The same with more TOML after the providers.
    pub fn with(first: &str, second: &str, more: &str) -> Gateway {
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{first}/v1\"\nkeys = []\n\
             [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n{more}\n"
        );
        Self::start(&toml, MODELS)
    }

    /// A gateway of this configuration (listeners, store and catalogue are added) and catalogue.
    pub fn start(toml: &str, models: &str) -> Gateway {
        Self::start_with_env(toml, models, &[])
    }

    /// The same with more variables in its environment.
    pub fn start_with_env(toml: &str, models: &str, more: &[(&str, &str)]) -> Gateway {
        Self::start_with_credit(toml, models, more, "1000000")
    }

    /// The same with this credit in USD; "0": none.
    pub fn start_with_credit(
        toml: &str,
        models: &str,
        more: &[(&str, &str)],
        credit: &str,
    ) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = folder.path().join("models.toml");
        std::fs::write(&catalogue, models).unwrap();
        let store_url = format!("sqlite:{}", folder.path().join("weirgate.db").display());
        let listener = format!("{}:0", own_address());
        let env = [
            ("WEIRGATE_LISTEN__ADDRESS", listener.clone()),
            ("WEIRGATE_ADMIN__ADDRESS", listener),
            ("WEIRGATE_STORE__URL", store_url.clone()),
            (
                "WEIRGATE_STORE__STATE_DIR",
                folder.path().display().to_string(),
            ),
            ("WEIRGATE_MODELS__FILE", catalogue.display().to_string()),
            // Otherwise one call in a hundred would try the more expensive provider first.
            ("WEIRGATE_ROUTING__EXPLORATION", "0".to_owned()),
        ];
        let more = more
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .chain(unlimited(toml));
        let env: Vec<(String, String)> = env
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .chain(more)
            .collect();
        let loaded = read(toml, &env);
        let key = with_store(&loaded.config, async |store| {
            store
                .by(&PROGRAM)
                .create_organization("acme", filters::accounts::Plan::None, 0)
                .await
                .unwrap();
            let credit = Usd::parse(credit).unwrap();
            if !credit.is_zero() {
                store
                    .by(&PROGRAM)
                    .add_credit("acme", credit, 0)
                    .await
                    .unwrap();
            }
            create_key(&store).await
        });
        let log = Lines::default();
        Gateway {
            running: start(loaded, &log),
            log,
            key,
            folder,
            store_url,
            toml: toml.to_owned(),
            env,
        }
    }

    /// Restarts the gateway on the same state, as a new process would.
    pub fn restart(self) -> Gateway {
        let Gateway {
            running, toml, env, ..
        } = self;
        drop(running);
        let log = Lines::default();
        Gateway {
            running: start(read(&toml, &env), &log),
            log,
            key: self.key,
            folder: self.folder,
            store_url: self.store_url,
            toml,
            env,
        }
    }

    /// The configuration of the start, without its environment.
    pub fn toml(&self) -> &str {
        &self.toml
    }

    /// Reloads with this configuration, in the environment of the start.
    pub fn reload(&self, toml: &str) -> Result<Reloaded, RefusedReload> {
        let source = config::Source::Text {
            name: "weirgate.toml".to_owned(),
            text: toml.to_owned(),
        };
        self.running.reloader.reload_from(&source)
    }

    /// The public listener.
    pub fn address(&self) -> SocketAddr {
        self.running.public
    }

    /// Requests a chat completion with the key.
    pub fn chat(&self, body: impl AsRef<[u8]>) -> Answer {
        client::ask(self.address(), &self.chat_ask(body))
    }

    /// The request of [`Self::chat`], for more headers.
    pub fn chat_ask(&self, body: impl AsRef<[u8]>) -> Ask {
        Ask::post("/v1/chat/completions", body).key(&self.key)
    }

    /// The log line of the request with this id. It is written after the response.
    pub fn log_line(&self, request_id: &str) -> serde_json::Value {
        let find = |_| {
            self.running.app.proxy.access_log.flush();
            let text = self.log.text();
            let mut lines = text.lines().map(|line| {
                serde_json::from_str::<serde_json::Value>(line).expect("lines of JSON")
            });
            lines.find(|line| line["request_id"] == request_id)
        };
        let found = every(POLL, Duration::from_secs(5)).find_map(find);
        found.unwrap_or_else(|| panic!("no line of {request_id}: {}", self.log.text()))
    }

    /// The address of the operator's listener.
    pub fn admin(&self) -> SocketAddr {
        self.running.admin
    }

    /// The text of `/metrics`.
    pub fn metrics(&self) -> String {
        client::ask(self.admin(), &Ask::get("/metrics"))
            .text()
            .to_owned()
    }

    /// Runs `work` on the gateway's store and waits until the running server has seen the change.
    ///
    /// It fails the test if that takes longer than a second.
    pub fn change<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        let (done, revision) = self.beside(async |store| {
            let done = work(&store).await;
            (done, store.revision().await.unwrap())
        });
        let accounts = &self.running.app.proxy.accounts;
        let is_seen = |_| accounts.current().revision() >= revision;
        assert!(
            every(POLL, Duration::from_secs(1)).any(is_seen),
            "the change was not seen within a second"
        );
        done
    }

    /// Runs `work` on the gateway's store, as the command line would beside the server.
    pub fn beside<T>(&self, work: impl AsyncFnOnce(Store) -> T) -> T {
        let toml = format!(
            "[store]\nurl = \"{}\"\nstate_dir = \"{}\"\n",
            self.store_url,
            self.folder.path().display()
        );
        let Ok(loaded) = config::from_str(&toml, []) else {
            panic!("the store's own configuration")
        };
        with_store(&loaded.config, work)
    }

    /// Stops the gateway and runs `work` on its store.
    pub fn stop_and_ask<T>(self, work: impl AsyncFnOnce(Store) -> T) -> T {
        let Gateway {
            running,
            folder,
            store_url,
            ..
        } = self;
        drop(running);
        let state_dir = folder.path().display();
        let toml = format!("[store]\nurl = \"{store_url}\"\nstate_dir = \"{state_dir}\"\n");
        let Ok(loaded) = config::from_str(&toml, []) else {
            panic!("the store's own configuration")
        };
        with_store(&loaded.config, work)
    }
}

/// The variables that lift the built-in limits of a configuration: a test that asks often is not about limits, unless it
/// names them.
pub fn unlimited(toml: &str) -> impl Iterator<Item = (String, String)> {
    let is_limited = toml.contains("requests_per_minute");
    let groups = QuotaGroup::ALL.into_iter().filter(move |_| !is_limited);
    groups.map(|group| {
        let group = group.as_str().to_ascii_uppercase();
        let name = format!("WEIRGATE_LIMITS__REQUESTS_PER_MINUTE__{group}");
        (name, "0".to_owned())
    })
}

fn read(toml: &str, env: &[(String, String)]) -> config::LoadedConfig {
    config::from_str(toml, env.iter().cloned()).unwrap_or_else(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}

fn start(loaded: config::LoadedConfig, log: &Lines) -> Running {
    let lines = |metrics: &weirgate::telemetry::metrics::Metrics| {
        AccessLog::start(log.clone(), metrics.log_dropped.clone())
    };
    let decisions = loaded.config.decisions.as_ref();
    let is_agent = decisions.is_some_and(|decisions| !decisions.protocol.is_described());
    let running = boot(loaded, lines).unwrap();
    if is_agent {
        described::leave_out(running.public);
    }
    running
}

/// The log, kept in memory.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes a key of the organization.
pub async fn create_key(store: &Store) -> String {
    create_key_of("acme", store).await
}

/// Makes another organization with credit, and a key of it.
pub async fn create_organization(name: &str, store: &Store) -> String {
    let plan = filters::accounts::Plan::None;
    store
        .by(&PROGRAM)
        .create_organization(name, plan, 0)
        .await
        .unwrap();
    let credit = Usd::parse("1000").unwrap();
    store
        .by(&PROGRAM)
        .add_credit(name, credit, 0)
        .await
        .unwrap();
    create_key_of(name, store).await
}

async fn create_key_of(organization: &str, store: &Store) -> String {
    let new = NewKey {
        organization,
        project: "default",
        label: "test",
        expires_at_ms: None,
        ..NewKey::default()
    };
    let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
    key.reveal().to_owned()
}

fn with_store<T>(config: &config::Config, work: impl AsyncFnOnce(Store) -> T) -> T {
    super::watchdog::watch_this_test();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let settings = StoreSettings::from_config(&config.store).unwrap();
        let opened = Store::open(&settings).await.unwrap();
        let made = work(opened.store.clone()).await;
        opened.store.close().await;
        made
    })
}
