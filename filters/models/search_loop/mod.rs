//! Searches of the web for models that have none of their own: the model gets a function in place of the search, the gateway
//! runs its calls over its own search, and asks the model again with what was found.
//!
//! A [`SearchFunction`] is the function and what bounds it, a [`turn`] is one answer of the model on the way, and [`pages`] are
//! what a search has found. Fronts say it in their dialects by [`search_words`](super::search_words). Source:
//! docs/decisions.md 66.

pub mod function;
pub mod pages;
pub mod turn;

pub use self::function::SearchFunction;
pub use self::pages::SearchOutcome;

/// The most turns of one answer. Beyond them the client is told that the turn pauses, and may send it back.
pub const MAX_TURNS: u32 = 10;

/// The most calls of the function in one turn. Further ones are not run.
pub const MAX_CALLS: usize = 8;

/// The beginning of the ids of searches that the gateway has run, in dialects whose searches have ids.
pub const OWN_ID: &str = "srvtoolu_wg_";
