//! `weirgate org`: organizations.

use clap::Subcommand;
use filters::accounts::{AllowedRegions, BodyHours, Plan};
use serde_json::json;

use super::accounts::{
    RegionsChange, change_accounts, format_time, now_ms, on_store, parse_regions, parse_switch,
    write_deletion,
};
use super::arguments::{DeleteArgs, FormatArgs, NameArgs, RenameArgs};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::{AccountEditor, Organization, StoreError};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate org create acme --plan pro
  weirgate org update acme --plan max
  weirgate org update acme --regions eu  its calls are computed in regions of the EU alone
  weirgate org update acme --export-content on  the log export has what is asked and answered
  weirgate org update acme --keep-bodies 4h     the console shows what is asked and answered, for four hours
  weirgate org list --format json
  weirgate org rename acme globex        its keys and what it has spent stay
  weirgate org hold acme                 its keys answer 403 until `weirgate org release acme`
  weirgate org disable acme              its keys answer 410 until `weirgate org enable acme`
  weirgate org delete acme               says what that gives up; --yes does it, once it is disabled";

/// The columns of `org list`, which are also the fields of its JSON.
const COLUMNS: [&str; 8] = [
    "id",
    "name",
    "plan",
    "status",
    "created_at",
    "regions",
    "export_content",
    "keep_bodies_until",
];

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
        /// Whether the log export has the content of its calls: on or off [default: off]
        #[arg(long, value_name = "on|off", value_parser = parse_switch)]
        export_content: Option<bool>,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// List all organizations
    List(FormatArgs),
    /// Show an organization
    Show(NameArgs),
    /// Change an organization; what is not named stays as it is
    #[command(group(clap::ArgGroup::new("change").required(true).multiple(true).args(["plan", "regions", "export_content", "keep_bodies"])))]
    Update {
        /// Its name
        name: String,
        /// Its plan: none, lite, pro or max; the first cycle of another plan begins now
        #[arg(long)]
        plan: Option<Plan>,
        /// Where its calls may be computed: names of regions, or their beginnings, with commas between them; empty: everywhere
        #[arg(long, value_name = "REGIONS", value_parser = parse_regions)]
        regions: Option<RegionsChange>,
        /// Whether the log export has the content of its calls: on or off
        #[arg(long, value_name = "on|off", value_parser = parse_switch)]
        export_content: Option<bool>,
        /// For how long the server keeps in memory what is asked and answered, for the console: hours such as 4h, up to 72h, or off
        #[arg(long, value_name = "HOURS|off")]
        keep_bodies: Option<BodyHours>,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Give an organization another name
    Rename(RenameArgs<NameArgs>),
    /// Hold an organization for review: its keys are refused until it is released
    Hold(NameArgs),
    /// Release an organization that is held
    Release(NameArgs),
    /// Disable an organization: its keys stop to count
    Disable(NameArgs),
    /// Enable an organization that is disabled: its keys count again
    Enable(NameArgs),
    /// Delete a disabled organization with all that the store has of it
    Delete(DeleteArgs<NameArgs>),
}

