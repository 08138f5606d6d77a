//! `weirgate apply` and `weirgate export --apply`, as a user sees them.

use serde_json::json;

use super::*;

/// A file with one thing of each kind.
const WHOLE: &str = r#"
[[organizations]]
name = "acme"
plan = "pro"
regions = "eu, us-east-1"
export_content = true

[[organizations.projects]]
name = "app"
mode = "hybrid"
cache_ttl_s = 300

[[organizations.members]]
id = "mem_ada"
name = "ada"
budget = 250

[[organizations.keys]]
id = "key_ci"
project = "app"
label = "ci"
member = "ada"
expires = 2031-01-01T00:00:00Z
debug = true
limit = 50
limit_per = { day = 5, month = "20.50" }
allow_models = ["b", "a"]
deny_ips = ["10.0.0.0/8"]

[[organizations.keys]]
id = "key_off"
status = "disabled"

[[organizations.provider_keys]]
provider = "first"
label = "main"
secret = { file = "provider.key" }

[[organizations.prompts]]
name = "support"
project = "app"
versions = [
  { file = "one.json", labels = ["old"] },
  { content = '{"messages": [{"role": "user", "content": "Hello {{name}}"}]}', labels = ["production"] },
]
"#;

impl Desk {
    /// A desk with a provider, and with the files that [`WHOLE`] refers to.
    fn with_files() -> Self {
        let desk = Self::new();
        let file = desk.folder.path().join("weirgate.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let provider = "[providers.first]\nkind = \"sandbox\"\nkeys = [\"sandbox\"]\n";
        std::fs::write(&file, format!("{text}{provider}")).unwrap();
        desk.write("provider.key", "sk-a-provider-key-of-acme\n");
        desk.write(
            "one.json",
            r#"{"messages": [{"role": "user", "content": "Hi"}]}"#,
        );
        desk
    }

    fn apply(&self, text: &str, more: &[&str]) -> Answer {
        let file = self.write("accounts.toml", text);
        self.run(&[&["apply", "-f", &file], more].concat())
    }

    /// Applies a file and returns the JSON.
    fn applied(&self, text: &str, more: &[&str]) -> Value {
        let answer = self.apply(text, &[more, &["--format", "json"]].concat());
        assert_eq!(answer.code, ExitCode::SUCCESS, "{}", answer.err);
        serde_json::from_str(&answer.out).unwrap()
    }
}

#[test]
fn a_file_is_applied_whole_and_a_second_time_it_changes_nothing() {
    let desk = Desk::with_files();
    let plan = desk.applied(WHOLE, &["--plan"]);
    assert_eq!(
        (&plan["applied"], &plan["keys"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(
        desk.json(&["org", "list"]),
        json!([]),
        "a plan changes nothing"
    );
    let done = desk.applied(WHOLE, &[]);
    let kinds = |value: &Value| -> Vec<String> {
        let all = value["changes"].as_array().unwrap().iter();
        all.map(|it| {
            format!(
                "{} {}",
                it["action"].as_str().unwrap(),
                it["name"].as_str().unwrap()
            )
        })
        .collect()
    };
    assert_eq!(kinds(&plan), kinds(&done));
    assert_eq!(
        kinds(&done),
        [
            "create acme",
            "create acme/default",
            "create acme/app",
            "create acme/ada",
            "create acme/key_ci",
            "create acme/key_off",
            "create acme/first/main",
            "create acme/app/support",
        ]
    );
    let made: Vec<&str> = done["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(made, ["key_ci", "key_off"]);
    assert!(done["keys"][0]["key"].as_str().unwrap().starts_with("wg_"));
    for more in [&["--plan"][..], &[], &["--prune"]] {
        let again = desk.applied(WHOLE, more);
        assert_eq!(
            (&again["changes"], &again["keys"]),
            (&json!([]), &json!([])),
            "{more:?}"
        );
    }
    let keys = desk.json(&["key", "list", "--org", "acme"]);
    let key = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "key_ci")
        .unwrap();
    for (field, expected) in [
        ("label", json!("ci")),
        ("project", json!("app")),
        ("member", json!("ada")),
        ("limit", json!("50")),
        ("debug", json!(true)),
        ("expires_at", json!("2031-01-01T00:00:00Z")),
        ("status", json!("active")),
    ] {
        assert_eq!(key[field], expected, "{field}");
    }
    let members = desk.json(&["member", "list", "--org", "acme"]);
    assert_eq!(
        (&members[0]["id"], &members[0]["budget"]),
        (&json!("mem_ada"), &json!("250"))
    );
    let prompts = desk.json(&["prompt", "list", "--org", "acme"]);
    assert_eq!(prompts[0]["labels"], json!(["old=1", "production=2"]));
    let shown = desk.done(&["org", "list"]);
    assert!(shown.contains("eu,us-east-1"), "{shown}");
}

#[test]
fn what_is_exported_is_no_change_here_and_the_same_elsewhere() {
    let desk = Desk::with_files();
    desk.applied(WHOLE, &[]);
    let file = desk.folder.path().join("exported.toml");
    let path = file.to_str().unwrap();
    desk.done(&["export", "--apply", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("sk-a-provider-key"), "{text}");
    for more in [&[][..], &["--prune"]] {
        assert_eq!(desk.applied(&text, more)["changes"], json!([]), "{text}");
    }
    // The texts of keys of providers are needed where they are not known.
    let other = Desk::with_files();
    let refused = other.apply(&text, &[]);
    assert_eq!(refused.code, ExitCode::from(1));
    assert!(
        refused.err.contains("its text is needed"),
        "{}",
        refused.err
    );
    let with_secret = text.replace(
        "label = \"main\"",
        "label = \"main\"\nsecret = { file = \"provider.key\" }",
    );
    other.applied(&with_secret, &[]);
    let again = other.folder.path().join("again.toml");
    other.done(&["export", "--apply", again.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(again).unwrap(), text);
    // A file that exists is not replaced.
    let refused = desk.run(&["export", "--apply", path]);
    assert_eq!(refused.code, ExitCode::from(1), "{}", refused.err);
}

#[test]
fn secrets_by_reference_are_taken_compared_and_never_shown() {
    let desk = Desk::with_files();
    let printed = desk.applied(
        "[[organizations]]\nname = \"a\"\nkeys = [{ id = \"k\" }]\n",
        &[],
    );
    let text = printed["keys"][0]["key"].as_str().unwrap().to_owned();
    desk.write("k.key", &text);
    let by_reference =
        "[[organizations]]\nname = \"a\"\nkeys = [{ id = \"k\", secret = { file = \"k.key\" } }]\n";
    assert_eq!(desk.applied(by_reference, &[])["changes"], json!([]));
    // On another store the key has the same text.
    let other = Desk::with_files();
    other.write("k.key", &text);
    let made = other.applied(by_reference, &[]);
    assert_eq!(
        made["keys"],
        json!([]),
        "a text that was given is not printed"
    );
    let shown = other.json(&["key", "list", "--org", "a"]);
    assert!(text.ends_with(shown[0]["last_four"].as_str().unwrap()));
    // Another text replaces it.
    let another = desk.done(&["key", "create", "--org", "a"]);
    let another = another.lines().last().unwrap();
    other.write("k.key", another);
    let changed = other.applied(by_reference, &[]);
    assert_eq!(changed["changes"][0]["fields"][0]["name"], "secret");
    let all = changed.to_string() + &made.to_string();
    assert!(!all.contains(another) && !all.contains(&text));
    // A text of another key is refused, and so is what is no key.
    desk.write("k.key", another);
    let refused = desk.apply(by_reference, &[]);
    assert!(
        refused.err.contains("another key of the store has"),
        "{}",
        refused.err
    );
    desk.write("k.key", "sk-1234");
    let refused = desk.apply(by_reference, &[]);
    assert!(
        refused.err.contains("no API key of this server"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains("sk-1234"), "{}", refused.err);
    let literal =
        "[[organizations]]\nname = \"a\"\nkeys = [{ id = \"k\", secret = \"sk-1234\" }]\n";
    let refused = desk.apply(literal, &[]);
    assert!(
        refused.err.contains("must not stand in the file"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains("sk-1234"), "{}", refused.err);
}

#[test]
fn a_mistake_changes_nothing_and_is_named_with_its_line() {
    let desk = Desk::with_files();
    desk.applied(WHOLE, &[]);
    let before = desk.json(&["key", "list", "--org", "acme"]);
    let whole = format!("{WHOLE}\n[[organizations]]\n");
    for (more, said) in [
        ("name = \"b\"\ncolour = 1\n", "organizations[1].colour"),
        ("name = \"b\"\nplan = \"gold\"\n", "\"gold\" is not known"),
        ("name = \"acme\"\n", "stands in the list twice"),
        (
            "name = \"b\"\nkeys = [{ id = \"key_ci\" }]\n",
            "is the id of a key above",
        ),
        (
            "name = \"b\"\nkeys = [{ id = \"k\", member = \"nobody\" }]\n",
            "has no member \"nobody\"",
        ),
        (
            "name = \"b\"\nkeys = [{ id = \"k\", secret = { env = \"WEIRGATE_TEST_NOT_SET\" } }]\n",
            "WEIRGATE_TEST_NOT_SET is not set",
        ),
        (
            "name = \"b\"\nprovider_keys = [{ provider = \"none\", label = \"l\", secret = { file = \"provider.key\" } }]\n",
            "has no provider `none`",
        ),
        (
            "name = \"b\"\nprompts = [{ name = \"p\", versions = [{ file = \"absent.json\" }] }]\n",
            "cannot be read",
        ),
        (
            "name = \"b\"\nprompts = [{ name = \"p\", versions = [{ content = \"{}\" }] }]\n",
            "messages",
        ),
        (
            "name = \"b\"\nprompts = [{ name = \"p\", versions = [{}] }]\n",
            "exactly one of file and content",
        ),
        ("name = \"b\n", "not valid TOML"),
        ("", "the key name is missing"),
    ] {
        let refused = desk.apply(&format!("{whole}{more}"), &[]);
        assert_ne!(refused.code, ExitCode::SUCCESS, "{more}");
        assert!(refused.err.contains(said), "{more}: {}", refused.err);
        assert!(
            refused.err.contains("nothing was changed"),
            "{}",
            refused.err
        );
        assert_eq!(
            desk.json(&["key", "list", "--org", "acme"]),
            before,
            "{more}"
        );
        assert_eq!(
            desk.json(&["org", "list"]).as_array().unwrap().len(),
            1,
            "{more}"
        );
    }
    let absent = desk.run(&["apply", "-f", "/nowhere/accounts.toml"]);
    assert!(absent.err.contains("cannot be read"), "{}", absent.err);
    let place = desk.apply(&format!("{whole}name = \"b\"\ncolour = 1\n"), &[]);
    assert!(place.err.contains("accounts.toml:"), "{}", place.err);
}

#[test]
fn pruning_takes_out_of_use_what_the_file_does_not_name() {
    let desk = Desk::with_files();
    desk.applied(WHOLE, &[]);
    desk.done(&["org", "create", "other"]);
    let small = "[[organizations]]\nname = \"acme\"\nplan = \"pro\"\nregions = \"eu,us-east-1\"\nexport_content = true\n";
    assert_eq!(desk.applied(small, &[])["changes"], json!([]));
    let answer = desk.apply(small, &["--prune"]);
    assert_eq!(answer.code, ExitCode::SUCCESS, "{}", answer.err);
    let lines: Vec<&str> = answer.out.lines().collect();
    assert_eq!(
        lines,
        [
            "- key acme/key_ci",
            "- key acme/key_off",
            "- provider key acme/first/main",
            "- prompt acme/app/support",
            "- member acme/ada",
            "~ project acme/app: status active → archived",
            "~ organization other: status active → disabled",
        ]
    );
    assert!(
        answer.err.contains("created 0, changed 2, removed 5"),
        "{}",
        answer.err
    );
    assert_eq!(desk.applied(small, &["--prune"])["changes"], json!([]));
    let keys = desk.json(&["key", "list", "--org", "acme"]);
    assert!(
        keys.as_array()
            .unwrap()
            .iter()
            .all(|it| it["status"] == "revoked"),
        "{keys}"
    );
    assert_eq!(desk.json(&["member", "list", "--org", "acme"]), json!([]));
    assert_eq!(desk.json(&["prompt", "list", "--org", "acme"]), json!([]));
    // What was taken out of use comes back where the file names it; a revoked key does not.
    let back = desk.apply(WHOLE, &[]);
    assert!(
        back.err.contains("`key_ci` is revoked, which is final"),
        "{}",
        back.err
    );
    let renamed = WHOLE
        .replace("key_ci", "key_ci_2")
        .replace("key_off", "key_off_2");
    desk.applied(&renamed, &[]);
    assert_eq!(desk.applied(&renamed, &[])["changes"], json!([]));
    let prompts = desk.json(&["prompt", "list", "--org", "acme"]);
    assert_eq!(
        prompts[0]["labels"],
        json!(["old=3", "production=4"]),
        "versions go on counting"
    );
}

#[test]
fn ids_rename_and_never_in_a_round() {
    let desk = Desk::with_files();
    desk.applied("[[organizations]]\nid = \"team-7\"\nname = \"seven\"\nmembers = [{ id = \"u1\", name = \"ada\" }]\n", &[]);
    let renamed = "[[organizations]]\nid = \"team-7\"\nname = \"7\"\nmembers = [{ id = \"u1\", name = \"ada l.\" }, { id = \"u2\", name = \"ada\" }]\n";
    let answer = desk.apply(renamed, &[]);
    assert_eq!(
        answer.out.lines().collect::<Vec<_>>(),
        [
            "~ organization 7: name seven → 7",
            "~ member 7/ada l.: name ada → ada l.",
            "+ member 7/ada",
        ]
    );
    let round = renamed
        .replace("\"ada l.\"", "\"x\"")
        .replace("\"ada\"", "\"ada l.\"")
        .replace("\"x\"", "\"ada\"");
    let refused = desk.apply(&round, &[]);
    assert!(
        refused.err.contains("the names go round"),
        "{}",
        refused.err
    );
}
