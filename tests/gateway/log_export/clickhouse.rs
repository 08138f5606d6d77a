//! ClickHouse: what its HTTP interface is asked, and the engine itself.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;

use super::*;

/// The parameters of a request's query.
fn parameters(request: &Received) -> BTreeMap<String, String> {
    let (_, query) = request.path.split_once('?').expect("a query");
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.into_owned().collect()
}

#[test]
fn an_insert_has_the_lines_and_a_token_that_a_second_try_repeats() {
    let refused = [("X-ClickHouse-Exception-Code", "27")];
    let table = Upstream::sequence([Reply::whole(400, &refused, "Cannot parse: 'Hi é'"), is_ok()]);
    let provider = provider();
    for (compression, encoding) in [
        ("gzip", Some("gzip")),
        ("none", None),
        ("zstd", Some("zstd")),
    ] {
        let before = table.requests().len();
        let section = format!(
            "[log_export]\nkind = \"clickhouse\"\nurl = \"{}\"\ndatabase = \"logs\"\ntable = \"calls\"\n\
             user = \"ann\"\npassword = {{ env = \"EXPORT_KEY\" }}\nbatch_interval_s = 1\n\
             compression = \"{compression}\"\n",
            table.url()
        );
        let gateway = gateway(&provider, &section);
        let asked = call(gateway.address(), &gateway.key, CHAT, 1);
        wait_lines(&gateway, "exported", 1);
        let inserts = &table.requests()[before..];
        for insert in inserts {
            assert_eq!(insert.method, "POST");
            assert_eq!(insert.header("x-clickhouse-user"), Some("ann"));
            assert_eq!(insert.header("x-clickhouse-key"), Some("hunter2secret"));
            assert_eq!(insert.header("content-encoding"), encoding);
            assert!(!insert.path.contains("hunter2secret"));
            let parameters = parameters(insert);
            assert_eq!(
                parameters["query"],
                "INSERT INTO `logs`.`calls` FORMAT JSONEachRow"
            );
            assert_eq!(insert.path, inserts[0].path, "the token too");
        }
        let last = inserts.last().unwrap();
        assert_eq!(ids(&lines(&last.body)), asked);
    }
}

/// `clickhouse.py`: ClickHouse's own engine behind its HTTP interface.
struct Engine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    url: String,
}

impl Engine {
    fn start() -> Engine {
        crate::support::watchdog::watch_this_test();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/clickhouse/venv/bin/python");
        assert!(python.exists(), "run `make test-clickhouse`");
        let mut child = Command::new(python)
            .arg(root.join("tests/clients/clickhouse.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut engine = Engine {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            url: String::new(),
        };
        engine.url = engine.read();
        engine
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Runs a statement. Returns its rows.
    fn ask(&mut self, sql: &str) -> Value {
        writeln!(self.input, "{}", json!(sql)).unwrap();
        serde_json::from_str(&self.read()).unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// `make test-clickhouse` installs the engine, which is large.
#[test]
#[ignore = "`make test-clickhouse` runs it"]
fn the_table_of_our_statement_takes_each_line_once() {
    let mut engine = Engine::start();
    let statement = weirgate::log_export::columns::create_table("default", "weirgate_calls");
    engine.ask(statement.trim_end().trim_end_matches(';'));
    for compression in ["gzip", "zstd", "none"] {
        let provider = provider();
        let section = format!(
            "[log_export]\nkind = \"clickhouse\"\nurl = \"{}/\"\nbatch_interval_s = 1\n\
             compression = \"{compression}\"\n",
            engine.url
        );
        let gateway = gateway(&provider, &section);
        allow(&gateway, true);
        let mut asked = call(gateway.address(), &gateway.key, CHAT, 3);
        let bad = gateway.chat("{");
        asked.push(id_of(&bad));
        wait_lines(&gateway, "exported", 4);
        asked.sort_unstable();
        let listed = asked
            .iter()
            .map(|id| format!("'{id}'"))
            .collect::<Vec<_>>()
            .join(",");
        let rows = engine.ask(&format!(
            "SELECT * FROM weirgate_calls WHERE request_id IN ({listed}) ORDER BY request_id"
        ));
        let rows = rows.as_array().unwrap();
        assert_eq!(ids(rows), asked);
        for row in rows {
            let logged = gateway.log_line(row["request_id"].as_str().unwrap());
            let time = row["time"].as_str().unwrap().replace(' ', "T") + "Z";
            assert_eq!(logged["time"], time);
            for member in [
                "route",
                "organization",
                "status",
                "provider",
                "outcome",
                "completion_tokens",
            ] {
                if !logged[member].is_null() {
                    assert_eq!(row[member], logged[member], "{member}");
                }
            }
            if logged["status"] == 200 {
                assert_eq!(row["cost"], json!(0.01));
                assert_eq!(row["answer"], "hello");
                let attempts: Value =
                    serde_json::from_str(row["attempts"].as_str().unwrap()).unwrap();
                assert_eq!(attempts, logged["attempts"]);
            } else {
                let error: Value = serde_json::from_str(row["error"].as_str().unwrap()).unwrap();
                assert_eq!(error, logged["error"]);
            }
        }
    }
    // Each insert came twice: the first answer of the engine's server is cut off.
    let repeated =
        engine.ask("SELECT count() AS all, uniqExact(request_id) AS known FROM weirgate_calls");
    assert_eq!(repeated[0]["all"], repeated[0]["known"], "{repeated}");
    assert_eq!(repeated[0]["all"], 12);
}
