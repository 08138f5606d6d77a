//! The catalogue, and why a request would go where.

use super::Browser;
use crate::support::boot::Gateway;

const HOSTILE: &str = "a\\\"><script>alert(1)</script>";

fn gateway() -> Gateway {
    let providers = "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkeys = []\n\
                     [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkeys = []\n";
    let mut models = String::new();
    for number in 0..60 {
        models.push_str(&format!(
            "[[models]]\nid = \"model-{number:02}\"\nfamily = \"many\"\n\
             [[models.providers]]\nprovider = \"first\"\nname = \"up\"\ninput_price = \"1\"\noutput_price = \"2\"\n"
        ));
    }
    models.push_str(&format!(
        "[[models]]\nid = \"priced\"\nname = \"{HOSTILE}\"\ndescription = \"{HOSTILE}\"\n\
         [[models.providers]]\nprovider = \"first\"\nname = \"dear\"\ninput_price = \"10\"\noutput_price = \"20\"\n\
         [[models.providers]]\nprovider = \"second\"\nname = \"cheap\"\ninput_price = \"1\"\noutput_price = \"2.5\"\n\
         capabilities = [\"streaming\"]\n"
    ));
    Gateway::start(providers, &models)
}

#[test]
fn models_are_found_and_shown_with_their_prices() {
    let gateway = gateway();
    let mut browser = Browser::new(&gateway);
    let first = browser.page("/console/models");
    assert!(
        first.contains("61 models") && first.contains("model-49"),
        "{first}"
    );
    assert!(!first.contains("model-50"), "a page has fifty");
    let next = browser.page("/console/models?q=&from=50");
    assert!(
        next.contains("model-50") && !next.contains("Next page"),
        "{next}"
    );
    let found = browser.page("/console/models?q=PRICED");
    assert!(
        found.contains("1 models") && found.contains("$2.50"),
        "{found}"
    );
    let one = browser.page("/console/models/priced");
    for part in ["dear", "cheap", "$10.00", "$20.00", "$1.00", "ready"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    assert!(!one.contains("<script>alert"), "{one}");
    let day = browser.page("/console/models/day");
    assert!(day.contains("routing-day.svg"), "{day}");
}

#[test]
fn a_request_is_explained_as_the_command_does() {
    let gateway = gateway();
    let mut browser = Browser::new(&gateway);
    let ask = |browser: &mut Browser<'_>, body: &str, more: &[(&str, &str)]| {
        let mut fields = vec![("body", body)];
        fields.extend(more);
        let answer = browser.submit("/console/models/route", &fields);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.text().to_owned()
    };
    let body = r#"{"model":"priced","messages":[{"role":"user","content":"Hi"}]}"#;
    let page = ask(&mut browser, body, &[]);
    let places = ["cheap", "second", "first"].map(|name| page.find(&format!(">{name}<")));
    assert!(
        places[1].is_some() && places[1] < places[2],
        "the cheap one is first: {page}"
    );
    let tools = r#"{"model":"priced","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}"#;
    let page = ask(&mut browser, tools, &[("organization", "acme")]);
    assert!(
        page.contains("Who is left out") && page.contains("tools"),
        "{page}"
    );
    for (body, more, said) in [
        ("{", &[][..], "would be refused: 400"),
        (r#"{"model":"none","messages":[]}"#, &[], "would be refused"),
        (body, &[("organization", "nobody<b>")], "nobody&lt;b&gt;"),
        (body, &[("key", "key_1")], "needs its organization"),
    ] {
        let page = ask(&mut browser, body, more);
        assert!(page.contains(said), "{said}: {page}");
    }
    // What was typed stays.
    let page = ask(&mut browser, "{\"model\": \"</textarea><b>\"", &[]);
    assert!(page.contains("&lt;/textarea&gt;&lt;b&gt;"), "{page}");
}
