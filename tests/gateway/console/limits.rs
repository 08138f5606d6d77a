//! Limits: the fullest windows, and who was refused.

use super::{Browser, table_rows};
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const PATH: &str = "/console/limits";
const HOSTILE: &str = "t\\\"><script>alert(1)</script>";
const QUERY: &str = r#"{"query":"{ a }"}"#;

fn gateway(service: &Upstream, algorithm: &str) -> Gateway {
    let toml = format!(
        "[graph]\nupstream = \"{}\"\nwindow_s = 3600\nalgorithm = \"{algorithm}\"\n\
         [[graph.tenants]]\nid = \"{HOSTILE}\"\nsingle_keys = [\"secret-public-key\"]\nlimits = {{ \"POST /content/v2\" = 5 }}\n\
         [[graph.tenants]]\nid = \"t2\"\nsingle_keys = [\"k2\"]\nlimits = {{ \"POST /content/v2\" = 100 }}\n",
        service.url()
    );
    Gateway::start(&toml, "")
}

fn query(gateway: &Gateway, key: &str, count: usize, status: u16) {
    for _ in 0..count {
        let query = Ask::post(&format!("/content/v2?auth={key}"), QUERY);
        assert_eq!(ask(gateway.address(), &query).status(), status, "{key}");
    }
}

/// The rows of the table with this caption.
fn rows(page: &str, caption: &str) -> Vec<Vec<String>> {
    let start = format!("<caption>{caption}</caption>");
    let Some((_, table)) = page.split_once(&start) else {
        return Vec::new();
    };
    let table = table.split("</table>").next().unwrap();
    table_rows(table.split_once("<tbody>").unwrap().1)
}

#[test]
fn tenants_near_a_limit_are_shown_and_a_look_counts_nothing() {
    for algorithm in ["fixed", "sliding"] {
        let service = Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#));
        let gateway = gateway(&service, algorithm);
        let mut browser = Browser::new(&gateway);
        assert!(browser.page(PATH).contains("No request counts now."));
        query(&gateway, "secret-public-key", 4, 200);
        query(&gateway, "k2", 85, 200);
        let first = "Graph service: nearest to their limits";
        let shown = |browser: &mut Browser<'_>| rows(&browser.page(PATH), first);
        for _ in 0..3 {
            let found = shown(&mut browser);
            let used: Vec<_> = found
                .iter()
                .map(|row| (&*row[0], &*row[1], &*row[2], &*row[3]))
                .collect();
            let hostile = HOSTILE.replace('\\', "");
            assert_eq!(
                used,
                [
                    ("t2", "POST /content/v2", "near", "85 / 100 (85 %)"),
                    (&*hostile, "POST /content/v2", "near", "4 / 5 (80 %)")
                ],
                "{algorithm}"
            );
        }
        // What the tenant itself is told is the same.
        let told = Ask::get("/v1/graph/limits?auth=secret-public-key&operation=POST%20/content/v2");
        assert_eq!(
            ask(gateway.address(), &told).json()["data"][0]["remaining"],
            1
        );
        query(&gateway, "secret-public-key", 1, 200);
        query(&gateway, "secret-public-key", 3, 429);
        let found = shown(&mut browser);
        assert_eq!(
            (&*found[0][2], &*found[0][3], &*found[0][5]),
            ("full", "5 / 5 (100 %)", "3")
        );
        assert!(found[0][4].ends_with("min"), "{found:?}");
        let page = browser.page(PATH);
        let refused = rows(&page, "Graph service: refused since the start");
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0][2..], ["5", "3", "3"]);
        assert!(
            page.contains("Refused since the start of this process: 3."),
            "{page}"
        );
        assert!(
            page.contains("All 2 windows of this process were compared"),
            "{page}"
        );
        for secret in ["<script>alert", "secret-public-key", "k2"] {
            assert!(!page.contains(secret), "{secret}: {page}");
        }
    }
}

#[test]
fn clients_without_a_tenant_are_shown_by_their_address() {
    let service = Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#));
    let gateway = gateway(&service, "fixed");
    query(&gateway, "nobody", 2, 200);
    let page = Browser::new(&gateway).page(PATH);
    let found = rows(&page, "Graph service: nearest to their limits");
    let address: std::net::IpAddr = found[0][0].parse().unwrap();
    assert!(address.is_loopback());
    assert!(found[0][3].starts_with("2 / "), "{found:?}");
    assert!(!page.contains("nobody"), "{page}");
}

#[test]
fn organizations_near_a_quota_are_shown_with_what_was_refused() {
    let upstream = Upstream::always(reply());
    let more = "[limits]\nrequests_per_minute = { chat = 3 }";
    let gateway = Gateway::with(&upstream.url(), &upstream.url(), more);
    let mut browser = Browser::new(&gateway);
    let page = browser.page(PATH);
    assert!(page.contains("The graph service is off"), "{page}");
    for status in [200, 200, 200, 429, 429] {
        assert_eq!(gateway.chat(PLAIN).status(), status);
    }
    let page = browser.page(PATH);
    let near = rows(&page, "Quotas: nearest to their limits");
    assert_eq!(near.len(), 1, "{page}");
    // The name is the one that log lines have.
    let refused = gateway.chat(PLAIN);
    let line = gateway.log_line(refused.header("x-request-id").unwrap());
    let name = line["organization"].as_str().unwrap();
    assert_eq!(near[0][..4], [name, "chat", "full", "3 / 3 (100 %)"]);
    assert_eq!(near[0][5], "2");
    let page = browser.page(PATH);
    let refused = rows(&page, "Quotas: refused since the start");
    assert_eq!(refused, [[name, "chat", "3", "3", "3"]]);
    assert!(!page.contains(&gateway.key), "{page}");
    // What was refused stays known when the configuration is read anew.
    let toml = gateway.toml().replace("chat = 3", "chat = 4");
    assert!(gateway.reload(&toml).is_ok());
    let page = browser.page(PATH);
    assert_eq!(
        rows(&page, "Quotas: nearest to their limits")[0][3],
        "3 / 4 (75 %)"
    );
    assert_eq!(rows(&page, "Quotas: refused since the start")[0][4], "3");
}
