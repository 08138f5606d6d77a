#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]
use proptest::prelude::*;

use super::text;
use super::*;

fn accepts(text: &str) -> Result<(), Error> {
    let mut walker = Walker::over(text);
    walker.skip()?;
    walker.end()
}

#[test]
fn the_deepest_accepted_text_has_128_levels() {
    assert!(accepts(&format!("{}{}", "[".repeat(128), "]".repeat(128))).is_ok());
    let deeper = format!("{}{}", "[".repeat(129), "]".repeat(129));
    assert_eq!(accepts(&deeper).unwrap_err().kind, ErrorKind::TooDeep);
}

#[test]
fn a_hundred_thousand_levels_do_not_reach_the_end_of_the_stack() {
    assert_eq!(
        accepts(&"[".repeat(100_000)).unwrap_err().kind,
        ErrorKind::TooDeep
    );
    assert_eq!(
        accepts(&"{\"a\":".repeat(100_000)).unwrap_err().kind,
        ErrorKind::TooDeep
    );
}

#[test]
fn halves_of_surrogate_pairs_are_refused() {
    for lone in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\u0041""#,
        r#""\ud800x""#,
        r#"{"\ud800":1}"#,
    ] {
        assert_eq!(
            accepts(lone).unwrap_err().kind,
            ErrorKind::LoneSurrogate,
            "{lone}"
        );
    }
    assert!(accepts(r#""\ud83d\ude00""#).is_ok());
}

#[test]
fn what_json_forbids_is_refused() {
    for bad in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "NaN",
        "Infinity",
        "tru",
        "nul",
        "\"\\x\"",
        "\"\u{1}\"",
        "\"a",
        "[1 2]",
        "1 2",
        "{\"a\":1,}",
        "\u{feff}1",
        "-",
        "\"\\u12\"",
    ] {
        assert!(accepts(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn keys_are_compared_without_their_escapes() {
    let mut keys = Vec::new();
    Walker::over(r#"{"mod\u0065l":1,"n":[2,{"x":3}]}"#)
        .object(|walker, key| {
            keys.push((key.into_owned(), walker.skip()?.to_owned()));
            Ok::<(), Error>(())
        })
        .unwrap();
    assert_eq!(
        keys,
        [
            ("model".into(), "1".into()),
            ("n".into(), "[2,{\"x\":3}]".into())
        ]
    );
}

#[test]
fn an_escape_is_one_character_and_a_pair_of_them_too() {
    for (contents, chars) in [
        (r#"a\n\\u\"é"#, 6),
        (r"\u00e4\ud83d\ude00\uDBFF\uDFFFx\/", 5),
        ("", 0),
    ] {
        assert_eq!(Str::Raw(contents).count_chars(), chars, "{contents}");
    }
}

#[test]
fn a_value_of_another_type_is_told_from_broken_json() {
    assert_eq!(
        Walker::over("12").string().unwrap_err().kind,
        ErrorKind::Type
    );
    assert_eq!(
        Walker::over("?").string().unwrap_err().kind,
        ErrorKind::Syntax
    );
}

proptest! {
    #[test]
    fn it_accepts_what_serde_json_accepts(text in r#"[\[\]{}:,"\\a-fu0-9eE.+ \-trl]{0,24}"#) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // serde_json refuses numbers beyond f64, but they are JSON.
        let beyond_f64 = theirs.as_ref().is_err_and(|e| e.to_string().contains("out of range"));
        prop_assert_eq!(accepts(&text).is_ok(), theirs.is_ok() || beyond_f64, "{}", text);
    }

    #[test]
    fn escapes_read_as_serde_json_reads_them(contents in r#"(\\u[dD][89a-fA-F][0-9a-f]{2}|\\u00[0-9aE]{2}|\\["\\/bfnrtux]|é|[u0-9a-f]){0,12}"#) {
        let theirs = serde_json::from_str::<String>(&format!("\"{contents}\""));
        prop_assert_eq!(Str::Raw(&contents).unescaped(), theirs.unwrap_or_else(|_| contents.clone()));
    }

    #[test]
    fn escaping_and_unescaping_give_the_text_back(text in any::<String>()) {
        let mut json = Vec::new();
        Str::Plain(&text).write(&mut json);
        let json = String::from_utf8(json).unwrap();
        let mut walker = Walker::over(&json);
        let string = walker.string().unwrap();
        prop_assert_eq!(string.unescaped(), text.as_str());
        prop_assert_eq!(string.count_chars(), text.chars().count() as u64);
        prop_assert_eq!(string.contents(), Str::Plain(&text).contents());
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}

#[test]
fn a_string_ends_at_its_quote_wherever_that_and_the_end_of_the_text_are() {
    for length in 0..40 {
        for behind in 0..20 {
            for (special, is_string) in [("", true), ("\\n", true), ("\n", false), ("é", true)] {
                let inside = format!("{}{special}", "a".repeat(length));
                let text = format!("\"{inside}\"{}", " ".repeat(behind));
                let mut walker = Walker::over(&text);
                let read = walker.string();
                assert_eq!(read.is_ok(), is_string, "{text:?}");
                if let Ok(read) = read {
                    assert_eq!((read, walker.at()), (Str::Raw(&inside), inside.len() + 2));
                }
            }
        }
    }
}

#[test]
fn escapes_are_written_wherever_they_stand_in_a_text_of_any_length() {
    for length in 1..80 {
        for at in 0..length {
            for special in ['"', '\\', '\n', '\u{1}', 'é'] {
                let mut text = vec!['a'; length];
                text[at] = special;
                let text: String = text.into_iter().collect();
                let mut json = Vec::new();
                Str::Plain(&text).write(&mut json);
                assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
            }
        }
    }
}

#[test]
fn the_end_of_plain_text_is_found_at_every_place() {
    for length in (0..100).chain([700, 1300, 4100]) {
        for at in 0..length {
            for special in [b'"', b'\\', 0x1f, 0] {
                let mut bytes = vec![0xc3; length];
                bytes[at] = special;
                bytes[length - 1] = b'"';
                let expected = if at == length - 1 { length - 1 } else { at };
                for find in [text::find_special, text::find_special_in_string] {
                    assert_eq!(find(&bytes), Some(expected), "{length} {at}");
                }
            }
        }
        for find in [text::find_special, text::find_special_in_string] {
            assert_eq!(find(&vec![b' '; length]), None);
        }
    }
}
