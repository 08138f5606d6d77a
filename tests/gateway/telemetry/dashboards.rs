//! Dashboards and rules name metrics and labels that exist, and Prometheus reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use weirgate::telemetry::metrics::{MetricRow, Metrics};

use super::promql;
use crate::support::boot::Gateway;

const DASHBOARDS: [&str; 5] = ["flags", "limits", "money", "overview", "providers"];
/// The labels that a scrape adds, and its own metric.
const OF_SCRAPES: [&str; 2] = ["instance", "job"];
const UP: &str = "up";
/// What Grafana puts in place of its variables, for Prometheus to read the rest.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "5m"), ("$__range", "1h")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn dashboard(name: &str) -> Value {
    serde_json::from_str(&read(&format!("{name}.json"))).unwrap()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key}: {value}"))
}

/// The queries of a dashboard: of its panels, and of its variables.
fn queries(dashboard: &Value) -> (Vec<String>, Vec<String>) {
    let panels = list(dashboard, "/panels").iter();
    let targets = panels.flat_map(|panel| list(panel, "/targets"));
    let panels = targets.map(|target| text(target, "expr").to_owned());
    let variables = list(dashboard, "/templating/list").iter();
    let variables = variables.filter(|variable| variable["type"] == "query");
    let variables = variables.map(|variable| text(variable, "definition").to_owned());
    (panels.collect(), variables.collect())
}

/// The series that Prometheus has, each with its labels.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let mut series = BTreeMap::from([(UP.to_owned(), BTreeSet::new())]);
    let metrics = Metrics::new().unwrap();
    for MetricRow {
        name,
        labels,
        is_histogram,
    } in metrics.rows()
    {
        let labels: BTreeSet<String> = labels.iter().cloned().collect();
        if *is_histogram {
            let with_le = labels.iter().cloned().chain(["le".to_owned()]);
            series.insert(format!("{name}_bucket"), with_le.collect());
            series.insert(format!("{name}_sum"), labels.clone());
            series.insert(format!("{name}_count"), labels);
        } else {
            series.insert(name.clone(), labels);
        }
    }
    series
}

/// Checks what a query names. Returns the labels of its result, if it groups.
fn check(query: &str, series: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let named = promql::read(query);
    assert!(!named.metrics.is_empty(), "{query} names no metric");
    let mut all: BTreeSet<String> = OF_SCRAPES.map(str::to_owned).into();
    for (metric, matchers) in &named.metrics {
        let labels = series.get(metric);
        let labels = labels.unwrap_or_else(|| panic!("{query}: there is no {metric}"));
        all.extend(labels.iter().cloned());
        for (label, _) in matchers {
            let is_known = labels.contains(label) || OF_SCRAPES.contains(&label.as_str());
            assert!(is_known, "{query}: {metric} has no label {label}");
        }
    }
    for label in &named.grouping {
        assert!(all.contains(label), "{query}: no label {label}");
    }
    named.grouping
}

/// Name and expression of each rule; an alert has no name.
fn rules() -> Vec<(Option<String>, String)> {
    let rules: Value = serde_saphyr::from_str(&read("rules.yml")).unwrap();
    let groups = list(&rules, "/groups").iter();
    let rules = groups.flat_map(|group| list(group, "/rules"));
    let name = |rule: &Value| rule["record"].as_str().map(str::to_owned);
    rules
        .map(|rule| (name(rule), text(rule, "expr").to_owned()))
        .collect()
}

/// Runs promtool in the folder of dashboards.
fn promtool(arguments: &[&str], file: &Path) {
    let run = Command::new("promtool")
        .args(arguments)
        .arg(file)
        .current_dir(folder())
        .output()
        .expect("promtool is installed by `make test`");
    let said = [run.stdout, run.stderr].map(|out| String::from_utf8_lossy(&out).into_owned());
    assert!(run.status.success(), "{}", said.concat());
}

#[test]
fn every_metric_and_label_of_a_dashboard_exists() {
    let series = series();
    for name in DASHBOARDS {
        let (panels, variables) = queries(&dashboard(name));
        assert!(panels.len() > 5, "{name}");
        for query in panels.iter().chain(&variables) {
            check(query, &series);
        }
    }
}

#[test]
fn every_metric_and_label_of_a_rule_exists() {
    let mut series = series();
    let rules = rules();
    assert!(rules.len() > 15, "{}", rules.len());
    for (name, query) in rules {
        let grouped = check(&query, &series);
        if let Some(name) = name {
            // What is computed over a histogram has its groups without the bound.
            let labels = grouped.into_iter().filter(|label| label != "le");
            series.insert(name, labels.collect());
        }
    }
}

