#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use crate::cli::Exit;
use crate::cli::tests::Desk;

const GREETING: &str = r#"
model = "chat"
parameters = { temperature = 0.2 }
variables.tone = { type = "string", default = "kind" }
[[messages]]
role = "system"
content = """
Be {{tone}}.
Greet {{name}}."""
"#;

impl Desk {
    pub(in crate::cli) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn put(&self, file: &str, more: &[&str]) -> String {
        let words = ["prompt", "put", "--org", "acme", "hi", file];
        self.done(&[&words, more].concat())
    }
}

#[test]
fn versions_are_numbered_labels_move_and_a_removed_number_never_comes_back() {
    let desk = Desk::with_acme();
    let toml = desk.write("hi.toml", GREETING);
    let json = desk.write(
        "hi",
        r#" {"messages": [{"role": "user", "content": "Hi"}]}"#,
    );
    assert_eq!(desk.put(&toml, &[]), "1\n");
    assert_eq!(desk.put(&json, &[]), "2\n");
    assert_eq!(
        desk.put(&json, &["--label", "next", "--label", "test"]),
        "3\n"
    );
    let list = || desk.json(&["prompt", "list", "--org", "acme"])[0].clone();
    assert_eq!(
        list()["labels"],
        serde_json::json!(["next=3", "production=1", "test=3"])
    );
    assert_eq!(
        (&list()["latest"], &list()["versions"]),
        (&3.into(), &3.into())
    );
    desk.done(&[
        "prompt",
        "label",
        "--org",
        "acme",
        "hi",
        "latest",
        "production",
    ]);
    desk.done(&["prompt", "label", "--org", "acme", "hi", "1", "next"]);
    desk.done(&["prompt", "remove", "--org", "acme", "hi", "--label", "test"]);
    assert_eq!(
        list()["labels"],
        serde_json::json!(["next=1", "production=3"])
    );
    let show = |name: &str| desk.json(&["prompt", "show", "--org", "acme", name]);
    assert_eq!(
        (&show("hi")["version"], &show("hi@next")["version"]),
        (&3.into(), &1.into())
    );
    let first = show("hi@1");
    assert_eq!(
        (&first["model"], &first["labels"]),
        (&"chat".into(), &serde_json::json!(["next"]))
    );
    assert_eq!(first["parameters"]["temperature"], 0.2);
    assert_eq!(
        first["messages"][0]["content"],
        "Be {{tone}}.\nGreet {{name}}."
    );
    desk.done(&["prompt", "remove", "--org", "acme", "hi"]);
    assert_eq!(
        desk.json(&["prompt", "list", "--org", "acme"]),
        serde_json::json!([])
    );
    assert_eq!(desk.put(&json, &[]), "4\n");
}

#[test]
fn a_projects_prompt_is_another_one() {
    let desk = Desk::with_acme();
    let file = desk.write("hi.toml", GREETING);
    desk.put(&file, &[]);
    assert_eq!(desk.put(&file, &["--project", "default"]), "1\n");
    desk.put(&file, &["--project", "default"]);
    let list = desk.json(&["prompt", "list", "--org", "acme"]);
    let projects: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["project"].clone(), row["latest"].clone()))
        .collect();
    assert_eq!(
        projects,
        [(().into(), 1.into()), ("default".into(), 2.into())]
    );
    let of_project = desk.json(&["prompt", "list", "--org", "acme", "--project", "default"]);
    assert_eq!(of_project.as_array().unwrap().len(), 1);
    desk.done(&["prompt", "remove", "--org", "acme", "hi"]);
    assert_eq!(
        desk.json(&["prompt", "list", "--org", "acme"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let table = desk.done(&["prompt", "list", "--org", "acme"]);
    let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        head,
        list[0].as_object().unwrap().keys().collect::<Vec<_>>()
    );
}

#[test]
fn a_diff_shows_the_lines_that_differ() {
    let desk = Desk::with_acme();
    desk.put(&desk.write("a.toml", GREETING), &[]);
    desk.put(
        &desk.write(
            "b.toml",
            &GREETING.replace("Greet", "Meet").replace("0.2", "0.7"),
        ),
        &[],
    );
    let shown = desk.done(&["prompt", "diff", "--org", "acme", "hi"]);
    for line in [
        "--- hi@1",
        "+++ hi@2",
        "-parameters.temperature = 0.2",
        "+parameters.temperature = 0.7",
        "     Be {{tone}}.",
        "-    Greet {{name}}.",
        "+    Meet {{name}}.",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let answer = desk.run(&["prompt", "diff", "--org", "acme", "hi", "1", "1"]);
    assert_eq!((answer.code, &*answer.out), (Exit::Done.into(), ""));
    assert!(answer.err.contains("say the same"), "{}", answer.err);
}

#[test]
fn a_file_with_mistakes_tells_all_of_them_with_their_places_and_stores_nothing() {
    let desk = Desk::with_acme();
    let toml = "model = 5\nparameters = { temperature = \"hot\", stream = true }\n[[messages]]\nrole = \"king\"\n\
                content = \"\"\"\nfine {{a}}\nnot {{a b}} and {{a b}} {{\"\"\"\n[variables]\nage = { type = \"int\" }\nday = 2026-01-01\n";
    let json =
        "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": 5}],\n  \"parametres\": {}\n}";
    for (name, text, said) in [
        (
            "bad.toml",
            toml,
            &[
                "model: is a number; accepted is a string",
                "bad.toml:1:9",
                "parameters.temperature: is a string",
                "bad.toml:2:30",
                "parameters.stream: is the caller's alone",
                "bad.toml:2:37",
                "messages[0].role: is \"king\"",
                "bad.toml:4:8",
                "messages[0].content: holds \"{{a b}}\"",
                "bad.toml:7:5",
                "bad.toml:7:17",
                "messages[0].content: holds \"{{\"",
                "bad.toml:7:25",
                "variables.age.type: is \"int\"",
                "bad.toml:9:16",
                "variables.day: is a date",
                "bad.toml:10:7",
            ][..],
        ),
        (
            "bad.json",
            json,
            &[
                "messages[0].content: is a number",
                "bad.json:3:33",
                "parametres: is unknown",
                "bad.json:4:3",
            ],
        ),
        (
            "cut.json",
            "{\"messages\": [",
            &["ends inside a value", "cut.json:1:15"],
        ),
        (
            "syntax.toml",
            "messages = [\nmodel = \"a\"",
            &["not valid TOML", "syntax.toml:"],
        ),
        (
            "empty.toml",
            "",
            &["messages: is missing", "empty.toml:1:1"],
        ),
        ("list", "[1]", &["list:1"]),
    ] {
        let file = desk.write(name, text);
        let answer = desk.run(&["prompt", "put", "--org", "acme", "hi", &file]);
        assert_eq!(answer.code, Exit::Failed.into(), "{name}");
        for said in said {
            assert!(answer.err.contains(said), "{name} {said}:\n{}", answer.err);
        }
    }
    assert_eq!(
        desk.json(&["prompt", "list", "--org", "acme"]),
        serde_json::json!([])
    );
}

