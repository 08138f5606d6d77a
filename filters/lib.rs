//! The rules of Weirgate as pure functions: no Pingora, no tokio, no sockets, files, clocks or randomness.
//!
//! Time, random numbers and settings are parameters, so all rules are tested here without a proxy. The manifest of the
//! crate lists no dependency that does I/O.
//!
//! | module | decides |
//! |---|---|
//! | [`fault`] | the status, code and message of an error |
//! | [`cidr`] | whether a block contains an address |
//! [`public_address`] | whether an address belongs to the public Internet |
//! | [`form`] | the pairs of a query, decoded |
//! | [`multipart`] | the parts of a form with files |
//! | [`json`] | whether a JSON text is valid and within limits, and where its members are |
//! [`spooled_json`] | which data of a JSON body goes to the disk |
//! | [`sse`] | where the events of an event stream begin and end |
//! | [`event_frames`] | where the frames of an event stream of AWS begin and end |
//! | [`secret_ref`] | where a file says that a secret is |
//! | [`trace_context`] | which trace a request belongs to, and whether it is recorded |
//! | [`proxy`] | the path and the client's address of a request |
//! | [`money`] | the exact cost of a call |
//! | [`ledger`] | entries, balances and the journal's bytes |
//! | [`limits`] | how many requests a caller may send |
//! | [`auth`] | which tokens are genuine |
//! | [`accounts`] | the caller of a request and what it may do |
//! | [`models`] | requests of models, the wires of providers, and the order of attempts |
//! | [`decisions`] | the variation of a flag that a user gets |
//! | [`graph`] | operations, tenants and cacheability of the graph service |
//! | [`audit`] | what the log of changes says, and whether it is whole |
//! | [`manifest`] | what changes so that the store has the accounts of a file |
//! | [`reconcile`] | whether the ledger and a provider's bill say the same, and why not |
//! | [`mcp`] | messages and tools of the Model Context Protocol |

pub mod accounts;
pub mod audit;
pub mod auth;
pub mod cidr;
pub mod decisions;
pub mod event_frames;
pub mod fault;
pub mod fault_code;
pub mod form;
pub mod graph;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod manifest;
pub mod mcp;
pub mod models;
pub mod money;
pub mod multipart;
pub mod proxy;
pub mod public_address;
pub mod reconcile;
pub mod secret_ref;
pub mod spooled_json;
pub mod sse;
pub mod trace_context;