#[test]
fn a_query_that_names_what_does_not_exist_is_found() {
    let series = series();
    for query in [
        "sum(rate(weirgate_request_total[5m]))",
        "sum by (tenant) (weirgate_requests_total)",
        "weirgate_requests_total{code=\"200\"}",
        "rate(weirgate_first_event_seconds[5m])",
        "sum by (le) (rate(weirgate_first_event_seconds_count[5m]))",
    ] {
        let checked = std::panic::catch_unwind(|| check(query, &series));
        assert!(checked.is_err(), "{query}");
    }
}

#[test]
fn routes_that_dashboards_choose_exist() {
    let toml =
        "[decisions]\n[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n";
    let gateway = Gateway::start(toml, "");
    let routes = gateway.running.app.proxy.router.routes();
    for name in DASHBOARDS {
        let (panels, variables) = queries(&dashboard(name));
        for query in panels.iter().chain(&variables) {
            let named = promql::read(query).metrics.into_values().flatten();
            let chosen = named.filter(|(label, value)| label == "route" && !value.starts_with('$'));
            for route in chosen
                .flat_map(|(_, value)| value.split('|').map(str::to_owned).collect::<Vec<_>>())
            {
                assert!(routes.iter().any(|it| it.name == route), "{query}: {route}");
            }
        }
    }
}

#[test]
fn prometheus_reads_every_query_of_a_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    for name in DASHBOARDS {
        let (panels, _) = queries(&dashboard(name));
        let rules: Vec<Value> = panels
            .iter()
            .enumerate()
            .map(|(at, query)| {
                let query = VARIABLES
                    .iter()
                    .fold(query.clone(), |query, (name, value)| {
                        query.replace(name, value)
                    });
                serde_json::json!({"record": format!("panel:{at}"), "expr": query})
            })
            .collect();
        let rules = serde_json::json!({"groups": [{"name": name, "rules": rules}]});
        let file = folder.path().join(format!("{name}.yml"));
        std::fs::write(&file, rules.to_string()).unwrap();
        promtool(&["check", "rules"], &file);
    }
}

#[test]
fn prometheus_takes_the_rules_and_each_alert_fires_where_it_should() {
    promtool(&["check", "rules"], Path::new("rules.yml"));
    promtool(&["test", "rules"], Path::new("rules_test.yml"));
    let rules: Value = serde_saphyr::from_str(&read("rules.yml")).unwrap();
    let tests = read("rules_test.yml");
    let groups = list(&rules, "/groups").iter();
    for rule in groups.flat_map(|group| list(group, "/rules")) {
        let Some(alert) = rule["alert"].as_str() else {
            continue;
        };
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(tests.contains(&fires), "no test lets {alert} fire");
        let quiet = format!("alertname: {alert}}}");
        assert!(tests.contains(&quiet), "no test keeps {alert} quiet");
        let runbook = rule["annotations"]["runbook"].as_str().unwrap();
        assert!(
            runbook.ends_with('.') && runbook.len() > 30,
            "{alert}: {runbook}"
        );
        assert!(rule["labels"]["severity"].is_string(), "{alert}");
    }
}

#[test]
fn every_panel_answers_a_question_in_a_unit() {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        assert_eq!(dashboard["uid"], format!("weirgate-{name}"));
        for panel in list(&dashboard, "/panels") {
            let title = text(panel, "title");
            assert!(text(panel, "description").len() > 30, "{name}: {title}");
            let kind = text(panel, "type");
            assert!(
                ["stat", "table", "timeseries"].contains(&kind),
                "{name}: {title}"
            );
            assert!(!text(&panel["fieldConfig"]["defaults"], "unit").is_empty());
            assert_eq!(
                panel["datasource"]["uid"], "${datasource}",
                "{name}: {title}"
            );
            for target in list(panel, "/targets") {
                assert_eq!(
                    target["datasource"]["uid"], "${datasource}",
                    "{name}: {title}"
                );
                assert!(text(target, "legendFormat").len() <= 40, "{name}: {title}");
            }
        }
    }
}

#[test]
fn the_page_lists_every_metric() {
    let page = std::fs::read_to_string(folder().join("../docs/interface.md")).unwrap();
    for MetricRow { name, .. } in Metrics::new().unwrap().rows() {
        let own = name.strip_prefix("weirgate_");
        if let Some(own) = own {
            assert!(
                page.contains(&format!("`{own}`")),
                "docs/interface.md lacks {own}"
            );
        }
    }
}
