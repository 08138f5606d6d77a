//! Circles of files: files that reach each other through their imports, and do not share a folder, unless it has to be free of
//! circles, too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::findings::Finding;
use crate::graph::Arrow;

type Next<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Folders that have no circles of their files.
const FREE_OF_CIRCLES: [&str; 1] = ["src/models/exchange/"];

/// Strongly connected groups of files that span more than one folder, or are in one that has to be free of them. A file `x.rs` beside a folder `x/` belongs
/// to both its own folder and `x/`; `x/mod.rs` belongs to `x/` alone.
pub fn circles<'a>(arrows: &[Arrow<'a>]) -> Vec<Vec<&'a str>> {
    let next = next_files(arrows);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut found: Vec<Vec<&str>> = Vec::new();
    for file in next.keys() {
        if seen.contains(file) {
            continue;
        }
        let ahead = reach(&next, file);
        let group: Vec<&str> = ahead
            .into_iter()
            .filter(|other| reach(&next, other).contains(file))
            .collect();
        seen.extend(&group);
        let is_accepted = share_a_folder(&group, &next) && !is_in_free_folder(&group);
        if group.len() > 1 && !is_accepted {
            found.push(group);
        }
    }
    found
}

/// Every file in such a circle, with one way around.
pub fn findings(arrows: &[Arrow]) -> Vec<Finding> {
    let mut found = Vec::new();
    for group in circles(arrows) {
        for arrow in arrows {
            let way = example(arrows, &group, &arrow.from.path);
            // One finding per file, at the import that the way begins with.
            if way.get(1).is_some_and(|next| *next == arrow.to.path) {
                let message = format!("in a circle of files: {}", way.join(" → "));
                found.push(Finding::new(arrow.from, arrow.at, "circle", message));
            }
        }
    }
    found
}

/// A shortest way from the file back to itself, through another folder where one exists.
fn example<'a>(arrows: &[Arrow<'a>], group: &[&'a str], file: &'a str) -> Vec<&'a str> {
    if !group.contains(&file) {
        return Vec::new();
    }
    let next = next_files(arrows);
    let ways = group
        .iter()
        .filter(|other| **other != file)
        .filter_map(|other| {
            let mut way = way(&next, file, other)?;
            way.extend(way_back(&next, other, file)?);
            Some(way)
        });
    let is_across = |way: &Vec<&str>| !share_a_folder(way, &next);
    ways.min_by_key(|way| (!is_across(way), way.len()))
        .unwrap_or_default()
}

fn next_files<'a>(arrows: &[Arrow<'a>]) -> Next<'a> {
    let mut next = Next::new();
    for arrow in arrows {
        next.entry(&arrow.from.path)
            .or_default()
            .insert(&arrow.to.path);
        next.entry(&arrow.to.path).or_default();
    }
    next
}

fn reach<'a>(next: &Next<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for other in next.get(file).into_iter().flatten() {
            if seen.insert(other) {
                open.push(other);
            }
        }
    }
    seen
}

fn is_in_free_folder(files: &[&str]) -> bool {
    let mut folders = FREE_OF_CIRCLES.iter();
    folders.any(|folder| files.iter().all(|file| file.starts_with(folder)))
}

fn share_a_folder(files: &[&str], next: &Next) -> bool {
    let homes = |file: &str| {
        let folder = file
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned();
        let inner = file.trim_end_matches(".rs").to_owned();
        let has_inner = next
            .keys()
            .any(|other| other.starts_with(&format!("{inner}/")));
        if has_inner {
            vec![folder, inner]
        } else {
            vec![folder]
        }
    };
    let mut files = files.iter();
    let first = files.next().map(|file| homes(file)).unwrap_or_default();
    let rest: Vec<Vec<String>> = files.map(|file| homes(file)).collect();
    first
        .iter()
        .any(|folder| rest.iter().all(|homes| homes.contains(folder)))
}

/// The shortest way between two files, both included.
fn way<'a>(next: &Next<'a>, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(file) = open.pop_front() {
        if file == to {
            let mut way = vec![to];
            while let Some(file) = way.last().filter(|file| **file != from) {
                way.push(before.get(file)?);
            }
            way.reverse();
            return Some(way);
        }
        for other in next.get(file).into_iter().flatten() {
            if *other != from && !before.contains_key(other) {
                before.insert(other, file);
                open.push_back(other);
            }
        }
    }
    None
}

fn way_back<'a>(next: &Next<'a>, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    way(next, from, to).map(|way| way[1..].to_vec())
}
