//! One organization: what it spends, its credit and plan, and its members, projects and keys with what they have left.

use filters::accounts::KeyState;
use jiff::Timestamp;
use maud::{Markup, html};

use super::all::state;
use super::organization_forms::{OrganizationSeen, forms};
use super::{PERIODS, SPEND, refusal};
use crate::console::Console;
use crate::console::parts::{self, Tone, badge, figure, money, number, text, time};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::store_answers::{LongAnswer, WaitFor};
use crate::console::views::forms::Typed;
use crate::console::views::links::{bad_parameter, link, name_of};
use crate::console::views::spend_limits::{key_link, limits, member_link, tightest};
use crate::console::views::spending::{self, Look, spender_name};
use crate::store::ledger::{SpendBy, SpendQuery, Spender, Spending};
use crate::store::{
    AccountPage, IssuedKey, KeyFilter, KeyUse, MemberUse, OrganizationUse, Project, Store,
    StoreError,
};

/// The page of an organization, whose name is a parameter.
pub(super) const PATH: &str = "/console/money/organization";
const DIVISIONS: [SpendBy; 3] = [SpendBy::Model, SpendBy::Provider, SpendBy::Key];

/// Which part of a list is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct ListQuery {
    pub(super) search: String,
    pub(super) after: Option<String>,
}

/// What the page shows, and which parts of it.
struct OrganizationQuery {
    name: String,
    look: Look,
    keys: ListQuery,
    members: ListQuery,
    projects: ListQuery,
    /// The names of the project and of the member whose keys are shown.
    of_project: Option<String>,
    of_member: Option<String>,
}

struct OrganizationMoney {
    account: OrganizationUse,
    query: SpendQuery,
    spending: LongAnswer<Spending>,
    members: AccountPage<MemberUse>,
    projects: AccountPage<Project>,
    keys: AccountPage<KeyUse>,
    /// What the forms have seen; `None`: nothing may be changed.
    seen: Option<OrganizationSeen>,
}

