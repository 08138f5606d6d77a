//! Writes tables, and the line of a run for `RESULTS.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::print_line;
use crate::process::Cores;

/// A table whose columns are as wide as their longest cell.
pub struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table with the names of its columns behind the first.
    pub fn new(title: &'static str, columns: &[&str]) -> Self {
        let mut table = Self {
            title,
            rows: Vec::new(),
        };
        table.row("", columns.iter().map(|&column| column.to_owned()));
        table
    }

    /// Adds a row.
    pub fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        let name = std::iter::once(name.to_owned());
        self.rows.push(name.chain(cells).collect());
    }

    /// Prints the table.
    pub fn print(&self) {
        print_line(&format!("\n{}", self.title));
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell: &String| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let blanks = " ".repeat(widths[column] - cell.chars().count());
                line += &if column == 0 {
                    format!("{cell}{blanks}")
                } else {
                    format!("  {blanks}{cell}")
                };
            }
            print_line(line.trim_end());
        }
    }
}

/// Returns a number with as many decimals as its size deserves.
pub fn figure(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Returns milliseconds.
pub fn ms(number: f64) -> String {
    format!("{number:.3}")
}

/// A goal, and whether a figure reaches it.
#[derive(Clone, Copy)]
pub enum Goal {
    /// The figure is at least this.
    AtLeast(f64),
    /// The figure is at most this.
    AtMost(f64),
}

impl Goal {
    /// Returns the goal with a mark if the figure misses it.
    pub fn with(self, figure: f64) -> String {
        let (sign, goal, is_met) = match self {
            Self::AtLeast(goal) => ('≥', goal, figure >= goal),
            Self::AtMost(goal) => ('≤', goal, figure <= goal),
        };
        format!("{sign} {goal}{}", if is_met { "  met" } else { " miss" })
    }
}

/// The median.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

const COLUMNS: [&str; 19] = [
    "date",
    "commit",
    "machine",
    "1 KB",
    "no price",
    "50 KB",
    "SSE",
    "decide",
    "hit",
    "pass",
    "CPU µs bare",
    "CPU µs ours",
    "added CPU",
    "added p50, 1 connection",
    "added p99, half the knee",
    "instructions",
    "allocations",
    "L2 misses",
    "futex",
];

/// The line of a run.
pub struct ResultLine(BTreeMap<&'static str, String>);

impl ResultLine {
    /// Begins a line with the date, the commit and the machine.
    pub fn new() -> Self {
        let mut line = Self(BTreeMap::new());
        line.set("date", jiff::Zoned::now().date().to_string());
        line.set("commit", commit());
        line.set("machine", machine());
        line
    }

    /// Sets a cell.
    pub fn set(&mut self, column: &'static str, text: String) {
        assert!(COLUMNS.contains(&column), "{column}");
        self.0.insert(column, text);
    }

    /// Prints the line, and adds it to `RESULTS.md` if the run asks for that.
    pub fn finish(&self, is_kept: bool) {
        let cell = |column: &&str| self.0.get(*column).map_or("–", String::as_str);
        let line = row(COLUMNS.iter().map(cell));
        print_line(&format!(
            "\nFor benches/RESULTS.md (WEIRGATE_BENCH_KEEP=1 adds it):\n{line}"
        ));
        if is_kept {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/RESULTS.md");
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.contains(&row(COLUMNS.into_iter())),
                "RESULTS.md has other columns"
            );
            std::fs::write(path, text + &line + "\n").unwrap();
        }
    }
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// Returns the commit, with a plus if the sources differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let output = command
            .arg("-C")
            .arg(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .output();
        output
            .ok()
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"]).filter(|commit| !commit.is_empty());
    let changed = git(&[
        "status",
        "--porcelain",
        "--",
        "src",
        "filters",
        "Cargo.lock",
    ]);
    let plus = if changed.is_some_and(|files| !files.is_empty()) {
        "+"
    } else {
        ""
    };
    commit.map_or_else(|| "–".to_owned(), |commit| commit + plus)
}

/// Returns the processor and the number of cores.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |line| line.trim_start_matches([' ', '\t', ':']));
    format!("{model}, {} cores", Cores::of_process().count())
}
