//! Flags: projects, flags with their rules, decisions for a user, recent events.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Browser, html_text, table_rows};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::flags::{gateway, post};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

const PATH: &str = "/console/flags";
const HOSTILE: &str = "\"'><script>alert(1)</script>&";

/// The address of the first project on the list.
fn project(browser: &mut Browser<'_>) -> String {
    let page = browser.page(PATH);
    let start = format!("href=\"{PATH}/");
    let from = page.find(&start).unwrap_or_else(|| panic!("{page}")) + start.len();
    let id = page[from..].split('"').next().unwrap();
    format!("{PATH}/{id}")
}

/// An address with a query.
fn with(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    format!("{path}?{}", query.finish())
}

fn row(page: &str, first: &str) -> Vec<String> {
    let found = table_rows(page).into_iter().find(|row| row[0] == first);
    found.unwrap_or_else(|| panic!("{first}: {page}"))
}

/// A gateway with a project of this file.
fn with_datafile(file: &Path, more: &str) -> Gateway {
    let toml = format!(
        "[decisions]\n{more}\n[[decisions.projects]]\nsdk_key = \"secret-sdk-key\"\ndatafile = {file:?}\n"
    );
    Gateway::start(&toml, "")
}

fn experiment(id: &str, key: &str, audience: &str) -> Value {
    json!({
        "id": id, "key": key, "layerId": "", "status": "Running", "audienceIds": [audience], "forcedVariations": {},
        "trafficAllocation": [{"entityId": format!("{id}-on"), "endOfRange": 2_500}],
        "variations": [{"id": format!("{id}-on"), "key": format!("{key}-on"), "featureEnabled": true,
                        "variables": [{"id": "v", "value": key}]}],
    })
}

fn datafile(flags: &[&str]) -> Value {
    let all = |make: &dyn Fn(usize, &str) -> Value| -> Vec<Value> {
        let flags = flags.iter().enumerate();
        flags.map(|(at, key)| make(at, key)).collect()
    };
    json!({
        "version": "4", "projectId": HOSTILE, "revision": HOSTILE, "environmentKey": HOSTILE, "accountId": "a",
        "sendFlagDecisions": true,
        "typedAudiences": [{"id": "all", "name": HOSTILE, "conditions": ["not", ["or", {
            "type": "custom_attribute", "name": HOSTILE, "match": "exact", "value": HOSTILE}]]}],
        "experiments": all(&|at, key| experiment(&format!("e{at}"), key, "all")),
        "featureFlags": all(&|at, key| json!({
            "id": format!("f{at}"), "key": key, "rolloutId": "", "experimentIds": [format!("e{at}")],
            "variables": [{"id": "v", "key": HOSTILE, "type": "string", "defaultValue": HOSTILE}]})),
    })
}

