//! A file that uses every section is accepted unchanged.

use super::*;

const WHOLE: &str = r#"
[listen]
address = "127.0.0.1:8080"
header_timeout_s = 10
header_bytes = 32768
max_connections = 10000
max_connections_per_ip = 512
http2 = true
client_ip_header = ""
trusted_proxies = []
[admin]
address = "127.0.0.1:8081"
[cache]
max_bytes = 268435456
[server]
threads = 0
grace_period_s = 300
[store]
url = "sqlite:var/weirgate.db"
state_dir = "var"
[shared]
redis = ""
on_outage = "local"
[limits]
in_flight = 1000
buffered_bytes = 1073741824
body_bytes = { chat = 20971520, images = 67108864, ocr = 67108864, decisions = 262144, batch = 1048576, graph = 4194304, graph_data = 67108864 }
requests_per_minute = { chat = 600, embeddings = 1200, images = 300 }
[routing]
weights = { price = 0.6, uptime = 0.5, throughput = 0.05, latency = 0.025 }
auto = ["claude-sonnet-4-6", "gpt-5-mini"]
[models]
require_key = true
[providers.anthropic]
kind = "anthropic"
base_url = "https://api.anthropic.com"
keys = [{ file = "no-such-anthropic-key" }]
[providers.groq]
kind = "openai-compatible"
base_url = "https://api.groq.com/openai/v1"
keys = [{ env = "GROQ_API_KEY" }]
priority = 1.0
[decisions]
sdk_key_headers = ["X-Platform-SDK-Key", "X-Optimizely-SDK-Key"]
compat = "document"
datafile_url = ""
user_profiles = "none"
token_keys = [{ env = "WEIRGATE_TOKEN_KEY" }]
odp = { host = "", segments_cache = "memory" }
cmab = { endpoint = "" }
[[decisions.projects]]
sdk_key = "demo"
datafile = "conf/no-such-flags.json"
[[decisions.clients]]
id = "checkout"
secret_hash = "…"
sdk_keys = ["demo"]
[[decisions.webhooks]]
project_id = 1234
secret = { env = "HOOK" }
sdk_keys = ["demo"]
[graph]
upstream = "https://graph.example.com"
unknown_paths = "forward"
window_s = 10
in_flight = 10000
algorithm = "fixed"
levels = [10, 50, 500, 1000, 1500, 3000]
cache = { ttl_s = 0, max_bytes = 67108864 }
[graph.categories]
bulk = { default = 5, maximum = 50 }
[[graph.operations]]
methods = ["POST", "DELETE"]
path = "/api/account/{id}"
category = "bulk"
[[graph.tenants]]
id = "acme"
allocation_qps = 300
single_keys = ["sk_public"]
app_keys = [{ key = "ak_acme", secret = { env = "ACME_GRAPH_SECRET" } }]
bearer = [{ issuer = "https://id.example.com", audience = "graph", jwks_url = "https://id.example.com/jwks.json" }]
limits = { "POST /content/v2" = 6000 }
[plans.pro]
cycle_usd = "20"
weekly_premium_pct = 25
daily_pct = 20
"#;

#[test]
fn a_file_of_all_sections_is_accepted() {
    let loaded = good_with(
        WHOLE,
        &[(
            "WEIRGATE_TOKEN_KEY",
            "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        )],
    );
    assert_eq!(
        loaded.config.routing.auto,
        ["claude-sonnet-4-6", "gpt-5-mini"]
    );
    assert_eq!(loaded.config.off_providers.len(), 2);
}

#[test]
fn clients_without_a_key_for_their_tokens_are_refused() {
    let problems = bad(WHOLE);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].message, "WEIRGATE_TOKEN_KEY is not set");
}
