//! Filters the candidates by caller: the rules of the key, BYOK keys, the plan.

use std::sync::Arc;

use super::capable::Lack;
use super::catalog::{Catalog, Mapping};
use super::plan::LeftOut;
use super::resolve::{Candidate, Resolved};
use crate::accounts::OwnCredentialKind;
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::models::dialects::NamedMember;
use crate::models::request::{ModelRequest, Strategy};
use crate::money::ServiceTier;

/// The code, and the `error_type` in `metadata.routing`, of candidates outside the regions of the caller.
pub const OUTSIDE_REGIONS: &str = FaultCode::RegionNotAllowed.as_str();

/// Removes candidates that the rules of the key forbid; `forbids` names the kind of rule that does.
///
/// Source: docs/facts/model-gateway.md 5.2. Errors: 403 where nothing is left, so always for a pinned provider.
pub fn by_rules(
    resolved: &mut Resolved,
    forbids: impl Fn(&Candidate) -> Option<&'static str>,
) -> Result<(), Fault> {
    let mut reasons = Vec::new();
    let barred = &mut resolved.barred;
    resolved.candidates.retain(|candidate| {
        let Some(what) = forbids(candidate) else {
            return true;
        };
        reasons.push(what);
        barred.push(bar(candidate, "is forbidden by the rules of this API key"));
        false
    });
    if !resolved.candidates.is_empty() {
        return Ok(());
    }
    reasons.sort_unstable();
    reasons.dedup();
    let message = format!("the rules of this API key forbid {}", reasons.join(" and "));
    Err(Fault::new(FaultKind::Forbidden, message).with_param("model"))
}

/// Removes candidates that are computed outside the regions of the caller; `may_be_in` says whether a region, or an unknown one, is
/// inside, and `allowed` names those that are.
///
/// A mapping none of whose usual candidates is inside is served in its other regions that are. Errors: 403
/// `region_not_allowed` where nothing is left.
pub fn by_regions(
    resolved: &mut Resolved,
    catalog: &Catalog,
    may_be_in: impl Fn(Option<&str>) -> bool,
    allowed: &str,
) -> Result<(), Fault> {
    let is_inside = |candidate: &Arc<Candidate>| may_be_in(candidate.residence.as_deref());
    let (mut inside, outside): (Vec<_>, Vec<_>) =
        resolved.candidates.drain(..).partition(is_inside);
    if !resolved.is_regional {
        let mut mappings: Vec<&Arc<Mapping>> = outside.iter().map(|it| &it.mapping).collect();
        mappings.dedup_by_key(|mapping| mapping.index);
        for mapping in mappings {
            if inside.iter().all(|it| it.mapping.index != mapping.index) {
                let others = catalog.candidates_of(mapping).iter();
                inside.extend(others.filter(|it| is_inside(it)).cloned());
            }
        }
    }
    let reason = || format!("is outside the regions of this caller: {allowed}");
    let lack = |_| Lack::new("model", reason());
    let barred = outside.iter().map(|it| LeftOut::new(it, lack(it)));
    resolved.barred.extend(barred);
    resolved.outside.extend(outside);
    resolved.candidates = inside;
    if !resolved.candidates.is_empty() {
        return Ok(());
    }
    let message = format!(
        "calls of this key stay in the regions {allowed}, and no provider serves the model there"
    );
    let fault = Fault::new(FaultKind::Forbidden, message).with_param("model");
    Err(fault.with_code(FaultCode::RegionNotAllowed))
}

/// Removes providers for which the caller has no BYOK key.
///
/// Source: docs/facts/model-gateway.md 4.1. Errors: 400 where nothing is left.
pub fn by_own_keys(
    resolved: &mut Resolved,
    has_key: impl Fn(&Mapping) -> bool,
) -> Result<(), Fault> {
    let providers = |candidates: &[Arc<Candidate>]| {
        let mut names: Vec<&str> = candidates.iter().map(|c| &*c.mapping.provider).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    };
    if resolved.candidates.iter().any(|c| has_key(&c.mapping)) {
        let barred = &mut resolved.barred;
        resolved.candidates.retain(|candidate| {
            let has_key = has_key(&candidate.mapping);
            if !has_key {
                barred.push(bar(candidate, "has no key of the organization"));
            }
            has_key
        });
        return Ok(());
    }
    let served_by = providers(&resolved.candidates);
    let message = format!(
        "this project uses its organization's own provider keys alone, and there is none for {served_by}"
    );
    Err(Fault::invalid("model", message).with_code(FaultCode::NoProviderKey))
}

