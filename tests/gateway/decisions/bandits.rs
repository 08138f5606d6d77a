//! Contextual bandits: decisions that an external service predicts.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags::gateway;
use crate::support::script::Reply;
use crate::support::upstream::{ClosedPort, Upstream};

fn datafile() -> Value {
    json!({
        "version": "4", "accountId": "1", "projectId": "2", "revision": "3", "sendFlagDecisions": true,
        "attributes": [{"id": "10", "key": "age"}, {"id": "20", "key": "city"}],
        "experiments": [{"id": "e1", "key": "prices", "status": "Running", "layerId": "l1", "audienceIds": [],
            "forcedVariations": {}, "trafficAllocation": [],
            "cmab": {"attributeIds": ["10"], "trafficAllocation": 10000},
            "variations": [{"id": "v1", "key": "low", "featureEnabled": true, "variables": []},
                {"id": "v2", "key": "high", "featureEnabled": true, "variables": []}]}],
        "featureFlags": [{"id": "f1", "key": "prices", "rolloutId": "", "experimentIds": ["e1"], "variables": []},
            {"id": "f2", "key": "labels", "rolloutId": "", "experimentIds": ["e1"], "variables": []}],
        "rollouts": [], "groups": [], "audiences": [], "events": []
    })
}

fn with_predictor(url: &str, more: &str) -> (Gateway, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), datafile().to_string()).unwrap();
    let project = format!(
        "cmab = {{ endpoint = \"{url}/predict/%s\" }}\n{more}\n[[decisions.projects]]\nsdk_key = \"shop\"\ndatafile = {:?}\n",
        file.path()
    );
    (gateway(&project), file)
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let call = Ask::post(path, body.to_string()).header("X-Platform-SDK-Key", "shop");
    ask(gateway.address(), &call)
}

fn predicts(variation: &str) -> Reply {
    let body = json!({"predictions": [{"variation_id": variation}]});
    Reply::json(200, body.to_string())
}

fn decided(gateway: &Gateway, more: Value) -> Value {
    let mut body = json!({"userId": "ada", "userAttributes": {"age": 36, "city": "Rome"}});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let answer = post(gateway, "/v1/decide?keys=prices", &body);
    assert_eq!(answer.status(), 200);
    answer.json()["variationKey"].clone()
}

#[test]
fn a_prediction_counts_until_something_else_is_known_of_the_user() {
    let predictor = Upstream::sequence(["v1", "v2", "v1", "v2", "v1"].map(predicts));
    let (gateway, _file) = with_predictor(&predictor.url(), "");
    assert_eq!(decided(&gateway, json!({})), "low");
    // The experiment does not let the predictor know the city.
    assert_eq!(
        decided(&gateway, json!({"userAttributes": {"age": 36}})),
        "low"
    );
    let asked = &predictor.requests()[0];
    assert_eq!(asked.path, "/predict/e1");
    let instance = &asked.json()["instances"][0];
    assert_eq!(
        instance["attributes"],
        json!([{"id": "10", "value": 36, "type": "custom_attribute"}])
    );
    assert_eq!(
        decided(&gateway, json!({"userAttributes": {"age": 37}})),
        "high"
    );
    assert_eq!(
        decided(&gateway, json!({"decideOptions": ["IGNORE_CMAB_CACHE"]})),
        "low"
    );
    assert_eq!(
        decided(&gateway, json!({"userAttributes": {"age": 37}})),
        "high"
    );
    assert_eq!(predictor.requests().len(), 3);
    let options =
        json!({"userAttributes": {"age": 37}, "decideOptions": ["INVALIDATE_USER_CMAB_CACHE"]});
    assert_eq!(decided(&gateway, options), "high");
    let options = json!({"userAttributes": {"age": 37}, "decideOptions": ["RESET_CMAB_CACHE"]});
    assert_eq!(decided(&gateway, options), "low");
    assert_eq!(predictor.requests().len(), 5);
}

#[test]
fn flags_of_one_experiment_share_a_prediction_and_the_backend_learns_its_id() {
    let predictor = Upstream::always(predicts("v2"));
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!("event_url = \"{}/events\"\nevent_batch = 2", backend.url());
    let (gateway, _file) = with_predictor(&predictor.url(), &events);
    let body = json!({"userId": "ada"});
    let all = post(&gateway, "/v1/decide", &body).json();
    assert_eq!(
        (&all[0]["variationKey"], &all[1]["variationKey"]),
        (&"high".into(), &"high".into())
    );
    assert_eq!(predictor.requests().len(), 1);
    let asked = &predictor.requests()[0].json()["instances"][0]["cmabUUID"];
    let told = &backend.wait_requests(1)[0].json()["visitors"][0]["snapshots"][0]["decisions"][0];
    assert_eq!(&told["metadata"]["cmab_uuid"], asked);
    let activated = post(&gateway, "/v1/activate?experimentKey=prices", &body).json();
    assert_eq!(activated[0]["variationKey"], "high");
    assert_eq!(predictor.requests().len(), 1);
}

#[test]
fn a_prediction_is_tried_twice_and_without_one_the_flag_is_off() {
    let flaky = Upstream::sequence([Reply::json(500, "{}"), predicts("v1")]);
    let (gateway, _file) = with_predictor(&flaky.url(), "");
    assert_eq!(decided(&gateway, json!({})), "low");
    for broken in [
        Upstream::always(Reply::json(200, "{}")).url(),
        ClosedPort::take().url(),
    ] {
        let (gateway, _file) = with_predictor(&broken, "");
        let answer = post(
            &gateway,
            "/v1/decide?keys=prices",
            &json!({"userId": "ada"}),
        )
        .json();
        assert_eq!(
            (
                &answer["enabled"],
                &answer["variationKey"],
                &answer["reasons"]
            ),
            (
                &false.into(),
                &"".into(),
                &json!(["Failed to fetch CMAB data for experiment prices."])
            )
        );
    }
}
