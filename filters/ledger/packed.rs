//! The stored form of single calls: a batch of them, packed.
//!
//! Shape: one byte [`VERSION`], then the calls. Numbers are little endian, seven bits a byte. A call names its caller and
//! its deployment by the number of their first occurrence in the batch; a new number is followed by the names. Counts
//! and amounts follow a mask of those that are not zero. The call of an experiment or of a session names it by its number too,
//! among the last of the counts, and new names follow the counts. Ids are beside the calls, 16 bytes each, so that a lookup of
//! ids reads nothing else.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::FixedState;

use self::amounts::{pack_usd, unpack_usd};
use self::bytes::{Reader, write_name, write_number, write_optional_name};
use super::{
    CallOutcome, CallOwner, Charge, CostParts, EntryId, ExperimentNames, Funding, LedgerEntry,
    SessionNames, UsageRecord,
};
use crate::money::{Unit, UnitCounts, Usd};

mod amounts;
mod bytes;
#[cfg(test)]
mod tests;

const VERSION: u8 = 1;
/// The version of a batch with calls of experiments or with units. All others are written as before there were any.
const EXTENDED_VERSION: u8 = 2;
/// The version of a batch with calls of sessions.
const SESSION_VERSION: u8 = 3;
/// Counts and amounts that calls of all versions have.
const BASE_FIELD_COUNT: usize = 19;
/// Counts and amounts of a call: those, the cost of units, the count of each unit, the experiment, the outcome, and the
/// session.
const FIELD_COUNT: usize = BASE_FIELD_COUNT + 1 + Unit::ALL.len() + 3;

const FUNDINGS: [Funding; 4] = [
    Funding::Credit,
    Funding::Plan,
    Funding::Byok,
    Funding::Unbilled,
];
/// Two bits of an outcome's number are among the kinds, the others among the counts.
const OUTCOMES: [CallOutcome; 5] = [
    CallOutcome::Completed,
    CallOutcome::Broken,
    CallOutcome::ClientDisconnected,
    CallOutcome::Killed,
    CallOutcome::Failed,
];
const IS_ESTIMATED: u8 = 1 << 4;
const IS_PREMIUM: u8 = 1 << 5;
const IS_STREAM: u8 = 1 << 6;
const IS_PRICED: u8 = 1 << 7;

/// Packed calls.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PackedCalls {
    /// The ids of the calls, 16 bytes each.
    pub ids: Vec<u8>,
    /// All else about the calls.
    pub calls: Vec<u8>,
}

/// The bytes are none that [`pack`] writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidCalls;

/// Packs calls with the charges that replace those of the entries. Cost: two lookups per call.
pub fn pack<'a>(calls: impl ExactSizeIterator<Item = (&'a LedgerEntry, Charge)>) -> PackedCalls {
    let mut packed = PackedCalls {
        ids: Vec::with_capacity(calls.len() * 16),
        calls: Vec::with_capacity(calls.len() * 64 + 256),
    };
    let out = &mut packed.calls;
    out.push(VERSION);
    let (mut owners, mut deployments) = (Numbers::default(), Numbers::default());
    let mut named = Named::default();
    let (mut last_at_ms, mut version) = (0, VERSION);
    for (entry, charge) in calls {
        let (owner, usage) = (&entry.owner, &entry.usage);
        packed.ids.extend_from_slice(&entry.id.0);
        let names = [&*owner.organization_id, &*owner.project_id, &*owner.key_id];
        let member = owner.member_id.as_deref();
        if owners.write_number((names, member), out) {
            names.into_iter().for_each(|name| write_name(name, out));
            write_optional_name(member, out);
        }
        let names = [&*usage.model, &*usage.provider, &*usage.upstream_model];
        let region = usage.region.as_deref();
        if deployments.write_number((names, region), out) {
            names.into_iter().for_each(|name| write_name(name, out));
            write_optional_name(region, out);
        }
        write_name(&owner.request_id, out);
        out.push(kinds(entry));
        write_number(to_unsigned(i128::from(entry.at_ms) - last_at_ms), out);
        last_at_ms = i128::from(entry.at_ms);
        let mut fields = fields(entry, charge);
        let new_names = named.number(entry, &mut fields);
        version = version.max(version_of(entry, &fields));
        let mask = (0..).zip(&fields).filter(|(_, field)| **field != 0);
        write_number(mask.fold(0, |mask, (bit, _)| mask | 1 << bit), out);
        let fields = fields.into_iter().filter(|field| *field != 0);
        fields.for_each(|field| write_number(field, out));
        let new_names = new_names.into_iter().flatten().flatten();
        new_names.for_each(|name| write_name(name, out));
    }
    if let Some(first) = out.first_mut() {
        *first = version;
    }
    packed
}

