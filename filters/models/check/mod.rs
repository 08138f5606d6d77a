//! What the 400 rules of every front share: values read by their type ([`read`]), the top-level object ([`top`]), its declared
//! shape ([`shape`]) and what the shape tells clients ([`describe`]), values whose type stands behind them ([`deferred`]), forms
//! ([`form`]), prompts and flags that a chat names
//! ([`managed`]), addresses and data URLs ([`media`]), and refusals that name the field, what came and what is accepted
//! ([`reject`]). The rules themselves stand beside their front.

pub(crate) mod deferred;
pub(crate) mod describe;
pub(crate) mod form;
pub(crate) mod managed;
pub(crate) mod media;
pub(crate) mod read;
pub(crate) mod reject;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod shape;
pub(crate) mod top;
