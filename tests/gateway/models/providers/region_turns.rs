//! Regions that serve requests which name none, and callers that are bound to some: from outside, with regions that fail.

use filters::accounts::AllowedRegions;
use filters::audit::PROGRAM;
use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "cloud"
name = "claude"
wire = "chat"
input_price = "1"
output_price = "1"
regions = ["eu-west-1", "eu-central-1", "us-east-1"]
region_prices = { eu-west-1 = { multiplier = "1" }, eu-central-1 = { multiplier = "1" }, us-east-1 = { multiplier = "1" } }
[[models.providers]]
provider = "elsewhere"
name = "claude"
input_price = "5"
output_price = "5"
"#;

/// A cloud whose own region is Ireland, with Frankfurt and Virginia behind it, and a dearer provider of which it is not known where it
/// is.
struct Cloud {
    ireland: Upstream,
    frankfurt: Upstream,
    virginia: Upstream,
    elsewhere: Upstream,
    gateway: Gateway,
}

impl Cloud {
    fn start(ireland: Upstream, frankfurt: Upstream) -> Self {
        let [virginia, elsewhere] = [(); 2].map(|()| Upstream::always(reply()));
        let toml = format!(
            "[providers.cloud]\nkind = \"bedrock\"\nregion = \"eu-west-1\"\nbase_url = \"{}\"\nkeys = [{{ env = \"CLOUD_KEY\" }}]\n\
             [providers.cloud.regions.eu-central-1]\norder = 1\nbase_url = \"{}\"\n\
             [providers.cloud.regions.us-east-1]\norder = 2\nbase_url = \"{}\"\n\
             [providers.elsewhere]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"CLOUD_KEY\" }}]\n\
             [routing]\nexploration = 0.0\n",
            ireland.url(),
            frankfurt.url(),
            virginia.url(),
            elsewhere.url(),
        );
        let env = [("CLOUD_KEY", "sk-cloud")];
        Self {
            gateway: Gateway::start_with_credit(&toml, MODELS, &env, "10"),
            ireland,
            frankfurt,
            virginia,
            elsewhere,
        }
    }

    /// How many requests the regions and the other provider have had.
    fn counts(&self) -> [usize; 4] {
        let all = [
            &self.ireland,
            &self.frankfurt,
            &self.virginia,
            &self.elsewhere,
        ];
        all.map(|upstream| upstream.requests().len())
    }

    fn bind(&self, project: Option<&str>, regions: &str) {
        let regions: AllowedRegions = regions.parse().unwrap();
        self.gateway.change(async |store| {
            let set = store
                .by(&PROGRAM)
                .set_regions("acme", project, Some(&regions));
            set.await.unwrap();
        });
    }

    fn chat(&self, model: &str) -> Answer {
        let body = PLAIN.replace("\"chat\"", &format!("\"{model}\""));
        self.gateway.chat(body)
    }
}

