//! The allowances of plans, configured or built in.

use filters::money::Usd;
use filters::money::allowance::Allowance;

use super::Rules;
use crate::config::checked::Plans;
use crate::config::file::{File, Plan};
use crate::config::walk::join_key;

/// The credit of a cycle in USD, and the percentages of it for premium models in a week and for all models in a day.
type BuiltIn = (u32, f64, f64);

/// Source: docs/facts/model-gateway.md 5.3.
const LITE: BuiltIn = (87, 10.0, 8.0);
const PRO: BuiltIn = (237, 12.0, 9.0);
const MAX: BuiltIn = (537, 15.0, 10.0);

/// Checks the configured plans. Only plans with an allowance may be configured.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> Plans {
    for name in file.plans.keys() {
        let key = join_key("plans", name);
        match name.as_str() {
            "lite" | "pro" | "max" => {}
            "none" => rules.warn(
                &key,
                "has no effect: organizations on no plan pay as they go",
                "leave it out",
            ),
            _ => rules.refuse(&key, "is not a plan", "use one of: lite, pro, max"),
        }
    }
    let allowance_of = |name: &str, built_in| to_allowance(file.plans.get(name), built_in);
    Plans {
        lite: allowance_of("lite", LITE),
        pro: allowance_of("pro", PRO),
        max: allowance_of("max", MAX),
    }
}

fn to_allowance(raw: Option<&Plan>, (usd, premium_pct, daily_pct): BuiltIn) -> Allowance {
    let cycle = raw.and_then(|plan| plan.cycle_usd.as_ref());
    // The text is already checked; a refused text prevents the start.
    let cycle = cycle.map_or_else(
        || Usd::parse(&usd.to_string()).unwrap_or_default(),
        |usd| Usd::parse(&usd.0).unwrap_or_default(),
    );
    let pct = |field: fn(&Plan) -> Option<f64>, built_in| raw.and_then(field).unwrap_or(built_in);
    Allowance {
        cycle,
        weekly_premium: cycle.share(billionths(pct(|p| p.weekly_premium_pct, premium_pct))),
        daily: cycle.share(billionths(pct(|p| p.daily_pct, daily_pct))),
    }
}

/// Converts percents to billionths of the whole. Seven fraction digits of a percent are exact.
fn billionths(pct: f64) -> u64 {
    (pct * 1e7).round() as u64
}
