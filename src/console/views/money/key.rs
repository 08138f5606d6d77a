//! One key: what it may spend, what it has spent, and on what.

use filters::accounts::KeyState;
use filters::ledger::usage_query::{
    BreakdownQuery, Granularity, UsageGroup, UsageOrder, UsageQuery,
};
use jiff::Timestamp;
use maud::{Markup, html};

use super::forms::{Form, KeyFields};
use super::organization::key_state;
use super::{PERIODS, refusal};
use crate::console::Console;
use crate::console::parts::{self, Plot, PlotSeries, figure, money, number, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Field, FormContent, Typed, form};
use crate::console::views::links::{bad_parameter, link, name_of, one_of};
use crate::console::views::spend_limits::{limits, member_link, organization_link};
use crate::console::views::spending::{self, LookBack};
use crate::store::ledger::{PeriodUsage, Usage, UsagePart, UsageScope};
use crate::store::{KeyUse, SeenKind, SeenThing, Store, StoreError};

/// The page of a key, whose id is a parameter.
pub(super) const PATH: &str = "/console/money/key";
/// The number of models that are shown.
const MAX_MODELS: i64 = 20;
const HOUR_S: i64 = 3_600;

/// What the page shows.
struct KeyMoney {
    organization: String,
    of: KeyUse,
    back: LookBack,
    periods: Vec<PeriodUsage>,
    models: Vec<UsagePart>,
    /// The key as the forms have it.
    seen: SeenThing,
}

/// The page. `typed` is what was typed into one of its forms that was refused.
pub(super) async fn page(
    console: &Console,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> ConsoleReply {
    let id = match name_of("id", request.query("id")) {
        Ok(id) if id.is_empty() => return *bad_parameter("id: the id of a key is missing"),
        Ok(id) => id,
        Err(refused) => return *refused,
    };
    let words = PERIODS.map(|it| (it.as_str(), it));
    let back = match one_of("period", request.query("period").as_deref(), &words) {
        Ok(back) => back,
        Err(refused) => return *refused,
    };
    let gathered = console.with_store(|store| async move { gather(&store, &id, back).await });
    match gathered.await {
        Ok(of) => {
            let body = html! {
                (warnings(&console.unknown_names(&of.of.key.terms)))
                (render(&of))
                @if console.is_writable() { (forms(&of, request, typed)) }
            };
            let status = typed.map_or(200, |typed| typed.refusal.status);
            ConsoleReply::refused(status, title(&of), body)
        }
        Err(error) => refusal(&error),
    }
}

async fn gather(store: &Store, id: &str, back: LookBack) -> Result<KeyMoney, StoreError> {
    let now_ms = Timestamp::now().as_millisecond();
    let seen = store.see(SeenKind::Key, id).await?;
    let (organization, of) = store.key_use(id, now_ms).await?;
    let scope = UsageScope {
        organization_id: store.organization(&organization).await?.id.into(),
        key_id: Some(id.into()),
    };
    let (hours, granularity) = back.hours(now_ms);
    let by_model = BreakdownQuery {
        hours,
        group: UsageGroup::Model,
        order: UsageOrder::Cost,
        limit: MAX_MODELS,
        offset: 0,
    };
    let by_time = UsageQuery { hours, granularity };
    Ok(KeyMoney {
        periods: store.usage_periods(&scope, by_time).await?,
        models: store.usage_parts(&scope, by_model).await?,
        organization,
        of,
        back,
        seen,
    })
}

fn title(of: &KeyMoney) -> String {
    match &*of.of.key.label {
        "" => format!("Key …{}", of.of.key.last_four),
        label => format!("Key {label}"),
    }
}

fn render(of: &KeyMoney) -> Markup {
    let KeyUse { key, spent, .. } = &of.of;
    let now_ms = Timestamp::now().as_millisecond();
    let [_, day, _, month] = spent.periods;
    let time = |at: Option<i64>| at.map_or_else(|| html! { "–" }, parts::time);
    html! {
        p { "Of " (organization_link(&of.organization)) }
        dl.figures {
            (figure("State", &key_state(key, now_ms), None))
            (figure("Spent today", &html! { (money(day)) }, None))
            (figure("Spent this month", &html! { (money(month)) }, None))
            (figure("Spent in all", &html! { (money(spent.total)) }, None))
        }
        dl.pairs {
            dt { "Id" } dd { code { (key.id) } }
            dt { "Label" } dd { (key.label) }
            dt { "Ends with" } dd { code { (key.last_four) } }
            dt { "Project" } dd { (key.project) }
            dt { "Member" } dd { @match &key.member { Some(member) => (member_link(&of.organization, member)), None => "–" } }
            dt { "Made" } dd { (parts::time(key.created_at_ms)) }
            dt { "Expires" } dd { (time(key.expires_at_ms)) }
            @if key.revoked_at_ms.is_some() { dt { "Revoked" } dd { (time(key.revoked_at_ms)) } }
            @if key.disabled_at_ms.is_some() { dt { "Disabled" } dd { (time(key.disabled_at_ms)) } }
            dt { "May ask why a provider was chosen" } dd { (if key.is_debug { "yes" } else { "no" }) }
            (rules(of))
        }
        h2 { "Limits" }
        (limits("What is left of its limits", &of.of.limits))
        (spend(of))
    }
}

/// The forms that change the key.
fn forms(of: &KeyMoney, request: &ConsoleRequest, typed: Option<&Typed<'_>>) -> Markup {
    let key = &of.of.key;
    let own = [("id", &*key.id)];
    let action = |form: Form| link(&format!("{}/{}", super::PATH, form.as_str()), &own);
    let seen = of.seen.to_text();
    let hidden = [("seen", &*seen)];
    let KeyFields { fields, rules } = KeyFields::new(Some(key));
    let change = |of: Form, fields: &[Field<'_>], button: Markup| {
        let content = FormContent {
            name: of.as_str(),
            action: &action(of),
            hidden: &hidden,
            fields,
            more: (of == Form::UpdateKey).then_some(("Rules", &*rules)),
            button,
        };
        form(&content, request, typed)
    };
    html! {
        h2 { "Change" }
        div.columns {
            section {
                h3 { "Limits, labels and rules" }
                (change(Form::UpdateKey, &fields, html! { button type="submit" { "Save" } }))
            }
            section {
                @match key.state() {
                    KeyState::Active => {
                        h3 { "Disable" }
                        p.muted { "It answers 401 until it is enabled." }
                        (change(Form::DisableKey, &[], html! { button.danger type="submit" { "Disable" } }))
                    }
                    KeyState::Disabled => {
                        h3 { "Enable" }
                        (change(Form::EnableKey, &[], html! { button type="submit" { "Enable" } }))
                    }
                    KeyState::Revoked => { p.muted { "It is revoked, which is for good." } }
                }
                @if key.state() != KeyState::Revoked {
                    h3 { "Revoke" }
                    (change(Form::RevokeKey, &[], html! {
                        p { label { input type="checkbox" name="confirm" value="yes" required; " for good: it answers 401 and cannot come back" } }
                        button.danger type="submit" { "Revoke" }
                    }))
                }
            }
        }
    }
}

/// Says which names in the rules of a key have no effect.
pub(super) fn warnings(warnings: &[String]) -> Markup {
    html! {
        @for warning in warnings {
            p.notice.warning { "A rule has no effect: " (warning) "." }
        }
    }
}

/// The rules of a key beside its limits.
fn rules(of: &KeyMoney) -> Markup {
    let terms = &of.of.key.terms;
    let lists = [
        ("Models allowed", &terms.allow_models),
        ("Models denied", &terms.deny_models),
        ("Providers allowed", &terms.allow_providers),
        ("Providers denied", &terms.deny_providers),
        ("Addresses allowed", &terms.allow_ips),
        ("Addresses denied", &terms.deny_ips),
        ("May bring credentials of", &terms.allow_passthrough),
    ];
    let prices = [
        ("Highest input price", &terms.max_input_price),
        ("Highest output price", &terms.max_output_price),
    ];
    html! {
        @for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            dt { (name) } dd { (list.join(", ")) }
        }
        @for (name, price) in prices {
            @if let Some(price) = price { dt { (name) } dd { (money(price)) " per million tokens" } }
        }
    }
}

