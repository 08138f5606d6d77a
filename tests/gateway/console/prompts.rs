//! Managed prompts on the console.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::{PromptOwner, PromptSummary};

use super::money::address;
use super::{Browser, OpenForm, WRITE, form, html_text, plain, table_rows};
use crate::models::endpoints::prompt::greeting;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, ask};

const HOSTILE: &str = "</pre><script>alert(1)</script>\"'&";
const LABEL: &str = "/console/prompts/prompt/label";
const ACME: PromptOwner<'static> = PromptOwner {
    organization: "acme",
    project: None,
};

/// Stores versions of a prompt of the organization. Returns its id.
pub(super) fn put_prompt(gateway: &Gateway, name: &str, versions: &[Value]) -> String {
    gateway.change(async |store| {
        for (at, content) in versions.iter().enumerate() {
            let content = content.to_string();
            let editor = store.by(&PROGRAM);
            let made_at_ms = 1_000 * at as i64;
            let put = editor.put_prompt(ACME, name, &content, &[], made_at_ms);
            put.await.unwrap();
        }
        store.prompt(ACME, name).await.unwrap().id
    })
}

fn prompt_page(id: &str) -> String {
    address("/console/prompts/prompt", &[("id", id)])
}

fn difference(id: &str, from: &str, to: &str) -> String {
    let pairs = [("id", id), ("from", from), ("to", to)];
    address("/console/prompts/difference", &pairs)
}

/// Renders version 1 with the values of a form.
fn render(browser: &mut Browser<'_>, id: &str, values: &[(&str, &str)]) -> Answer {
    let page = address("/console/prompts/render", &[("id", id), ("version", "1")]);
    let open = OpenForm::open(browser, &page, "/console/prompts/render");
    let named: Vec<_> = values
        .iter()
        .map(|(name, value)| (format!("v-{name}"), *value))
        .collect();
    let fields: Vec<_> = named
        .iter()
        .map(|(name, value)| (&**name, *value))
        .collect();
    open.send(browser, &fields)
}

/// The texts of the blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let blocks = page.split("<pre class=\"text\"").skip(1);
    let text = |block: &str| html_text(&format!("<pre{}", block.split("</pre>").next().unwrap()));
    blocks.map(text).collect()
}

#[test]
fn prompts_are_searched_and_paged() {
    let gateway = Gateway::start("", MODELS);
    let content = json!({"messages": [{"role": "user", "content": "x"}]}).to_string();
    gateway.change(async |store| {
        for number in 0..60 {
            let editor = store.by(&PROGRAM);
            let name = format!("many/{number:02}");
            let put = editor.put_prompt(ACME, &name, &content, &[], 0);
            put.await.unwrap();
        }
        let editor = store.by(&PROGRAM);
        let made = editor.create_organization(HOSTILE, filters::accounts::Plan::None, 0);
        made.await.unwrap();
        let owner = PromptOwner {
            organization: HOSTILE,
            project: Some("default"),
        };
        let labels = ["production".to_owned(), "next".to_owned()];
        let put = editor.put_prompt(owner, "alone", &content, &labels, 0);
        put.await.unwrap();
    });
    let mut browser = Browser::new(&gateway);
    let first = browser.page("/console/prompts");
    assert!(!first.contains(HOSTILE), "{first}");
    let rows = table_rows(&first);
    assert_eq!(rows.len(), 51);
    let expected = ["alone", HOSTILE, "default", "1", "next is 1production is 1"];
    assert_eq!(rows[1][..5], expected);
    let next = first.split("rel=\"next\"").next().unwrap();
    let next = next.rsplit("href=\"").next().unwrap();
    let second = browser.page(&plain(next.split('"').next().unwrap()));
    let rows = table_rows(&second);
    assert_eq!((rows.len(), &*rows[11][0]), (12, "many/59"), "{rows:?}");
    for (query, found) in [
        ("search=many%2F1", 10),
        ("search=any", 0),
        ("organization=acme&search=a", 0),
    ] {
        let page = browser.page(&format!("/console/prompts?{query}"));
        assert_eq!(
            page.matches("/console/prompts/prompt?").count(),
            found,
            "{query}"
        );
    }
    for (path, status) in [
        ("/console/prompts?organization=none", 404),
        ("/console/prompts?search=%00", 400),
        ("/console/prompts/prompt", 400),
        ("/console/prompts/prompt?id=prompt_none", 404),
        ("/console/prompts/difference?id=prompt_none", 404),
        ("/console/prompts/render?id=prompt_none", 404),
        ("/console/prompts/none", 404),
        ("/console/prompts/render/none", 404),
    ] {
        assert_eq!(browser.send(&Ask::get(path)).status(), status, "{path}");
    }
}

