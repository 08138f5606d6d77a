//! One member of an organization: what its keys have spent together, and its budget.

use maud::{Markup, html};

use super::forms::{Form, field};
use super::organization::PATH as ORGANIZATION;
use super::refusal;
use crate::console::Console;
use crate::console::parts::{figure, money, time};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Field, FieldKind, FormContent, Typed, form};
use crate::console::views::links::{bad_parameter, link, name_of};
use crate::console::views::spend_limits::{limits, organization_link};
use crate::store::{MemberUse, SeenKind, SeenThing, Store, StoreError};

/// The page of a member. Its name and that of its organization are parameters.
pub(super) const PATH: &str = "/console/money/member";

/// The page. `typed` is what was typed into one of its forms that was refused.
pub(super) async fn page(
    console: &Console,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> ConsoleReply {
    let asked = || -> Result<_, Box<ConsoleReply>> {
        Ok((
            name_of("name", request.query("name"))?,
            name_of("member", request.query("member"))?,
        ))
    };
    let (organization, name) = match asked() {
        Ok((organization, member)) if organization.is_empty() || member.is_empty() => {
            let why = "name and member: the names of an organization and a member are missing";
            return *bad_parameter(why);
        }
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let (of_organization, now_ms) = (organization.clone(), request.now_ms);
    let gathered = console
        .with_store(|store| async move { gather(&store, (&of_organization, &name), now_ms).await });
    match gathered.await {
        Ok((of, seen)) => {
            let body = html! {
                (render(&organization, &of))
                @if console.is_writable() { (forms((&organization, &of), &seen, request, typed)) }
            };
            let status = typed.map_or(200, |typed| typed.refusal.status);
            ConsoleReply::refused(status, format!("Member {}", of.member.name), body)
        }
        Err(error) => refusal(&error),
    }
}

async fn gather(
    store: &Store,
    (organization, name): (&str, &str),
    now_ms: i64,
) -> Result<(MemberUse, SeenThing), StoreError> {
    let id = store.member(organization, name).await?.id;
    let seen = store.see(SeenKind::Member, &id).await?;
    Ok((store.member_use(organization, name, now_ms).await?, seen))
}

fn render(organization: &str, of: &MemberUse) -> Markup {
    let [_, day, _, month] = of.spent.periods;
    let name = &of.member.name;
    let keys = link(ORGANIZATION, &[("name", organization), ("member", name)]);
    let limit: Vec<_> = of.limit.into_iter().collect();
    html! {
        p { "Of " (organization_link(organization)) }
        dl.figures {
            (figure("Spent today", &html! { (money(day)) }, None))
            (figure("Spent this month", &html! { (money(month)) }, None))
            (figure("Spent in all", &html! { (money(of.spent.total)) }, None))
        }
        dl.pairs {
            dt { "Id" } dd { code { (of.member.id) } }
            dt { "Made" } dd { (time(of.member.created_at_ms)) }
            dt { "Keys" } dd { a href={ (keys) "#keys" } { "keys of " (name) } }
        }
        h2 { "Budget" }
        (limits("What is left of what all its keys may ever spend together", &limit))
    }
}

/// The forms that change the member.
fn forms(
    (organization, of): (&str, &MemberUse),
    seen: &SeenThing,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let member = &of.member;
    let own = [("name", organization), ("member", &*member.name)];
    let seen = seen.to_text();
    let show = |of: Form, fields: &[Field<'_>], button: Markup| {
        let content = FormContent {
            name: of.as_str(),
            action: &link(&format!("{}/{}", super::PATH, of.as_str()), &own),
            hidden: &[("seen", &*seen)],
            fields,
            more: None,
            button,
        };
        form(&content, request, typed)
    };
    let help = "The most that all its keys may ever spend together. Empty: no limit.";
    let budget = member.budget.map(|usd| usd.to_string());
    let budget = field(
        ("budget", "Budget, in USD", help),
        budget.unwrap_or_default(),
        FieldKind::Line,
    );
    let words = ("name", "Name", "What it is called from now on.");
    let name = field(words, member.name.clone(), FieldKind::NeededLine);
    html! {
        h2 { "Change" }
        div.columns {
            section {
                h3 { "Budget" }
                (show(Form::SetBudget, &[budget], html! { button type="submit" { "Save" } }))
            }
            section {
                h3 { "Rename" }
                (show(Form::RenameMember, &[name], html! { button type="submit" { "Rename" } }))
                h3 { "Delete" }
                p.muted { "Only a member to whom no key belongs." }
                (show(Form::DeleteMember, &[], html! {
                    p { label { input type="checkbox" name="confirm" value="yes" required; " for good" } }
                    button.danger type="submit" { "Delete" }
                }))
            }
        }
    }
}
