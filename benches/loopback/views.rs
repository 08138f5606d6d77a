//! How long the server takes for each view of the console, over HTTP: at 1,000 calls of sessions a second, with 10,000 calls in memory
//! and three people who follow them, on a store of 10,000 keys in 1,000 organizations that have called in each hour of a month.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::console::Viewer;
use crate::message::{content_length, head_len};
use crate::options::{number, variable};
use crate::process::Part;
use crate::rates::CONNECTIONS;
use crate::report::{Goal, Table, figure, ms};
use crate::{Lab, gateway, load, print_line};

/// The rate of the calls, unless `WEIRGATE_BENCH_RATE` says another one.
const CALLS_PER_SECOND: f64 = 1_000.0;
/// The calls that are kept in memory, which are there before anything is measured.
const KEPT_CALLS: usize = 10_000;
/// The people who follow them.
const VIEWERS: usize = 3;
/// The looks at a view, if the time for it suffices.
const LOOKS_PER_VIEW: usize = 100;
/// The time for the looks at a view.
const TIME_PER_VIEW: Duration = Duration::from_secs(6);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// What a view may take.
const GOAL_MS: f64 = 300.0;
const HOUR_MS: u128 = 3_600_000;

/// The views: what they show, and their path. A path that ends in an asterisk is that of the first link that begins so, on the page
/// behind the name.
const VIEWS: [(&str, &str, &str); 26] = [
    ("overview", "/console", ""),
    ("overview, how it is now", "/console?part=live", ""),
    ("overview, the last hour", "/console?part=hour", ""),
    (
        "overview, spending of a month",
        "/console?part=spend&period=month",
        "",
    ),
    ("overview, nearest limits", "/console?part=nearest", ""),
    ("live", "/console/live", ""),
    (
        "live, a status that no call has",
        "/console/live?status=418",
        "",
    ),
    (
        "live, a key that no call has",
        "/console/live?key=nobody",
        "",
    ),
    ("a call", "/console/calls/*", "/console/live"),
    ("sessions", "/console/sessions", ""),
    ("sessions, the last page", "/console/sessions?page=20", ""),
    ("a session", "/console/sessions/*", "/console/sessions"),
    ("money", "/console/money", ""),
    (
        "money, spending of a month",
        "/console/money?part=spend",
        "",
    ),
    (
        "money, a search",
        "/console/money?search=organization+9",
        "",
    ),
    (
        "an organization",
        "/console/money/organization?name=organization+7",
        "",
    ),
    (
        "an organization, its spending",
        "/console/money/organization?name=organization+7&part=spend",
        "",
    ),
    ("a key", "/console/money/key?id=key_7", ""),
    ("models", "/console/models", ""),
    ("a model", "/console/models/own", ""),
    (
        "models, why a request goes where",
        "/console/models/route",
        "",
    ),
    ("flags", "/console/flags", ""),
    ("flags of a project", "/console/flags/*", "/console/flags"),
    ("limits", "/console/limits", ""),
    ("playground", "/console/playground", ""),
    ("audit", "/console/audit", ""),
];

/// The SQL that makes the past. Of each organization another key calls each hour.
const PAST: [&str; 7] = [
    "INSERT INTO organizations (id, name, plan, status, created_at, plan_since) \
     SELECT 'org_' || n, 'organization ' || n, 'pro', 'active', 0, 0 FROM numbers WHERE n < 1000",
    "INSERT INTO projects (id, organization_id, name, mode, status, created_at) \
     SELECT 'proj_' || n, 'org_' || n, 'default', 'platform', 'active', 0 FROM numbers WHERE n < 1000",
    "INSERT INTO members (id, organization_id, name, budget, created_at) \
     SELECT 'mem_' || n, 'org_' || n, 'member ' || n, '1000', 0 FROM numbers WHERE n < 1000",
    "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, terms, member_id) \
     SELECT 'key_' || n, 'proj_' || (n % 1000), 'key ' || n, randomblob(32), '0000', n, \
     '{\"limit\":\"1000\",\"limit_per\":{\"month\":\"50\"}}', 'mem_' || (n % 1000) FROM numbers",
    "INSERT INTO limit_counters (organization_id, scope, sums) \
     SELECT 'org_' || (n % 1000), 'key/key_' || n, CAST(n % 997 AS TEXT) || ' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0' FROM numbers",
    "INSERT INTO balances (organization_id, version, settled, shortfall, granted) \
     SELECT 'org_' || n, 1, '5', '0', '100' FROM numbers WHERE n < 1000",
    "INSERT INTO usage_hours SELECT 'org_' || (n % 1000), {now} - n / 1000, 'key_' || (n % 1000 + n / 1000 % 10 * 1000), \
     'model-' || (n % 12), 'provider-' || (n % 4), 'answered', 2, 100, 40, 0, 50, 0, 0, 1000000 + n % 1000, 7 \
     FROM (SELECT a.n * 1000 + b.n AS n FROM numbers a CROSS JOIN numbers b WHERE a.n < 720 AND b.n < 1000) AS hours",
];

