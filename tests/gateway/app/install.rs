//! What `make install` lays out.

use std::path::Path;
use std::process::Command;

use weirgate::config::{self, Source};

/// Lays the configuration out under a folder.
fn install(root: &Path) -> String {
    let output = Command::new("make")
        .args(["--no-print-directory", "install-conf", "PREFIX=/usr"])
        .arg(format!("DESTDIR={}", root.display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_installed_configuration_has_no_sandbox() {
    let root = tempfile::tempdir().unwrap();
    install(root.path());
    let conf = root.path().join("etc/weirgate");
    let models = conf.join("models.toml").display().to_string();
    let env = [
        ("WEIRGATE_MODELS__FILE".to_owned(), models),
        ("OPENAI_API_KEY".to_owned(), "k".to_owned()),
    ];
    let source = Source::File(conf.join("weirgate.toml"));
    let loaded = config::load(&source, env).unwrap_or_else(|bad| panic!("{}", bad[0]));
    let on = loaded.config.providers.iter();
    assert_eq!(on.map(|on| &on.name).collect::<Vec<_>>(), ["openai"]);
    assert!(loaded.config.graph.is_none() && loaded.config.decisions.is_none());
    assert_eq!(
        loaded.config.store.url,
        "sqlite:/var/lib/weirgate/weirgate.db"
    );
    let warned: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, Vec::<String>::new());
}

#[test]
fn an_edited_configuration_is_kept_and_the_new_one_laid_beside_it() {
    let root = tempfile::tempdir().unwrap();
    let conf = root.path().join("etc/weirgate");
    install(root.path());
    let names = || {
        let files = std::fs::read_dir(&conf).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(), ["models.toml", "weirgate.toml"]);
    // Nothing was edited, so nothing is left over.
    install(root.path());
    assert_eq!(names(), ["models.toml", "weirgate.toml"]);
    let shipped = std::fs::read(conf.join("weirgate.toml")).unwrap();
    std::fs::write(conf.join("weirgate.toml"), "# mine\n").unwrap();
    let said = install(root.path());
    assert!(said.contains("weirgate.toml.new"), "{said}");
    assert_eq!(
        names(),
        ["models.toml", "weirgate.toml", "weirgate.toml.new"]
    );
    assert_eq!(
        std::fs::read(conf.join("weirgate.toml")).unwrap(),
        b"# mine\n"
    );
    assert_eq!(
        std::fs::read(conf.join("weirgate.toml.new")).unwrap(),
        shipped
    );
}

#[test]
fn the_unit_reloads_by_the_command_follows_an_upgrade_and_dumps_nothing() {
    let unit = include_str!("../../../systemd/weirgate.service");
    let has = |line| unit.lines().any(|it| it == line);
    assert!(has(
        "ExecReload=/usr/bin/weirgate reload -c /etc/weirgate/weirgate.toml"
    ));
    // The process that was the main one names the next: tests/gateway/app/upgrade.rs.
    assert!(has("NotifyAccess=main"));
    assert!(has("User=weirgate"));
    assert!(unit.lines().any(|line| line == "LimitCORE=0"));
}

/// The bound of `systemd-analyze security`, in tenths. Below it are units whose processes can do little more than their work.
const EXPOSURE: &str = "15";

#[test]
fn the_unit_is_confined_as_far_as_the_program_can_be() {
    let arguments = ["security", "--offline=true", "--no-pager", "--threshold"];
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .args([EXPOSURE, "systemd/weirgate.service"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: the exposure of the unit (systemd-analyze is not installed)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Overall exposure level"), "{output:?}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_unit_waits_longer_for_a_stop_than_the_shipped_configuration_takes() {
    let server = shipped("conf/weirgate.toml")["server"].clone();
    let seconds = |key: &str| server[key].as_integer().expect("seconds");
    let unit = include_str!("../../../systemd/weirgate.service");
    let timeout = unit
        .lines()
        .find_map(|it| it.strip_prefix("TimeoutStopSec="));
    let timeout: i64 = timeout.expect("a timeout").parse().unwrap();
    assert!(timeout >= seconds("drain_delay_s") + seconds("grace_period_s") + 10);
}

#[test]
fn the_socket_unit_has_the_addresses_of_the_shipped_configuration() {
    let shipped = shipped("conf/weirgate.toml");
    let address = |section: &str| {
        shipped[section]["address"]
            .as_str()
            .expect("an address")
            .to_owned()
    };
    let unit = include_str!("../../../systemd/weirgate.socket");
    let streams = unit
        .lines()
        .filter_map(|it| it.strip_prefix("ListenStream="));
    let streams: Vec<_> = streams.collect();
    assert_eq!(streams, [address("listen"), address("admin")]);
}

fn shipped(path: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// A table of files in a package's own format would be a second list, which is forgotten.
#[test]
fn conffiles_of_the_package_are_what_the_installation_puts_there() {
    let root = tempfile::tempdir().unwrap();
    install(root.path());
    let named = include_str!("../../../systemd/deb/conffiles");
    let files = std::fs::read_dir(root.path().join("etc/weirgate")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut installed: Vec<_> = files
        .map(|path| format!("/{}", path.strip_prefix(root.path()).unwrap().display()))
        .collect();
    installed.sort_unstable();
    assert_eq!(named.lines().collect::<Vec<_>>(), installed);
}