pub(super) fn run(command: &OrgCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        OrgCommand::Create {
            name,
            plan,
            regions,
            export_content,
            output,
        } => create(
            (name, *plan),
            (regions.as_ref(), *export_content),
            output.format,
            (source, out),
        ),
        OrgCommand::List(output) => list(output.format, source, out),
        OrgCommand::Show(args) => show(args, source, out),
        OrgCommand::Update {
            name,
            plan,
            regions,
            export_content,
            keep_bodies,
            output,
        } => update(
            (name, *plan),
            (regions.as_ref(), *export_content, *keep_bodies),
            output.format,
            (source, out),
        ),
        OrgCommand::Rename(args) => rename(args, source, out),
        OrgCommand::Hold(args) => set_state("held", args, (source, out), async |store| {
            store.hold_organization(&args.name, Some(now_ms())).await
        }),
        OrgCommand::Release(args) => set_state("released", args, (source, out), async |store| {
            store.hold_organization(&args.name, None).await
        }),
        OrgCommand::Disable(args) => set_state("disabled", args, (source, out), async |store| {
            store.disable_organization(&args.name).await
        }),
        OrgCommand::Enable(args) => set_state("enabled", args, (source, out), async |store| {
            store.enable_organization(&args.name).await
        }),
        OrgCommand::Delete(args) => delete(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(
    (name, plan): (&str, Plan),
    (regions, export_content): (Option<&AllowedRegions>, Option<bool>),
    format: OutputFormat,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let created = change_accounts(source, out, async |store| {
        let created = store.create_organization(name, plan, now_ms()).await?;
        if regions.is_some() {
            store.set_regions(name, None, regions).await?;
        }
        if let Some(exports_content) = export_content {
            store.set_export_content(name, exports_content).await?;
        }
        Ok(created)
    })?;
    let note = format!("created the organization `{name}` with the project `default`");
    let done = json!({"done": "created", "id": created.id, "name": name});
    out.done(format, &note, Some(&created.id), &done);
    Ok(())
}

fn list(format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.organizations().await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn show(args: &NameArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let found = on_store(source, out, async |store| {
        store.organization(&args.name).await
    })?;
    out.record(args.output.format, &COLUMNS, to_record(&found));
    Ok(())
}

fn update(
    (name, plan): (&str, Option<Plan>),
    (regions, export_content, keep_bodies): (
        Option<&RegionsChange>,
        Option<bool>,
        Option<BodyHours>,
    ),
    format: OutputFormat,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let updated = change_accounts(source, out, async |store| {
        if let Some(RegionsChange(regions)) = regions {
            store.set_regions(name, None, regions.as_ref()).await?;
        }
        if let Some(exports_content) = export_content {
            store.set_export_content(name, exports_content).await?;
        }
        if let Some(hours) = keep_bodies {
            let now_ms = now_ms();
            store.keep_bodies(name, hours.until_ms(now_ms)).await?;
        }
        if let Some(plan) = plan {
            store.set_plan(name, plan, now_ms()).await?;
        }
        store.organization(name).await
    })?;
    let mut notes = Vec::new();
    if let Some(plan) = plan {
        notes.push(format!(
            "the organization `{name}` is on the plan `{}`",
            plan.as_str()
        ));
    }
    let named = updated.regions.as_ref().map(ToString::to_string);
    if regions.is_some() {
        notes.push(format!(
            "calls of the organization `{name}` are computed in {}",
            named.as_deref().unwrap_or("all regions")
        ));
    }
    if let Some(exports_content) = export_content {
        let has = if exports_content { "has" } else { "has not" };
        notes.push(format!(
            "the log export {has} the content of calls of the organization `{name}`"
        ));
    }
    let kept_until = format_time(updated.keep_bodies_until_ms);
    notes.extend(keep_bodies.map(|_| note_of_bodies(name, kept_until.as_str())));
    let done = json!({
        "done": "updated", "id": updated.id, "name": name, "plan": updated.plan.as_str(), "regions": named,
        "export_content": updated.exports_content, "keep_bodies_until": kept_until,
    });
    out.done(format, &notes.join("\n"), None, &done);
    Ok(())
}

fn note_of_bodies(name: &str, until: Option<&str>) -> String {
    let what = format!("what is asked and answered in calls of the organization `{name}`");
    match until {
        Some(until) => format!("{what} is kept in memory until {until}"),
        None => format!("{what} is not kept"),
    }
}

fn rename(args: &RenameArgs<NameArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (name, new_name) = (&args.of.name, &args.new_name);
    let renamed = change_accounts(source, out, async |store| {
        store.rename_organization(name, new_name).await?;
        store.organization(new_name).await
    })?;
    let note = format!("renamed the organization `{name}` to `{new_name}`");
    let done = json!({"done": "renamed", "id": renamed.id, "name": new_name});
    out.done(args.of.output.format, &note, None, &done);
    Ok(())
}

/// Changes the state of an organization. `state` is the word for what is done.
fn set_state(
    state: &str,
    args: &NameArgs,
    (source, out): (&Source, &mut Output),
    change: impl AsyncFnOnce(AccountEditor<'_>) -> Result<(), StoreError>,
) -> Result<(), Exit> {
    let id = change_accounts(source, out, async |store| {
        change(store).await?;
        Ok(store.organization(&args.name).await?.id)
    })?;
    let note = format!("{state} the organization `{}`", args.name);
    let done = json!({"done": state, "id": id, "name": args.name});
    out.done(args.output.format, &note, None, &done);
    Ok(())
}

fn delete(args: &DeleteArgs<NameArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let name = &args.of.name;
    let deletion = change_accounts(source, out, async |store| {
        store.delete_organization(name, args.yes, now_ms()).await
    })?;
    let how = (args.yes, args.of.output.format);
    write_deletion(("organization", name), &deletion, how, out)
}

fn to_record(organization: &Organization) -> Record {
    let values = [
        json!(organization.id),
        json!(organization.name),
        json!(organization.plan.as_str()),
        json!(organization.status.as_str()),
        format_time(Some(organization.created_at_ms)),
        json!(organization.regions.as_ref().map(ToString::to_string)),
        json!(organization.exports_content),
        format_time(organization.keep_bodies_until_ms),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
