//! The console: pages for people, on the admin listener.
//!
//! Pages are rendered here, from what the process and the store know: [`views`] are their contents, which use the [`state`] and small
//! [`parts`], and [`layout`] is the frame around them. The [`server`] serves a page to those whom [`access`] lets in. Whoever changes
//! something needs `admin.write` and the proof of the session.

pub mod access;
mod assets;
mod capacity;
pub mod layout;
mod once;
pub mod parts;
mod recent_answers;
pub mod reply;
pub mod request;
mod server;
mod state;
mod store_answers;
mod views;

pub use self::reply::ConsoleStream;
pub use self::server::{ConsoleBody, ConsoleCall, MAX_FORM_BYTES};
pub use self::state::{Console, ConsoleSettings, PATH, from_here};
