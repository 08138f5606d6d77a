//! The limit of an operation for a tenant: the tenant's fixed limit, its tier, or the default.

use std::collections::HashMap;

use super::operation::{GraphOperation, Operations};
use super::tiers::{Allocation, InvalidAllocation, Tiers, compute_limit};
use crate::limits::RowId;

/// A tenant of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    pub id: &'a str,
    /// Its allocation in requests per second.
    pub allocation_qps: Option<f64>,
    /// Limits arranged out of band, in requests per window, by the name of the operation.
    pub limits: &'a [(String, u64)],
}

/// Why a tenant of the configuration is invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InvalidTenant {
    Allocation(InvalidAllocation),
    Operation(String),
}

/// The limits of all tenants.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    tiers: Tiers,
    window_s: u64,
    tenants: HashMap<Box<str>, TenantTerms>,
}

#[derive(Clone, Debug)]
struct TenantTerms {
    allocation: Option<Allocation>,
    /// The list is short, so a linear search suffices.
    fixed_limits: Box<[(RowId, u64)]>,
}

impl TenantLimits {
    /// Creates limits without tenants.
    pub fn new(tiers: Tiers, window_s: u64) -> Self {
        Self {
            tiers,
            window_s,
            tenants: HashMap::new(),
        }
    }

    /// Adds a tenant. Errors: [`InvalidTenant`]; then no tenant is added.
    pub fn add(
        &mut self,
        tenant: &Tenant<'_>,
        operations: &Operations,
    ) -> Result<(), InvalidTenant> {
        let terms = parse_terms(tenant, operations, self.window_s)?;
        self.tenants.insert(tenant.id.into(), terms);
        Ok(())
    }

    /// Returns the limit of an operation, in requests per window; callers without a tenant have the default.
    ///
    /// Only a limit arranged out of band may exceed the category's maximum. Source: docs/graph-limits.md 8.3.
    pub fn limit(&self, tenant: Option<&str>, operation: &GraphOperation) -> u64 {
        let Some(terms) = tenant.and_then(|id| self.tenants.get(id)) else {
            return operation.category.default;
        };
        let fixed_limits = terms
            .fixed_limits
            .iter()
            .find(|(row, _)| *row == operation.id);
        fixed_limits.map_or_else(
            || compute_limit(operation.category, terms.allocation, &self.tiers),
            |(_, fixed_limits)| *fixed_limits,
        )
    }
}

fn parse_terms(
    tenant: &Tenant<'_>,
    operations: &Operations,
    window_s: u64,
) -> Result<TenantTerms, InvalidTenant> {
    let allocation = tenant.allocation_qps;
    let allocation = allocation.map(|rate| Allocation::parse(rate, window_s));
    let fixed_limits = tenant.limits.iter().map(|(name, limit)| {
        let operation = operations.find_by_name(name);
        let operation = operation.ok_or_else(|| InvalidTenant::Operation(name.clone()))?;
        Ok((operation.id, *limit))
    });
    Ok(TenantTerms {
        allocation: allocation.transpose().map_err(InvalidTenant::Allocation)?,
        fixed_limits: fixed_limits.collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use super::*;

    fn operations() -> Operations {
        Operations::parse([], &BTreeMap::new()).unwrap()
    }

    fn parse(
        allocation_qps: Option<f64>,
        fixed_limits: &[(&str, u64)],
    ) -> Result<TenantLimits, InvalidTenant> {
        let fixed_limits = fixed_limits
            .iter()
            .map(|(name, limit)| ((*name).to_owned(), *limit));
        let tenant = Tenant {
            id: "t1",
            allocation_qps,
            limits: &fixed_limits.collect::<Vec<_>>(),
        };
        let mut limits = TenantLimits::new(Tiers::default(), 10);
        limits.add(&tenant, &operations())?;
        Ok(limits)
    }

    fn limit(limits: &TenantLimits, tenant: Option<&str>, name: &str) -> u64 {
        limits.limit(tenant, operations().find_by_name(name).unwrap())
    }

    #[test]
    fn a_tenants_level_is_its_own() {
        let limits = parse(Some(200.0), &[]).unwrap();
        assert_eq!(limit(&limits, Some("t1"), "POST /content/v2"), 3_000);
        assert_eq!(limit(&limits, Some("t2"), "POST /content/v2"), 1_500);
        assert_eq!(limit(&limits, None, "POST /content/v2"), 1_500);
    }

    /// Contract: graph-limits 8.3 5
    #[test]
    fn a_limit_arranged_out_of_band_may_pass_the_maximum() {
        let limits = parse(Some(1.0), &[("POST /content/v2", 6_000)]).unwrap();
        assert_eq!(limit(&limits, Some("t1"), "POST /content/v2"), 6_000);
        assert_eq!(limit(&limits, Some("t1"), "GET /content/v2"), 10);
    }

    #[test]
    fn a_limit_for_no_operation_is_refused() {
        let refused = parse(None, &[("PATCH /content/v2", 1)]).err();
        assert_eq!(
            refused,
            Some(InvalidTenant::Operation("PATCH /content/v2".to_owned()))
        );
    }

    #[test]
    fn an_allocation_of_zero_is_refused() {
        let refused = parse(Some(0.0), &[]).err();
        assert_eq!(refused, Some(InvalidTenant::Allocation(InvalidAllocation)));
    }
}