#[test]
fn a_prompt_shows_its_versions_labels_and_who_has_changed_it() {
    let gateway = Gateway::start("", MODELS);
    let mut first = greeting();
    first["messages"][0]["content"] = json!(HOSTILE);
    first["parameters"] = json!({HOSTILE: HOSTILE});
    let second = json!({"messages": [{"role": "user", "content": "Line one\nline two"}]});
    let id = put_prompt(&gateway, "hi", &[first, second]);
    let mut browser = Browser::new(&gateway);
    let page = browser.page(&prompt_page(&id));
    assert!(!page.contains(HOSTILE), "{page}");
    assert!(
        page.contains("Version 1<") || page.contains("Version 1 "),
        "production is shown"
    );
    let texts = blocks(&page);
    assert!(texts.iter().any(|text| text == HOSTILE), "{texts:?}");
    let rows = table_rows(&page);
    let row = |first: &str| rows.iter().find(|row| row[0] == first).unwrap().clone();
    assert_eq!(row("2")[1..3], ["1970-01-01 00:00:01", ""]);
    assert_eq!(row("1")[2], "production");
    assert_eq!(row("production")[1], "1");
    assert!(
        rows.iter()
            .any(|row| row.get(3).is_some_and(|it| it == "prompt.put")),
        "{rows:?}"
    );
    assert!(!page.contains(LABEL), "read-only");
    let newest = browser.page(&format!("{}&version=latest", prompt_page(&id)));
    assert_eq!(blocks(&newest), ["Line one\nline two"]);
    let unknown = format!("{}&version=9", prompt_page(&id));
    let unknown = browser.send(&Ask::get(&unknown));
    assert_eq!(unknown.status(), 404);
    assert!(unknown.text().contains("hi@9"), "{}", unknown.text());
    let older = browser.page(&format!("{}&below=2", prompt_page(&id)));
    assert!(
        !table_rows(&older).iter().any(|row| row[0] == "2"),
        "{older}"
    );
}

#[test]
fn versions_are_paged_without_a_gap() {
    let gateway = Gateway::start("", MODELS);
    let content = json!({"messages": [{"role": "user", "content": "x"}]});
    let id = put_prompt(&gateway, "hi", &vec![content; 53]);
    let mut browser = Browser::new(&gateway);
    let first = browser.page(&prompt_page(&id));
    let next = first.split("rel=\"next\"").next().unwrap();
    let next = next.rsplit("href=\"").next().unwrap();
    let second = browser.page(&plain(next.split('"').next().unwrap()));
    let numbers = |page: &str| {
        let rows = table_rows(page).into_iter();
        let versions = rows.filter(|row| row.last().is_some_and(|it| it.starts_with("render ")));
        let numbers = versions.map(|row| row[0].parse::<u64>().unwrap());
        numbers.collect::<Vec<_>>()
    };
    let all = [numbers(&first), numbers(&second)].concat();
    assert_eq!(all, (1..=53).rev().collect::<Vec<_>>());
    assert_eq!(numbers(&second).len(), 3);
    assert!(!second.contains("rel=\"next\""), "{second}");
}

