//! The gateway with keys, prices, ledger, log and metrics: this program, or the binary that `WEIRGATE_BENCH_BINARY` names.

use std::net::TcpListener;
use std::path::Path;

use filters::audit::PROGRAM;
use weirgate::config::{self, LoadedConfig};
use weirgate::store::{NewKey, NewProject, Store, StoreSettings};
use weirgate::telemetry::logging::AccessLog;

use crate::options::variable;
use crate::print_line;
use crate::process::{Part, command_under};

const MODELS: &str = r#"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "own"
name = "vectors-up"
input_price = "0.02"
[[models]]
id = "own"
[[models.providers]]
provider = "own"
name = "own-up"
input_price = "1"
output_price = "2"
[[models]]
id = "free"
[[models.providers]]
provider = "own"
name = "own-up"
[[models]]
id = "items"
[[models.providers]]
provider = "own"
name = "items-up"
wire = "responses"
input_price = "1"
output_price = "2"
[[models]]
id = "translated"
[[models.providers]]
provider = "translated"
name = "translated-up"
"#;

/// Starts the gateway of the comparison, under a tool such as valgrind. It keeps its state in this folder, which it makes.
pub fn start(tool: &[String], upstream: &str, folder: &str) -> Part {
    let configuration = |address: &str| configuration(folder, upstream, address);
    start_binary(tool, folder, MODELS, configuration).unwrap_or_else(|| {
        let variables = [
            ("WEIRGATE_BENCH_UPSTREAM", upstream),
            ("WEIRGATE_BENCH_FOLDER", folder),
        ];
        Part::start_under(tool, "gateway", &variables)
    })
}

/// Starts such a gateway that keeps this many calls for the console.
pub fn start_keeping(upstream: &str, folder: &str, calls: usize) -> Part {
    let variables = [
        ("WEIRGATE_BENCH_UPSTREAM", upstream),
        ("WEIRGATE_BENCH_FOLDER", folder),
        ("WEIRGATE_BENCH_KEPT_CALLS", &calls.to_string()),
    ];
    Part::start_under(&[], "gateway", &variables)
}

