//! What all organizations have spent, and what each of them has left.

use filters::accounts::OrganizationStatus;
use jiff::Timestamp;
use maud::{Markup, html};

use super::organization::ListQuery;
use super::{PATH, PERIODS, SPEND, refusal};
use crate::console::Console;
use crate::console::parts::{self, Tone, badge, money, number, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::store_answers::{LongAnswer, WaitFor};
use crate::console::views::links::link;
use crate::console::views::spend_limits::{key_link, organization_link, tightest};
use crate::console::views::spending::{self, Look, spender_name};
use crate::store::ledger::{SpendBy, SpendQuery, Spender, Spending};
use crate::store::{AccountPage, OrganizationUse, StoreError};

const DIVISIONS: [SpendBy; 4] = SpendBy::ALL;

/// What the page shows.
struct AllMoney {
    look: Look,
    list: ListQuery,
    asked: SpendQuery,
    spending: LongAnswer<Spending>,
    organizations: AccountPage<OrganizationUse>,
}

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let read = Look::parse(request, &PERIODS, &DIVISIONS);
    let list = ListQuery::parse(request, "search", "after");
    let (look, list) = match (read, list) {
        (Ok(look), Ok(list)) => (look, list),
        (Err(refused), _) | (_, Err(refused)) => return *refused,
    };
    if request.query("part").as_deref() == Some(SPEND) {
        let asked = look.query(None, Timestamp::now().as_millisecond());
        let answer = console.spending(&asked, WaitFor::Answer).await;
        return ConsoleReply::Fragment(section(look, &asked, &answer));
    }
    match gather(console, look, list).await {
        Ok(money) => ConsoleReply::page("Money", render(&money)),
        Err(error) => refusal(&error),
    }
}

async fn gather(console: &Console, look: Look, list: ListQuery) -> Result<AllMoney, StoreError> {
    let now_ms = Timestamp::now().as_millisecond();
    let asked = look.query(None, now_ms);
    let (plans, wanted) = (console.app().models.plans, list.clone());
    let organizations = console.with_store(|store| async move {
        store
            .organizations_page(wanted.page(), &plans, now_ms)
            .await
    });
    let (spending, organizations) =
        tokio::join!(console.spending(&asked, WaitFor::Page), organizations);
    Ok(AllMoney {
        spending,
        organizations: organizations?,
        look,
        list,
        asked,
    })
}

fn render(of: &AllMoney) -> Markup {
    let kept = [("search", &*of.list.search)];
    html! {
        h2 { "Spend: " (of.look.back.in_words().to_lowercase()) }
        (of.look.choices(PATH, &kept, (&PERIODS, &DIVISIONS)))
        (section(of.look, &of.asked, &of.spending))
        (organizations(of))
    }
}

fn section(look: Look, asked: &SpendQuery, answer: &LongAnswer<Spending>) -> Markup {
    let own = [
        ("part", SPEND),
        ("period", look.back.as_str()),
        ("by", look.by.as_str()),
    ];
    let address = link(PATH, &own);
    spending::section(asked, answer, &address, |it| spender(look.by, it))
}

fn spender(by: SpendBy, spender: &Spender) -> Markup {
    match (by, &spender.label) {
        (SpendBy::Organization, Some(name)) => organization_link(name),
        (SpendBy::Key, Some(label)) => key_link(&spender.usage.name, label),
        _ => html! { (spender_name(spender)) },
    }
}

fn organizations(of: &AllMoney) -> Markup {
    let columns = [
        text("Organization"),
        text("State"),
        text("Plan"),
        number("Credit left"),
        number("of it held by servers"),
        text("Plan left"),
    ];
    let rows = of.organizations.rows.iter().map(|it| {
        let organization = &it.organization;
        vec![
            organization_link(&organization.name),
            state(organization.status),
            html! { (organization.plan.as_str()) },
            html! { (money(it.credit.balance())) },
            html! { (money(it.credit.reserved)) },
            tightest(&it.limits),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let own = [
        ("period", of.look.back.as_str()),
        ("by", of.look.by.as_str()),
        ("search", &of.list.search),
    ];
    let next = of.organizations.next.as_deref();
    let next = next.map(|after| link(PATH, &[&own[..], &[("after", after)]].concat()));
    html! {
        h2 #organizations { "Organizations" }
        form.filters method="get" action=(PATH) {
            input type="hidden" name="period" value=(of.look.back.as_str());
            input type="hidden" name="by" value=(of.look.by.as_str());
            div {
                label for="search" { "Name begins with" }
                input #search name="search" type="search" value=(of.list.search);
            }
            button type="submit" { "Find" }
        }
        (parts::table("Organizations, by name", &columns, &rows, "There is no organization whose name begins so."))
        (parts::pager(next.as_deref()))
    }
}

/// The state of an organization.
pub(super) fn state(status: OrganizationStatus) -> Markup {
    let tone = match status {
        OrganizationStatus::Active => Tone::Good,
        OrganizationStatus::Held => Tone::Warning,
        OrganizationStatus::Disabled => Tone::Bad,
    };
    badge(tone, status.as_str())
}