#[test]
fn the_difference_of_two_versions_is_said_in_words() {
    let gateway = Gateway::start("", MODELS);
    let version = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
    let long = |from: usize| {
        let lines = (0..3_000).map(|at| format!("{}", at + from));
        version(&lines.collect::<Vec<_>>().join("\n"))
    };
    let versions = [
        version("common\nold"),
        version(&format!("common\n{HOSTILE}")),
        version("common\nold"),
        long(0),
        long(100_000),
    ];
    let id = put_prompt(&gateway, "hi", &versions);
    let mut browser = Browser::new(&gateway);
    let page = browser.page(&difference(&id, "1", "2"));
    assert!(!page.contains(HOSTILE), "{page}");
    let rows = table_rows(&page);
    let changed = format!("    {HOSTILE}");
    let changed = changed.trim();
    assert!(
        rows.contains(&vec!["− removed".to_owned(), "old".to_owned()]),
        "{rows:?}"
    );
    assert!(
        rows.contains(&vec!["+ added".to_owned(), changed.to_owned()]),
        "{rows:?}"
    );
    assert!(
        rows.contains(&vec!["same".to_owned(), "common".to_owned()]),
        "{rows:?}"
    );
    assert!(page.contains("1 lines removed, 1 added"), "{page}");
    let same = browser.page(&difference(&id, "production", "3"));
    assert!(same.contains("Both versions say the same"), "{same}");
    let long = browser.page(&difference(&id, "4", "latest"));
    assert!(
        long.contains("The first 2\u{202f}000 of "),
        "{}",
        long.len()
    );
    assert_eq!(table_rows(&long).len(), 2_001);
    let unknown = browser.send(&Ask::get(&difference(&id, "1", "nothing")));
    assert_eq!(unknown.status(), 404);
    assert!(unknown.text().contains("hi@nothing"), "{}", unknown.text());
}

#[test]
fn a_prompt_is_rendered_as_the_api_does_with_the_same_refusals() {
    // Without admin.write.
    let gateway = Gateway::start("", MODELS);
    let id = put_prompt(&gateway, "hi", &[greeting()]);
    let mut browser = Browser::new(&gateway);
    for values in [
        &[("name", " \"Ada\" {{free}}<b> "), ("free", "a\r\nb")][..],
        &[
            ("name", "a"),
            ("free", "b"),
            ("times", "1.50"),
            ("loud", "true"),
        ],
        &[],
        &[("name", "a")],
        &[("name", "a"), ("free", "b"), ("times", "many<i>")],
        &[("name", "a"), ("free", "b"), ("loud", "yes")],
    ] {
        let given = values.iter().map(|(name, value)| {
            let value = value.replace("\r\n", "\n");
            ((*name).to_owned(), Value::from(value))
        });
        let body = json!({"variables": given.collect::<serde_json::Map<_, _>>()});
        let asked = Ask::post("/v1/prompts/hi@1", body.to_string()).key(&gateway.key);
        let api = ask(gateway.address(), &asked);
        let page = render(&mut browser, &id, values);
        assert_eq!(page.status(), api.status(), "{values:?}: {}", page.text());
        let (page, api) = (page.text().to_owned(), api.json());
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
        match api["messages"].as_array() {
            Some(messages) => {
                let system = messages[0]["content"].as_str().unwrap();
                let texts = blocks(&page);
                assert!(
                    texts.iter().any(|text| text == system),
                    "{system}: {texts:?}"
                );
                assert!(!page.contains("role=\"alert\""), "{page}");
            }
            None => {
                let message = api["error"]["message"].as_str().unwrap();
                let problem = page.split("role=\"alert\">").nth(1).unwrap();
                let problem = plain(problem.split("</p>").next().unwrap());
                assert_eq!(problem, message);
                let variable = api["error"]["param"].as_str().unwrap();
                let field = variable.replace("variables.", "render-v-") + "-problem";
                assert!(page.contains(&field), "{field}: {page}");
            }
        }
        for (name, value) in values.iter().filter(|(name, _)| *name == "times") {
            let kept = value.replace('<', "&lt;").replace('>', "&gt;");
            assert!(
                page.contains(&format!("value=\"{kept}\"")),
                "{name}: {page}"
            );
        }
    }
}