fn spend(of: &KeyMoney) -> Markup {
    let columns = [
        text("Model"),
        number("Calls"),
        number("Prompt tokens"),
        number("Completion tokens"),
        number("Cost"),
    ];
    let limit = usize::try_from(MAX_MODELS).unwrap_or(usize::MAX);
    let models = of.models.iter().take(limit);
    let rows = models.map(|part| {
        let usage = &part.usage;
        let [calls, prompt, completion] =
            [usage.requests, usage.prompt_tokens, usage.completion_tokens]
                .map(|count| html! { (parts::count(count.unsigned_abs())) });
        let cost = html! { (money(usage.cost)) };
        vec![html! { (usage.name) }, calls, prompt, completion, cost]
    });
    let rows: Vec<_> = rows.collect();
    let total = Usage::sum(of.periods.iter().map(|it| &it.usage));
    html! {
        h2 { "Spend: " (of.back.in_words().to_lowercase()) }
        nav.choices aria-label="Time" {
            p {
                "Time: "
                @for back in PERIODS {
                    a href=(link(PATH, &[("id", &of.of.key.id), ("period", back.as_str())])) aria-current=[(back == of.back).then_some("true")] { (back.as_str()) }
                    " "
                }
            }
        }
        (spending::figures(&total))
        (parts::plot("Spend", &plot(of)))
        (parts::table("Models, the most expensive first", &columns, &rows, "Nothing was spent in this time."))
        @if of.models.len() > limit { p.muted { "Others cost less and are not shown." } }
    }
}

/// Makes the bars of what was spent in each period, also of those without calls.
fn plot(of: &KeyMoney) -> Plot {
    let (hours, granularity) = of.back.hours(Timestamp::now().as_millisecond());
    let step = Granularity::hours(granularity);
    let first = of.periods.first().map(|it| it.first_hour);
    let from = first.map_or(hours.from, |first| first.min(hours.from));
    let times = (from..hours.until).step_by(usize::try_from(step).unwrap_or(1));
    let times: Vec<i64> = times.collect();
    let value = |hour: &i64| {
        let found = of.periods.iter().find(|it| it.first_hour == *hour);
        Some(found.map_or(0.0, |it| it.usage.cost.to_f64_for_metrics()))
    };
    Plot {
        is_stacked: true,
        unit: "usd",
        series: vec![PlotSeries {
            name: "cost".to_owned(),
            values: times.iter().map(value).collect(),
        }],
        at: times
            .iter()
            .map(|hour| hour.saturating_mul(HOUR_S))
            .collect(),
    }
}
