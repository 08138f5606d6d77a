//! The allowances of plans.

use filters::accounts::Plan;
use filters::money::allowance::Allowance;

/// The allowances of plans.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plans {
    pub lite: Allowance,
    pub pro: Allowance,
    pub max: Allowance,
}

impl Plans {
    /// Returns the allowance of a plan, or `None` if its organizations pay as they go.
    pub fn allowance(&self, plan: Plan) -> Option<Allowance> {
        match plan {
            Plan::None => None,
            Plan::Lite => Some(self.lite),
            Plan::Pro => Some(self.pro),
            Plan::Max => Some(self.max),
        }
    }
}
