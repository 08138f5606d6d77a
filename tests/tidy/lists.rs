//! What must agree between two files: the route tables and their tests, the lock file and what it must not hold.

use crate::source::Source;

/// The rows of a table of routes: the folder of `src` that it is in, and the first `name: "…"` after every `Route {` or
/// `Row {`.
pub fn route_names(table: &Source) -> Vec<[String; 2]> {
    let code = &table.shipped_strings;
    let rows = ["Route {", "Row {"]
        .into_iter()
        .flat_map(|opening| code.split(opening).skip(1));
    let quoted = |row: &str| {
        let (_, name) = row.split_once("name: \"")?;
        let (name, _) = name.split_once('"')?;
        Some([table.modules()[0], name].map(str::to_owned))
    };
    rows.filter_map(quoted).collect()
}

/// Rows without a test module in the folder of their product. The module is named like the row, whose name may begin with
/// the product's; the folder itself is the module of a row named like the product.
pub fn untested_routes(rows: &[[String; 2]], tests: &[Source]) -> Vec<String> {
    let is_tested = |[product, name]: &&[String; 2]| {
        let is_named = |path: &[&str]| match path {
            [folder] => folder == name,
            [folder, .., module] => {
                folder == product && (module == name || format!("{product}_{module}") == *name)
            }
            [] => false,
        };
        let paths = tests.iter().map(|test| test.modules().split_off(1));
        paths
            .filter(|path| is_named(path))
            .any(|path| is_declared(&path, tests))
    };
    let untested = rows.iter().filter(|row| !is_tested(row));
    let message = |[product, name]: &[String; 2]| {
        format!(
            "route `{name}` needs its module in tests/gateway/{product}, declared from main.rs on"
        )
    };
    untested.map(message).collect()
}

/// Whether the test binary has the module: a file that no `mod` line names is not compiled.
fn is_declared(path: &[&str], tests: &[Source]) -> bool {
    (0..path.len()).all(|depth| {
        let above = if depth == 0 {
            &["main"]
        } else {
            &path[..depth]
        };
        let line = format!("mod {};", path[depth]);
        let parents = tests.iter().filter(|test| &test.modules()[1..] == above);
        let mut lines = parents.flat_map(|parent| parent.code.lines());
        lines.any(|it| it.trim_start_matches("pub ") == line)
    })
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
