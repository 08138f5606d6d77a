//! Providers: their keys, endpoints and regions.

mod byok;
mod endpoints;
mod region_turns;
mod regions;
