//! What the 400 rules of every front share: values read by their type ([`read`]), the
//! top-level object ([`top`]), and refusals that name the field,
//! what came and what is accepted ([`reject`]). The rules themselves stand beside their front.

pub(crate) mod read;
pub(crate) mod reject;
pub(crate) mod top;
