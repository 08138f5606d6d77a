//! The catalogue on the command line.

use super::{Exit, ModelsCommand, Output};
use crate::config::Config;

/// Runs a command on the catalogue.
pub fn run(_command: ModelsCommand, _config: &Config, _out: &mut Output) -> Exit {
    Exit::Failed
}