#[test]
fn a_prompt_that_its_values_make_long_is_cut_or_refused() {
    let gateway = Gateway::start("[limits]\nbody_bytes = { chat = 2000000 }\n", MODELS);
    let many = "{{a}}".repeat(1_000);
    let content = json!({"messages": [{"role": "user", "content": many}]});
    let id = put_prompt(&gateway, "hi", &[content]);
    let mut browser = Browser::new(&gateway);
    let long = render(&mut browser, &id, &[("a", &"x".repeat(1_000))]);
    assert_eq!(long.status(), 200);
    assert!(
        long.text().contains("too long to be shown"),
        "{}",
        long.text().len()
    );
    assert!(long.text().len() < 400_000, "{}", long.text().len());
    let refused = render(&mut browser, &id, &[("a", &"x".repeat(3_000))]);
    assert_eq!(refused.status(), 413);
    assert!(refused.text().contains("longer than 2000000 bytes"));
}

#[test]
fn a_label_is_moved_once_and_by_those_who_may() {
    let gateway = Gateway::start(WRITE, MODELS);
    let version = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
    let versions = [version("one"), version("two")];
    let id = put_prompt(&gateway, "hi", &versions);
    let (mut ann, mut bob) = (Browser::new(&gateway), Browser::new(&gateway));
    let of_ann = OpenForm::open(&mut ann, &prompt_page(&id), LABEL);
    let of_bob = OpenForm::open(&mut bob, &prompt_page(&id), LABEL);
    for (label, wanted, said) in [
        ("latest", "1", "cannot be moved"),
        ("7", "1", "is the number of a version"),
        ("<b>", "1", "is no name"),
        ("", "1", "is no name"),
        ("a\0", "1", "control character"),
        ("next", "9", "hi@9"),
        ("next", "nothing\"", "hi@nothing"),
        ("next", "", "a version is missing"),
    ] {
        let refused = of_ann.send(&mut ann, &[("label", label), ("version", wanted)]);
        let page = plain(refused.text());
        assert_eq!(refused.status(), 422, "{label} {wanted}: {page}");
        assert!(page.contains(said), "{label} {wanted}: {page}");
        assert!(
            page.contains("aria-invalid=\"true\""),
            "{label} {wanted}: {page}"
        );
        assert!(!refused.text().contains("value=\"<b>\""));
    }
    let moved = of_ann.send(&mut ann, &[("label", "production"), ("version", "latest")]);
    assert_eq!(moved.status(), 303, "{}", moved.text());
    assert_eq!(moved.header("location"), Some(&*prompt_page(&id)));
    let refused = of_bob.send(&mut bob, &[("label", "production"), ("version", "1")]);
    assert_eq!(refused.status(), 409, "{}", refused.text());
    let page = plain(refused.text());
    assert!(page.contains("labels.production was 1 and is 2"), "{page}");
    let prompts: Vec<PromptSummary> = gateway.beside(async |store| {
        let page = weirgate::store::PageQuery {
            limit: 5,
            ..Default::default()
        };
        store.prompts_page(None, page).await.unwrap().rows
    });
    assert_eq!(prompts[0].labels, [("production".to_owned(), 2)]);
    let page = ann.page(&prompt_page(&id));
    let rows = table_rows(&page);
    let entry = rows
        .iter()
        .find(|row| row.get(3).is_some_and(|it| it == "prompt.label"));
    let entry = entry.unwrap_or_else(|| panic!("{rows:?}"));
    assert!(entry[2].starts_with("console from 127.0.0.1"), "{entry:?}");
    let unknown = form("/console/prompts/prompt/remove", &[("csrf", &of_ann.csrf)]);
    assert_eq!(ann.send(&unknown).status(), 404);
}

#[test]
fn without_admin_write_no_label_moves() {
    let gateway = Gateway::start("", MODELS);
    let content = json!({"messages": [{"role": "user", "content": "x"}]});
    let id = put_prompt(&gateway, "hi", &[content]);
    let mut browser = Browser::new(&gateway);
    let page = address("/console/prompts/render", &[("id", &id)]);
    let open = OpenForm::open(&mut browser, &page, "/console/prompts/render");
    let path = address(LABEL, &[("id", &id)]);
    let fields = [
        ("csrf", &*open.csrf),
        ("seen", "{}"),
        ("label", "next"),
        ("version", "1"),
    ];
    let refused = browser.send(&form(&path, &fields));
    assert_eq!(refused.status(), 403, "{}", refused.text());
    assert!(refused.text().contains("read-only"), "{}", refused.text());
}
