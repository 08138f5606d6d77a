//! Reloads when files of the configuration change, while `server.watch` is on.

use std::sync::Arc;

use tokio::sync::watch;

use super::reload::Reloader;
use crate::config::file_watch::ConfigWatch;

/// Watches until the process stops.
pub(super) async fn run(reloader: Arc<Reloader>, mut stop: watch::Receiver<bool>) {
    let mut wanted = reloader.watches_files();
    loop {
        tokio::select! {
            _ = stop.wait_for(|is_asked| *is_asked) => return,
            is_on = wanted.wait_for(|is_on| *is_on) => {
                if is_on.is_err() {
                    return;
                }
            }
        }
        tokio::select! {
            _ = stop.wait_for(|is_asked| *is_asked) => return,
            _ = wanted.wait_for(|is_on| !*is_on) => {}
            () = follow(&reloader) => {}
        }
    }
}

/// Reloads after each change of a file.
async fn follow(reloader: &Arc<Reloader>) {
    let (source, environment) = reloader.source();
    let watching = tokio::task::spawn_blocking(move || ConfigWatch::new(&source, environment));
    let Ok(mut files) = watching.await else {
        return;
    };
    // What changed between the last reading and the begin of the watch counts, too.
    let late = Arc::clone(reloader);
    let is_same = move || late.diff().is_ok_and(|changes| changes.is_empty());
    let is_same = tokio::task::spawn_blocking(is_same).await;
    if !is_same.unwrap_or(true) {
        reloader.request_reload();
    }
    loop {
        files.changed().await;
        log::info!("a file of the configuration has changed");
        reloader.request_reload();
    }
}
