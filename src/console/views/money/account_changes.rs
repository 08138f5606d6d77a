//! Changes of organizations and their members: the functions and the refusals of `weirgate org`, `weirgate credit` and
//! `weirgate member`.

use filters::accounts::{AllowedRegions, BodyHours, Plan, UnknownValue};
use filters::money::Usd;

use super::forms::{Form, amount};
use super::{member, organization};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Done, Refusal, subject, text};
use crate::console::views::links::link;
use crate::store::{SeenKind, SeenThing, check_amount};

/// What a form of an organization asks for.
enum OrganizationChange {
    AddCredit(Usd),
    TakeCredit(Usd),
    Plan(Plan),
    Regions(Option<AllowedRegions>),
    ExportsContent(bool),
    KeepBodies(BodyHours),
}

/// What a form of a member asks for.
enum MemberChange {
    Budget(Option<Usd>),
    Rename(String),
    Delete,
}

pub(super) async fn change_organization(
    console: &Console,
    request: &ConsoleRequest,
    form: Form,
) -> Done {
    let name = subject(request, "name")?;
    let change = OrganizationChange::read(request, form)?;
    let kind = match change {
        OrganizationChange::AddCredit(_) | OrganizationChange::TakeCredit(_) => SeenKind::Credit,
        _ => SeenKind::Organization,
    };
    let seen_text = request.field("seen").unwrap_or_default();
    let (actor, now_ms, of) = (request.actor(), request.now_ms, name.clone());
    let changed = console.with_store(|store| async move {
        let id = store.organization(&of).await?.id;
        let Some(seen) = SeenThing::parse(kind, &id, &seen_text) else {
            return Ok(None);
        };
        let editor = store.by(&actor).if_still(&seen);
        match &change {
            OrganizationChange::AddCredit(usd) => {
                editor.add_credit(&of, *usd, now_ms).await?;
            }
            OrganizationChange::TakeCredit(usd) => {
                editor.take_credit(&of, *usd, now_ms).await?;
            }
            OrganizationChange::Plan(plan) => editor.set_plan(&of, *plan, now_ms).await?,
            OrganizationChange::Regions(regions) => {
                editor.set_regions(&of, None, regions.as_ref()).await?;
            }
            OrganizationChange::ExportsContent(is_on) => {
                editor.set_export_content(&of, *is_on).await?;
            }
            OrganizationChange::KeepBodies(hours) => {
                editor.keep_bodies(&of, hours.until_ms(now_ms)).await?;
            }
        }
        Ok(Some(()))
    });
    changed.await?.ok_or_else(Refusal::damaged)?;
    Ok(back_to_organization(&name))
}

pub(super) async fn add_member(console: &Console, request: &ConsoleRequest) -> Done {
    let organization = subject(request, "name")?;
    let name = text(request, "name")?.unwrap_or_default();
    let (actor, now_ms) = (request.actor(), request.now_ms);
    let (of, new_name) = (organization.clone(), name.clone());
    let added = console.with_store(|store| async move {
        let editor = store.by(&actor);
        editor.add_member(&of, &new_name, now_ms).await
    });
    added.await?;
    Ok(to_member(&organization, &name))
}

pub(super) async fn change_member(console: &Console, request: &ConsoleRequest, form: Form) -> Done {
    let (organization, name) = (subject(request, "name")?, subject(request, "member")?);
    let change = MemberChange::read(request, form)?;
    let to = match &change {
        MemberChange::Budget(_) => to_member(&organization, &name),
        MemberChange::Rename(new_name) => to_member(&organization, new_name),
        MemberChange::Delete => back_to_organization(&organization),
    };
    let seen_text = request.field("seen").unwrap_or_default();
    let actor = request.actor();
    let changed = console.with_store(|store| async move {
        let (organization, name) = (&*organization, &*name);
        let id = store.member(organization, name).await?.id;
        let Some(seen) = SeenThing::parse(SeenKind::Member, &id, &seen_text) else {
            return Ok(None);
        };
        let editor = store.by(&actor).if_still(&seen);
        match &change {
            MemberChange::Budget(usd) => editor.set_budget(organization, name, *usd).await?,
            MemberChange::Rename(new_name) => {
                editor.rename_member((organization, name), new_name).await?;
            }
            MemberChange::Delete => {
                editor.delete_member((organization, name), true).await?;
            }
        }
        Ok(Some(()))
    });
    changed.await?.ok_or_else(Refusal::damaged)?;
    Ok(to)
}

impl OrganizationChange {
    fn read(request: &ConsoleRequest, form: Form) -> Result<Self, Refusal> {
        Ok(match form {
            Form::AddCredit => Self::AddCredit(needed_amount(request, true)?),
            Form::TakeCredit => Self::TakeCredit(needed_amount(request, false)?),
            Form::SetPlan => Self::Plan(parse_word(request, "plan", str::parse)?),
            Form::SetRegions => match request.field("regions") {
                None => Self::Regions(None),
                Some(_) => Self::Regions(Some(parse_word(request, "regions", str::parse)?)),
            },
            Form::KeepBodies => Self::KeepBodies(parse_word(request, "keep_bodies", str::parse)?),
            _ => Self::ExportsContent(parse_word(request, "export_content", |word| match word {
                "on" => Ok(true),
                "off" => Ok(false),
                _ => Err(UnknownValue("on, off")),
            })?),
        })
    }
}

impl MemberChange {
    fn read(request: &ConsoleRequest, form: Form) -> Result<Self, Refusal> {
        Ok(match form {
            Form::SetBudget => Self::Budget(amount(request, "budget")?),
            Form::RenameMember => Self::Rename(text(request, "name")?.unwrap_or_default()),
            _ if request.field("confirm").is_none() => {
                let why = "the box was not ticked: a member is deleted for good";
                return Err(Refusal::invalid("", why));
            }
            _ => Self::Delete,
        })
    }
}

fn needed_amount(request: &ConsoleRequest, is_given: bool) -> Result<Usd, Refusal> {
    let usd = amount(request, "amount")?;
    let usd = usd.ok_or_else(|| Refusal::invalid("amount", "an amount is missing"))?;
    check_amount(usd, is_given)?;
    Ok(usd)
}

/// Reads a word that means a value.
fn parse_word<T>(
    request: &ConsoleRequest,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, UnknownValue>,
) -> Result<T, Refusal> {
    let word = request.field(name).unwrap_or_default();
    parse(&word).map_err(|error| {
        let shown: String = word.chars().take(80).collect();
        Refusal::invalid(name, format!("{name} is {shown:?}: {error}"))
    })
}

fn back_to_organization(name: &str) -> ConsoleReply {
    ConsoleReply::Redirect(link(organization::PATH, &[("name", name)]))
}

fn to_member(organization: &str, name: &str) -> ConsoleReply {
    let pairs = [("name", organization), ("member", name)];
    ConsoleReply::Redirect(link(member::PATH, &pairs))
}
