//! `POST /mcp`: reads a message, and continues the call of a tool as a request to the tool's route.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, quoted};
use filters::mcp::answer;
use filters::mcp::message::{
    self, Call, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Members, Message, REFUSED,
    RpcError,
};
use filters::mcp::oauth::scope::Scope;
use filters::mcp::oauth::scopes::Scopes;
use filters::mcp::resources::needed_scope;
use filters::mcp::revision::{Revision, VERSION_HEADER, check_head};
use filters::mcp::session::{Session, no_session, session_id};
use filters::mcp::stream::CallProgress;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Value, json};

use super::calls::CallOwner;
use super::exchange::{ToolCall, ToolExchange};
use super::tools::{ServedTool, ToolRequest};
use super::{McpState, error_response, response};
use crate::proxy::body;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::Exchange;
use crate::proxy::handler::{Forward, Handler, Incoming, Opened};

/// Responds to messages.
pub(super) struct McpHandler(pub(super) Arc<McpState>);

/// A request after reading.
pub(super) struct McpCall {
    pub(super) call: Call,
    pub(super) revision: Revision,
    /// The party that may cancel it.
    owner: CallOwner,
    /// The headers of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A message with the facts of its head.
struct ReadMessage {
    message: Message,
    revision: Revision,
    session: Option<Session>,
}

impl McpCall {
    fn answer(self, result: Members) -> Opened {
        let body = answer::result(self.revision, &self.call.id, result);
        Opened::Response(response(200, self.headers, body))
    }

    fn finish(self, answered: Result<Members, RpcError>) -> Opened {
        match answered {
            Ok(result) => self.answer(result),
            Err(error) => refuse(self.headers, &error.with_id(&self.call.id)),
        }
    }

    fn refuse(self, code: i32, message: String) -> Opened {
        // Revisions without sessions tell unknown methods from unknown resources by the status.
        let is_missing = code == METHOD_NOT_FOUND && self.revision.is_stateless();
        let status = if is_missing { 404 } else { 200 };
        let error = RpcError::new(code, status, message).with_id(&self.call.id);
        refuse(self.headers, &error)
    }
}

fn refuse(headers: Vec<(HeaderName, HeaderValue)>, error: &RpcError) -> Opened {
    Opened::Response(error_response(headers, error))
}

impl Forward for McpHandler {
    fn check_head(&self, head: &Parts) -> Result<(), Fault> {
        self.0.check_origin(head)
    }

    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>> {
        Box::pin(async move {
            let headers = self.0.headers(&incoming.head().headers);
            let body = incoming.take_body();
            let read = match self.read(&body, incoming).await {
                Ok(read) => read,
                Err(error) => return Ok(refuse(headers, &error)),
            };
            let owner = match read.session {
                Some(session) => CallOwner::Session(session.nonce),
                None => CallOwner::Key(key_id(incoming.info())),
            };
            let call = match read.message {
                Message::Call(call) => call,
                Message::Notification(notification) => {
                    if let Some(id) = notification.cancelled_id() {
                        self.0.calls.cancel(owner, id);
                    }
                    return Ok(Opened::Response(response(202, headers, Vec::new())));
                }
                Message::Response => {
                    return Ok(Opened::Response(response(202, headers, Vec::new())));
                }
            };
            let mut asked = McpCall {
                call,
                revision: read.revision,
                owner,
                headers,
            };
            if let Some(scope) = needed_scope(&asked.call)
                && let Some(refused) = self.check_scope(incoming, &mut asked, scope)
            {
                return Ok(refused);
            }
            match asked.call.method.as_str() {
                "tools/call" => self.call_tool(incoming, exchange, asked).await,
                _ => match self.0.reads.answer(incoming, &mut asked).await {
                    Some(answered) => Ok(asked.finish(answered)),
                    None => self.answer(incoming.info(), asked),
                },
            }
        })
    }
}

impl McpHandler {
    /// Reads a message and its revision. If it names a session, the session has to be the caller's.
    ///
    /// Errors: 400, 404 for another session, and 406 for a client that does not accept JSON.
    async fn read(&self, body: &[u8], incoming: &Incoming<'_>) -> Result<ReadMessage, RpcError> {
        let headers = &incoming.head().headers;
        let (message, revision) = read(body, headers)?;
        let of_no_session = |message| ReadMessage {
            message,
            revision,
            session: None,
        };
        if revision.is_stateless() {
            return Ok(of_no_session(message));
        }
        let call = match &message {
            Message::Call(call) => Some(call),
            Message::Notification(_) | Message::Response => None,
        };
        let id = session_id(headers).map_err(|error| match call {
            Some(call) => error.with_id(&call.id),
            None => error,
        })?;
        // A message that begins a session does not belong to one.
        let Some(id) = id.filter(|_| !call.is_some_and(Call::begins_session)) else {
            return Ok(of_no_session(message));
        };
        let (info, id) = (incoming.info(), id.to_vec());
        let (key_id, now_s) = (key_id(info), info.unix_s());
        let session = self.0.sessions.find(&id, &key_id, now_s).await;
        let session = session.ok_or_else(|| no_session(call.map(|call| &call.id)))?;
        let is_named = headers.contains_key(VERSION_HEADER);
        Ok(ReadMessage {
            message,
            revision: if is_named { revision } else { session.revision },
            session: Some(session),
        })
    }

