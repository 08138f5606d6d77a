//! The process as a whole: its start, its pages, its clients.

mod canaries;
mod clients;
mod health;
mod install;
mod kubernetes;
mod openapi;
mod process;
mod reload;
mod stuck;
mod together;
mod upgrade;
mod web_servers;
