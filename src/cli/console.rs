//! `weirgate console`: the address of the console.

use serde_json::json;

use super::actor::find_name;
use super::{Exit, Output, OutputFormat, Source, load};
use crate::control::{ControlCommand, ControlRequest, client};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate console
  xdg-open \"$(weirgate console)\"

With admin.token the link signs in once, within five minutes. On another machine: ssh -L 8081:127.0.0.1:8081 HOST";

/// Asks the server for a link, and prints it.
pub(super) fn run(format: OutputFormat, source: &Source, out: &mut Output) -> Exit {
    let path = match load(source, out) {
        Ok(loaded) => loaded.config.upgrade_socket(),
        Err(exit) => return exit,
    };
    let name = match find_name(out) {
        Ok(name) => name,
        Err(exit) => return exit,
    };
    let request = ControlRequest {
        command: ControlCommand::Console,
        name: Some(name),
    };
    match client::ask(&path, request) {
        Ok(reply) if reply.ok => {
            match format {
                OutputFormat::Json => out.json(&json!({"link": reply.message})),
                OutputFormat::Table => out.line(&reply.message),
            }
            Exit::Done
        }
        Ok(reply) => out.fail(&reply.message),
        Err(error) => out.fail(&error.to_string()),
    }
}
