//! `weirgate reload`, `upgrade`, `status` and `config diff`: commands that the running server does.

use serde_json::{Value, json};

use super::{Exit, Output, OutputFormat, Source, load};
use crate::control::client;
use crate::control::{ControlCommand, ControlReply};

pub(super) const RELOAD_EXAMPLES: &str = "\
Examples:
  weirgate reload -c /etc/weirgate/weirgate.toml

A good configuration serves new requests at once; what runs ends on the one it began with. A bad one changes nothing, and
each problem is named. `weirgate config diff` shows what a reload would change.";

pub(super) const UPGRADE_EXAMPLES: &str = "\
Examples:
  weirgate upgrade -c /etc/weirgate/weirgate.toml

Starts the program that is installed now and hands the listeners over once it is ready; the process that ran ends what it
serves (server.grace_period_s). If the new one does not start, the old one serves on.";

/// Asks the server of a configuration to run a command, and prints its reply.
pub(super) fn run(
    command: ControlCommand,
    format: OutputFormat,
    source: &Source,
    out: &mut Output,
) -> Exit {
    let path = match load(source, out) {
        Ok(loaded) => loaded.config.upgrade_socket(),
        Err(exit) => return exit,
    };
    match client::ask(&path, command) {
        Ok(reply) => print(&reply, format, out),
        Err(error) => out.fail(&error.to_string()),
    }
}

/// Prints the result to stdout and what stands in its way to stderr.
fn print(reply: &ControlReply, format: OutputFormat, out: &mut Output) -> Exit {
    match format {
        OutputFormat::Json => out.json(&json!(reply)),
        OutputFormat::Table => {
            let texts = reply.changes.iter().map(text);
            texts.for_each(|change| out.line(change));
            if reply.ok && !reply.message.is_empty() {
                out.line(&reply.message);
            }
        }
    }
    if reply.ok {
        return Exit::Done;
    }
    for problem in &reply.problems {
        out.fail(problem.trim_end());
    }
    out.fail(&reply.message)
}

/// Returns the text of a change for people.
fn text(change: &Value) -> &str {
    let text = change.as_str().or_else(|| change.get("text")?.as_str());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(reply: &ControlReply, format: OutputFormat) -> (Exit, String, String) {
        let (mut out, captured) = Output::captured();
        let exit = print(reply, format, &mut out);
        (exit, captured.out(), captured.err())
    }

    #[test]
    fn what_was_done_is_the_result() {
        let reply = ControlReply {
            changes: vec![json!({"key": "log.level", "text": "log.level: \"info\" → \"debug\""})],
            ..ControlReply::done("reloaded")
        };
        let expected = "log.level: \"info\" → \"debug\"\nreloaded\n".to_owned();
        let table = printed(&reply, OutputFormat::Table);
        assert_eq!(table, (Exit::Done, expected, String::new()));
        let (exit, out, err) = printed(&reply, OutputFormat::Json);
        assert_eq!((exit, err), (Exit::Done, String::new()));
        assert_eq!(serde_json::from_str::<Value>(&out).ok(), Some(json!(reply)));
    }

    #[test]
    fn problems_go_to_stderr_each_on_its_own() {
        let reply = ControlReply {
            problems: vec!["weirgate.toml:3: no key".to_owned()],
            ..ControlReply::failed("nothing was changed")
        };
        let (exit, out, err) = printed(&reply, OutputFormat::Table);
        assert_eq!((exit, out.as_str()), (Exit::Failed, ""));
        assert_eq!(
            err,
            "error: weirgate.toml:3: no key\nerror: nothing was changed\n"
        );
    }
}
