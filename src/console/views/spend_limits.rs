//! What is left of limits.

use filters::money::limit_use::LimitUse;
use maud::{Markup, html};

use super::links::link;
use crate::console::parts::{TableColumn, Tone, badge, money, number, table, text, time};
use crate::store::ledger::{LimitHolder, NearLimit};

/// From this share on a limit is nearly used up.
const NEAR: f64 = 0.8;
/// The columns of a limit.
const COLUMNS: [TableColumn; 6] = [
    text("Limit"),
    number("Amount"),
    number("Used"),
    number("Left"),
    text("Share"),
    text("Begins anew"),
];

/// The limits of one holder.
pub(super) fn limits(caption: &str, uses: &[LimitUse]) -> Markup {
    let rows = uses.iter().map(|of| {
        let name = html! { (of.name) };
        [vec![name], amounts(of)].concat()
    });
    table(
        caption,
        &COLUMNS,
        &rows.collect::<Vec<_>>(),
        "There is no limit.",
    )
}

/// The limits that are nearest to their end.
pub(super) fn nearest(caption: &str, limits: &[NearLimit]) -> Markup {
    let columns = [&[text("Whose"), text("Organization")], &COLUMNS[..]].concat();
    let rows = limits.iter().map(|near| {
        let organization = organization_link(&near.organization);
        let holder = match &near.holder {
            LimitHolder::Key { id, label } => key_link(id, label),
            LimitHolder::Member(name) => {
                html! { "member " (member_link(&near.organization, name)) }
            }
            LimitHolder::Organization => html! { "the organization" },
        };
        let names = vec![holder, organization, html! { (near.limit.name) }];
        [names, amounts(&near.limit)].concat()
    });
    let rows: Vec<_> = rows.collect();
    table(
        caption,
        &columns,
        &rows,
        "Nobody has used anything of a limit.",
    )
}

/// What is left of several limits, in one cell: the one that is nearest to its end.
pub(super) fn tightest(uses: &[LimitUse]) -> Markup {
    match uses.iter().max_by(|a, b| a.cmp_nearness(b)) {
        Some(of) => {
            html! { (money(of.left())) " of " (money(of.limit)) " (" (of.name) ") " (share(of)) }
        }
        None => html! { span.muted { "no limit" } },
    }
}

/// The amounts of a limit as cells.
fn amounts(of: &LimitUse) -> Vec<Markup> {
    let resets = match of.resets_ms {
        Some(at_ms) => time(at_ms),
        None => html! { span.muted { "–" } },
    };
    let [limit, used, left] = [of.limit, of.used, of.left()].map(|usd| html! { (money(usd)) });
    vec![limit, used, left, share(of), resets]
}

/// The used share, as a bar and in words.
fn share(of: &LimitUse) -> Markup {
    let share = of.share();
    let percent = format!("{:.0} % used", share * 100.0);
    let value = format!("{:.3}", share.clamp(0.0, 1.0));
    html! {
        meter min="0" max="1" high=(NEAR) value=(value) aria-label=(percent) {} " "
        @match share {
            share if share >= 1.0 => { (badge(Tone::Bad, "used up")) }
            share if share >= NEAR => { (badge(Tone::Warning, &percent)) }
            _ => { (percent) }
        }
    }
}

/// The way to an organization.
pub(super) fn organization_link(name: &str) -> Markup {
    html! { a href=(link("/console/money/organization", &[("name", name)])) { (name) } }
}

/// The way to a member.
pub(super) fn member_link(organization: &str, name: &str) -> Markup {
    let pairs = [("name", organization), ("member", name)];
    html! { a href=(link("/console/money/member", &pairs)) { (name) } }
}

/// The way to a key.
pub(super) fn key_link(id: &str, label: &str) -> Markup {
    let shown = if label.is_empty() { id } else { label };
    html! { a href=(link("/console/money/key", &[("id", id)])) { (shown) } }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::money::Usd;
    use filters::money::limit_use::LimitName;

    use super::*;

    fn use_of(limit: &str, used: &str) -> LimitUse {
        let usd = |text: &str| Usd::parse(text).unwrap();
        LimitUse::lasting(LimitName::Lifetime, usd(limit), usd(used))
    }

    #[test]
    fn what_is_used_up_is_said_in_words() {
        let shown = limits(
            "Limits",
            &[use_of("2", "1"), use_of("10", "9"), use_of("1", "3")],
        )
        .0;
        for expected in ["50 % used", "90 % used", "used up", "$0.00", "badge bad"] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert!(limits("Limits", &[]).0.contains("no limit"));
    }

    #[test]
    fn names_are_text_and_addresses_are_encoded() {
        let hostile = "\"><script>&name=x";
        let near = [
            LimitHolder::Organization,
            LimitHolder::Member(hostile.to_owned()),
            LimitHolder::Key {
                id: hostile.to_owned(),
                label: hostile.to_owned(),
            },
        ]
        .map(|holder| NearLimit {
            organization: hostile.to_owned(),
            holder,
            limit: use_of("1", "1"),
        });
        let shown = nearest("Near", &near).0;
        assert!(!shown.contains("<script>"), "{shown}");
        assert!(
            shown.contains("name=%22%3E%3Cscript%3E%26name%3Dx"),
            "{shown}"
        );
    }
}
