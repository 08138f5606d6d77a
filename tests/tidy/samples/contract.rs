//! Rows of a small contract, and the tests that name them.

use crate::contract::{findings, held, page, rows};
use crate::source::Source;

const PAGE: &str = "# Title\n\n- not a row\n\n## 2. Fields\n\n| field | type |\n|---|---|\n| `a`, `b` | x \\| y |\n\n\
                    Rules of `a`:\n\n1. One.\n2. Two.\n\n### 2.1 More\n\n- **Bold words.** Text.\n| `a` | once |\n| `a` | more |\n";

#[test]
fn a_row_is_named_by_its_section_and_what_is_unique_in_it() {
    let rows = rows("p", PAGE);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let expected = [
        "p 2 a",
        "p 2 a 1",
        "p 2 a 2",
        "p 2.1 Bold words",
        "p 2.1 a",
        "p 2.1 a+",
    ];
    assert_eq!(names, expected);
}

#[test]
fn rows_without_a_test_and_tests_without_a_row_are_found() {
    let rows = rows("p", PAGE);
    let text = "/// Contract: p 2 a\n/// Contract: p 2 a 1.\n#[test]\nfn one() {}\n\
                /// Contract: p 9 x\nasync fn two() {}\n";
    let held = held(&[Source::new("tests/t.rs", text)]);
    let others = [("p 2 a 2", "the reader"), ("p 2 a", "no reason")];
    let found = findings(&rows, &held, &others);
    let expected = [
        "`p 2 a` has a test and a reason for none",
        "no test holds `p 2.1 Bold words`: **Bold words.** Text.",
        "no test holds `p 2.1 a`: a · once",
        "no test holds `p 2.1 a+`: a · more",
        "`tests/t.rs: two`: no contract has the row `p 9 x`",
    ];
    assert_eq!(found, expected);
    let page = page(&rows, &held, &others);
    assert!(
        page.contains("| p 2 a 1 | 1. One. | `tests/t.rs: one` |\n"),
        "{page}"
    );
    assert!(
        page.contains("| p 2 a 2 | 2. Two. | the reader |\n"),
        "{page}"
    );
}
