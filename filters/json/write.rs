//! Writes JSON objects with known members, without a tree or a formatter.

use super::text::Str;

/// Returns a text as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut json = Vec::with_capacity(text.len() + 2);
    Str::Plain(text).write(&mut json);
    String::from_utf8(json).unwrap_or_default()
}

/// An object that is being written. [`Self::close`] ends it.
///
/// Keys are literals of the product: letters, digits and `_`, which need no escapes.
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    separator: u8,
}

impl<'o> Object<'o> {
    /// Begins an object at the end of `out`.
    #[inline]
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            separator: b'{',
        }
    }

    /// Writes a string.
    #[inline]
    pub fn text(&mut self, key: &'static str, value: &str) {
        self.write_key(key);
        Str::Plain(value).write(self.out);
    }

    /// Writes a string if there is one.
    pub fn optional_text(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Writes a string or null.
    pub fn text_or_null(&mut self, key: &'static str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    /// Writes a whole number.
    #[inline]
    pub fn number(&mut self, key: &'static str, value: u64) {
        self.write_key(key);
        write_number(value, self.out);
    }

    /// Writes `true` or `false`.
    #[inline]
    pub fn bool(&mut self, key: &'static str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    /// Writes a JSON text unchanged.
    #[inline]
    pub fn raw(&mut self, key: &'static str, value: &str) {
        self.write_key(key);
        self.out.extend_from_slice(value.as_bytes());
    }

    /// Writes a member whose key came from outside, with its JSON.
    pub fn foreign(&mut self, key: &str, json: &str) {
        self.out.push(self.separator);
        self.separator = b',';
        Str::Plain(key).write(self.out);
        self.out.push(b':');
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Writes a member with `write`.
    pub fn value(&mut self, key: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.write_key(key);
        write(self.out);
    }

    /// Writes a nested object.
    pub fn object(&mut self, key: &'static str, members: impl FnOnce(&mut Object<'_>)) {
        self.write_key(key);
        let mut inner = Object::open(self.out);
        members(&mut inner);
        inner.close();
    }

    /// Writes an array; `write` writes each item.
    pub fn array<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Vec<u8>),
    ) {
        self.write_key(key);
        self.out.push(b'[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            write(item, self.out);
        }
        self.out.push(b']');
    }

    /// Ends the object.
    #[inline]
    pub fn close(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }

    /// Writes several members. `json` holds their keys and values without braces, and at least one member.
    #[inline]
    pub fn members(&mut self, json: &str) {
        self.out.reserve(json.len() + 1);
        self.out.push(self.separator);
        self.separator = b',';
        self.out.extend_from_slice(json.as_bytes());
    }

    // Inlined, so that the copy of a literal key is a few stores.
    #[inline]
    fn write_key(&mut self, key: &'static str) {
        self.out.reserve(key.len() + 4);
        self.out.extend_from_slice(&[self.separator, b'"']);
        self.separator = b',';
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Writes a whole number.
pub fn write_number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
