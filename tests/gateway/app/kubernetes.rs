//! The manifests of `examples/kubernetes`.

use std::path::Path;

use serde_json::Value;

use crate::support::program;
use crate::support::sdk::{self, Script};

fn path(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kubernetes");
    folder.join(name).display().to_string()
}

fn resources(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let parts = text.split("\n---\n");
    parts
        .map(|part| serde_saphyr::from_str(part).unwrap())
        .collect()
}

fn find(kind: &str) -> Value {
    let found = resources("weirgate.yaml")
        .into_iter()
        .find(|it| it["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}"))
}

fn configuration() -> String {
    let text = find("ConfigMap")["data"]["weirgate.toml"].clone();
    text.as_str().expect("a text").to_owned()
}

#[test]
fn the_manifests_are_those_of_kubernetes() {
    let files = [path("weirgate.yaml"), path("secret.sample.yaml")];
    let files = files.each_ref().map(String::as_str);
    let said = sdk::output(Script::KubernetesPython, &[], &files);
    assert_eq!(said.lines().count(), 5, "{said}");
}

#[test]
fn a_pod_has_the_time_that_its_configuration_gives_to_streams() {
    let toml: toml::Table = configuration().parse().unwrap();
    let seconds = |key: &str| toml["server"][key].as_integer().expect("seconds");
    let pod = &find("Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pod["terminationGracePeriodSeconds"].as_i64(),
        Some(seconds("drain_delay_s") + seconds("grace_period_s") + 10)
    );
}

#[test]
fn the_configuration_is_accepted_with_the_secrets_of_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    // The catalogue of the image is the one of this tree.
    let catalogue = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/models.toml");
    let toml = configuration().replace("/etc/weirgate/models.toml", catalogue);
    assert!(toml.contains(catalogue));
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let secret = &resources("secret.sample.yaml")[0];
    let secrets = secret["stringData"].as_object().expect("secrets").iter();
    let output = program()
        .args(["check", "-c", "weirgate.toml"])
        .current_dir(folder.path())
        .envs(secrets.map(|(name, value)| (name, value.as_str().expect("a text"))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    // Each has its key.
    assert!(said.contains("providers on: anthropic, openai"), "{said}");
}