/// Keeps the candidates that are at the vendor of the caller's own credential, and no others; `is_there` says whether one is. No
/// reseller, no cloud and no other vendor gets it.
///
/// Source: docs/decisions.md 75. Errors: 400 where nothing is left.
pub fn by_vendor(
    resolved: &mut Resolved,
    kind: OwnCredentialKind,
    is_there: impl Fn(&Candidate) -> bool,
) -> Result<(), Fault> {
    let mut elsewhere: Vec<Arc<str>> = Vec::new();
    let barred = &mut resolved.barred;
    resolved.candidates.retain(|candidate| {
        if is_there(candidate) {
            return true;
        }
        elsewhere.push(Arc::clone(&candidate.mapping.provider));
        barred.push(bar(
            candidate,
            "is not at the vendor of the caller's own credential",
        ));
        false
    });
    if !resolved.candidates.is_empty() {
        return Ok(());
    }
    elsewhere.sort_unstable();
    elsewhere.dedup();
    let (what, vendor) = (kind.as_str(), kind.vendor().title());
    let message = format!(
        "the request brings {what}, which goes to {vendor}'s own address alone, and the model is served by {} here: name \
         a model that {vendor} serves itself, or leave the credential out",
        elsewhere.join(", ")
    );
    Err(Fault::invalid("model", message).with_code(FaultCode::VendorMismatch))
}

/// Removes candidates that are called where the platform has no key, unless the caller has one of its own.
///
/// Errors: 404 where nothing is left.
pub fn by_platform_keys(
    resolved: &mut Resolved,
    has_key: impl Fn(&Candidate) -> bool,
) -> Result<(), Fault> {
    let Some(first) = resolved.candidates.first().cloned() else {
        return Ok(());
    };
    let barred = &mut resolved.barred;
    resolved.candidates.retain(|candidate| {
        let has_key = has_key(candidate);
        if !has_key {
            barred.push(bar(candidate, "has no key there"));
        }
        has_key
    });
    if !resolved.candidates.is_empty() {
        return Ok(());
    }
    let provider = &first.mapping.provider;
    let message = match &first.region {
        Some(region) => format!("{provider} has no key for the region `{region}`"),
        None => format!(
            "{provider} has keys for its regions alone: `{provider}/MODEL:REGION` names one"
        ),
    };
    Err(Fault::new(FaultKind::ModelNotFound, message).with_param("model"))
}

/// Returns a candidate that the caller may not use, and why.
fn bar(candidate: &Candidate, reason: &'static str) -> LeftOut {
    LeftOut::new(candidate, Lack::new("model", reason))
}

/// Checks the members that a plan restricts: `routing` is `auto` or `price`, `service_tier` is not `priority`.
///
/// Source: docs/model-gateway.md 2.1. Errors: 400.
pub fn by_plan(request: &ModelRequest) -> Result<(), Fault> {
    if matches!(
        request.strategy,
        Some(Strategy::Throughput | Strategy::Latency)
    ) {
        return Err(refuse_by_plan(
            request,
            NamedMember::Routing,
            "`auto` and `price`",
        ));
    }
    if request.needs.service_tier == ServiceTier::Priority {
        let accepted = "`auto`, `default` and `flex`";
        return Err(refuse_by_plan(request, NamedMember::ServiceTier, accepted));
    }
    Ok(())
}

fn refuse_by_plan(request: &ModelRequest, member: NamedMember, accepted: &str) -> Fault {
    let name = request.name_of(member);
    let message = format!("the organization's plan takes {accepted} for `{name}`");
    Fault::invalid(name, message)
}
