//! The limit of an operation for whoever asks: a tenant's own figure, its level, or the default.

use std::collections::HashMap;

use super::operation::{Operation, Operations};
use super::tiers::{Allocation, BadAllocation, Tiers, limit};
use crate::limits::RowId;

/// A tenant as the configuration has it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its allocation in requests per second.
    pub allocation_qps: Option<f64>,
    /// Limits arranged out of band, requests per window, by the name of the operation.
    pub limits: &'a [(String, u64)],
}

/// Why a tenant of the configuration is none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadTenant {
    /// Its allocation is none.
    Allocation(BadAllocation),
    /// No operation has this name.
    Operation(String),
}

/// What each tenant may do.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    ladder: Tiers,
    window_s: u64,
    tenants: HashMap<Box<str>, TenantTerms>,
}

#[derive(Clone, Debug)]
struct TenantTerms {
    allocation: Option<Allocation>,
    /// Few; searched in turn.
    own: Box<[(RowId, u64)]>,
}

impl TenantLimits {
    /// The limits of no tenant yet.
    pub fn new(ladder: Tiers, window_s: u64) -> Self {
        Self {
            ladder,
            window_s,
            tenants: HashMap::new(),
        }
    }

    /// Adds a tenant. Errors: [`BadTenant`]; then nothing is added.
    pub fn add(&mut self, tenant: &Tenant<'_>, operations: &Operations) -> Result<(), BadTenant> {
        let terms = terms(tenant, operations, self.window_s)?;
        self.tenants.insert(tenant.id.into(), terms);
        Ok(())
    }

    /// The limit of an operation, in requests per window; callers without a tenant have the default.
    ///
    /// A limit arranged out of band is the only one that may pass the category's maximum.
    /// Source: docs/graph-limits.md 8.3.
    pub fn of(&self, tenant: Option<&str>, operation: &Operation) -> u64 {
        let Some(terms) = tenant.and_then(|id| self.tenants.get(id)) else {
            return operation.category.default;
        };
        let own = terms.own.iter().find(|(row, _)| *row == operation.id);
        own.map_or_else(
            || limit(operation.category, terms.allocation, &self.ladder),
            |(_, own)| *own,
        )
    }
}

fn terms(
    tenant: &Tenant<'_>,
    operations: &Operations,
    window_s: u64,
) -> Result<TenantTerms, BadTenant> {
    let allocation = tenant.allocation_qps;
    let allocation = allocation.map(|rate| Allocation::parse(rate, window_s));
    let own = tenant.limits.iter().map(|(name, limit)| {
        let operation = operations.named(name);
        let operation = operation.ok_or_else(|| BadTenant::Operation(name.clone()))?;
        Ok((operation.id, *limit))
    });
    Ok(TenantTerms {
        allocation: allocation.transpose().map_err(BadTenant::Allocation)?,
        own: own.collect::<Result<_, _>>()?,
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

    fn parse(allocation_qps: Option<f64>, own: &[(&str, u64)]) -> Result<TenantLimits, BadTenant> {
        let own = own.iter().map(|(name, limit)| ((*name).to_owned(), *limit));
        let tenant = Tenant {
            id: "t1",
            allocation_qps,
            limits: &own.collect::<Vec<_>>(),
        };
        let mut limits = TenantLimits::new(Tiers::default(), 10);
        limits.add(&tenant, &operations())?;
        Ok(limits)
    }

    fn of(limits: &TenantLimits, tenant: Option<&str>, name: &str) -> u64 {
        limits.of(tenant, operations().named(name).unwrap())
    }

    #[test]
    fn a_tenants_level_is_its_own() {
        let limits = parse(Some(200.0), &[]).unwrap();
        assert_eq!(of(&limits, Some("t1"), "POST /content/v2"), 3_000);
        assert_eq!(of(&limits, Some("t2"), "POST /content/v2"), 1_500);
        assert_eq!(of(&limits, None, "POST /content/v2"), 1_500);
    }

    #[test]
    fn a_limit_arranged_out_of_band_may_pass_the_maximum() {
        let limits = parse(Some(1.0), &[("POST /content/v2", 6_000)]).unwrap();
        assert_eq!(of(&limits, Some("t1"), "POST /content/v2"), 6_000);
        assert_eq!(of(&limits, Some("t1"), "GET /content/v2"), 10);
    }

    #[test]
    fn a_limit_for_no_operation_is_refused() {
        let refused = parse(None, &[("PATCH /content/v2", 1)]).err();
        assert_eq!(
            refused,
            Some(BadTenant::Operation("PATCH /content/v2".to_owned()))
        );
    }

    #[test]
    fn an_allocation_of_zero_is_refused() {
        let refused = parse(Some(0.0), &[]).err();
        assert_eq!(refused, Some(BadTenant::Allocation(BadAllocation)));
    }
}
