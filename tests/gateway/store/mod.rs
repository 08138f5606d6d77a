//! The store: its files, its outages, its versions.

mod files;
mod outage;
mod upgrade;