#[test]
fn what_a_page_says_of_a_user_is_what_decide_answers() {
    let gateway = gateway("user_profiles = \"memory\"");
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let forced =
        json!({"userId": "eve", "experimentKey": "checkout_test", "variationKey": "one_page"});
    assert_eq!(post(&gateway, "/v1/override", &forced).status(), 200);
    let users = [
        ("ada", json!({"country": "DE", "version": "2.1"})),
        ("ada", json!({})),
        ("eve", json!({"country": "FR"})),
        ("tester", json!({"country": 7, "version": null})),
        (
            "user <b>1</b>",
            json!({"version": "1.9", "$opt_bucketing_id": "ada"}),
        ),
    ];
    for (user, attributes) in users {
        let attributes_text = attributes.to_string();
        let parameters = [("user", user), ("attributes", &attributes_text)];
        let page = browser.page(&with(&path, &parameters));
        let body = json!({"userId": user, "userAttributes": attributes, "decideOptions": ["INCLUDE_REASONS"]});
        let answered = post(&gateway, "/v1/decide", &body).json();
        let decided = answered.as_array().unwrap();
        assert_eq!(decided.len(), 2);
        let explained = post(&gateway, "/v1/decide/explain", &body).json();
        for (decided, explained) in decided.iter().zip(explained.as_array().unwrap()) {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let key = text(&decided["flagKey"]);
            let state = if decided["enabled"] == true {
                "on"
            } else {
                "off"
            };
            let reasons = decided["reasons"].as_array().unwrap();
            let reasons: String = reasons.iter().map(text).collect();
            let shown = row(&page, &key);
            let outcome = format!("{state} {}", text(&decided["variationKey"]));
            assert_eq!(shown[1], outcome, "{user} {key}");
            assert_eq!(shown[2], text(&decided["ruleKey"]), "{user} {key}");
            assert_eq!(shown[4], reasons, "{user} {key}");
            for (variable, value) in decided["variables"].as_object().unwrap() {
                assert!(
                    shown[3].contains(&format!("{variable} = {value}")),
                    "{shown:?}"
                );
            }
            // The flag itself shows how the user meets each rule.
            let flag = [&parameters[..], &[("flag", &*key)]].concat();
            let page = browser.page(&with(&path, &flag));
            for rule in explained["rules"].as_array().unwrap() {
                let shown = row(&page, &text(&rule["key"]));
                assert_eq!(shown[7], rule["bucket"].to_string(), "{user} {key}");
                let audience = match rule["audience"].as_bool() {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "unknown, counts as no",
                };
                assert_eq!(shown[6], audience, "{user} {key}");
                let has_decided = shown[8].starts_with("decided");
                assert_eq!(rule["has_decided"], has_decided, "{user} {key}: {shown:?}");
                if let Some(forced) = rule["override"].as_str() {
                    assert!(
                        shown[8].contains(&format!("override: {forced}")),
                        "{shown:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_look_sends_no_event_counts_no_request_and_stores_nothing() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!(
        "event_url = \"{}/events\"\nevent_flush_interval_s = 1\nevent_batch = 1\nuser_profiles = \"memory\"",
        backend.url()
    );
    let gateway = gateway(&events);
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let profile = || post(&gateway, "/v1/lookup", &json!({"userId": "ada"})).json();
    let empty = profile();
    let requests = || {
        let metrics = gateway.metrics();
        let lines = metrics
            .lines()
            .filter(|line| line.starts_with("weirgate_requests_total"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    until("the look-up is counted", || !requests().is_empty());
    let before = requests();
    let user = [("user", "ada"), ("attributes", "{\"country\":\"DE\"}")];
    for _ in 0..3 {
        let page = browser.page(&with(&path, &user));
        assert!(row(&page, "checkout")[1].starts_with("on"), "{page}");
        browser.page(&with(&path, &[&user[..], &[("flag", "checkout")]].concat()));
    }
    assert_eq!(requests(), before);
    assert_eq!(profile(), empty);
    // The first event that comes is that of a decision, and the page shows it as it was queued.
    post(
        &gateway,
        "/v1/decide?keys=checkout",
        &json!({"userId": "bob", "userAttributes": {"country": "DE"}}),
    );
    let sent = backend.wait_requests(1)[0].json();
    assert_eq!(sent["visitors"][0]["visitor_id"], "bob");
    let seen = &sent["visitors"][0]["snapshots"][0]["decisions"][0]["metadata"];
    for address in [PATH, &path] {
        let page = browser.page(address);
        assert!(page.contains("1 were queued in all"), "{page}");
        let found = table_rows(&page)
            .into_iter()
            .find(|row| row[1] == "bob")
            .unwrap();
        let variation = format!("{} on", seen["variation_key"].as_str().unwrap());
        assert_eq!(
            found[2..],
            [
                "checkout",
                &*variation,
                "checkout_test feature-test",
                "impression"
            ]
        );
        assert!(!page.contains("ada"), "{page}");
    }
}

#[test]
fn where_events_are_not_sent_the_page_says_so() {
    let gateway = gateway("");
    let page = Browser::new(&gateway).page(PATH);
    assert!(page.contains("Events are not sent"), "{page}");
    assert!(page.contains("never changes"), "{page}");
}

#[test]
fn names_are_text_wherever_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flags.json");
    std::fs::write(&file, datafile(&[HOSTILE, " spaced ", ".."]).to_string()).unwrap();
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!("event_url = \"{}/events\"", backend.url());
    let gateway = with_datafile(&file, &events);
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let body = json!({"userId": HOSTILE, "userAttributes": {"a": 1}});
    let call =
        Ask::post("/v1/decide", body.to_string()).header("X-Platform-SDK-Key", "secret-sdk-key");
    assert_eq!(ask(gateway.address(), &call).status(), 200);
    until("the events are queued", || {
        browser.page(PATH).contains("3 were queued")
    });
    let attributes = json!({HOSTILE: [HOSTILE]}).to_string();
    let user = [("user", HOSTILE), ("attributes", &*attributes)];
    for address in [
        PATH.to_owned(),
        path.clone(),
        with(&path, &[("q", HOSTILE)]),
        with(&path, &user),
        with(&path, &[("flag", HOSTILE)]),
        with(
            &path,
            &[
                &user[..],
                &[("flag", HOSTILE), ("q", HOSTILE), ("segments", "")],
            ]
            .concat(),
        ),
    ] {
        let page = browser.page(&address);
        assert!(!page.contains("<script>alert"), "{address}: {page}");
        assert!(
            !page.contains("secret-sdk-key") && page.contains("secr…"),
            "{address}: {page}"
        );
        assert!(page.contains("&lt;script&gt;alert(1)"), "{address}: {page}");
    }
    // Every flag of the list has an address that opens it.
    let page = browser.page(&path);
    let links = page
        .split("href=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    let links: Vec<String> = links
        .filter(|link| link.contains("?flag="))
        .map(html_text)
        .collect();
    assert_eq!(links.len(), 3, "{page}");
    for link in links {
        let page = browser.page(&link);
        assert!(
            page.contains("Rules in order") && page.contains("25 %"),
            "{link}: {page}"
        );
        assert!(
            page.contains("NOT &quot;") || page.contains(" is &quot;"),
            "{link}: {page}"
        );
    }
}

#[test]
fn wrong_attributes_are_refused_with_what_is_accepted_and_stay_in_the_form() {
    let gateway = gateway("");
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let look = |browser: &mut Browser<'_>, more: &[(&str, &str)]| {
        let answer = browser.send(&Ask::get(&with(&path, more)));
        (answer.status(), answer.text().to_owned())
    };
    let wrong = [("user", "ada"), ("attributes", "{\"country\": }")];
    for flag in [&[][..], &[("flag", "checkout")]] {
        let (status, page) = look(&mut browser, &[&wrong[..], flag].concat());
        assert_eq!(status, 400, "{page}");
        assert!(
            page.contains("no JSON object (expected value at line 1 column 13)"),
            "{page}"
        );
        assert!(
            page.contains("{&quot;country&quot;: }</textarea>"),
            "{page}"
        );
        assert!(page.contains("checkout"), "{page}");
    }
    // Nobody is asked about, so nothing is read.
    assert_eq!(look(&mut browser, &[("attributes", "{")]).0, 200);
    // The built-in project has no platform for segments.
    let (status, page) = look(&mut browser, &[("user", "ada"), ("segments", "1")]);
    assert_eq!(status, 403, "{page}");
    assert!(
        page.contains("failed to fetch qualified segments"),
        "{page}"
    );
    for missing in [
        format!("{PATH}/00000000000000000000000000000000"),
        with(&path, &[("flag", "nothing")]),
    ] {
        let answer = browser.send(&Ask::get(&missing));
        assert_eq!(answer.status(), 404, "{missing}");
    }
    let without = Gateway::start("", "");
    let page = Browser::new(&without).page(PATH);
    assert!(page.contains("Flag decisions are off"), "{page}");
}

#[test]
fn a_datafile_of_five_thousand_flags_is_paged_searched_and_shown_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flags.json");
    let keys: Vec<String> = (0..5_000)
        .map(|number| format!("flag-{number:04}"))
        .collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    std::fs::write(&file, datafile(&keys).to_string()).unwrap();
    let gateway = with_datafile(&file, "");
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let user = [("user", "ada"), ("attributes", "{\"a\": 1}")];
    let last = [&user[..], &[("from", "4950")]].concat();
    for (address, first, count) in [
        (PATH.to_owned(), None, 0),
        (path.clone(), Some("flag-0000"), 50),
        (with(&path, &user), Some("flag-0000"), 50),
        (with(&path, &last), Some("flag-4950"), 50),
        (with(&path, &[("q", "FLAG-43")]), Some("flag-4300"), 50),
        (
            with(&path, &[("q", "FLAG-43"), ("from", "50")]),
            Some("flag-4350"),
            50,
        ),
        (with(&path, &[("q", "flag-437")]), Some("flag-4370"), 10),
        (with(&path, &[("from", "18446744073709551615")]), None, 0),
        (
            with(&path, &[&user[..], &[("flag", "flag-4999")]].concat()),
            None,
            0,
        ),
    ] {
        let times = (0..3).map(|_| {
            let start = Instant::now();
            let page = browser.page(&address);
            (start.elapsed(), page)
        });
        let (time, page) = times.min_by_key(|(time, _)| *time).unwrap();
        assert!(time < Duration::from_millis(300), "{address}: {time:?}");
        let flags = table_rows(&page)
            .into_iter()
            .filter(|row| row[0].starts_with("flag-") && row.len() == 5);
        let flags: Vec<_> = flags.collect();
        assert_eq!(flags.len(), count, "{address}: {page}");
        if let Some(first) = first {
            assert_eq!(flags[0][0], first, "{address}");
        }
    }
    let page = browser.page(&with(&path, &[("q", "FLAG-43")]));
    assert!(page.contains("1 to 50 of 100."), "{page}");
    let next = page.split("class=\"pager\"").nth(1).unwrap();
    let next = html_text(
        next.split("href=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap(),
    );
    assert!(browser.page(&next).contains("51 to 100 of 100."), "{next}");
}

#[test]
fn a_datafile_that_cannot_be_read_is_said_to_be_so_and_the_one_before_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flags.json");
    std::fs::write(&file, datafile(&["one"]).to_string()).unwrap();
    let gateway = with_datafile(&file, "");
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let refresh = |browser: &mut Browser<'_>| row(&browser.page(PATH), "SDK key secr…")[6].clone();
    assert!(refresh(&mut browser).starts_with("current"));
    std::fs::write(&file, "{\"version\": \"5\"}").unwrap();
    until("the change is noticed", || {
        refresh(&mut browser).starts_with("failed")
    });
    assert!(refresh(&mut browser).contains("unsupported datafile version"));
    assert!(browser.page(&path).contains(">one</a>"));
    // A file that was never there has no flags, and no page of one.
    let never = with_datafile(&folder.path().join("missing.json"), "");
    let mut browser = Browser::new(&never);
    let page = browser.page(PATH);
    assert!(page.contains("no usable datafile"), "{page}");
    let path = project(&mut browser);
    let page = browser.page(&path);
    assert!(
        page.contains("no usable datafile") && page.contains("missing.json"),
        "{page}"
    );
}

#[test]
fn fetched_datafiles_are_shown_by_the_host_of_their_source_and_unknown_keys_are_counted() {
    let body = datafile(&["one"]).to_string();
    let source = Upstream::sequence([Reply::json(200, body), Reply::whole(404, &[], "")]);
    let url = format!("datafile_url = \"{}/{{}}.json\"", source.url());
    let url = url.replace("{}", "%s");
    let gateway = Gateway::start(&format!("[decisions]\n{url}\n"), "");
    let mut browser = Browser::new(&gateway);
    let page = browser.page(PATH);
    assert!(page.contains("No datafile is in memory yet"), "{page}");
    let decide = |key: &str| {
        let body = json!({"userId": "ada"}).to_string();
        let call = Ask::post("/v1/decide", body).header("X-Platform-SDK-Key", key);
        ask(gateway.address(), &call).status()
    };
    assert_eq!(decide("remote-key:access-token"), 200);
    assert_ne!(decide("another-key"), 200);
    let page = browser.page(PATH);
    let shown = row(&page, "SDK key remo…");
    assert!(
        shown[6].starts_with("current") && shown[6].contains("fetched every"),
        "{shown:?}"
    );
    assert!(
        page.contains("For 1 other SDK keys the source has just refused"),
        "{page}"
    );
    let path = project(&mut browser);
    let page = browser.page(&path);
    assert!(page.contains("fetched from"), "{page}");
    assert!(
        !page.contains("access-token") && !page.contains("remote-key"),
        "{page}"
    );
    assert_eq!(source.wait_requests(2).len(), 2, "a look fetches nothing");
}

#[test]
fn spaces_around_a_user_id_are_a_part_of_it() {
    let gateway = gateway("");
    let mut browser = Browser::new(&gateway);
    let path = project(&mut browser);
    let attributes = json!({"country": "DE"});
    let attributes_text = attributes.to_string();
    let mut outcomes = std::collections::BTreeSet::new();
    for number in 0..12 {
        // Each with two spaces more: another user, perhaps with another variation.
        let user = format!(" ada{}", "  ".repeat(number));
        let parameters = [("user", &*user), ("attributes", &*attributes_text)];
        let page = browser.page(&with(&path, &parameters));
        assert!(page.contains(&format!("value=\"{user}\"")), "{page}");
        let body = json!({"userId": user, "userAttributes": attributes});
        let decided = post(&gateway, "/v1/decide?keys=checkout", &body).json();
        let variation = decided["variationKey"].as_str().unwrap();
        let shown = row(&page, "checkout")[1].clone();
        assert!(shown.ends_with(variation), "{user:?}: {shown} {decided}");
        outcomes.insert(shown);
    }
    assert!(outcomes.len() > 1, "the users differ: {outcomes:?}");
}
