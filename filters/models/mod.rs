//! The model gateway's rules: what is asked, how a client says it, how a provider says it, and who is tried.
//!
//! [`operation`] is what a client asks, a [`front`] how it says that, a wire how a provider says it. [`request`] is a
//! checked request, [`reply`] what goes from a wire to a front, [`usage`] and [`metadata`] are parts of it. [`chat`]
//! holds the typed tree and the deltas of chat, [`embeddings`] vectors and their encodings, [`fronts`] the public shapes, [`wires`] the providers' shapes,
//! [`routing`] the plan.
//!
//! Layers: [`operation`] and [`usage`] · [`chat`] and [`embeddings`] · [`request`], [`reply`] and [`front`] · [`routing`] · [`fronts`] and
//! [`wires`], which never know each other.

pub mod chat;
mod check;
pub mod embeddings;
pub mod front;
pub mod fronts;
pub mod metadata;
pub mod operation;
pub mod reply;
pub mod request;
pub mod routing;
pub mod usage;
pub mod wires;
