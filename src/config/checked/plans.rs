//! What plans allow, as used.

use filters::accounts::Plan;
use filters::money::allowance::Allowance;

/// What plans allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plans {
    /// The smallest.
    pub lite: Allowance,
    /// The middle one.
    pub pro: Allowance,
    /// The largest.
    pub max: Allowance,
}

impl Plans {
    /// What a plan allows; `None`: its organizations pay as they go.
    pub fn of(&self, plan: Plan) -> Option<Allowance> {
        match plan {
            Plan::None => None,
            Plan::Lite => Some(self.lite),
            Plan::Pro => Some(self.pro),
            Plan::Max => Some(self.max),
        }
    }
}
