//! A version with values of its variables, as `POST /v1/prompts/NAME` answers it: the same function with the same refusals.

use std::sync::Arc;

use filters::fault::Fault;
use filters::models::prompts::library::FoundPrompt;
use filters::models::prompts::prompt::{DefaultValue, Prompt, PromptVariable, VariableKind};
use filters::models::prompts::reference::VersionReference;
use filters::models::prompts::shown::{GivenValues, rendered};
use http::Method;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::messages::messages;
use super::{OwnedPrompt, PROMPT, RENDER, asked_id, asked_version, refusal};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::views::forms::{Field, FieldKind, FormContent, Refusal, Typed, form};
use crate::models::prompts::compile;
use crate::store::{Store, StoreError};

const FORM: &str = "render";
/// The beginning of the names of fields, behind which stands that of the variable.
const FIELD: &str = "v-";
/// The beginning of the names of variables in refusals.
const VARIABLE: &str = "variables.";

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let asked = || -> Result<_, Box<ConsoleReply>> {
        Ok((asked_id(request)?, asked_version(request, "version")?))
    };
    let (id, version) = match asked() {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    let version = version.unwrap_or_default();
    let read = console.with_store(|store| async move { read(&store, &id, &version).await });
    let (of, found) = match read.await {
        Ok(read) => read,
        Err(error) => return refusal(&error),
    };
    if request.method != Method::POST {
        return page(request, (&of, &found), None);
    }
    let values = values(request, &found.prompt);
    let max_bytes = console.app().models.max_chat_bytes;
    // A long text may stand in it many times, which takes time that requests must not wait for.
    let (version, body) = (found.clone(), json!({ "variables": values }).to_string());
    let rendering = console.background().spawn_blocking(move || {
        let given = GivenValues::parse(body.as_bytes())?;
        rendered(&version, &given, max_bytes).map(|body| result(&body))
    });
    match rendering.await {
        Ok(done) => page(request, (&of, &found), Some(done)),
        Err(_) => ConsoleReply::failed(&"the prompt was not rendered: the log says why"),
    }
}

async fn read(
    store: &Store,
    id: &str,
    version: &VersionReference,
) -> Result<(OwnedPrompt, FoundPrompt), StoreError> {
    let of = OwnedPrompt::read(store, id).await?;
    let stored = store.prompt_version(&of.prompt, version).await?;
    let prompt: Arc<Prompt> = compile(&stored.content).ok_or(StoreError::Damaged("content"))?;
    let found = FoundPrompt {
        prompt,
        name: of.prompt.name.as_str().into(),
        version: stored.number,
        label: None,
    };
    Ok((of, found))
}

/// Returns the values that were typed. What was left empty is not given.
fn values(request: &ConsoleRequest, prompt: &Prompt) -> Map<String, Value> {
    let typed = prompt.variables().iter().filter_map(|variable| {
        let text = request.field_as_sent(&format!("{FIELD}{}", variable.name));
        // Browsers send the line breaks of forms so.
        let text = text.replace("\r\n", "\n");
        (!text.is_empty()).then(|| (variable.name.to_string(), Value::String(text)))
    });
    typed.collect()
}

fn page(
    request: &ConsoleRequest,
    (of, found): (&OwnedPrompt, &FoundPrompt),
    done: Option<Result<Markup, Fault>>,
) -> ConsoleReply {
    let (result, refusal) = match done {
        None => (None, None),
        Some(Ok(result)) => (Some(result), None),
        Some(Err(fault)) => (None, Some(refused(&fault, &found.prompt))),
    };
    let status = refusal.as_ref().map_or(200, |refusal| refusal.status);
    let typed = refusal.map(|refusal| Typed {
        form: FORM,
        request,
        refusal,
    });
    let name = &found.name;
    let version = found.version.to_string();
    let body = html! {
        p { a href=(of.link(PROMPT, &[("version", &version)])) { "The prompt " (name) } }
        p.muted { "Nothing is sent to a model, and no call is counted. What is left empty is not given." }
        (values_form((of, found), request, typed.as_ref()))
        @if let Some(result) = result { (result) }
    };
    ConsoleReply::refused(status, format!("Render {name}, version {version}"), body)
}

/// Puts a refusal beside the variable that it is about.
fn refused(fault: &Fault, prompt: &Prompt) -> Refusal {
    let named = fault
        .param
        .as_deref()
        .and_then(|it| it.strip_prefix(VARIABLE));
    let variable = named.filter(|name| prompt.variables().iter().any(|it| *it.name == **name));
    Refusal {
        status: fault.status(),
        field: variable
            .map_or_else(String::new, |name| format!("{FIELD}{name}"))
            .into(),
        message: fault.message.to_string(),
    }
}

fn values_form(
    (of, found): (&OwnedPrompt, &FoundPrompt),
    request: &ConsoleRequest,
    typed: Option<&Typed<'_>>,
) -> Markup {
    let fields = found.prompt.variables().iter();
    let fields: Vec<Field<'_>> = fields.map(|it| field(it, request)).collect();
    let content = FormContent {
        name: FORM,
        action: &of.link(RENDER, &[("version", &found.version.to_string())]),
        hidden: &[],
        fields: &fields,
        more: None,
        button: html! { button type="submit" { "Render" } },
    };
    html! {
        @if fields.is_empty() { p { "It has no variables." } }
        (form(&content, request, typed))
    }
}

fn field<'f>(variable: &'f PromptVariable, request: &ConsoleRequest) -> Field<'f> {
    let name = format!("{FIELD}{}", variable.name);
    let kind = variable
        .kind
        .map_or("a string, a number or a boolean", VariableKind::as_str);
    let default = match &variable.default {
        None => "It has to be given.".to_owned(),
        Some(DefaultValue::Text(text)) => format!("Empty: {text:?}."),
        Some(DefaultValue::Number(number)) => format!("Empty: {number}."),
        Some(DefaultValue::Bool(flag)) => format!("Empty: {flag}."),
    };
    let about = variable.description.as_deref();
    let about = about.map_or_else(String::new, |about| format!("{about}. "));
    Field {
        label: format!("{} ({kind})", variable.name).into(),
        help: format!("{about}{default}").into(),
        value: request.field_as_sent(&name).into(),
        name: name.into(),
        kind: match variable.kind {
            Some(VariableKind::Boolean) => FieldKind::Choice(&["", "true", "false"]),
            Some(VariableKind::Number) => FieldKind::Line,
            Some(VariableKind::String) | None => FieldKind::Lines,
        },
    }
}

/// What a rendered version says.
fn result(body: &[u8]) -> Markup {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let parameters = body.get("parameters");
    let parameters = parameters.filter(|it| it.as_object().is_some_and(|it| !it.is_empty()));
    html! {
        h2 #rendered { "What a model is asked" }
        dl.pairs {
            dt { "Model" } dd {
                @match body.get("model").and_then(Value::as_str) { Some(model) => (model), None => "that of the request" }
            }
        }
        @if let Some(parameters) = parameters {
            h3 { "Parameters" }
            pre.text tabindex="0" { (serde_json::to_string_pretty(parameters).unwrap_or_default()) }
        }
        h3 { "Messages" }
        (messages(body.get("messages").unwrap_or(&Value::Null)))
    }
}
