//! The table of endpoints: method, path, who may call, which body, who answers.
//!
//! A request is matched on the normalised copy of its path, so that what is authorised is what is routed; a
//! row's name is its label in metrics and logs, and the name of its test module. Source: docs/decisions.md 18.

use filters::fault::{Fault, FaultKind};
use filters::limits::QuotaGroup;
use filters::proxy::normalise;
use http::Method;

/// Who answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answers {
    /// `GET /`.
    Health,
    /// `GET /v1/models`.
    Models,
    /// `GET /v1/key`.
    Key,
    /// A provider: chat completions.
    Chat,
    /// The decisions of flags.
    Flags,
    /// Several of them.
    Batch,
    /// `POST /oauth/token`.
    Token,
    /// `POST /webhooks/optimizely`.
    Webhook,
    /// The graph service: every path that is not ours.
    Graph,
    /// `GET /v1/notifications/event-stream`.
    Notices,
}

impl Answers {
    /// The quota that requests count against.
    pub fn group(self) -> Option<QuotaGroup> {
        match self {
            Self::Chat => Some(QuotaGroup::Chat),
            _ => None,
        }
    }

    /// Whether it belongs to the model gateway, which takes so many requests at once and no more.
    pub fn is_of_models(self) -> bool {
        matches!(self, Self::Models | Self::Key | Self::Chat)
    }

    /// Whether a fault is told in the words of the decision endpoints.
    pub fn is_of_flags(self) -> bool {
        matches!(
            self,
            Self::Flags | Self::Batch | Self::Token | Self::Webhook | Self::Notices
        )
    }
}

/// Who may call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Anyone.
    Open,
    /// The holder of a key.
    Key,
    /// As `models.require_key` says.
    KeyIfRequired,
}

/// One endpoint.
#[derive(Debug)]
pub struct Route {
    /// For metrics, logs and tests.
    pub name: &'static str,
    /// The method; `HEAD` is served wherever `GET` is.
    pub method: Method,
    /// The normalised path; `*` stands for one last segment.
    pub path: &'static str,
    /// Who may call.
    pub access: Access,
    /// Who answers.
    pub answers: Answers,
}

/// All endpoints. Those of flags check credentials of their own.
pub static ROWS: [Route; 19] = [
    Route {
        name: "health",
        method: Method::GET,
        path: "/",
        access: Access::Open,
        answers: Answers::Health,
    },
    Route {
        name: "models",
        method: Method::GET,
        path: "/v1/models",
        access: Access::KeyIfRequired,
        answers: Answers::Models,
    },
    Route {
        name: "key",
        method: Method::GET,
        path: "/v1/key",
        access: Access::Key,
        answers: Answers::Key,
    },
    Route {
        name: "chat_completions",
        method: Method::POST,
        path: "/v1/chat/completions",
        access: Access::Key,
        answers: Answers::Chat,
    },
    Route {
        name: "config",
        method: Method::GET,
        path: "/v1/config",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "datafile",
        method: Method::GET,
        path: "/v1/datafile",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "decide",
        method: Method::POST,
        path: "/v1/decide",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "activate",
        method: Method::POST,
        path: "/v1/activate",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "track",
        method: Method::POST,
        path: "/v1/track",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "overrides",
        method: Method::POST,
        path: "/v1/override",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "lookup",
        method: Method::POST,
        path: "/v1/lookup",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "save",
        method: Method::POST,
        path: "/v1/save",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "send_odp_event",
        method: Method::POST,
        path: "/v1/send-odp-event",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "event_stream",
        method: Method::GET,
        path: "/v1/notifications/event-stream",
        access: Access::Open,
        answers: Answers::Notices,
    },
    Route {
        name: "batch",
        method: Method::POST,
        path: "/v1/batch",
        access: Access::Open,
        answers: Answers::Batch,
    },
    Route {
        name: "token",
        method: Method::POST,
        path: "/oauth/token",
        access: Access::Open,
        answers: Answers::Token,
    },
    Route {
        name: "webhook",
        method: Method::POST,
        path: "/webhooks/optimizely",
        access: Access::Open,
        answers: Answers::Webhook,
    },
    Route {
        name: "ofrep_flags",
        method: Method::POST,
        path: "/ofrep/v1/evaluate/flags",
        access: Access::Open,
        answers: Answers::Flags,
    },
    Route {
        name: "ofrep_flag",
        method: Method::POST,
        path: "/ofrep/v1/evaluate/flags/*",
        access: Access::Open,
        answers: Answers::Flags,
    },
];

/// Everything that is not ours, where there is a graph service.
pub static GRAPH: Route = Route {
    name: "graph",
    method: Method::GET,
    path: "",
    access: Access::Open,
    answers: Answers::Graph,
};

