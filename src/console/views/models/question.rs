//! "Why would this request go where?": the plan of a request that is not sent.

use filters::fault::Fault;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::request::ModelRequest;
use filters::models::routing::explanation::Considered;
use filters::models::routing::health::Readiness;
use filters::models::routing::plan::{LeftOut, RoutePlan};
use jiff::Timestamp;
use maud::{Markup, html};

use super::{PATH, ROUTE};
use crate::console::Console;
use crate::console::layout::csrf;
use crate::console::parts::{TableColumn, Tone, badge, duration, number, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::models::explain::{Asker, AskerNames, find_asker, plan};
use crate::store::DEFAULT_PROJECT;

/// What is asked about before anything was typed.
const EXAMPLE: &str =
    "{\n  \"model\": \"auto\",\n  \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]\n}";

const COLUMNS: [TableColumn; 13] = [
    number("Place"),
    text("Provider"),
    text("Model"),
    text("Region"),
    text("Tried"),
    text("State"),
    number("Score"),
    number("of it price"),
    number("uptime"),
    number("latency"),
    number("throughput"),
    number("Uptime"),
    number("Latency"),
];
const LEFT_OUT: [TableColumn; 4] = [
    text("Provider"),
    text("Model"),
    text("Field"),
    text("Why it is left out"),
];

/// What was typed.
struct Typed {
    body: String,
    organization: Option<String>,
    project: Option<String>,
    key: Option<String>,
    has_session: bool,
}

/// What comes of it.
enum PlanAnswer {
    Plan(RoutePlan),
    /// The request would be refused.
    Refused(Fault),
}

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let typed = Typed {
        body: request.field("body").unwrap_or_else(|| EXAMPLE.to_owned()),
        organization: request.field("organization"),
        project: request.field("project"),
        key: request.field("key"),
        has_session: request.field("session").is_some(),
    };
    let answer = match request.method {
        http::Method::POST => Some(answer(console, &typed).await),
        _ => None,
    };
    let body = html! {
        p { "Paste the body of a chat completion. Nothing is sent to a provider: the plan is the one that this process would make now." }
        (form(request, &typed))
        @match &answer {
            None => {},
            Some(Err(problem)) => p.notice role="alert" { (problem) },
            Some(Ok(PlanAnswer::Refused(fault))) => p.notice role="alert" {
                "The request would be refused: " (fault.status()) ", " (fault.message)
                @if let Some(param) = &fault.param { " (" code { (param) } ")" }
            },
            Some(Ok(PlanAnswer::Plan(plan))) => (render(plan)),
        }
    };
    ConsoleReply::page("Why would a request go where?", body)
}

fn form(request: &ConsoleRequest, typed: &Typed) -> Markup {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    html! {
        form.stacked method="post" action={ (PATH) "/" (ROUTE) } {
            (csrf(&request.visitor))
            label for="body" { "Request" }
            textarea #body name="body" required spellcheck="false" { (typed.body) }
            label for="organization" { "Organization" }
            input #organization name="organization" value=(text(&typed.organization)) aria-describedby="organization-help";
            p #organization-help .muted { "Without one: a caller on the platform's keys, without rules." }
            label for="project" { "Project" }
            input #project name="project" value=(text(&typed.project)) placeholder=(DEFAULT_PROJECT);
            label for="key" { "Id of an API key, whose rules hold" }
            input #key name="key" value=(text(&typed.key)) placeholder="key_…";
            p {
                input #session name="session" type="checkbox" value="1" checked[typed.has_session];
                " "
                label.inline for="session" { "As a request of a session" }
            }
            button type="submit" { "Show the plan" }
        }
    }
}

/// Errors: what is wrong with what was typed, or that the store does not answer.
async fn answer(console: &Console, typed: &Typed) -> Result<PlanAnswer, String> {
    let request = match ChatCompletions.parse(typed.body.clone().into_bytes().into()) {
        Ok(request) => request,
        Err(fault) => return Ok(PlanAnswer::Refused(fault)),
    };
    let asker = match &typed.organization {
        None if typed.project.is_some() || typed.key.is_some() => {
            return Err("A project or a key needs its organization.".to_owned());
        }
        None => Asker::default(),
        Some(organization) => {
            check_names(typed)?;
            let (organization, project, key) = (
                organization.clone(),
                typed.project.clone(),
                typed.key.clone(),
            );
            let found = console.with_store(|store| async move {
                let names = AskerNames {
                    organization: &organization,
                    project: project.as_deref().unwrap_or(DEFAULT_PROJECT),
                    key: key.as_deref(),
                };
                find_asker(&store, names, Timestamp::now().as_millisecond()).await
            });
            match found.await.map_err(|error| error.to_string())? {
                Ok(asker) => asker,
                Err(error) => return Ok(PlanAnswer::Refused(error.into())),
            }
        }
    };
    planned(console, request, asker, typed.has_session).await
}