/// Runs a gateway with a past.
pub fn run() {
    let upstream = variable("WEIRGATE_BENCH_UPSTREAM").unwrap();
    let folder = variable("WEIRGATE_BENCH_FOLDER").unwrap();
    let (loaded, keys) = gateway::prepare_own(&folder, &upstream);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(fill(&format!("sqlite:{folder}/bench.db")));
    drop(runtime);
    gateway::serve_prepared(loaded, &keys);
}

async fn fill(url: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let this_hour = (now.as_millis() / HOUR_MS).to_string();
    let mut connection = SqliteConnection::connect(url).await.unwrap();
    for sql in PAST {
        let (table, rest) = sql.split_once("SELECT").unwrap();
        let sql = format!(
            "{table} WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999) SELECT{rest}"
        );
        let query = sqlx::raw_sql(AssertSqlSafe(sql.replace("{now}", &this_hour)));
        query.execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// Measures and prints it.
pub fn print(lab: &Lab, folder: &Path) {
    let folder = folder.join("views").display().to_string();
    let kept = KEPT_CALLS.to_string();
    let variables = [
        ("WEIRGATE_BENCH_UPSTREAM", lab.upstream()),
        ("WEIRGATE_BENCH_FOLDER", &folder),
        ("WEIRGATE_BENCH_KEPT_CALLS", &kept),
    ];
    let part = Part::start("views", &variables);
    let rate = number("WEIRGATE_BENCH_RATE").unwrap_or(CALLS_PER_SECOND);
    let (is_over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let load = || load::sessions(&part, CONNECTIONS, rate, (&is_over, &sent));
        let load = scope.spawn(load);
        // So many calls fill the memory.
        while sent.load(Ordering::Relaxed) <= KEPT_CALLS + CONNECTIONS {
            assert!(!load.is_finished(), "the load goes on");
            std::thread::sleep(PAUSE);
        }
        let viewers: Vec<_> = (0..VIEWERS).map(|_| Viewer::start(&part.admin)).collect();
        let (began, before) = (Instant::now(), sent.load(Ordering::Relaxed));
        let columns = ["median ms", "p99 ms", "worst ms", "looks", "KiB", "goal"];
        let mut table = Table::new("Views of the console, while calls come", &columns);
        for (name, path, from) in VIEWS {
            look(
                &mut table,
                &part.admin,
                (name, &address(&part.admin, path, from)),
            );
        }
        let seen: u64 = viewers.into_iter().map(Viewer::end).sum();
        assert!(seen > 0, "the viewers saw nothing");
        let calls = sent.load(Ordering::Relaxed) - before;
        let achieved = calls as f64 / began.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap();
        table.print();
        print_line(&format!(
            "{} calls a second were sent meanwhile",
            figure(achieved)
        ));
    });
}

/// Looks at a view again and again, and adds its row.
fn look(table: &mut Table, admin: &str, (name, path): (&str, &str)) {
    let (mut took, mut bytes) = (Vec::new(), 0);
    let began = Instant::now();
    while took.len() < LOOKS_PER_VIEW && (took.len() < 3 || began.elapsed() < TIME_PER_VIEW) {
        std::thread::sleep(PAUSE);
        let asked = Instant::now();
        bytes = get(admin, path).len();
        took.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    let at = |percent: usize| took[took.len() * percent / 100];
    let p99 = at(99);
    let cells = [
        ms(at(50)),
        ms(p99),
        ms(took[took.len() - 1]),
        took.len().to_string(),
        (bytes / 1024).to_string(),
        Goal::AtMost(GOAL_MS).with(p99),
    ];
    table.row(name, cells);
}

/// Returns the path of a view.
fn address(admin: &str, path: &str, from: &str) -> String {
    let Some(beginning) = path.strip_suffix('*') else {
        return path.to_owned();
    };
    let page = get(admin, from);
    let link = format!("href=\"{beginning}");
    let at = page
        .find(&link)
        .unwrap_or_else(|| panic!("{from} has no {link}: {page}"));
    let rest = &page[at + "href=\"".len()..];
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

/// Asks for a page, which has to be shown.
fn get(admin: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        if let Some(length) = head_len(&answer) {
            let body = content_length(&answer[..length]).unwrap();
            if answer.len() >= length + body {
                let is_shown = answer.starts_with(b"HTTP/1.1 200");
                let text = String::from_utf8_lossy(&answer).into_owned();
                assert!(is_shown, "{path}: {text}");
                return text;
            }
        }
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{path}: the connection closed");
        answer.extend_from_slice(&piece[..count]);
    }
}
