//! The model gateway: one call becomes one exchange of several attempts, each with one provider.
//!
//! [`handler`] opens a call, [`planner`] chooses its attempts among [`providers`], [`exchange`] runs them.

pub mod endpoints;
pub mod exchange;
pub mod handler;
pub mod planner;
pub mod providers;
