//! The OAuth server of the MCP server, one module per route.

mod authorize;
mod browser;
mod consent;
mod documents_preflight;
mod oauth_preflight;
mod oauth_server;
mod oauth_server_of_path;
mod register;
mod resource;
mod resource_of_path;
mod revoke;
mod token;
