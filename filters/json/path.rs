//! The path to a place of a text.

use super::{Error, Type, Walker};

/// Returns the path to the innermost value that begins at or holds a byte offset, such as `messages[2].content[1]`; empty: the
/// whole text. Cost: one pass up to the place.
pub fn path_at(text: &str, at: usize) -> String {
    let mut path = String::new();
    // A text that does not walk has the path so far.
    _ = descend(&mut Walker::over(text), at, &mut path);
    path
}

/// Returns the offset of a part of a text, in bytes.
pub fn offset_of(text: &str, part: &str) -> u32 {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn descend(walk: &mut Walker<'_>, at: usize, path: &mut String) -> Result<(), Error> {
    match walk.peek()? {
        Type::Object => walk.object(|walk, key| {
            let dot = if path.is_empty() { "" } else { "." };
            enter(walk, at, path, |path| path.extend([dot, &key]))
        }),
        Type::Array => walk.array(|walk, index| {
            enter(walk, at, path, |path| path.push_str(&format!("[{index}]")))
        }),
        _ => walk.skip().map(|_| ()),
    }
}

fn enter(
    walk: &mut Walker<'_>,
    at: usize,
    path: &mut String,
    name: impl FnOnce(&mut String),
) -> Result<(), Error> {
    walk.peek()?;
    let start = walk.at();
    let value = walk.skip()?;
    if !(start..walk.at()).contains(&at) {
        return Ok(());
    }
    name(path);
    match at - start {
        0 => Ok(()),
        inside => descend(&mut Walker::over(value), inside, path),
    }
}

#[cfg(test)]
mod tests {
    use super::path_at;

    #[test]
    fn a_place_has_the_path_of_the_value_that_begins_there_or_holds_it() {
        let text = r#" {"a": [1, {"b\u0021": "x y"}], "c": {"d": [[2]]}}"#;
        for (value, path) in [
            ("[1", "a"),
            ("1,", "a[0]"),
            ("{\"b", "a[1]"),
            ("\"x", "a[1].b!"),
            ("y\"", "a[1].b!"),
            ("\"b", "a[1]"),
            ("2]", "c.d[0][0]"),
        ] {
            assert_eq!(path_at(text, text.find(value).unwrap()), path, "{value}");
        }
        assert_eq!(path_at(text, 0), "");
        assert_eq!(path_at(text, 999), "");
        assert_eq!(path_at(r#"{"a":[1,"#, 6), "");
        assert_eq!(path_at("", 0), "");
    }
}
