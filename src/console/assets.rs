//! The static files of the console, in the binary. `assets/README.md` says where the foreign ones come from.

use once_cell::sync::Lazy;
use sha2::{Digest, Sha256};

const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const CSS: &str = "text/css; charset=utf-8";

/// A file.
pub(super) struct Asset {
    name: &'static str,
    pub(super) media_type: &'static str,
    pub(super) bytes: &'static [u8],
}

const ASSETS: [Asset; 7] = [
    asset("console.css", CSS, include_bytes!("assets/console.css")),
    asset("console.js", JS, include_bytes!("assets/console.js")),
    asset("htmx.js", JS, include_bytes!("assets/htmx-2.0.8.min.js")),
    asset("uplot.js", JS, include_bytes!("assets/uplot-1.6.32.min.js")),
    asset(
        "uplot.css",
        CSS,
        include_bytes!("assets/uplot-1.6.32.min.css"),
    ),
    asset(
        "routing-day.svg",
        SVG,
        include_bytes!("../../docs/routing-day.svg"),
    ),
    asset("icon.svg", SVG, include_bytes!("assets/icon.svg")),
];

/// The folder of the addresses. The hash in it changes with each file, so browsers may keep what they have.
static FOLDER: Lazy<String> = Lazy::new(|| {
    let mut hash = Sha256::new();
    ASSETS.iter().for_each(|asset| hash.update(asset.bytes));
    let start: String = hash
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("/console/assets/{start}/")
});

const fn asset(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Asset {
    Asset {
        name,
        media_type,
        bytes,
    }
}

/// Returns the address of a file.
pub(super) fn address(name: &str) -> String {
    format!("{}{name}", *FOLDER)
}

/// Returns the file at a path, also of another version of this program.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    let rest = path.strip_prefix("/console/assets/")?;
    let (_, name) = rest.split_once('/')?;
    ASSETS.iter().find(|asset| asset.name == name)
}