/// Starts the binary that `WEIRGATE_BENCH_BINARY` names, if it names one, with the configuration for an address.
pub fn start_binary(
    tool: &[String],
    folder: &str,
    models: &str,
    configuration: impl FnOnce(&str) -> String,
) -> Option<Part> {
    let binary = variable("WEIRGATE_BENCH_BINARY")?;
    // A binary tells nobody which port it was given, so it gets one that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let configuration = configuration(&address);
    let (_, keys) = prepare(folder, models, &configuration);
    let file = format!("{folder}/weirgate.toml");
    std::fs::write(&file, configuration).unwrap();
    let mut command = command_under(tool, Path::new(&binary));
    command.args(["serve", "-c", &file]);
    // They are settings of the bench, and none of the program's.
    let of_bench = ["WEIRGATE_BENCH_", "WEIRGATE_SOAK_"];
    for (name, _) in std::env::vars() {
        if of_bench.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    Some(Part::start_program(command, address, &keys))
}

/// Runs the gateway of the comparison.
pub fn run() {
    let upstream = variable("WEIRGATE_BENCH_UPSTREAM").unwrap();
    let folder = variable("WEIRGATE_BENCH_FOLDER").unwrap();
    serve(
        &folder,
        MODELS,
        &configuration(&folder, &upstream, "127.0.0.1:0"),
    );
}

/// Makes the folder of the gateway of the comparison. Returns its configuration and its keys.
pub fn prepare_own(folder: &str, upstream: &str) -> (LoadedConfig, String) {
    let configuration = configuration(folder, upstream, "127.0.0.1:0");
    prepare(folder, MODELS, &configuration)
}

/// Runs a gateway with one organization, named `bench`. It makes the folder, in which it keeps its state.
pub fn serve(folder: &str, models: &str, configuration: &str) -> ! {
    let (loaded, keys) = prepare(folder, models, configuration);
    serve_prepared(loaded, &keys);
}

/// Runs a gateway whose folder is there, with these keys.
pub fn serve_prepared(loaded: LoadedConfig, keys: &str) -> ! {
    let running = weirgate::app::boot(loaded, |metrics| {
        AccessLog::start(std::io::sink(), metrics.log_dropped.clone())
    })
    .unwrap();
    print_line(&format!("{} {keys} {}", running.public, running.admin));
    loop {
        std::thread::park();
    }
}

/// Makes the folder with all that a gateway needs. Returns its configuration, and the keys of its organization; the second
/// is of a project whose replies are cached.
fn prepare(folder: &str, models: &str, configuration: &str) -> (LoadedConfig, String) {
    std::fs::create_dir(folder).unwrap();
    std::fs::write(format!("{folder}/models.toml"), models).unwrap();
    std::fs::write(format!("{folder}/key"), "secret").unwrap();
    let loaded =
        config::from_str(configuration, []).unwrap_or_else(|problems| panic!("{}", problems[0]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let settings = StoreSettings::from_config(&loaded.config.store).unwrap();
    let keys = runtime.block_on(create_keys(&settings));
    (loaded, keys)
}

/// Returns the configuration. `WEIRGATE_BENCH_STORE` adds a line to `[store]`, such as `durability = "power"`.
fn configuration(folder: &str, upstream: &str, address: &str) -> String {
    let store = variable("WEIRGATE_BENCH_STORE").unwrap_or_default();
    let kept_calls = variable("WEIRGATE_BENCH_KEPT_CALLS");
    let console = kept_calls.map_or(String::new(), |calls| {
        format!("[console]\nkeep_calls = {calls}\n")
    });
    format!(
        "[listen]\naddress = \"{address}\"\n[admin]\naddress = \"127.0.0.1:0\"\n[server]\nthreads = 1\n\
         [store]\nurl = \"sqlite:{folder}/bench.db\"\nstate_dir = \"{folder}\"\n{store}\n\
         [limits]\nin_flight = 16384\nbody_bytes = {{ chat = 33554432 }}\nrequests_per_minute = {{ chat = 0, embeddings = 0 }}\n\
         [decisions]\n[[decisions.projects]]\nsdk_key = \"bench\"\ndatafile = \"sandbox\"\n\
         [graph]\nupstream = \"http://{upstream}\"\ncache = {{ ttl_s = 3600 }}\n\
         [[graph.tenants]]\nid = \"pass\"\nsingle_keys = [\"public\"]\napp_keys = [{{ key = \"pass\" }}]\n\
         limits = {{ \"POST /content/v2\" = 1000000000 }}\n\
         [[graph.tenants]]\nid = \"refused\"\napp_keys = [{{ key = \"refused\" }}]\n\
         limits = {{ \"POST /content/v2\" = 0 }}\n\
         [models]\nfile = \"{folder}/models.toml\"\n\
         [providers.own]\nkind = \"openai-compatible\"\nbase_url = \"http://{upstream}/v1\"\nkeys = []\n\
         {console}[providers.translated]\nkind = \"anthropic\"\nbase_url = \"http://{upstream}\"\nkeys = [{{ file = \"{folder}/key\" }}]\n"
    )
}

/// Creates an organization with credit and returns its API keys.
async fn create_keys(settings: &StoreSettings) -> String {
    let opened = Store::open(settings).await.unwrap();
    let store = &opened.store;
    let plan = filters::accounts::Plan::None;
    store
        .by(&PROGRAM)
        .create_organization("bench", plan, 0)
        .await
        .unwrap();
    let credit = filters::money::Usd::parse("1000000").unwrap();
    store
        .by(&PROGRAM)
        .add_credit("bench", credit, 0)
        .await
        .unwrap();
    let caching = NewProject {
        name: "caching",
        mode: filters::accounts::Mode::Platform,
        cache_ttl_s: Some(3600),
    };
    store
        .by(&PROGRAM)
        .create_project("bench", &caching, 0)
        .await
        .unwrap();
    let mut keys = Vec::new();
    for project in ["default", "caching"] {
        let new = NewKey {
            organization: "bench",
            project,
            label: project,
            expires_at_ms: None,
            ..NewKey::default()
        };
        let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        keys.push(key.reveal().to_owned());
    }
    opened.store.close().await;
    keys.join(" ")
}
