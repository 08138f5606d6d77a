use crate::adding::{findings, sections};
use crate::source::Source;

const PAGE: &str = "# Page\n\n## A wire\n\nIt is what has the words `toy`,\n`Toy`: its folder and 1 files.\n\n- `filters/wires/toy/`: a table.\n- `filters/wires/mod.rs`: its row.\n\nBeside:\n\n* `notes/a.txt`: facts.\n";

fn tree() -> Vec<Source> {
    let files = [
        ("filters/wires/toy/mod.rs", "struct Toy;"),
        ("filters/wires/mod.rs", "mod toy;"),
        ("filters/wires/other.rs", "// Toy\nfn toys() {}"),
    ];
    files.map(|(path, text)| Source::new(path, text)).into()
}

fn found(page: &str, tree: &[Source]) -> Vec<String> {
    let sections = sections(page);
    findings(&sections[0], tree, |path| path != "notes/gone.txt")
}

#[test]
fn a_page_that_lists_what_names_its_example_is_right() {
    assert_eq!(sections(PAGE)[0].words, ["toy", "Toy"]);
    assert_eq!(found(PAGE, &tree()), [""; 0]);
}

#[test]
fn damaged_pages_and_files_that_are_not_listed_are_found() {
    for (from, to, said) in [
        ("and 1 files", "and 2 files", "another number"),
        ("its folder and", "no folder and", "another number"),
        ("- `filters/wires/mod.rs`: its row.\n", "", "is not listed"),
        (
            "`filters/wires/mod.rs`",
            "`filters/wires/other.rs`",
            "has none of the words",
        ),
        ("`notes/a.txt`", "`notes/gone.txt`", "does not exist"),
        ("has the words", "is", "no words"),
    ] {
        let page = PAGE.replace(from, to);
        assert_ne!(page, PAGE);
        let found = found(&page, &tree());
        assert!(
            found.iter().any(|it| it.contains(said)),
            "{said}: {found:?}"
        );
    }
    let mut more = tree();
    more.push(Source::new("src/x.rs", "f(\"toy\");"));
    assert!(found(PAGE, &more)[0].contains("src/x.rs has one of the words"));
}
