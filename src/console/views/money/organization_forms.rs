//! The forms that change an organization.

use maud::{Markup, html};

use super::forms::{Form, KeyFields, field};
use crate::console::once;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Field, FieldKind, FormContent, Typed, form};
use crate::console::views::links::link;
use crate::store::{Organization, SeenKind, SeenThing, Store, StoreError};

const PLANS: &[&str] = &["none", "lite", "pro", "max"];
const SWITCH: &[&str] = &["off", "on"];

/// What the forms have seen.
pub(super) struct OrganizationSeen {
    organization: SeenThing,
    credit: SeenThing,
}

impl OrganizationSeen {
    pub(super) async fn read(store: &Store, name: &str) -> Result<Self, StoreError> {
        let id = store.organization(name).await?.id;
        Ok(Self {
            organization: store.see(SeenKind::Organization, &id).await?,
            credit: store.see(SeenKind::Credit, &id).await?,
        })
    }
}

/// The forms.
pub(super) fn forms(
    of: &Organization,
    seen: &OrganizationSeen,
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let KeyFields { fields, rules } = KeyFields::new(None);
    let show = |form_of: Form, hidden: &[(&str, &str)], fields: &[Field<'_>], button: Markup| {
        let path = format!("{}/{}", super::PATH, form_of.as_str());
        let content = FormContent {
            name: form_of.as_str(),
            action: &link(&path, &[("name", &of.name)]),
            hidden,
            fields,
            more: (form_of == Form::CreateKey).then_some(("Rules", &*rules)),
            button,
        };
        form(&content, request, typed)
    };
    let (name, mark) = once::mark();
    let (seen, credit) = (seen.organization.to_text(), seen.credit.to_text());
    let (once, seen, credit) = ([(name, &*mark)], [("seen", &*seen)], [("seen", &*credit)]);
    let words = ("amount", "Amount, in USD", "A plain decimal such as 2.50.");
    let amount = [field(words, String::new(), FieldKind::NeededLine)];
    let words = (
        "name",
        "Name",
        "A person or a service. No other of the organization has it.",
    );
    let member = [field(words, String::new(), FieldKind::NeededLine)];
    let save = || html! { button type="submit" { "Save" } };
    html! {
        h2 { "Change" }
        div.columns {
            section {
                h3 { "Make a key" }
                (show(Form::CreateKey, &once, &fields, html! { button type="submit" { "Make a key" } }))
            }
            section {
                h3 { "Add credit" }
                (show(Form::AddCredit, &credit, &amount, html! { button type="submit" { "Add credit" } }))
                h3 { "Take credit back" }
                p.muted { "What is neither used nor held for calls that run." }
                (show(Form::TakeCredit, &credit, &amount, html! { button.danger type="submit" { "Take credit back" } }))
                h3 { "Add a member" }
                (show(Form::AddMember, &[], &member, html! { button type="submit" { "Add the member" } }))
                h3 { "Plan" }
                (show(Form::SetPlan, &seen, &[plan(of)], save()))
                h3 { "Regions" }
                (show(Form::SetRegions, &seen, &[regions(of)], save()))
                h3 { "Log export" }
                (show(Form::SetExport, &seen, &[export(of)], save()))
                h3 { "Bodies of calls" }
                (show(Form::KeepBodies, &seen, &[bodies()], save()))
            }
        }
    }
}

fn plan(of: &Organization) -> Field<'static> {
    let help = "The first cycle of another plan begins now.";
    let value = of.plan.as_str().to_owned();
    field(("plan", "Plan", help), value, FieldKind::Choice(PLANS))
}

fn regions(of: &Organization) -> Field<'static> {
    let help =
        "Names of regions, or their beginnings, with commas between them. Empty: everywhere.";
    let words = ("regions", "Where its calls may be computed", help);
    let value = of.regions.as_ref().map(ToString::to_string);
    field(words, value.unwrap_or_default(), FieldKind::Line)
}

fn bodies() -> Field<'static> {
    let help = "Hours from now on, such as 4h, up to 72h; off: they are not kept. The page of a call shows what was asked and answered.";
    let words = ("keep_bodies", "Keep in memory for", help);
    field(words, String::new(), FieldKind::NeededLine)
}

fn export(of: &Organization) -> Field<'static> {
    let label = "Has what is asked and answered";
    let words = ("export_content", label, "Of all calls of the organization.");
    let value = if of.exports_content { "on" } else { "off" };
    field(words, value.to_owned(), FieldKind::Choice(SWITCH))
}
