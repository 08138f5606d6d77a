//! `weirgate decisions`: secrets of clients that may request tokens.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, SaltString};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use clap::Subcommand;
use serde_json::json;

use super::arguments::FormatArgs;
use super::{Exit, Output, OutputFormat};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate decisions client-secret >> client.toml     # then give client_secret to the client alone";

/// The commands of `decisions`.
#[derive(Subcommand)]
pub(super) enum DecisionsCommand {
    /// Make a secret: `client_secret` is for the client, `secret_hash` for [[decisions.clients]]
    ClientSecret(FormatArgs),
}

/// Runs a command.
pub(super) fn run(command: &DecisionsCommand, out: &mut Output) -> Exit {
    match command {
        DecisionsCommand::ClientSecret(output) => match make_client_secret() {
            Ok((secret, hash)) if output.format == OutputFormat::Json => {
                out.json(&json!({"client_secret": secret, "secret_hash": hash}));
                Exit::Done
            }
            Ok((secret, hash)) => {
                out.line(&format!("client_secret = \"{secret}\""));
                out.line(&format!("secret_hash = \"{hash}\""));
                Exit::Done
            }
            Err(error) => {
                out.fail(&error);
                Exit::Failed
            }
        },
    }
}

/// Makes a secret of 32 random bytes and its hash. Errors: the system provides no randomness.
fn make_client_secret() -> Result<(String, String), String> {
    let mut bytes = [0; 32 + 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness: {error}"))?;
    let (secret, salt) = bytes.split_at(32);
    let secret = BASE64.encode(secret);
    let salt = SaltString::encode_b64(salt).map_err(|error| error.to_string())?;
    let hash = Argon2::default().hash_password(secret.as_bytes(), &salt);
    let hash = hash.map_err(|error| error.to_string())?.to_string();
    Ok((secret, hash))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use argon2::PasswordVerifier;
    use argon2::password_hash::PasswordHash;

    use super::*;

    #[test]
    fn the_hash_is_of_the_secret_and_no_two_are_alike() {
        let (secret, hash) = make_client_secret().unwrap();
        let parsed = PasswordHash::new(&hash).unwrap();
        assert!(
            Argon2::default()
                .verify_password(secret.as_bytes(), &parsed)
                .is_ok()
        );
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        assert_ne!(make_client_secret().unwrap().0, secret);
    }
}