    /// Responds to methods that need no route.
    ///
    /// Errors: 500 if there are no random bytes for a session.
    fn answer(&self, info: &RequestInfo, mut asked: McpCall) -> Result<Opened, Fault> {
        let (call, revision) = (&asked.call, asked.revision);
        let offered = self.0.reads.offered();
        let result = match (call.method.as_str(), revision.is_stateless()) {
            ("initialize", false) => answer::initialize(call, offered),
            ("ping", false) => Ok(Members::new()),
            ("server/discover", true) => Ok(answer::discover(revision, offered)),
            ("tools/list", _) => answer::list(revision, call, "tools", self.0.tools.list()),
            (method, _) => {
                let message = format!("there is no method `{}`", quoted(method));
                return Ok(asked.refuse(METHOD_NOT_FOUND, message));
            }
        };
        let result = match result {
            Ok(result) => result,
            Err(error) => return Ok(refuse(asked.headers, &error)),
        };
        if asked.call.begins_session() {
            let revision = Revision::agree(asked.call.text("protocolVersion").unwrap_or_default());
            let sessions = &self.0.sessions;
            let begun = sessions.begin(revision, &key_id(info), info.unix_s())?;
            asked.headers.push(begun);
        }
        Ok(asked.answer(result))
    }

    /// Returns the refusal of a caller whose access token lacks a scope. API keys have all scopes.
    fn check_scope(
        &self,
        incoming: &Incoming<'_>,
        asked: &mut McpCall,
        scope: Scope,
    ) -> Option<Opened> {
        let token = incoming.info().token.as_ref()?;
        let mut scopes = Scopes::from_bits(token.scopes);
        if scopes.contains(scope) {
            return None;
        }
        scopes.insert(scope);
        let error = Some("insufficient_scope");
        let asked_by = (&incoming.head().headers, incoming.client_ip());
        let challenge = self.0.challenge(asked_by, error, scopes);
        let mut headers = std::mem::take(&mut asked.headers);
        headers.push(challenge);
        let message = format!("the access token does not permit `{}`", scope.as_str());
        let error = RpcError::new(REFUSED, 403, message).with_id(&asked.call.id);
        Some(refuse(headers, &error))
    }

