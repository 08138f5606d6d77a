//! The gateway with keys, prices, ledger, log and metrics.

use weirgate::config;
use weirgate::store::{NewKey, NewProject, Store, StoreSettings};
use weirgate::telemetry::logging::AccessLog;

use crate::options::variable;
use crate::print_line;

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
id = "translated"
[[models.providers]]
provider = "translated"
name = "translated-up"
"#;

/// Runs the gateway of the comparison.
pub fn run() {
    let upstream = variable("WEIRGATE_BENCH_UPSTREAM").unwrap();
    let folder = variable("WEIRGATE_BENCH_FOLDER").unwrap();
    serve(&folder, MODELS, &configuration(&folder, &upstream));
}

/// Runs a gateway with one organization, named `bench`. Its second key is of a project whose replies are cached. It makes the folder, in which it keeps its state.
pub fn serve(folder: &str, models: &str, configuration: &str) -> ! {
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
    let running = weirgate::app::boot(loaded.config, |metrics| {
        AccessLog::start(std::io::sink(), metrics.log_dropped.clone())
    })
    .unwrap();
    print_line(&format!("{} {keys}", running.public));
    loop {
        std::thread::park();
    }
}

/// Returns the configuration. `WEIRGATE_BENCH_STORE` adds a line to `[store]`, such as `durability = "power"`.
fn configuration(folder: &str, upstream: &str) -> String {
    let store = variable("WEIRGATE_BENCH_STORE").unwrap_or_default();
    format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[server]\nthreads = 1\n\
         [store]\nurl = \"sqlite:{folder}/bench.db\"\nstate_dir = \"{folder}\"\n{store}\n\
         [limits]\nbody_bytes = {{ chat = 33554432 }}\nrequests_per_minute = {{ chat = 0, embeddings = 0 }}\n\
         [decisions]\n[[decisions.projects]]\nsdk_key = \"bench\"\ndatafile = \"sandbox\"\n\
         [graph]\nupstream = \"http://{upstream}\"\ncache = {{ ttl_s = 3600 }}\n\
         [[graph.tenants]]\nid = \"pass\"\nsingle_keys = [\"public\"]\napp_keys = [{{ key = \"pass\" }}]\n\
         limits = {{ \"POST /content/v2\" = 1000000000 }}\n\
         [[graph.tenants]]\nid = \"refused\"\napp_keys = [{{ key = \"refused\" }}]\n\
         limits = {{ \"POST /content/v2\" = 0 }}\n\
         [models]\nfile = \"{folder}/models.toml\"\n\
         [providers.own]\nkind = \"openai-compatible\"\nbase_url = \"http://{upstream}/v1\"\nkeys = []\n\
         [providers.translated]\nkind = \"anthropic\"\nbase_url = \"http://{upstream}\"\nkeys = [{{ file = \"{folder}/key\" }}]\n"
    )
}

/// Creates an organization with credit and returns its API keys.
async fn create_keys(settings: &StoreSettings) -> String {
    let opened = Store::open(settings).await.unwrap();
    let store = &opened.store;
    let plan = filters::accounts::Plan::None;
    store.create_organization("bench", plan, 0).await.unwrap();
    let credit = filters::money::Usd::parse("1000000").unwrap();
    store.add_credit("bench", credit, 0).await.unwrap();
    let caching = NewProject {
        name: "caching",
        mode: filters::accounts::Mode::Platform,
        cache_ttl_s: Some(3600),
    };
    store.create_project("bench", &caching, 0).await.unwrap();
    let mut keys = Vec::new();
    for project in ["default", "caching"] {
        let new = NewKey {
            organization: "bench",
            project,
            label: project,
            expires_at_ms: None,
            ..NewKey::default()
        };
        let (key, _) = store.create_key(&new, 0).await.unwrap();
        keys.push(key.reveal().to_owned());
    }
    opened.store.close().await;
    keys.join(" ")
}
