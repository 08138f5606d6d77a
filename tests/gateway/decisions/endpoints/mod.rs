//! The endpoints of decisions, one module per route.

mod activate;
mod batch;
mod config;
mod datafile;
mod decide;
mod event_stream;
mod explain_decision;
mod lookup;
mod ofrep_event_stream;
mod ofrep_flag;
mod ofrep_flags;
mod overrides;
mod save;
pub mod send_odp_event;
mod token;
mod track;
mod webhook;
