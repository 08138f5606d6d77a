//! Decides whether a GraphQL document only reads.

/// Returns whether a document has operations and all of them are queries.
///
/// The code looks for the words `mutation` and `subscription` outside of all brackets, strings and comments, because
/// only the kinds and names of definitions occur there. A query with such a name counts as the other kind and is not
/// cached, which is slow but correct. A document with unbalanced brackets is not a query. Cost: one pass, no
/// allocation.
pub(super) fn is_read_only(document: &str) -> bool {
    let mut rest = document.as_bytes();
    let mut depth = 0_usize;
    let mut has_selection = false;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'#' => skip_comment(after),
            b'"' => match skip_string(rest) {
                Some(after) => after,
                None => return false,
            },
            b'{' | b'(' | b'[' => {
                has_selection |= byte == b'{';
                depth += 1;
                after
            }
            b'}' | b')' | b']' => match depth.checked_sub(1) {
                Some(outer) => {
                    depth = outer;
                    after
                }
                None => return false,
            },
            byte if is_name_byte(byte) => {
                let (name, after) = take_name(rest);
                if depth == 0 && matches!(name, b"mutation" | b"subscription") {
                    return false;
                }
                after
            }
            _ => after,
        };
    }
    depth == 0 && has_selection
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn take_name(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !is_name_byte(*byte));
    text.split_at(end.unwrap_or(text.len()))
}

fn skip_comment(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    end.and_then(|end| text.get(end..)).unwrap_or_default()
}

/// Returns the text after the string that begins here, or `None` if the string does not end.
fn skip_string(text: &[u8]) -> Option<&[u8]> {
    if let Some(block) = text.strip_prefix(b"\"\"\"") {
        return skip_block_string(block);
    }
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', _, after @ ..] => rest = after,
            [b'\n' | b'\r', ..] | [] => return None,
            [_, after @ ..] => rest = after,
        }
    }
}

fn skip_block_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        match rest {
            [b'\\', b'"', b'"', b'"', after @ ..] => rest = after,
            [b'"', b'"', b'"', after @ ..] => return Some(after),
            [] => return None,
            [_, after @ ..] => rest = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queries_and_fragments_only_read() {
        for document in [
            "{ a }",
            "query { a }",
            "query Q($mutation: Int = 1) @d(x: [1]) { mutation a: subscription }",
            "fragment F on T { a } query { ...F }",
            "# mutation { a }\n{ a }",
            "query { a(x: \"} mutation {\") }",
            "query { a(x: \"\\\" } mutation {\") }",
            "query { a(x: \"\"\"\\\"\"\" } mutation { \" \"\"\") }",
            "\u{feff}query mutations { a }",
        ] {
            assert!(is_read_only(document), "{document}");
        }
    }

    #[test]
    fn documents_with_another_operation_do_not() {
        for document in [
            "mutation { a }",
            "mutation{a}",
            "query A { a } mutation B { b }",
            "{ a(x: \"\\\\\") } mutation { b }",
            "{ a }\n#\nmutation B { b }",
            "# comment\rmutation { a }",
            "{ a(x: \"\") } mutation { b }",
            "{ a(x: \"\"\"\"\"\") } mutation { b }",
            "subscription { a }",
            "query mutation { a }",
        ] {
            assert!(!is_read_only(document), "{document}");
        }
    }

    #[test]
    fn what_is_no_document_reads_nothing() {
        for document in [
            "",
            "query",
            "{",
            "}",
            "{ a } }",
            "{ a(x: \"",
            "{ a(x: \"\n\") }",
            "()",
        ] {
            assert!(!is_read_only(document), "{document}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_a_panic(text: String) {
            let _ = is_read_only(&text);
        }

        #[test]
        fn a_mutation_after_any_sound_query_is_seen(text in "[a-z{}()#\" \\\\\n]{0,20}") {
            let document = format!("{{ a }} {text} mutation {{ b }}");
            if is_read_only(&document) {
                // The text hid the mutation in a comment, a string, or brackets that it opened or closed.
                let hides = text.contains(['#', '"', '{', '(']);
                prop_assert!(hides);
            }
        }
    }
}
