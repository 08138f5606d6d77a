//! Decisions on flags.

mod agent_texts;
mod bandits;
mod endpoints;
mod profiles;
mod segments;
