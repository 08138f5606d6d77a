//! The figures of the tree, on demand: `cargo test --test tidy figures -- --ignored --nocapture`.

use crate::circles::circles;
use crate::graph::Graph;
use crate::names::repeated;
use crate::source::Source;

#[test]
#[ignore = "prints figures and checks nothing"]
fn figures() {
    let files = &*crate::TREE;
    let shipped: Vec<&Source> = files
        .iter()
        .filter(|file| !file.shipped.is_empty())
        .collect();
    let mut lines: Vec<usize> = shipped
        .iter()
        .map(|file| file.text.lines().count())
        .collect();
    lines.sort_unstable();
    let longest = shipped
        .iter()
        .max_by_key(|file| file.text.lines().count())
        .unwrap();
    println!(
        "files of filters and src without files of tests: {}",
        shipped.len()
    );
    println!(
        "their lines: {}, comments and inline tests included",
        lines.iter().sum::<usize>()
    );
    println!(
        "lines of code without comments and tests: {}",
        shipped.iter().map(|file| code_lines(file)).sum::<usize>()
    );
    println!(
        "median {}, p90 {}",
        percentile(&lines, 50),
        percentile(&lines, 90)
    );
    println!("longest {}: {}", lines[lines.len() - 1], longest.path);
    for folder in ["filters", "src"] {
        print_names(files, folder);
        print_circles(files, folder);
    }
}

#[expect(clippy::print_stdout, reason = "a report")]
fn print_names(files: &[Source], folder: &str) {
    let repeated = repeated(files, &format!("{folder}/"));
    let names: Vec<String> = repeated
        .iter()
        .map(|(name, places)| format!("{name} {}", places.len()))
        .collect();
    println!(
        "public type names more than once in {folder}: {} ({})",
        names.len(),
        names.join(", ")
    );
}

#[expect(clippy::print_stdout, reason = "a report")]
fn print_circles(files: &[Source], folder: &str) {
    let arrows = Graph::new(folder, files).arrows();
    let mut circles = circles(&arrows);
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    let sizes: Vec<usize> = circles.iter().map(Vec::len).collect();
    println!("imports between files of {folder}: {}", arrows.len());
    println!(
        "circles of files across folders in {folder}: {} {sizes:?}",
        circles.len()
    );
    for circle in circles {
        println!("  {}", circle.join(" "));
    }
}

fn code_lines(file: &Source) -> usize {
    file.shipped
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
}

/// The smallest value that so many percent of the values do not exceed.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}
