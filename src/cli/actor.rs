//! Who gives a command, as the audit log has it: a statement, not a proof.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use filters::accounts::check_account_name;
use filters::audit::Actor;

use super::{Exit, Output};
use crate::config::ACTOR_VARIABLE;

/// Where Linux says what the host is called.
const HOST_FILE: &str = "/proc/sys/kernel/hostname";
/// Where users have their names. Those of a directory service are not in it.
const USER_FILE: &str = "/etc/passwd";
/// Of a longer file of users only the beginning is read.
const MAX_USER_FILE_BYTES: u64 = 1 << 20;

/// Returns who gives this command, and on which host.
///
/// Errors: those of [`find_name`].
pub(super) fn find_actor(out: &mut Output) -> Result<Actor, Exit> {
    let name = find_name(out)?;
    Ok(Actor::on_command_line(&name, &read_beginning(HOST_FILE)))
}

/// Returns who gives this command: `WEIRGATE_ACTOR`, else who has called sudo, else the user of the process.
///
/// Errors are printed to stderr: a `WEIRGATE_ACTOR` that is no name.
pub(super) fn find_name(out: &mut Output) -> Result<String, Exit> {
    let uid = rustix::process::getuid().as_raw();
    let users = read_beginning(USER_FILE);
    choose_name(|name| std::env::var_os(name), uid, &users).map_err(|problem| {
        out.fail(&problem);
        Exit::Usage
    })
}

/// Returns the name of who gives the command. `users` is the text of the file of users.
fn choose_name(
    variable: impl Fn(&str) -> Option<OsString>,
    uid: u32,
    users: &str,
) -> Result<String, String> {
    let given = variable(ACTOR_VARIABLE).filter(|given| !given.is_empty());
    if let Some(given) = given {
        let name = given.into_string();
        let name =
            name.map_err(|_| format!("{ACTOR_VARIABLE}: is not UTF-8; accepted is a name"))?;
        return match check_account_name(&name, false) {
            Ok(()) => Ok(name),
            Err(problem) => Err(format!(
                "{ACTOR_VARIABLE}: {name:?} {problem}; accepted are 1 to 128 characters on one line"
            )),
        };
    }
    let text = |name: &str| {
        variable(name)?
            .into_string()
            .ok()
            .filter(|it| !it.is_empty())
    };
    if let Some(caller) = text("SUDO_USER") {
        return Ok(caller);
    }
    let of_file = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let name = of_file
        .filter(|name| !name.is_empty())
        .or_else(|| text("USER"));
    Ok(match name {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    })
}

/// Reads the beginning of a file; of one that cannot be read, nothing.
fn read_beginning(path: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read until it failed is as good.
        _ = file.take(MAX_USER_FILE_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";

    fn name(variables: &[(&str, &str)], uid: u32) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        choose_name(variable, uid, USERS)
    }

    #[test]
    fn the_variable_counts_before_sudo_and_sudo_before_the_user() {
        let all = [
            ("WEIRGATE_ACTOR", "Ada Lovelace"),
            ("SUDO_USER", "ada"),
            ("USER", "root"),
        ];
        assert_eq!(name(&all, 0).as_deref(), Ok("Ada Lovelace"));
        assert_eq!(name(&all[1..], 0).as_deref(), Ok("ada"));
        assert_eq!(name(&all[2..], 1000).as_deref(), Ok("ada (uid 1000)"));
        assert_eq!(name(&all[2..], 7).as_deref(), Ok("root (uid 7)"));
        assert_eq!(name(&[], 7).as_deref(), Ok("uid 7"));
        let empty = [("WEIRGATE_ACTOR", ""), ("SUDO_USER", "")];
        assert_eq!(name(&empty, 0).as_deref(), Ok("root (uid 0)"));
    }

    #[test]
    fn a_variable_that_is_no_name_is_refused() {
        for wrong in [" ada", "a\nb", "a\u{1b}[31m", &"x".repeat(129)] {
            let refused = name(&[("WEIRGATE_ACTOR", wrong)], 0).unwrap_err();
            assert!(
                refused.starts_with("WEIRGATE_ACTOR: \"") && !refused.contains('\n'),
                "{refused}"
            );
        }
        let variable = |_: &str| Some(OsString::from_vec(vec![0xff]));
        let refused = choose_name(variable, 0, "").unwrap_err();
        assert!(refused.contains("not UTF-8"), "{refused}");
    }
}