/// Returns the calls of the callers that `is_wanted` names.
///
/// Errors: the bytes are damaged, or from a later version.
pub fn unpack(
    ids: &[u8],
    calls: &[u8],
    mut is_wanted: impl FnMut(&CallOwner) -> bool,
) -> Result<Vec<LedgerEntry>, InvalidCalls> {
    let mut reader = Reader(calls);
    if !(VERSION..=SESSION_VERSION).contains(&reader.byte()?) {
        return Err(InvalidCalls);
    }
    let mut owners: Vec<Option<CallOwner>> = Vec::new();
    let mut deployments: Vec<UsageRecord> = Vec::new();
    let (mut experiments, mut sessions) = (Vec::new(), Vec::new());
    let mut entries = Vec::new();
    let mut at_ms: i128 = 0;
    for id in ids.chunks(16) {
        let number = reader.index(owners.len())?;
        if number == owners.len() {
            let owner = read_owner(&mut reader)?;
            owners.push(is_wanted(&owner).then_some(owner));
        }
        let owner = owners.get(number).ok_or(InvalidCalls)?;
        let number = reader.index(deployments.len())?;
        if number == deployments.len() {
            deployments.push(read_deployment(&mut reader)?);
        }
        let usage = deployments.get(number).ok_or(InvalidCalls)?;
        let request_id = reader.raw_name()?;
        let kinds = reader.byte()?;
        at_ms = at_ms.saturating_add(to_signed(reader.number()?));
        let fields = read_fields(&mut reader)?;
        let [.., experiment, late_outcome, session] = fields;
        let experiment = read_names(&mut reader, experiment, &mut experiments, to_experiment)?;
        let session = read_names(&mut reader, session, &mut sessions, to_session)?;
        let Some(owner) = owner else { continue };
        let mut entry = LedgerEntry {
            id: EntryId(id.try_into().map_err(|_| InvalidCalls)?),
            at_ms: i64::try_from(at_ms).map_err(|_| InvalidCalls)?,
            owner: owner.clone(),
            usage: usage.clone(),
            experiment,
            session,
            ..LedgerEntry::default()
        };
        entry.owner.request_id = request_id.to_text()?.as_str().into();
        set_kinds(&mut entry, kinds, late_outcome)?;
        set_fields(&mut entry, &fields, kinds)?;
        entries.push(entry);
    }
    reader.0.is_empty().then_some(entries).ok_or(InvalidCalls)
}

/// The numbers of names that occurred.
struct Numbers<T>(HashMap<T, u128, FixedState>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T: Eq + Hash> Numbers<T> {
    /// Returns the number of these names, and whether they are new.
    fn number(&mut self, names: T) -> (u128, bool) {
        let next = self.0.len() as u128;
        let number = *self.0.entry(names).or_insert(next);
        (number, number == next)
    }

    /// Writes the number of these names. Returns whether they are new, and have to follow.
    fn write_number(&mut self, names: T, out: &mut Vec<u8>) -> bool {
        let (number, is_new) = self.number(names);
        write_number(number, out);
        is_new
    }
}

/// The experiments and the sessions that occurred.
#[derive(Default)]
struct Named<'a> {
    experiments: Numbers<&'a ExperimentNames>,
    sessions: Numbers<&'a SessionNames>,
}

