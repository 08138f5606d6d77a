//! The overview: is it well, what does it cost, and what is near its end?

use serde_json::json;
use weirgate::store::NewKey;

use super::Browser;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

/// The page, with everything that is summed.
fn page(browser: &mut Browser<'_>, query: &str) -> String {
    let page = browser.page(&format!("/console{query}"));
    let sign = if query.is_empty() { '?' } else { '&' };
    let spend = browser.page(&format!("/console{query}{sign}part=spend"));
    page + &spend
}

#[test]
fn the_overview_shows_what_weirgate_usage_tells() {
    let upstream = Upstream::always(reply());
    let (gateway, _) = Gateway::with_calls(&upstream, "");
    let mut browser = Browser::new(&gateway);
    let usage = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
    let usage = &usage[0];
    assert_eq!(
        (usage.requests, usage.prompt_tokens, usage.cost.to_string()),
        (3, 3000, "0.0071".to_owned())
    );
    for query in ["", "?period=day&by=organization", "?period=month&by=key"] {
        let page = page(&mut browser, query);
        for figure in [
            "$0.0071",
            "<dd>3<",
            "3\u{202f}000",
            "40.0 % read from a cache",
        ] {
            assert!(page.contains(figure), "{query}: {figure}: {page}");
        }
    }
    let by_model = page(&mut browser, "?by=model");
    for model in ["chat", "only-first"] {
        assert!(
            by_model.contains(&format!("<th scope=\"row\">{model}</th>")),
            "{by_model}"
        );
    }
    let by_key = page(&mut browser, "?by=key");
    assert!(by_key.contains(">laptop</a>"), "{by_key}");
}

#[test]
fn the_last_hour_and_the_providers_are_those_of_the_process() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let mut browser = Browser::new(&gateway);
    for _ in 0..4 {
        assert_eq!(gateway.chat(PLAIN).status(), 200);
    }
    assert_eq!(
        gateway
            .asked(&gateway.key, "no-such-model", json!({}))
            .status(),
        404
    );
    let hour = browser.page("/console?part=hour");
    assert!(!hour.contains("<html"), "it is a part");
    let row = |page: &str, name: &str| {
        let from = page.find(name).unwrap_or_else(|| panic!("{name}: {page}"));
        page[from..].split("</tr>").next().unwrap().to_owned()
    };
    let route = row(&hour, "<code>chat_completions</code>");
    assert!(
        route.contains(">5</td>") && route.contains(">1</td>"),
        "{route}"
    );
    let live = browser.page("/console?part=live");
    let first = row(&live, "<th scope=\"row\">first</th>");
    assert!(
        first.contains("ready") && first.contains("% answered"),
        "{first}"
    );
    let second = row(&live, "<th scope=\"row\">second</th>");
    let attempts = [&first, &second].map(|row| row.matches("100.0 %").count());
    assert!(attempts.iter().sum::<usize>() >= 1, "{first} {second}");
    for part in ["answers", "the oldest waits", "may cost at most"] {
        assert!(live.contains(part), "{part}: {live}");
    }
    let page = browser.page("/console");
    for part in [
        env!("CARGO_PKG_VERSION"),
        "none since the start",
        "Listens on",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_reload_is_shown_with_its_problems() {
    let gateway = Gateway::start("", "");
    let mut browser = Browser::new(&gateway);
    let wrong = format!("{}\n[limits]\nin_flight = \"<b>many\"\n", gateway.toml());
    assert!(gateway.reload(&wrong).is_err());
    let page = browser.page("/console");
    assert!(
        page.contains("refused") && page.contains("&lt;b&gt;many"),
        "{page}"
    );
    assert!(!page.contains("<b>many"), "{page}");
}

#[test]
fn what_is_near_its_end_is_told_with_whose_it_is() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::with(&upstream.url(), &upstream.url(), "");
    let key = gateway.change(async |store| {
        let terms = serde_json::from_value(json!({"limit": "0.0025"})).unwrap();
        let new = NewKey {
            organization: "acme",
            label: "<script>alert(1)</script>",
            terms: &terms,
            ..NewKey::default()
        };
        store
            .by(&filters::audit::PROGRAM)
            .create_key(&new, 0)
            .await
            .unwrap()
            .0
            .reveal()
            .to_owned()
    });
    assert_eq!(gateway.asked(&key, "only-first", json!({})).status(), 200);
    let mut browser = Browser::new(&gateway);
    let found = crate::support::every(crate::support::POLL, std::time::Duration::from_secs(5))
        .map(|_| browser.page("/console?part=nearest"))
        .find(|page| page.contains("&lt;script&gt;alert"));
    let page = found.expect("the key is near its limit");
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(page.contains("$0.0025") && page.contains("used"), "{page}");
}

#[test]
fn a_parameter_that_means_nothing_is_refused_by_its_name() {
    let gateway = Gateway::start("", "");
    let mut browser = Browser::new(&gateway);
    for (query, said) in [
        (
            "period=%3Cb%3E",
            "period is &quot;&lt;b&gt;&quot;; accepted is one of hour, day, month",
        ),
        (
            "by=colour",
            "by is &quot;colour&quot;; accepted is one of model, provider",
        ),
        ("part=x", "part is &quot;x&quot;"),
    ] {
        let answer = browser.send(&Ask::get(&format!("/console?{query}")));
        assert_eq!(answer.status(), 400, "{query}");
        assert!(answer.text().contains(said), "{}", answer.text());
    }
}
