//! Writing JSON objects whose members are known: no tree, no formatter.

use super::text::Str;

/// One object on its way into a text; [`Self::close`] ends it.
///
/// Keys are the product's own words: letters, digits and `_`, which need no escapes.
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    before: u8,
}

impl<'o> Object<'o> {
    /// Begins an object at the end of `out`.
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        Self { out, before: b'{' }
    }

    /// A string.
    pub fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        Str::Plain(value).write(self.out);
    }

    /// A string, where there is one.
    pub fn some_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// A string, or null.
    pub fn text_or_null(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    /// A whole number.
    pub fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        write_number(value, self.out);
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    /// A JSON text as it is.
    pub fn raw(&mut self, key: &str, value: &str) {
        self.key(key);
        self.out.extend_from_slice(value.as_bytes());
    }

    /// A value that `write` writes.
    pub fn value(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        write(self.out);
    }

    /// An object inside.
    pub fn object(&mut self, key: &str, members: impl FnOnce(&mut Object<'_>)) {
        self.key(key);
        let mut inner = Object::open(self.out);
        members(&mut inner);
        inner.close();
    }

    /// An array of what `write` writes of each item.
    pub fn array<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Vec<u8>),
    ) {
        self.key(key);
        self.out.push(b'[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            write(item, self.out);
        }
        self.out.push(b']');
    }

    /// Ends it.
    pub fn close(self) {
        if self.before == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        self.out.reserve(key.len() + 4);
        self.out.extend_from_slice(&[self.before, b'"']);
        self.before = b',';
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Writes a whole number.
pub fn write_number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