/// Errors: a name has a control character, which PostgreSQL has in no text.
fn check_names(typed: &Typed) -> Result<(), String> {
    let names = [
        ("organization", &typed.organization),
        ("project", &typed.project),
        ("key", &typed.key),
    ];
    let has_control = |text: &String| text.chars().any(char::is_control);
    match names
        .iter()
        .find(|(_, text)| text.as_ref().is_some_and(has_control))
    {
        Some((name, _)) => Err(format!(
            "{name} has a control character; accepted is a text without"
        )),
        None => Ok(()),
    }
}

async fn planned(
    console: &Console,
    request: ModelRequest,
    asker: Asker,
    has_session: bool,
) -> Result<PlanAnswer, String> {
    let app = console.app();
    // Counting the tokens of a long prompt takes time.
    let planning = console.background().spawn_blocking(move || {
        let now_ms = app.proxy.clock.now_ms();
        plan(&app.models.planner, &request, &asker, (has_session, now_ms))
    });
    match planning.await {
        Ok(Ok(plan)) => Ok(PlanAnswer::Plan(plan)),
        Ok(Err(fault)) => Ok(PlanAnswer::Refused(fault)),
        Err(_) => Err("The plan could not be made: the log says why.".to_owned()),
    }
}

fn render(plan: &RoutePlan) -> Markup {
    let Some(explanation) = &plan.explanation else {
        return html! { p { "There is no explanation of this plan." } };
    };
    let rows = (1..).zip(&explanation.considered);
    let rows: Vec<Vec<Markup>> = rows.map(|(place, it)| row(place, it)).collect();
    let left_out = explanation.barred.iter().chain(&plan.left_out);
    let left_out: Vec<Vec<Markup>> = left_out.map(left_out_row).collect();
    let strategy = explanation
        .strategy
        .map_or("auto", |strategy| strategy.as_str());
    html! {
        h2 { "The plan" }
        p {
            "Strategy " code { (strategy) } ", the first by " code { (explanation.first_by.as_str()) }
            ", at most " (explanation.max_attempts) " attempts. Lower scores come first."
        }
        (table("Who can serve it, in order", &COLUMNS, &rows, "Nobody can serve it."))
        @if !left_out.is_empty() {
            (table("Who is left out", &LEFT_OUT, &left_out, ""))
        }
    }
}

fn row(place: usize, considered: &Considered) -> Vec<Markup> {
    let (candidate, parts) = (&considered.candidate, &considered.parts);
    let stats = considered.standing.stats.as_ref();
    let part = |part: f64| html! { (format!("{part:.3}")) };
    vec![
        html! { (place) },
        html! { (candidate.mapping.provider) @if considered.has_own_key { " " (badge(Tone::Neutral, "own key")) } },
        html! { (candidate.model.id) },
        html! { (candidate.region.as_deref().unwrap_or("–")) },
        html! { (if considered.is_tried { "yes" } else { "no" }) },
        match considered.standing.readiness {
            Readiness::Ready => badge(Tone::Good, "ready"),
            _ => badge(Tone::Bad, "rests"),
        },
        part(considered.score),
        part(parts.price),
        part(parts.uptime),
        part(parts.latency),
        part(parts.throughput),
        html! { @if let Some(stats) = stats { (format!("{:.1} %", stats.uptime)) } @else { "–" } },
        html! { @if let Some(stats) = stats { (duration(stats.latency_ms)) } @else { "–" } },
    ]
}

fn left_out_row(left_out: &LeftOut) -> Vec<Markup> {
    vec![
        html! { (left_out.provider) },
        html! { (left_out.model) },
        html! { code { (left_out.lack.param) } },
        html! { (left_out.lack.reason) },
    ]
}
