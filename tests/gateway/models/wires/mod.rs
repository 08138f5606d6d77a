//! What wires do that no front asks for by name.

mod cache_breakpoints;
mod cloud_models;
mod clouds;
mod cohere;
mod drawn_images;
mod responses;
mod schemas;
pub mod web_search;
