//! The commands that a running process does for a command line.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::drain::Events;
use super::handover::peer::Peer;
use super::handover::program::Program;
use super::reload::{RefusedReload, Reloaded, Reloader};
use super::running::Running;
use super::status::{self, Started};
use super::upgrade::Upgrade;
use crate::config::{ConfigChange, ConfigChanges};
use crate::control::server::{BindError, ControlSocket};
use crate::control::{ControlCommand, ControlReply, ControlRequest};

/// Binds the control socket. A path that no socket may have, or at which another process answers, leaves the process without
/// one, which the log says: several processes on PostgreSQL may share a folder.
///
/// Errors: the folder of the socket is unusable.
pub(super) fn bind(path: &Path, is_successor: bool) -> Result<Option<ControlSocket>, BindError> {
    match ControlSocket::bind(path, is_successor) {
        Ok(socket) => Ok(Some(socket)),
        Err(error @ (BindError::TooLong(_) | BindError::InUse(_))) => {
            log::warn!("commands cannot reach this process: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Prepares the upgrade of this process. `None`: its background services have ended.
pub(super) fn upgrade(
    running: &Running,
    program: std::io::Result<Program>,
    predecessor: &Option<(u32, Arc<Peer>)>,
    events: &Events,
) -> Option<Upgrade> {
    let store_lock = running.store_lock().unwrap_or_else(|error| {
        log::warn!("an upgrade will find the store locked: {error}");
        None
    });
    Some(Upgrade {
        program,
        reloader: Arc::clone(&running.reloader),
        store_lock,
        background: running.background()?.clone(),
        predecessor: predecessor.clone(),
        events: events.sender.clone(),
        is_running: AtomicBool::new(false),
    })
}

/// Does commands until the background services end.
pub(super) fn serve(running: &Running, control: Option<ControlSocket>, upgrade: Option<Upgrade>) {
    let (Some(control), Some(upgrade), Some(background)) =
        (control, upgrade.map(Arc::new), running.background())
    else {
        return;
    };
    let started = Started::now();
    let run = move |request: ControlRequest| -> BoxFuture<'static, ControlReply> {
        let upgrade = Arc::clone(&upgrade);
        let work = move || match request.command {
            ControlCommand::Reload => reload(&upgrade.reloader),
            ControlCommand::Diff => diff(&upgrade.reloader),
            ControlCommand::Upgrade => upgrade.run(),
            ControlCommand::Status => ControlReply {
                status: Some(status::gather(&upgrade.reloader, started)),
                ..ControlReply::done("")
            },
            ControlCommand::Console => {
                let name = request.name.unwrap_or_default();
                match upgrade.reloader.console_link(&name) {
                    Ok(link) => ControlReply::done(link),
                    Err(why) => ControlReply::failed(why),
                }
            }
        };
        // All of them wait for files or processes.
        let done = tokio::task::spawn_blocking(work);
        async move {
            done.await
                .unwrap_or_else(|_| ControlReply::failed("it has failed: see the log"))
        }
        .boxed()
    };
    background.spawn(control.serve(Arc::new(run)));
}

fn reload(reloader: &Reloader) -> ControlReply {
    match reloader.reload() {
        Ok(Reloaded::Unchanged) => ControlReply::done("the configuration is the same as before"),
        Ok(Reloaded::Changed(changes)) => ControlReply {
            changes: changes_for_people(&changes),
            ..ControlReply::done("the configuration is reloaded")
        },
        Err(refused) => refuse(refused),
    }
}

fn diff(reloader: &Reloader) -> ControlReply {
    match reloader.diff() {
        Ok(changes) if changes.is_empty() => ControlReply::done("a reload would change nothing"),
        Ok(changes) => {
            let refusals = changes.refusals();
            let message = match refusals.is_empty() {
                true => "a reload would change this",
                false => "a reload would be refused: some of the changes need a restart",
            };
            ControlReply {
                changes: changes_for_people(&changes),
                ..ControlReply::done(message)
            }
        }
        Err(refused) => refuse(refused),
    }
}

fn refuse(refused: RefusedReload) -> ControlReply {
    ControlReply {
        problems: refused.problems,
        ..ControlReply::failed("the configuration in force stays")
    }
}

/// Returns changes as the protocol has them.
fn changes_for_people(changes: &ConfigChanges) -> Vec<serde_json::Value> {
    let change = |change: &ConfigChange| {
        let mut value = serde_json::to_value(change).unwrap_or_default();
        let text = ConfigChanges(vec![change.clone()]).to_string();
        if let Some(members) = value.as_object_mut() {
            members.insert("text".to_owned(), text.trim_end().into());
        }
        value
    };
    changes.0.iter().map(change).collect()
}
