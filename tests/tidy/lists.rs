//! What must agree between two files: the route tables and their tests, the lock file and what it must not hold.

use crate::source::Source;

/// The names of a table of routes: the first `name: "…"` after every `Route {` or `Row {`.
pub fn route_names(table: &Source) -> Vec<String> {
    let code = &table.shipped_strings;
    let rows = ["Route {", "Row {"]
        .into_iter()
        .flat_map(|opening| code.split(opening).skip(1));
    let quoted = |row: &str| {
        let (_, name) = row.split_once("name: \"")?;
        name.split_once('"').map(|(name, _)| name.to_owned())
    };
    rows.filter_map(quoted).collect()
}

/// Rows without a test module: neither listed in `main` (the test binary's text) nor a file of `files`.
pub fn untested_routes(names: &[String], main: &str, files: &[String]) -> Vec<String> {
    let is_tested = |name: &&String| {
        let line = format!("mod {name};");
        let is_listed = main.lines().any(|it| it.trim() == line);
        let paths = [
            format!("tests/gateway/{name}.rs"),
            format!("tests/gateway/{name}/mod.rs"),
        ];
        is_listed && paths.iter().any(|path| files.contains(path))
    };
    let untested = names.iter().filter(|name| !is_tested(name));
    let message = |name: &String| {
        format!("route `{name}` needs `mod {name};` in tests/gateway/main.rs and its file")
    };
    untested.map(message).collect()
}

/// The packages of a lock file, one per version.
pub fn locked(lock: &str) -> Vec<&str> {
    let name = |line: &'_ str| -> Option<(usize, usize)> {
        line.starts_with("name = \"")
            .then(|| ("name = \"".len(), line.len() - 1))
    };
    lock.lines()
        .filter_map(|line| name(line).map(|(start, end)| &line[start..end]))
        .collect()
}

/// Packages that must not be built: a second TLS or crypto stack, and `rsa` (its timing side channel is open).
const BANNED: &[&str] = &[
    "aws-lc-fips-sys",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "native-tls",
    "openssl",
    "openssl-sys",
    "rsa",
];

/// What the lock file has and should not, or has not and should: `ring` exactly once.
pub fn crypto(lock: &str) -> Vec<String> {
    let packages = locked(lock);
    let banned = packages.iter().filter(|package| BANNED.contains(package));
    let mut found: Vec<String> = banned
        .map(|package| format!("Cargo.lock: `{package}` must not be in the tree"))
        .collect();
    let rings = packages
        .iter()
        .filter(|package| **package == "ring")
        .count();
    if rings != 1 {
        found.push(format!(
            "Cargo.lock: `ring` is there {rings} times, not once"
        ));
    }
    found
}
