//! Manual pages and shell completions, generated from the arguments.

use std::path::Path;

use clap_complete::Shell;

use super::{Exit, Output};

/// Prints the main manual page, or writes a page for each command into a folder.
pub(super) fn man(command: clap::Command, folder: Option<&Path>, out: &mut Output) -> Exit {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        if let Err(error) = clap_mangen::Man::new(command).render(&mut page) {
            return out.fail(&error.to_string());
        }
        out.text(&String::from_utf8_lossy(&page));
        return Exit::Done;
    };
    let result =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match result {
        Ok(()) => Exit::Done,
        Err(error) => out.fail(&format!("{}: {error}", folder.display())),
    }
}

/// Prints the completions of one shell.
pub(super) fn completions(mut command: clap::Command, shell: Shell, out: &mut Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "weirgate", &mut script);
    out.text(&String::from_utf8_lossy(&script));
    Exit::Done
}
