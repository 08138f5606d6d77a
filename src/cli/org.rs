//! `weirgate org`: organizations.

use clap::Subcommand;
use filters::accounts::{AllowedRegions, Plan};
use serde_json::json;

use super::accounts::{RegionsChange, format_time, now_ms, on_store, parse_regions};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::Organization;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate org create acme --plan pro
  weirgate org update acme --plan max
  weirgate org update acme --regions eu  its calls are computed in regions of the EU alone
  weirgate org list --format json
  weirgate org hold acme                 its keys answer 403 until `weirgate org release acme`
  weirgate org disable acme              its keys answer 410 from then on";

/// The columns of `org list`, which are also the fields of its JSON.
const COLUMNS: [&str; 6] = ["id", "name", "plan", "status", "created_at", "regions"];

/// The commands of `org`.
#[derive(Subcommand)]
pub(super) enum OrgCommand {
    /// Make an organization and its project `default`; prints its id
    Create {
        /// Its name, which no other has
        name: String,
        /// Its plan: none, lite, pro or max
        #[arg(long, default_value = "none")]
        plan: Plan,
        /// Where its calls may be computed: names of regions, or their beginnings, with commas between them
        #[arg(long, value_name = "REGIONS")]
        regions: Option<AllowedRegions>,
    },
    /// List all organizations
    List {
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Change an organization; what is not named stays as it is
    #[command(group(clap::ArgGroup::new("change").required(true).multiple(true).args(["plan", "regions"])))]
    Update {
        /// Its name
        name: String,
        /// Its plan: none, lite, pro or max; the first cycle of another plan begins now
        #[arg(long)]
        plan: Option<Plan>,
        /// Where its calls may be computed: names of regions, or their beginnings, with commas between them; empty: everywhere
        #[arg(long, value_name = "REGIONS", value_parser = parse_regions)]
        regions: Option<RegionsChange>,
    },
    /// Hold an organization for review: its keys are refused until it is released
    Hold {
        /// Its name
        name: String,
    },
    /// Release an organization that is held
    Release {
        /// Its name
        name: String,
    },
    /// Disable an organization: its keys stop to count
    Disable {
        /// Its name
        name: String,
    },
}

pub(super) fn run(command: &OrgCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        OrgCommand::Create {
            name,
            plan,
            regions,
        } => create(name, *plan, regions.as_ref(), (source, out)),
        OrgCommand::List { format } => list(*format, source, out),
        OrgCommand::Update {
            name,
            plan,
            regions,
        } => update(name, *plan, regions.as_ref(), (source, out)),
        OrgCommand::Hold { name } => hold(name, Some(now_ms()), source, out),
        OrgCommand::Release { name } => hold(name, None, source, out),
        OrgCommand::Disable { name } => disable(name, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(
    name: &str,
    plan: Plan,
    regions: Option<&AllowedRegions>,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let created = on_store(source, out, async |store| {
        let created = store.create_organization(name, plan, now_ms()).await?;
        if regions.is_some() {
            store.set_regions(name, None, regions).await?;
        }
        Ok(created)
    })?;
    out.note(&format!(
        "created the organization `{name}` with the project `default`"
    ));
    out.line(&created.id);
    Ok(())
}

fn list(format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.organizations().await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn update(
    name: &str,
    plan: Option<Plan>,
    regions: Option<&RegionsChange>,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        if let Some(RegionsChange(regions)) = regions {
            store.set_regions(name, None, regions.as_ref()).await?;
        }
        match plan {
            Some(plan) => store.set_plan(name, plan, now_ms()).await,
            None => Ok(()),
        }
    })?;
    if let Some(plan) = plan {
        out.note(&format!(
            "the organization `{name}` is on the plan `{}`",
            plan.as_str()
        ));
    }
    if let Some(RegionsChange(regions)) = regions {
        let named = regions.as_ref().map(ToString::to_string);
        out.note(&format!(
            "calls of the organization `{name}` are computed in {}",
            named.as_deref().unwrap_or("all regions")
        ));
    }
    Ok(())
}

fn hold(name: &str, since_ms: Option<i64>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        store.hold_organization(name, since_ms).await
    })?;
    let done = if since_ms.is_some() {
        "held"
    } else {
        "released"
    };
    out.note(&format!("{done} the organization `{name}`"));
    Ok(())
}

fn disable(name: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        store.disable_organization(name).await
    })?;
    out.note(&format!("disabled the organization `{name}`"));
    Ok(())
}

fn to_record(organization: &Organization) -> Record {
    let values = [
        json!(organization.id),
        json!(organization.name),
        json!(organization.plan.as_str()),
        json!(organization.status.as_str()),
        format_time(Some(organization.created_at_ms)),
        json!(organization.regions.as_ref().map(ToString::to_string)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
