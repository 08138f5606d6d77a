//! The scanner of JSON and what is written with it, beside `serde_json`.

use filters::json::{
    Error, ErrorKind, Object, Str, Type, Walker, split_plain_string, write_escaped,
};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::choices::Choices;
use crate::damage;
use crate::grammar;
use crate::run::run;

fn text(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut value = grammar::any(choices, 5);
    if choices.once_in(16) {
        for _ in 0..choices.below(140) {
            value = Value::Array(vec![value]);
        }
    }
    let written = grammar::write(choices, &value);
    damage::bytes(choices, written)
}

fn skip(text: &[u8]) -> Result<(), Error> {
    let mut walker = Walker::new(text)?;
    walker.skip()?;
    walker.end()
}

/// Reads a whole value by the calls that a caller of the walker makes.
fn read(walker: &mut Walker<'_>) -> Result<Value, Error> {
    Ok(match walker.peek()? {
        Type::Object => {
            let mut members = Map::new();
            walker.object(|walker, key| {
                let value = read(walker)?;
                members.insert(key.into_owned(), value);
                Ok::<(), Error>(())
            })?;
            Value::Object(members)
        }
        Type::Array => {
            let mut items = Vec::new();
            walker.array(|walker, at| {
                assert_eq!(at, items.len());
                items.push(read(walker)?);
                Ok::<(), Error>(())
            })?;
            Value::Array(items)
        }
        Type::String => walker.string()?.unescaped().into_owned().into(),
        Type::Number => serde_json::from_str(walker.number()?).unwrap_or(Value::Null),
        Type::Bool => walker.boolean()?.into(),
        Type::Null => {
            assert!(walker.null()?);
            Value::Null
        }
    })
}

#[test]
fn the_scanner_and_serde_agree_on_what_json_is() {
    run("json: validity", |choices| {
        let text = text(choices);
        let ours = skip(&text);
        let theirs = std::str::from_utf8(&text).map(serde_json::from_str::<IgnoredAny>);
        let shown = String::from_utf8_lossy(&text);
        match ours {
            Ok(()) => assert!(matches!(theirs, Ok(Ok(_))), "accepted: {shown:?}"),
            Err(error) => {
                assert!(error.at <= text.len(), "{error} {shown:?}");
                match error.kind {
                    ErrorKind::Utf8 => assert!(theirs.is_err(), "{shown:?}"),
                    // These are the product's own bounds, which it puts before everything behind them.
                    ErrorKind::TooDeep | ErrorKind::LoneSurrogate => {}
                    _ => assert!(matches!(theirs, Ok(Err(_))), "refused: {error} {shown:?}"),
                }
            }
        }
    });
}

#[test]
fn a_text_is_read_as_serde_reads_it() {
    run("json: values", |choices| {
        let text = text(choices);
        let Ok(mut walker) = Walker::new(&text) else {
            return;
        };
        let ours = read(&mut walker).and_then(|value| walker.end().map(|()| value));
        assert_eq!(
            ours.is_ok(),
            skip(&text).is_ok(),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
        // Numbers beyond a double are refused by serde alone.
        if let (Ok(ours), Ok(theirs)) = (ours, serde_json::from_slice::<Value>(&text)) {
            assert_eq!(ours, theirs);
        }
    });
}

#[test]
fn a_text_that_is_written_is_read_back() {
    run("json: texts", |choices| {
        let bytes = choices.bytes(80);
        let plain = choices.text() + &String::from_utf8_lossy(&bytes) + &choices.text();
        let mut out = Vec::new();
        write_escaped(&plain, &mut out);
        let raw = std::str::from_utf8(&out).unwrap();
        assert_eq!(Str::Raw(raw).unescaped(), plain);
        let quoted = [b"\"", &out[..], b"\" tail"].concat();
        if let Some((text, rest)) = split_plain_string(&quoted[1..]) {
            assert_eq!((text, rest), (&*plain, &b"\" tail"[..]));
        } else {
            assert!(out.contains(&b'\\'));
        }
        let mut json = Vec::new();
        let mut object = Object::open(&mut json);
        object.text("text", &plain);
        object.number("n", choices.number());
        object.array("a", [&plain], |text, out| Str::Plain(text).write(out));
        object.close();
        let read: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(read["a"][0], *plain);
    });
}