/// The first segments of our own paths, beside `/`. Source: docs/decisions.md 18.
const RESERVED_PREFIXES: [&str; 5] = ["v1", "oauth", "ofrep", ".well-known", "webhooks"];
/// What others of our paths begin with.
const MCP: &str = "mcp";

/// Whether a path is ours, normalised or not: known or not, it is never sent on.
pub fn is_reserved(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let first = first.unwrap_or_default();
    let begins = first.get(..MCP.len());
    first.is_empty()
        || begins.is_some_and(|begins| begins.eq_ignore_ascii_case(MCP))
        || RESERVED_PREFIXES
            .iter()
            .any(|own| first.eq_ignore_ascii_case(own))
}

impl Route {
    fn is_at(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            None => self.path == path,
            Some(before) => path
                .strip_prefix(before)
                .is_some_and(|last| !last.is_empty() && !last.contains('/')),
        }
    }
}

/// The place of a row among all: the graph service's and none are the last two.
pub fn route_index(row: Option<&'static Route>) -> usize {
    let Some(row) = row else {
        return ROWS.len() + 1;
    };
    let found = ROWS.iter().position(|one| std::ptr::eq(one, row));
    found.unwrap_or(ROWS.len())
}

/// The row that answers; with `has_graph` that is [`GRAPH`] for what is not ours.
///
/// Errors: 400 for a path that cannot be normalised, 404, 405.
pub fn find(method: &Method, path: &str, has_graph: bool) -> Result<&'static Route, Fault> {
    // Nearly every path comes as it stands in the table, where nothing is left to normalise.
    let exact = ROWS
        .iter()
        .find(|row| row.path == path && row.method == *method);
    if let Some(row) = exact {
        return Ok(row);
    }
    let path = normalise(path)?;
    if has_graph && !is_reserved(&path) {
        return Ok(&GRAPH);
    }
    let mut is_known = false;
    for row in &ROWS {
        if !row.is_at(&path) {
            continue;
        }
        if row.method == *method || row.method == Method::GET && *method == Method::HEAD {
            return Ok(row);
        }
        is_known = true;
    }
    if is_known {
        let accepted: Vec<&str> = ROWS
            .iter()
            .filter(|row| row.is_at(&path))
            .map(|row| row.method.as_str())
            .collect();
        return Err(Fault::new(
            FaultKind::MethodNotAllowed,
            format!(
                "this path does not take this method; accepted: {}",
                accepted.join(", ")
            ),
        ));
    }
    Err(Fault::new(
        FaultKind::NotFound,
        "there is nothing at this path",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn spellings_of_one_path_find_one_row() {
        for path in [
            "//v1//models",
            "/V1/Models/",
            "/v1/x/../models",
            "/v1;a=b/models",
            "/%76%31/models",
        ] {
            assert_eq!(
                find(&Method::GET, path, false).unwrap().name,
                "models",
                "{path}"
            );
        }
        for path in ["/v1%2fmodels", "/v1%25", "/v1%00", "/v1%", "/é"] {
            assert_eq!(
                find(&Method::GET, path, false).unwrap_err().status(),
                400,
                "{path}"
            );
        }
    }

    #[test]
    fn a_star_is_one_segment() {
        let name = |path| find(&Method::POST, path, false).map(|row| row.name);
        assert_eq!(name("/ofrep/v1/evaluate/flags/a").unwrap(), "ofrep_flag");
        assert_eq!(name("/ofrep/v1/evaluate/flags/").unwrap(), "ofrep_flags");
        assert_eq!(
            name("/ofrep/v1/evaluate/flags/a/b").unwrap_err().status(),
            404
        );
    }

    #[test]
    fn what_is_ours_is_never_the_graph_services() {
        for path in [
            "/",
            "/v1/nothing",
            "/V1/nothing",
            "/v1",
            "/x/../v1/nothing",
            "//oauth/x",
            "/ofrep/v2",
            "/mcp",
            "/mcp/oauth/x",
            "/MCP;x/y",
            "/.well-known/x",
            "/webhooks/x",
        ] {
            let found = find(&Method::PUT, path, true);
            assert!(!matches!(found, Ok(row) if row.name == "graph"), "{path}");
        }
        for path in ["/content/v2", "/v2/models", "/api/v1/x", "/%63ontent"] {
            assert_eq!(find(&Method::PUT, path, true).unwrap().name, "graph");
            assert_eq!(find(&Method::PUT, path, false).unwrap_err().status(), 404);
        }
    }

    #[test]
    fn another_method_is_told_from_another_path() {
        assert_eq!(
            find(&Method::GET, "/v1/chat/completions", false)
                .unwrap_err()
                .status(),
            405
        );
        assert_eq!(
            find(&Method::GET, "/v1/chat", false).unwrap_err().status(),
            404
        );
        assert_eq!(find(&Method::HEAD, "/", false).unwrap().name, "health");
    }
}
