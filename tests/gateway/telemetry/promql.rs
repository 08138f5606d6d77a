//! The metrics and labels that a query names, as far as the tests of dashboards have to know PromQL.

use std::collections::{BTreeMap, BTreeSet};

/// What a query names.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Named {
    /// The metrics, each with the labels by which its series are chosen, and the texts that they are compared with.
    pub metrics: BTreeMap<String, Vec<(String, String)>>,
    /// The labels by which results are grouped or joined.
    pub grouping: BTreeSet<String>,
}

/// Words before a list of labels.
const LISTS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
const WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

#[derive(Clone, Debug, Eq, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// Reads a query, or a `label_values` of Grafana.
pub fn read(query: &str) -> Named {
    let tokens = tokens(query);
    let mut named = Named::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        at += 1;
        let Token::Word(word) = token else { continue };
        let is_grouped = matches!(next, Some(Token::Word(next)) if LISTS.contains(&next.as_str()));
        let is_called = next == Some(&Token::Sign('(')) || is_grouped;
        let starts_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if LISTS.contains(&word.as_str()) {
            let end = close(&tokens, at, ')');
            let listed = tokens[at..end].iter().filter_map(|token| match token {
                Token::Word(label) => Some(label.clone()),
                _ => None,
            });
            named.grouping.extend(listed);
            at = end;
        } else if word == "label_values" {
            // Its last argument is a label.
            if let Some(Token::Word(label)) = tokens.get(tokens.len() - 2) {
                named.grouping.insert(label.clone());
            }
            let metric = tokens[at..tokens.len() - 3].to_vec();
            named.metrics.extend(selected(&metric));
            return named;
        } else if starts_name && !is_called && !WORDS.contains(&word.as_str()) {
            let end = match next {
                Some(Token::Sign('{')) => close(&tokens, at, '}'),
                _ => at,
            };
            for (metric, matchers) in selected(&tokens[at - 1..end]) {
                named.metrics.entry(metric).or_default().extend(matchers);
            }
            at = end;
        }
    }
    named
}

/// The metric at the beginning of these tokens, and its matchers.
fn selected(tokens: &[Token]) -> BTreeMap<String, Vec<(String, String)>> {
    let mut words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.clone()),
        _ => None,
    });
    let metric = words.next().expect("a metric");
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Text(text) => Some(text.clone()),
        _ => None,
    });
    BTreeMap::from([(metric, words.zip(texts).collect())])
}

/// The place behind the sign that closes a list.
fn close(tokens: &[Token], from: usize, sign: char) -> usize {
    let found = tokens[from..]
        .iter()
        .position(|it| *it == Token::Sign(sign));
    from + found.unwrap_or_else(|| panic!("no {sign}: {tokens:?}")) + 1
}

fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '$');
        let length = if first == '"' {
            let end = rest[1..].find('"').expect("a closed text") + 2;
            tokens.push(Token::Text(rest[1..end - 1].to_owned()));
            end
        } else if first == '[' {
            // A range names no metric.
            rest.find(']').expect("a closed range") + 1
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

#[test]
fn a_query_names_its_metrics_and_labels() {
    let named = read(
        "sum by (le, a) (rate(x_bucket{b=~\"$v\",c!=\"d\"}[$__rate_interval])) > 0.5 and on(a) y:z offset 5m",
    );
    let matchers = [("b", "$v"), ("c", "d")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(
        named.metrics,
        BTreeMap::from([
            ("x_bucket".to_owned(), matchers.to_vec()),
            ("y:z".to_owned(), Vec::new()),
        ])
    );
    assert_eq!(Vec::from_iter(&named.grouping), ["a", "le"]);
    let named = read("label_values(x{b=\"c\"}, d)");
    assert_eq!(named.metrics["x"], [("b".to_owned(), "c".to_owned())]);
    assert_eq!(Vec::from_iter(&named.grouping), ["d"]);
    assert_eq!(
        Vec::from_iter(read("label_values(x, d)").metrics.keys()),
        ["x"]
    );
}
