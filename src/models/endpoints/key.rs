//! `GET /v1/key`: shows the spending and the limits of the calling key.
//! Source: docs/model-gateway.md 2.8, docs/facts/model-gateway.md 1.17.
//!
//! Limits are shown but not enforced here, so that a caller over a limit can see it. No amount is rounded.

use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind};
use filters::json::Object;
use filters::money::Usd;
use filters::money::allowance::{Allowance, SpentSoFar};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::models::Models;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// `GET /v1/key`.
pub struct KeyStatus {
    pub models: Arc<Models>,
}

impl Endpoint for KeyStatus {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let Some(caller) = request.caller else {
                return Err(Fault::new(FaultKind::Internal, "nobody calls"));
            };
            let spent = self.models.ledger.spent(caller).await?;
            let plan = self.models.plans.allowance(caller.plan);
            Ok(Response::json(key_status(caller, plan.as_ref(), &spent)))
        })
    }
}

/// Returns the body: `{data}`, with every field of the contract.
///
/// `plan` is the allowance of the organization's plan. Without it, all numbers of the plan are `0` and no window is
/// open.
pub fn key_status(caller: &Caller, plan: Option<&Allowance>, spent: &SpentSoFar) -> Vec<u8> {
    let mut out = Vec::with_capacity(640);
    let mut body = Object::open(&mut out);
    body.object("data", |data| {
        data.text("label", &caller.key_label);
        write_amount(data, "usage", spent.key.total);
        let limit = caller
            .terms
            .as_ref()
            .and_then(|terms| terms.limits.lifetime);
        let limit = limit.map(|usd| usd.to_string());
        data.text_or_null("limit", limit.as_deref());
        data.text("devPlan", caller.plan.as_str());
        write_plan(data, plan, spent);
    });
    body.close();
    out
}

fn write_plan(data: &mut Object<'_>, plan: Option<&Allowance>, spent: &SpentSoFar) {
    let allowance = |amount: fn(&Allowance) -> Usd| plan.map_or(Usd::ZERO, amount);
    // Spending on an ended plan does not count.
    let spent = plan.map(|_| spent.plan).unwrap_or_default();
    let limit = allowance(|plan| plan.cycle);
    write_amount(data, "devPlanCreditsUsed", spent.cycle);
    write_amount(data, "devPlanCreditsLimit", limit);
    let remaining = limit.minus(spent.cycle).max(Usd::ZERO);
    write_amount(data, "devPlanCreditsRemaining", remaining);
    let weekly = allowance(|plan| plan.weekly_premium);
    write_amount(data, "devPlanPremiumWeeklyLimit", weekly);
    write_amount(data, "devPlanPremiumCreditsUsed", spent.premium);
    write_time(data, "devPlanPremiumWeekResetsAt", spent.premium_resets_ms);
    write_amount(data, "devPlanDailyLimit", allowance(|plan| plan.daily));
    write_amount(data, "devPlanDailyCreditsUsed", spent.daily);
    write_time(data, "devPlanDayResetsAt", spent.daily_resets_ms);
}

fn write_amount(data: &mut Object<'_>, name: &'static str, usd: Usd) {
    data.text(name, &usd.to_string());
}

/// Writes a time in ISO 8601, in UTC.
fn write_time(data: &mut Object<'_>, name: &'static str, unix_ms: Option<i64>) {
    let time = unix_ms.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    let text = time.map(|time| time.to_string());
    data.text_or_null(name, text.as_deref());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::accounts::{Mode, Plan, TermsFile};
    use filters::money::tally::{PlanSpent, Spent};
    use serde_json::{Value, json};

    use super::*;

    fn usd(text: &str) -> Usd {
        Usd::parse(text).unwrap()
    }

    fn caller(plan: Plan, terms: &str) -> Caller {
        let terms: TermsFile = serde_json::from_str(terms).unwrap();
        Caller {
            organization_id: "org_1".into(),
            organization: "acme".into(),
            project_id: "proj_1".into(),
            project: "default".into(),
            key_id: "key_1".into(),
            key_label: "laptop \"one\"".into(),
            mode: Mode::Platform,
            plan,
            plan_since_ms: 0,
            member: None,
            terms: Some(Arc::new(terms.check().unwrap())),
            cache_ttl_s: None,
            experiments: None,
            expires_at_ms: None,
            is_debug: false,
            regions: [None, None],
            exports_content: false,
            keep_bodies_until_ms: None,
        }
    }

    fn spent() -> SpentSoFar {
        SpentSoFar {
            key: Spent {
                total: usd("1.000000000000000001"),
                ..Spent::default()
            },
            member: Usd::ZERO,
            plan: PlanSpent {
                cycle: usd("90"),
                premium: usd("2.5"),
                premium_resets_ms: Some(1_800_000_000_000),
                daily: usd("0.5"),
                daily_resets_ms: None,
            },
        }
    }

    fn data(caller: &Caller, plan: Option<&Allowance>) -> Value {
        let body: Value = serde_json::from_slice(&key_status(caller, plan, &spent())).unwrap();
        body["data"].clone()
    }

    /// Contract: model-gateway 2.8 label
    /// Contract: model-gateway 2.8 devPlanCreditsUsed
    /// Contract: model-gateway 2.8 devPlanPremiumWeeklyLimit
    /// Contract: model-gateway 2.8 devPlanPremiumWeekResetsAt
    /// Contract: model-gateway 2.8 devPlanDailyLimit
    /// Contract: model-gateway 2.8 devPlanDayResetsAt
    #[test]
    fn a_plan_shows_what_it_allows_and_what_is_left_which_is_never_negative() {
        let plan = Allowance {
            cycle: usd("87"),
            weekly_premium: usd("8.7"),
            daily: usd("6.96"),
        };
        let shown = data(&caller(Plan::Lite, r#"{"limit":"5.50"}"#), Some(&plan));
        let expected = json!({
            "label": "laptop \"one\"", "usage": "1.000000000000000001", "limit": "5.5",
            "devPlan": "lite", "devPlanCreditsUsed": "90", "devPlanCreditsLimit": "87",
            "devPlanCreditsRemaining": "0", "devPlanPremiumWeeklyLimit": "8.7",
            "devPlanPremiumCreditsUsed": "2.5",
            "devPlanPremiumWeekResetsAt": "2027-01-15T08:00:00Z",
            "devPlanDailyLimit": "6.96", "devPlanDailyCreditsUsed": "0.5",
            "devPlanDayResetsAt": null,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_organization_without_a_plan_shows_zeros_and_no_windows() {
        let shown = data(&caller(Plan::None, "{}"), None);
        assert_eq!(
            (&shown["devPlan"], &shown["limit"]),
            (&json!("none"), &Value::Null)
        );
        let fields = shown.as_object().unwrap().iter();
        for (name, value) in fields.filter(|(name, _)| name.starts_with("devPlan")) {
            let expected = match name.as_str() {
                "devPlan" => json!("none"),
                name if name.ends_with("ResetsAt") => Value::Null,
                _ => json!("0"),
            };
            assert_eq!(*value, expected, "{name}");
        }
    }
}
