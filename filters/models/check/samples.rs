//! Pictures for the tests of the operations that take some.

/// A picture of one pixel.
pub(crate) const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

/// Pictures that no operation takes, with a word of why.
pub(crate) const NO_PICTURES: [(&str, &str); 8] = [
    (
        "data:image/png;base64,PGh0bWw+aGVsbG88L2h0bWw+",
        "holds no image",
    ),
    ("data:image/png;base64,iVBORw0KGgoAAAANS=hEUgAA", "base64"),
    ("data:image/png;base64,iVBORw0KGgoAAAANSUhEU", "base64"),
    ("data:image/png;base64,%%%%", "is none"),
    (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAw1AAAMNQCAYAAAA=",
        "50000 x 50000",
    ),
    ("https://10.0.0.1/a.png", "not public"),
    (
        "https://[2606:4700::1111]@169.254.169.254/a.png",
        "user name",
    ),
    (
        "https://\u{ff11}\u{ff16}\u{ff19}.254.169.254/a.png",
        "not public",
    ),
];