    /// Calls a tool. From here on every failure becomes a result.
    async fn call_tool(
        &self,
        incoming: &mut Incoming<'_>,
        exchange: &mut Option<Box<dyn Exchange>>,
        mut asked: McpCall,
    ) -> Result<Opened, Fault> {
        let tools = &self.0.tools;
        let Some(tool) = asked.call.text("name").and_then(|name| tools.find(name)) else {
            let name = asked.call.text("name").unwrap_or_default();
            let message = format!("there is no tool `{}`", quoted(name));
            return Ok(asked.refuse(INVALID_PARAMS, message));
        };
        if let Some(refused) = self.check_scope(incoming, &mut asked, tool.tool.scope) {
            return Ok(refused);
        }
        let progress = match CallProgress::read(&asked.call) {
            Ok(progress) => progress.filter(|_| accepts_events(&incoming.head().headers)),
            Err(error) => return Ok(refuse(asked.headers, &error)),
        };
        let Some(running) = self.0.calls.begin(asked.owner.clone(), &asked.call.id) else {
            let message =
                "a request with this id runs in the session: its id is taken until it has ended";
            let error = RpcError::new(INVALID_REQUEST, 400, message).with_id(&asked.call.id);
            return Ok(refuse(asked.headers, &error));
        };
        // In stateless revisions a client cancels a call by closing its stream.
        let is_kept = progress.is_some() && !asked.revision.is_stateless();
        let caller = incoming.info().caller.as_deref().filter(|_| is_kept);
        let kept = caller.and_then(|caller| self.0.kept.begin(caller));
        let arguments = asked.call.params.remove("arguments");
        let arguments = arguments.unwrap_or_else(|| json!({}));
        let request = tools.request(tool, &arguments, &incoming.head().headers);
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Members::new(),
        };
        let call = ToolCall {
            tool: tool.tool,
            name: tool.name.clone(),
            arguments,
            revision: asked.revision,
            id: asked.call.id,
            headers: asked.headers,
            running,
            progress: progress.map(|progress| (progress, self.0.keepalive)),
            kept,
        };
        let mut own = ToolExchange::new(call);
        let opened = call_route(incoming, tool, request, &mut own).await;
        *exchange = Some(Box::new(own));
        opened
    }
}

/// Returns the id of the caller's API key.
fn key_id(info: &RequestInfo) -> Arc<str> {
    let caller = info.caller.as_ref();
    caller.map_or_else(|| Arc::from(""), |caller| Arc::clone(&caller.key_id))
}

/// Calls the route of a tool like a request to that route.
///
/// Errors: those of the route and of the request.
async fn call_route(
    incoming: &mut Incoming<'_>,
    tool: &ServedTool,
    request: Result<ToolRequest, Fault>,
    own: &mut ToolExchange,
) -> Result<Opened, Fault> {
    // A call with wrong arguments counts, like a wrong request to the route.
    incoming.admit(&tool.route).await?;
    let request = request?;
    tool.route.body.check_size(request.body.len())?;
    match &tool.route.handler {
        Handler::Endpoint(endpoint) => {
            let target = (tool.route.path, &*request.query);
            let asked = incoming.request(&request.headers, target, &request.body);
            let called = endpoint.call(asked);
            Ok(Opened::Response(own.answer(&called.await?)))
        }
        Handler::Forward(forward) => {
            incoming.reserve_body(request.body.len())?;
            incoming.set_body(Bytes::from(request.body));
            let mut inner = None;
            let opened = forward.open(incoming, &mut inner).await;
            own.set_inner(inner);
            match opened? {
                Opened::Response(response) => Ok(Opened::Response(own.answer(&response))),
                Opened::Upstream(buffering) => {
                    own.follow(&buffering);
                    Ok(Opened::Upstream(buffering))
                }
            }
        }
    }
}

/// Reads a message and its revision.
///
/// Errors: 400, and 406 for a client that does not accept JSON.
fn read(body: &[u8], headers: &HeaderMap) -> Result<(Message, Revision), RpcError> {
    if !accepts_json(headers) {
        let message = "`Accept` leaves out `application/json`; the answer is of that type";
        return Err(RpcError::new(REFUSED, 406, message));
    }
    let message = body::off_worker(body.len(), || message::read(body))?;
    let revision = check_head(headers, &message)?;
    Ok((message, revision))
}

/// Returns whether a client accepts an event stream.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains("text/event-stream"))
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let mut values = values.filter_map(|value| value.to_str().ok());
    let accepted = ["application/json", "application/*", "*/*"];
    values.any(|value| accepted.iter().any(|it| value.contains(it)))
}