/// The page. `typed` is what was typed into one of its forms that was refused.
pub(super) async fn page(
    console: &Console,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> ConsoleReply {
    let asked = match OrganizationQuery::parse(request) {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    if request.query("part").as_deref() == Some(SPEND) {
        return spend_alone(console, &asked).await;
    }
    match gather(console, &asked).await {
        Ok(of) => {
            let forms = html! {
                @if let Some(seen) = &of.seen { (forms(&of.account.organization, seen, request, typed)) }
            };
            let body = html! { (render(&asked, &of)) (forms) };
            let status = typed.map_or(200, |typed| typed.refusal.status);
            ConsoleReply::refused(status, asked.name.clone(), body)
        }
        Err(error) => refusal(&error),
    }
}

/// Answers with what was spent alone.
async fn spend_alone(console: &Console, asked: &OrganizationQuery) -> ConsoleReply {
    let name = asked.name.clone();
    let found = console.with_store(|store| async move { store.organization(&name).await });
    let query = match found.await {
        Ok(found) => asked
            .look
            .query(Some(&found.id), Timestamp::now().as_millisecond()),
        Err(error) => return refusal(&error),
    };
    let answer = console.spending(&query, WaitFor::Answer).await;
    ConsoleReply::Fragment(section(asked, &query, &answer))
}

impl OrganizationQuery {
    fn parse(request: &ConsoleRequest) -> Result<Self, Box<ConsoleReply>> {
        let name = name_of("name", request.query("name"))?;
        if name.is_empty() {
            return Err(bad_parameter(
                "name: the name of an organization is missing",
            ));
        }
        let optional = |parameter: &str| -> Result<Option<String>, Box<ConsoleReply>> {
            let name = name_of(parameter, request.query(parameter))?;
            Ok(Some(name).filter(|name| !name.is_empty()))
        };
        Ok(Self {
            name,
            look: Look::parse(request, &PERIODS, &DIVISIONS)?,
            keys: ListQuery::parse(request, "search", "after")?,
            members: ListQuery::parse(request, "member_search", "member_after")?,
            projects: ListQuery::parse(request, "project_search", "project_after")?,
            of_project: optional("project")?,
            of_member: optional("member")?,
        })
    }

    /// Returns the address of this page with other values of some parameters.
    fn link(&self, others: &[(&str, &str)]) -> String {
        let own = [
            ("name", &*self.name),
            ("period", self.look.back.as_str()),
            ("by", self.look.by.as_str()),
            ("project", self.of_project.as_deref().unwrap_or_default()),
            ("member", self.of_member.as_deref().unwrap_or_default()),
            ("search", &self.keys.search),
            ("member_search", &self.members.search),
            ("project_search", &self.projects.search),
        ];
        let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
        let own = own.into_iter().filter(|(name, _)| !is_other(name));
        link(PATH, &own.chain(others.iter().copied()).collect::<Vec<_>>())
    }
}

async fn gather(
    console: &Console,
    asked: &OrganizationQuery,
) -> Result<OrganizationMoney, StoreError> {
    let now_ms = Timestamp::now().as_millisecond();
    let seen = match console.is_writable() {
        true => {
            let name = asked.name.clone();
            // What is shown must not be older than what the forms have seen.
            let see = |store: Store| async move { OrganizationSeen::read(&store, &name).await };
            Some(console.with_store(see).await?)
        }
        false => None,
    };
    let (plans, name) = (console.app().models.plans, asked.name.clone());
    let account = console
        .with_store(|store| async move { store.organization_use(&name, &plans, now_ms).await });
    let account = account.await?;
    let query = asked.look.query(Some(&account.organization.id), now_ms);
    let (name, list) = (asked.name.clone(), asked.members.clone());
    let members = console
        .with_store(|store| async move { store.members_page(&name, list.page(), now_ms).await });
    let (name, list) = (asked.name.clone(), asked.projects.clone());
    let projects =
        console.with_store(|store| async move { store.projects_page(&name, list.page()).await });
    let (name, list) = (asked.name.clone(), asked.keys.clone());
    let (project, member) = (asked.of_project.clone(), asked.of_member.clone());
    let keys = console.with_store(|store| async move {
        let filter = KeyFilter {
            project: project.as_deref(),
            member: member.as_deref(),
        };
        store.keys_page(&name, filter, list.page(), now_ms).await
    });
    let (spending, members, projects, keys) = tokio::join!(
        console.spending(&query, WaitFor::Page),
        members,
        projects,
        keys
    );
    Ok(OrganizationMoney {
        spending,
        members: members?,
        projects: projects?,
        keys: keys?,
        seen,
        account,
        query,
    })
}

fn render(asked: &OrganizationQuery, of: &OrganizationMoney) -> Markup {
    let OrganizationUse {
        organization,
        credit,
        ..
    } = &of.account;
    html! {
        p { a href=(super::PATH) { "All organizations" } }
        dl.figures {
            (figure("State", &state(organization.status), None))
            (figure("Credit left", &html! { (money(credit.balance())) }, Some(&format!("of {} granted", money(credit.granted)))))
            (figure("Held by servers", &html! { (money(credit.reserved)) }, Some("part of what is left; they give back what calls do not need")))
            (figure("Used of credit", &html! { (money(credit.used)) }, Some("since the beginning")))
            (figure("Plan", &html! { (organization.plan.as_str()) }, None))
        }
        dl.pairs {
            dt { "Its calls may be computed in" }
            dd { @match &organization.regions { Some(regions) => (regions.to_string()), None => "all regions" } }
            dt { "The log export has what is asked and answered" }
            dd { (if organization.exports_content { "yes" } else { "no" }) }
            dt { "What is asked and answered is kept in memory" }
            dd { @match organization.keep_bodies_until_ms { Some(until_ms) => { "until " (time(until_ms)) }, None => "no" } }
        }
        @if !of.account.limits.is_empty() {
            h2 { "Plan" }
            (limits("What is left of the plan", &of.account.limits))
        }
        (spend(asked, of))
        (members(asked, &of.members))
        (projects(asked, &of.projects))
        (keys(asked, &of.keys))
    }
}

fn spend(asked: &OrganizationQuery, of: &OrganizationMoney) -> Markup {
    let kept = [("name", &*asked.name)];
    html! {
        h2 { "Spend: " (asked.look.back.in_words().to_lowercase()) }
        (asked.look.choices(PATH, &kept, (&PERIODS, &DIVISIONS)))
        (section(asked, &of.query, &of.spending))
    }
}

fn section(asked: &OrganizationQuery, query: &SpendQuery, answer: &LongAnswer<Spending>) -> Markup {
    let address = asked.link(&[("part", SPEND)]);
    spending::section(query, answer, &address, |it| spender(asked.look.by, it))
}

fn spender(by: SpendBy, spender: &Spender) -> Markup {
    match (by, &spender.label) {
        (SpendBy::Key, Some(label)) => key_link(&spender.usage.name, label),
        _ => html! { (spender_name(spender)) },
    }
}

fn members(asked: &OrganizationQuery, page: &AccountPage<MemberUse>) -> Markup {
    let columns = [
        text("Member"),
        number("Spent this month"),
        number("Spent in all"),
        text("Budget left"),
        text("Keys"),
    ];
    let rows = page.rows.iter().map(|it| {
        let name = &it.member.name;
        let [_, _, _, month] = it.spent.periods;
        let limit: Vec<_> = it.limit.into_iter().collect();
        let to_keys = asked.link(&[("member", name), ("project", ""), ("after", "")]);
        vec![
            member_link(&asked.name, name),
            html! { (money(month)) },
            html! { (money(it.spent.total)) },
            tightest(&limit),
            html! { a href={ (to_keys) "#keys" } { "keys of " (name) } },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let next = page.next.as_deref();
    let next = next.map(|after| asked.link(&[("member_after", after)]));
    html! {
        h2 #members { "Members" }
        (search(asked, ("member_search", "Name begins with"), &asked.members.search))
        (parts::table("Members, by name", &columns, &rows, "There is no such member."))
        (parts::pager(next.as_deref()))
    }
}

fn projects(asked: &OrganizationQuery, page: &AccountPage<Project>) -> Markup {
    let columns = [text("Project"), text("State"), text("Mode"), text("Keys")];
    let rows = page.rows.iter().map(|project| {
        let name = &project.name;
        let state = match project.is_archived {
            true => badge(Tone::Bad, "archived"),
            false => badge(Tone::Good, "active"),
        };
        let to_keys = asked.link(&[("project", name), ("member", ""), ("after", "")]);
        vec![
            html! { (name) },
            state,
            html! { (project.mode.as_str()) },
            html! { a href={ (to_keys) "#keys" } { "keys of " (name) } },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let next = page.next.as_deref();
    let next = next.map(|after| asked.link(&[("project_after", after)]));
    html! {
        h2 #projects { "Projects" }
        (search(asked, ("project_search", "Name begins with"), &asked.projects.search))
        (parts::table("Projects, by name", &columns, &rows, "There is no such project."))
        (parts::pager(next.as_deref()))
    }
}

fn keys(asked: &OrganizationQuery, page: &AccountPage<KeyUse>) -> Markup {
    let columns = [
        text("Key"),
        text("State"),
        text("Ends with"),
        text("Project"),
        text("Member"),
        number("Spent this month"),
        number("Spent in all"),
        text("Left"),
        text("Made"),
    ];
    let now_ms = Timestamp::now().as_millisecond();
    let rows = page.rows.iter().map(|it| {
        let key = &it.key;
        let [_, _, _, month] = it.spent.periods;
        vec![
            key_link(&key.id, &key.label),
            key_state(key, now_ms),
            html! { code { (key.last_four) } },
            html! { (key.project) },
            html! { @match &key.member { Some(member) => (member_link(&asked.name, member)), None => "–" } },
            html! { (money(month)) },
            html! { (money(it.spent.total)) },
            tightest(&it.limits),
            time(key.created_at_ms),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let next = page.next.as_deref();
    let next = next.map(|after| asked.link(&[("after", after)]));
    let of = asked.of_project.as_deref().map(|name| ("project", name));
    let of = of.or(asked.of_member.as_deref().map(|name| ("member", name)));
    html! {
        h2 #keys { "Keys" }
        @if let Some((kind, name)) = of {
            p { "Those of the " (kind) " " strong { (name) } ". " a href={ (asked.link(&[("project", ""), ("member", "")])) "#keys" } { "All keys" } }
        }
        (search(asked, ("search", "Label begins with, last four, or id"), &asked.keys.search))
        (parts::table("Keys, the newest first", &columns, &rows, "There is no such key."))
        (parts::pager(next.as_deref()))
    }
}

/// A form that searches in one of the lists.
fn search(asked: &OrganizationQuery, (name, label): (&str, &str), value: &str) -> Markup {
    let kept = [
        ("name", &*asked.name),
        ("period", asked.look.back.as_str()),
        ("by", asked.look.by.as_str()),
        ("project", asked.of_project.as_deref().unwrap_or_default()),
        ("member", asked.of_member.as_deref().unwrap_or_default()),
    ];
    html! {
        form.filters method="get" action=(PATH) {
            @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            div {
                label for=(name) { (label) }
                input id=(name) name=(name) type="search" value=(value);
            }
            button type="submit" { "Find" }
        }
    }
}

/// The state of a key.
pub(super) fn key_state(key: &IssuedKey, now_ms: i64) -> Markup {
    let tone = match key.state() {
        KeyState::Active if key.is_expired(now_ms) => Tone::Bad,
        KeyState::Active => Tone::Good,
        KeyState::Disabled => Tone::Warning,
        KeyState::Revoked => Tone::Bad,
    };
    badge(tone, key.status(now_ms))
}