/// Region, status and kind of error of each entry of `metadata.routing`.
fn routing(metadata: &Value) -> Vec<(&str, u64, &str)> {
    let entries = metadata["routing"].as_array().unwrap().iter();
    entries
        .map(|it| {
            (
                it["region"].as_str().unwrap_or("-"),
                it["status_code"].as_u64().unwrap(),
                it["error_type"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_region_that_fails_hands_on_to_the_next_and_is_passed_over_until_it_is_due() {
    let broken = Upstream::always(Reply::json(503, "{}"));
    let cloud = Cloud::start(broken, Upstream::always(reply()));
    let body = cloud.chat("chat").json();
    let metadata = &body["metadata"];
    assert_eq!(metadata["used_region"], "eu-central-1", "{body}");
    assert_eq!(metadata["used_model"], "cloud/chat:eu-central-1");
    assert_eq!(
        routing(metadata),
        [
            ("eu-west-1", 503, "upstream_error"),
            ("eu-central-1", 200, "none")
        ]
    );
    for _ in 0..20 {
        assert_eq!(cloud.chat("cloud/chat").status(), 200);
    }
    let [ireland, frankfurt, virginia, elsewhere] = cloud.counts();
    assert_eq!((frankfurt, virginia, elsewhere), (21, 0, 0));
    assert!(
        ireland < 10,
        "{ireland} of 21 calls asked the broken region"
    );
}

#[test]
fn the_provider_s_own_region_is_told_where_no_other_was_called() {
    let cloud = Cloud::start(Upstream::always(reply()), Upstream::always(reply()));
    let body = cloud.chat("chat").json();
    assert_eq!(body["metadata"]["used_region"], "eu-west-1", "{body}");
    assert_eq!(body["metadata"]["used_model"], "cloud/chat");
    assert_eq!(cloud.counts(), [1, 0, 0, 0]);
}

#[test]
fn regions_of_an_organization_hold_through_every_fallback_and_the_answer_says_why() {
    let broken = Upstream::always(Reply::json(503, "{}"));
    let cloud = Cloud::start(broken, Upstream::always(reply()));
    cloud.bind(None, "eu");
    let body = cloud.chat("chat").json();
    let outside = ("us-east-1", 0, "region_not_allowed");
    assert_eq!(
        routing(&body["metadata"]),
        [
            outside,
            ("-", 0, "region_not_allowed"),
            ("eu-west-1", 503, "upstream_error"),
            ("eu-central-1", 200, "none")
        ],
        "{body}"
    );
    let line = cloud
        .gateway
        .log_line(body["metadata"]["request_id"].as_str().unwrap());
    assert!(line["attempts"][2]["cause"].is_string(), "{line}");
    assert_eq!(line["attempts"][0].get("cause"), None, "{line}");

    let refused = cloud.chat("cloud/chat:us-east-1");
    assert_eq!(refused.status(), 403, "{}", refused.text());
    let error = refused.json();
    assert_eq!(error["error"]["code"], "region_not_allowed", "{error}");
    assert_eq!(error["error"]["param"], "model");
    assert_eq!(routing(&error["metadata"]), [outside]);
    let [_, _, virginia, elsewhere] = cloud.counts();
    assert_eq!((virginia, elsewhere), (0, 0));
}

#[test]
fn where_all_regions_of_a_caller_fail_the_call_fails_and_goes_nowhere_else() {
    let [ireland, frankfurt] = [(); 2].map(|()| Upstream::always(Reply::json(503, "{}")));
    let cloud = Cloud::start(ireland, frankfurt);
    cloud.bind(None, "eu");
    for _ in 0..8 {
        assert!(cloud.chat("chat").status() >= 500);
    }
    let [_, _, virginia, elsewhere] = cloud.counts();
    assert_eq!((virginia, elsewhere), (0, 0));
}

#[test]
fn a_project_is_bound_within_the_regions_of_its_organization() {
    let cloud = Cloud::start(Upstream::always(reply()), Upstream::always(reply()));
    cloud.bind(Some("default"), "eu-central-1,us");
    let body = cloud.chat("chat").json();
    assert_eq!(body["metadata"]["used_region"], "eu-central-1", "{body}");
    cloud.bind(None, "us");
    let body = cloud.chat("chat").json();
    assert_eq!(body["metadata"]["used_region"], "us-east-1", "{body}");
    cloud.bind(None, "eu-west-1");
    assert_eq!(cloud.chat("chat").status(), 403);
    assert_eq!(cloud.counts(), [0, 1, 1, 0]);
}

#[test]
fn a_stream_and_every_front_stay_in_the_regions_of_the_caller() {
    let cloud = Cloud::start(Upstream::always(reply()), Upstream::always(reply()));
    cloud.bind(None, "ap");
    let message = json!([{"role": "user", "content": "Hi"}]);
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({"model": "chat", "stream": true, "messages": message}),
        ),
        (
            "/v1/messages",
            json!({"model": "chat", "max_tokens": 9, "messages": message}),
        ),
        ("/v1/responses", json!({"model": "chat", "input": "Hi"})),
    ] {
        let answer = ask(
            cloud.gateway.address(),
            &Ask::post(path, body.to_string()).key(&cloud.gateway.key),
        );
        assert_eq!(answer.status(), 403, "{path}: {}", answer.text());
    }
    assert_eq!(cloud.counts(), [0; 4]);
    let list = Ask::get("/v1/models").key(&cloud.gateway.key);
    let list = ask(cloud.gateway.address(), &list).json();
    assert_eq!(list["data"].as_array().unwrap().len(), 0, "{list}");
}