impl<'a> Named<'a> {
    /// Sets the numbers of a call's experiment and session among its counts. Returns the names that are new, and have to
    /// follow.
    fn number(
        &mut self,
        entry: &'a LedgerEntry,
        fields: &mut [u128; FIELD_COUNT],
    ) -> [Option<[&'a str; 3]>; 2] {
        let [.., experiment, _, session] = fields;
        let mut new_names = [None; 2];
        let [of_experiment, of_session] = &mut new_names;
        if let Some(names) = &entry.experiment {
            let (number, is_new) = self.experiments.number(names);
            *experiment = number + 1;
            *of_experiment = is_new.then_some([&*names.flag, &*names.rule, &*names.variation]);
        }
        if let Some(names) = &entry.session {
            let (number, is_new) = self.sessions.number(names);
            *session = number + 1;
            *of_session = is_new.then_some([&*names.session, &*names.agent, &*names.parent]);
        }
        new_names
    }
}

/// Returns the first version that has all of a call.
fn version_of(entry: &LedgerEntry, fields: &[u128; FIELD_COUNT]) -> u8 {
    let mut extended = fields.iter().skip(BASE_FIELD_COUNT);
    match extended.any(|field| *field != 0) {
        _ if entry.session.is_some() => SESSION_VERSION,
        true => EXTENDED_VERSION,
        false => VERSION,
    }
}

fn read_fields(reader: &mut Reader<'_>) -> Result<[u128; FIELD_COUNT], InvalidCalls> {
    let mask = reader.number()?;
    let mut fields = [0; FIELD_COUNT];
    for (bit, field) in fields.iter_mut().enumerate() {
        if mask >> bit & 1 == 1 {
            *field = reader.number()?;
        }
    }
    Ok(fields)
}

/// Returns what a call names by the number after this one, and reads its names behind the first call that does. 0: it names
/// none.
fn read_names<T>(
    reader: &mut Reader<'_>,
    number: u128,
    known: &mut Vec<Arc<T>>,
    to_names: impl FnOnce([Box<str>; 3]) -> T,
) -> Result<Option<Arc<T>>, InvalidCalls> {
    let Some(number) = number.checked_sub(1) else {
        return Ok(None);
    };
    let number = usize::try_from(number).map_err(|_| InvalidCalls)?;
    if number == known.len() {
        let names = [reader.name()?, reader.name()?, reader.name()?];
        known.push(Arc::new(to_names(names.map(Into::into))));
    }
    let names = known.get(number).ok_or(InvalidCalls)?;
    Ok(Some(Arc::clone(names)))
}

fn to_experiment([flag, rule, variation]: [Box<str>; 3]) -> ExperimentNames {
    ExperimentNames {
        flag,
        rule,
        variation,
    }
}

fn to_session([session, agent, parent]: [Box<str>; 3]) -> SessionNames {
    SessionNames {
        session,
        agent,
        parent,
    }
}

fn read_owner(reader: &mut Reader<'_>) -> Result<CallOwner, InvalidCalls> {
    Ok(CallOwner {
        organization_id: reader.name()?.as_str().into(),
        project_id: reader.name()?.as_str().into(),
        key_id: reader.name()?.as_str().into(),
        member_id: reader.optional_name()?.map(|name| name.as_str().into()),
        request_id: "".into(),
    })
}

fn read_deployment(reader: &mut Reader<'_>) -> Result<UsageRecord, InvalidCalls> {
    Ok(UsageRecord {
        model: reader.name()?.as_str().into(),
        provider: reader.name()?.as_str().into(),
        upstream_model: reader.name()?.as_str().into(),
        region: reader.optional_name()?.map(|name| name.as_str().into()),
        ..UsageRecord::default()
    })
}

fn kinds(entry: &LedgerEntry) -> u8 {
    let flags = [
        (entry.usage.is_estimated, IS_ESTIMATED),
        (entry.usage.is_premium, IS_PREMIUM),
        (entry.is_stream, IS_STREAM),
        (entry.usage.cost.is_some(), IS_PRICED),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    let kinds = entry.funding as u8 | (entry.outcome as u8 & 3) << 2;
    flags.fold(kinds, |kinds, (_, flag)| kinds | flag)
}

/// `late_outcome`: the other bits of the outcome's number.
fn set_kinds(entry: &mut LedgerEntry, kinds: u8, late_outcome: u128) -> Result<(), InvalidCalls> {
    let of = usize::from(kinds);
    let late = usize::try_from(late_outcome).map_err(|_| InvalidCalls)?;
    let outcome = late.saturating_mul(4).saturating_add(of >> 2 & 3);
    entry.funding = *FUNDINGS.get(of & 3).ok_or(InvalidCalls)?;
    entry.outcome = *OUTCOMES.get(outcome).ok_or(InvalidCalls)?;
    entry.usage.is_estimated = kinds & IS_ESTIMATED != 0;
    entry.usage.is_premium = kinds & IS_PREMIUM != 0;
    entry.is_stream = kinds & IS_STREAM != 0;
    Ok(())
}

/// Returns counts and amounts, those that are rarely zero first. An amount that follows from others is zero.
fn fields(entry: &LedgerEntry, charge: Charge) -> [u128; FIELD_COUNT] {
    let usage = &entry.usage;
    let cost = usage.cost.unwrap_or_default();
    let of_total = cost.total.minus(sum_of_parts(&cost));
    let [pages, heard, made, characters, searches, documents] =
        usage.units.to_array().map(u128::from);
    [
        usage.prompt_tokens.into(),
        usage.completion_tokens.into(),
        usage.attempts.into(),
        entry.duration_ms.into(),
        pack_usd(cost.input),
        pack_usd(cost.output),
        pack_usd(entry.reserved),
        entry.first_event_ms.map_or(0, |ms| u128::from(ms) + 1),
        usage.cached_tokens.into(),
        pack_usd(cost.cached_input),
        usage.reasoning_tokens.into(),
        pack_usd(cost.total.minus(charge.charged)),
        pack_usd(cost.request),
        pack_usd(charge.shortfall),
        usage.cache_write_tokens.into(),
        pack_usd(cost.cache_write),
        usage.web_searches.into(),
        pack_usd(cost.web_search),
        pack_usd(of_total),
        pack_usd(cost.units),
        pages,
        heard,
        made,
        characters,
        searches,
        documents,
        // The experiment's number is one of the batch.
        0,
        (entry.outcome as u128) >> 2,
        // So is the number of the session.
        0,
    ]
}

fn set_fields(
    entry: &mut LedgerEntry,
    fields: &[u128; FIELD_COUNT],
    kinds: u8,
) -> Result<(), InvalidCalls> {
    let [
        prompt_tokens,
        completion_tokens,
        attempts,
        duration_ms,
        input,
        output,
        reserved,
        first_event,
        cached_tokens,
        cached_input,
        reasoning_tokens,
        not_charged,
        request,
        shortfall,
        cache_write_tokens,
        cache_write,
        web_searches,
        web_search,
        of_total,
        unit_cost,
        counted @ ..,
        _experiment,
        _late_outcome,
        _session,
    ] = *fields;
    let count = |field: u128| u64::try_from(field).map_err(|_| InvalidCalls);
    let usage = &mut entry.usage;
    usage.prompt_tokens = count(prompt_tokens)?;
    usage.completion_tokens = count(completion_tokens)?;
    usage.attempts = u32::try_from(attempts).map_err(|_| InvalidCalls)?;
    usage.cached_tokens = count(cached_tokens)?;
    usage.reasoning_tokens = count(reasoning_tokens)?;
    usage.cache_write_tokens = count(cache_write_tokens)?;
    usage.web_searches = count(web_searches)?;
    usage.units = unpack_units(counted)?;
    let mut cost = CostParts {
        total: Usd::ZERO,
        input: unpack_usd(input),
        cached_input: unpack_usd(cached_input),
        cache_write: unpack_usd(cache_write),
        output: unpack_usd(output),
        request: unpack_usd(request),
        web_search: unpack_usd(web_search),
        units: unpack_usd(unit_cost),
    };
    cost.total = sum_of_parts(&cost).plus(unpack_usd(of_total));
    usage.cost = (kinds & IS_PRICED != 0).then_some(cost);
    entry.duration_ms = count(duration_ms)?;
    entry.first_event_ms = first_event.checked_sub(1).map(count).transpose()?;
    entry.reserved = unpack_usd(reserved);
    entry.charged = cost.total.minus(unpack_usd(not_charged));
    entry.shortfall = unpack_usd(shortfall);
    Ok(())
}

fn unpack_units(counted: [u128; Unit::ALL.len()]) -> Result<UnitCounts, InvalidCalls> {
    let mut counted = Unit::ALL.into_iter().zip(counted);
    counted.try_fold(UnitCounts::ZERO, |counts, (unit, number)| {
        let number = u64::try_from(number).map_err(|_| InvalidCalls)?;
        Ok(counts.with(unit, number))
    })
}

fn sum_of_parts(cost: &CostParts) -> Usd {
    let parts = [
        cost.input,
        cost.cached_input,
        cost.cache_write,
        cost.output,
        cost.request,
        cost.web_search,
        cost.units,
    ];
    parts.into_iter().fold(Usd::ZERO, Usd::plus)
}

/// Maps small numbers of both signs to small numbers.
fn to_unsigned(number: i128) -> u128 {
    ((number << 1) ^ (number >> 127)).cast_unsigned()
}

fn to_signed(number: u128) -> i128 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
