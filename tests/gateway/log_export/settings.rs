//! The settings: a reload puts others in force, `check` names what is wrong, and `check --online` asks the destination.

use super::*;
use crate::support::process::{Process, misconfigured_start, weirgate};

fn folder_section(folder: &Path) -> String {
    format!(
        "[log_export]\nkind = \"file\"\nfolder = \"{}\"\nbatch_interval_s = 1\n",
        folder.display()
    )
}

/// What waits for one destination goes to the next one.
#[test]
fn a_reload_switches_the_export_on_to_another_destination_and_off() {
    let (provider, storage) = (provider(), Upstream::always(Reply::whole(500, &[], "")));
    let out = tempfile::tempdir().unwrap();
    let gateway = gateway(&provider, "");
    let off = gateway.toml().to_owned();
    let (address, key) = (gateway.address(), gateway.key.as_str());
    call(address, key, CHAT, 1);
    gateway
        .reload(&format!("{off}{}", bucket(&storage.url(), "")))
        .unwrap();
    let mut asked = call(address, key, CHAT, 2);
    storage.wait_requests(1);
    gateway
        .reload(&format!("{off}{}", folder_section(out.path())))
        .unwrap();
    asked.extend(call(address, key, CHAT, 2));
    until("all lines", || folder_lines(out.path()).len() == 4);
    asked.sort_unstable();
    assert_eq!(ids(&folder_lines(out.path())), asked);
    until("nothing waits", || {
        segments(gateway.folder.path()).is_empty()
    });
    gateway.reload(&off).unwrap();
    call(address, key, CHAT, 1);
    assert!(segments(gateway.folder.path()).is_empty());
    gateway
        .reload(&format!("{off}{}", folder_section(out.path())))
        .unwrap();
    call(address, key, CHAT, 1);
    until("the line", || folder_lines(out.path()).len() == 5);
}

/// The lines of a request do not depend on the log.
#[test]
fn calls_are_exported_where_the_log_has_no_requests() {
    let (provider, out) = (provider(), tempfile::tempdir().unwrap());
    let section = format!("{}[log]\naccess = false\n", folder_section(out.path()));
    let gateway = gateway(&provider, &section);
    let asked = call(gateway.address(), &gateway.key, CHAT, 2);
    until("all lines", || folder_lines(out.path()).len() == 2);
    assert_eq!(ids(&folder_lines(out.path())), asked);
}

#[test]
fn a_kind_that_is_unknown_and_a_bucket_that_is_missing_are_said_at_the_start() {
    for (section, said) in [
        ("kind = \"kafka\"", "\"kafka\""),
        ("kind = \"s3\"\nregion = \"eu\"", "log_export.bucket"),
        (
            "kind = \"file\"\nfolder = \"x\"\nurl = \"http://a\"",
            "log_export.url",
        ),
        ("bucket = \"calls\"", "log_export.kind"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let toml = format!("[models]\nfile = \"/dev/null\"\n[log_export]\n{section}\n");
        std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
        let message = misconfigured_start(folder.path());
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn check_online_says_whether_the_destination_is_there() {
    let table = Upstream::sequence([Reply::whole(200, &[], "0\n"), Reply::whole(200, &[], "1\n")]);
    let section = format!(
        "[log_export]\nkind = \"clickhouse\"\nurl = \"{}\"\ntable = \"t1\"\n",
        table.url()
    );
    let process = Process::start(&section);
    let check = |words: &[&str]| {
        let output = weirgate(process.folder.path(), words);
        String::from_utf8(output.stdout).unwrap()
    };
    let said = check(&["check", "--online"]);
    assert!(
        said.contains("ClickHouse has no table default.t1"),
        "{said}"
    );
    let said = check(&["check", "--online"]);
    assert!(!said.contains("log_export"), "{said}");
    let schema = check(&["log-export", "schema"]);
    assert!(
        schema.starts_with("CREATE TABLE IF NOT EXISTS `default`.`t1`"),
        "{schema}"
    );
}