#[test]
fn a_slip_in_a_good_file_is_a_warning() {
    let desk = Desk::with_acme();
    let file = desk.write(
        "hi.toml",
        &GREETING
            .replace("Be {{tone}}.", "")
            .replace("temperature", "temprature"),
    );
    let answer = desk.run(&["prompt", "put", "--org", "acme", "hi", &file]);
    assert_eq!(answer.code, Exit::Done.into(), "{}", answer.err);
    for said in [
        "parameters.temprature: is no field that the gateway knows",
        "variables.tone: is declared, but no message holds it",
    ] {
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    let desk = Desk::with_acme();
    let file = desk.write("hi.toml", GREETING);
    desk.put(&file, &[]);
    let large = desk.write(
        "large.toml",
        &format!("# {}\n{GREETING}", "x".repeat(256 << 10)),
    );
    for (words, code, said) in [
        (
            &["put", "a@b", &*file][..],
            Exit::Usage,
            "NAME: \"a@b\" is no name",
        ),
        (
            &["put", "hi", &file, "--label", "7"],
            Exit::Usage,
            "--label: `7` is the number of a version",
        ),
        (
            &["put", "hi", &file, "--label", "latest"],
            Exit::Usage,
            "always the newest",
        ),
        (
            &["put", "hi", &large],
            Exit::Failed,
            "accepted are at most 262144",
        ),
        (&["put", "hi", "absent.toml"], Exit::Failed, "absent.toml: "),
        (
            &["put", "hi", &file, "--project", "none"],
            Exit::Failed,
            "there is no project `none`",
        ),
        (&["show", "none"], Exit::Failed, "there is no prompt `none`"),
        (
            &["show", "hi@9"],
            Exit::Failed,
            "there is no version `hi@9`",
        ),
        (&["show", "hi@"], Exit::Usage, "NAME@LABEL"),
        (
            &["show", "hi", "--project", "default"],
            Exit::Failed,
            "there is no prompt `hi`",
        ),
        (
            &["label", "hi", "next", "production"],
            Exit::Failed,
            "there is no version `hi@next`",
        ),
        (
            &["label", "hi", "1", "latest"],
            Exit::Usage,
            "LABEL: `latest`",
        ),
        (
            &["diff", "hi", "1", "7"],
            Exit::Failed,
            "there is no version `hi@7`",
        ),
        (
            &["remove", "hi", "--label", "none"],
            Exit::Failed,
            "there is no label `hi@none`",
        ),
    ] {
        let (command, rest) = words.split_first().unwrap();
        let words = [&["prompt", command, "--org", "acme"], rest].concat();
        let answer = desk.run(&words);
        assert_eq!(answer.code, code.into(), "{words:?} {}", answer.err);
        assert!(answer.err.contains(said), "{words:?} {}", answer.err);
    }
    assert_eq!(
        desk.json(&["prompt", "list", "--org", "acme"])[0]["latest"],
        1
    );
}

#[test]
fn a_project_names_the_datafile_of_its_experiments() {
    let desk = Desk::with_acme();
    let update = |key: &str| {
        desk.run(&[
            "project",
            "update",
            "--org",
            "acme",
            "default",
            "--experiments",
            key,
        ])
    };
    let shown = || desk.json(&["project", "list", "--org", "acme"])[0]["experiments"].clone();
    assert!(shown().is_null());
    assert_eq!(update("Sdk_1-x=:token").code, Exit::Done.into());
    assert_eq!(shown(), "Sdk_1-x=:token");
    let refused = update("a b");
    assert_eq!(refused.code, Exit::Usage.into());
    assert!(
        refused
            .err
            .contains("--experiments: accepted is an SDK key"),
        "{}",
        refused.err
    );
    desk.done(&[
        "project", "update", "--org", "acme", "default", "--mode", "hybrid",
    ]);
    assert_eq!(shown(), "Sdk_1-x=:token");
    assert_eq!(update("").code, Exit::Done.into());
    assert!(shown().is_null());
}
