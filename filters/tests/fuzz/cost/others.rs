//! Everything beside the bodies of models: datafiles and decisions, graph requests, tokens, messages, the journal.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use filters::accounts::{ApiKey, carries_api_key, holds_api_key, own_credential};
use filters::auth::jwks::{KeySet, read_key_id};
use filters::cidr::Cidr;
use filters::decisions::borrowed_object::BorrowedObject;
use filters::decisions::cmab::read_prediction;
use filters::decisions::decide::decide;
use filters::decisions::inputs::Inputs;
use filters::decisions::odp::read_segments;
use filters::decisions::ofrep::read_context;
use filters::decisions::protocol::{Agent, Document, Protocol};
use filters::decisions::token::TokenRequest;
use filters::decisions::webhook::check_signature;
use filters::decisions::{Options, Project};
use filters::event_frames::{FrameError, FrameReader};
use filters::form;
use filters::graph::credentials::{PresentedCredential, TenantClaims};
use filters::graph::operation::OperationRow;
use filters::graph::{CacheRequest, HeadKey, Operations, is_cacheable};
use filters::json::Walker;
use filters::ledger::journal::read_segment;
use filters::ledger::packed::{pack, unpack};
use filters::ledger::{Charge, LedgerEntry};
use filters::mcp::message;
use filters::mcp::oauth::authorization::AuthorizationRequest;
use filters::mcp::oauth::client::{Client, ClientAuth, ClientMetadata};
use filters::mcp::oauth::form::OAuthParameters;
use filters::mcp::oauth::redirect;
use filters::models::chat::data_url;
use filters::models::healing::heal;
use filters::proxy::{check_http1, check_http2, client_address, normalise};
use filters::sse::{EventReader, SseEvent, TooLong};
use filters::trace_context::{TRACEPARENT, TraceId, TraceParent, trace_state};
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use serde_json::{Map, json};

use super::fronts::of_grammar;
use super::{Reader, attacks};
use crate::choices::Choices;
use crate::{datafiles, event_frames, framing, graph, healing, ledger, sse, tokens};

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Decides the first flag of a datafile.
fn decide_first(project: &Project) {
    let attributes = BorrowedObject::from(Map::new());
    let inputs = Inputs {
        user_id: "u",
        attributes: &attributes,
        segments: &[],
        forced: &[],
        overrides: &[],
        profile: None,
        predictions: &HashMap::new(),
        options: Options::default(),
    };
    if let Some(key) = project.flag_keys().next() {
        decide(project, key, &inputs);
    }
}

/// Returns the readers of datafiles, bodies and replies of decisions.
pub fn decisions() -> Vec<Reader> {
    let body = json!({"userId": "u", "userAttributes": {"country": "DE", "a?": "$any"}, "decideOptions?": ["INCLUDE_REASONS"],
        "forcedDecisions?": [{"flagKey": "f", "ruleKey?": "r", "variationKey": "v"}], "eventTags?": {"revenue": "$number"},
        "data?": {"x": "$any"}, "identifiers?": {"id": "$text"}, "experimentBucketMap?": {"e1": {"variation_id": "v1"}}});
    let batch = json!({"operations": [{"method": "POST", "url": "/v1/decide?keys=f", "operationID": "1", "body": {"userId": "u", "x": "$any"},
        "parameters?": {"keys": ["a", "b"]}, "headers?": {"X-Platform-SDK-Key": "k"}}]});
    let context = json!({"context": {"targetingKey": "u", "country": "$any"}});
    let segments = json!({"data": {"customer": {"audiences": {"edges": [{"node": {"name": "$text", "state": "qualified"}}]}}}});
    let prediction = json!({"predictions": [{"variation_id": "v1"}]});
    let mut readers = vec![
        Reader::new("contexts of OFREP", of_grammar(context), |body| {
            let _ = read_context(body);
        }),
        Reader::new("segments", of_grammar(segments), |body| {
            let _ = read_segments(body);
        }),
        Reader::new("predictions", of_grammar(prediction), |body| {
            let _ = read_prediction(body);
        }),
    ];
    for (protocol, name) in [
        (&Document as &'static dyn Protocol, "document"),
        (&Agent, "agent"),
    ] {
        let datafile =
            |choices: &mut Choices<'_>| datafiles::datafile(choices).to_string().into_bytes();
        let read = move |bytes: &bytes::Bytes| {
            if let Ok(project) = Project::parse(bytes, protocol.rules()) {
                decide_first(&project);
                let _ = project.overview();
            }
        };
        readers.push(
            Reader::new(format!("datafiles, {name}"), datafile, read).with(&attacks::DATAFILES),
        );
        readers.push(Reader::new(
            format!("bodies of decisions, {name}"),
            of_grammar(body.clone()),
            move |body| {
                let read = || protocol.read(body);
                let _ = read().and_then(|body| body.into_decide());
                let _ = read().and_then(|body| body.into_override());
                let _ = read().and_then(|body| body.into_odp_event());
                if let Ok(mut body) = read() {
                    let _ = (body.event_tags(), body.profile(), body.user());
                }
            },
        ));
        readers.push(Reader::new(
            format!("batches of decisions, {name}"),
            of_grammar(batch.clone()),
            move |body| {
                for operation in protocol.read_batch(body).iter().flatten() {
                    let (_, query) = operation.split_url();
                    let _ = (operation.header_map(), operation.query(query));
                    let _ = protocol.operation_body(operation);
                }
            },
        ));
    }
    readers
}

/// Returns the readers of JSON, events, documents, heads, paths, nearly JSON and the journal.
pub fn texts() -> Vec<Reader> {
    let any = || of_grammar(json!({"a": "$any", "b": ["$any", "$text"]}));
    let json_body = HeaderMap::from_iter([(
        CONTENT_TYPE,
        HeaderValue::from_static("application/graphql"),
    )]);
    vec![
        Reader::new("JSON", any(), |json| {
            if let Ok(mut walker) = Walker::new(json) {
                let _ = walker.skip().and_then(|_| walker.end());
            }
        })
        .with(&attacks::TEXTS),
        Reader::new("event streams", sse::stream, |stream| {
            let mut reader = EventReader::default();
            let mut take = |_: SseEvent<'_>| Ok::<(), TooLong>(());
            for piece in stream.chunks(16 << 10) {
                let _ = reader.feed(piece, &mut take);
            }
            let _ = reader.finish(take);
        })
        .with(&attacks::LINES),
        Reader::new("event frames", event_frames::stream, |stream| {
            let mut reader = FrameReader::default();
            for piece in stream.chunks(16 << 10) {
                let _ = reader.feed(piece, |_| Ok::<(), FrameError>(()));
            }
            let _ = reader.finish();
        }),
        Reader::new(
            "nearly JSON",
            |choices| healing::nearly_json(choices).into_bytes(),
            |said| {
                let _ = heal(&text(said), true);
            },
        )
        .with(&attacks::TEXTS),
        Reader::new(
            "data URLs",
            |_| b"data:image/png;charset=utf-8;base64,aGk=".to_vec(),
            |url| {
                let _ = data_url::parse(&text(url));
            },
        ),
        Reader::new(
            "documents of the graph",
            |choices| graph::document(choices).0.into_bytes(),
            move |document| {
                let request = CacheRequest {
                    tenant: Some("t"),
                    credential_kind: "single",
                    is_public: true,
                    method: &Method::POST,
                    path: "/content/v2",
                    query: "",
                    headers: &json_body,
                };
                let head = HeadKey::from_request(&request).unwrap();
                let _ = (head.is_read_only(document), head.to_cache_key(document));
            },
        )
        .with(&attacks::TEXTS),
        Reader::new(
            "Cache-Control",
            |_| b"max-age=60, private=\"set-cookie\", no-store".to_vec(),
            |line| {
                let mut headers = HeaderMap::new();
                headers.extend(
                    HeaderValue::from_bytes(line)
                        .ok()
                        .map(|line| (CACHE_CONTROL, line)),
                );
                let _ = is_cacheable(StatusCode::OK, &headers);
            },
        ),
        Reader::new(
            "heads of HTTP/1",
            |choices| framing::head(choices).into_bytes(),
            |head| {
                let _ = check_http1(head, 32 << 10);
            },
        ),
        Reader::new(
            "paths",
            |_| b"/content/v2//%2e/../a;b=c/%41".to_vec(),
            |path| {
                let _ = normalise(&text(path));
            },
        ),
        Reader::new(
            "queries",
            |_| b"a=b+c&d=%41%zz&&e".to_vec(),
            |query| {
                let query = text(query);
                let pairs = form::pairs(&query)
                    .map(|pair| (pair.decoded_name().len(), pair.decoded_value().len()));
                let _ = pairs.map(|(name, value)| name + value).sum::<usize>();
            },
        ),
        Reader::new(
            "segments of the journal",
            |choices| ledger::segment(choices, &ledger::ID).0,
            |bytes| {
                let _ = read_segment(bytes, &ledger::ID);
            },
        ),
        Reader::new("packed calls", packed, |calls| {
            let _ = unpack(&[0; 1600], calls, |_| true);
        }),
    ]
}

fn packed(choices: &mut Choices<'_>) -> Vec<u8> {
    let entries: Vec<LedgerEntry> = (0..3).map(|_| ledger::entry(choices)).collect();
    let charge = |entry: &LedgerEntry| Charge {
        charged: entry.charged,
        shortfall: entry.shortfall,
    };
    pack(entries.iter().map(|entry| (entry, charge(entry)))).calls
}

/// Returns the readers of heads: paths of operations, credentials, keys, addresses, redirections and signatures.
pub fn heads() -> Vec<Reader> {
    let operations =
        Operations::parse(std::iter::empty::<OperationRow<'_>>(), &BTreeMap::new()).unwrap();
    let header = |name: HeaderName, bytes: &[u8]| {
        let value = HeaderValue::from_bytes(bytes).ok();
        HeaderMap::from_iter(value.map(|value| (name, value)))
    };
    vec![
        Reader::new(
            "paths of operations",
            |_| b"/api/content/v3/types/a-b_c/sources/x".to_vec(),
            move |path| {
                if let Ok(path) = normalise(&text(path)) {
                    let _ = operations.find("POST", &path);
                }
            },
        ),
        Reader::new(
            "credentials of tenants, headers",
            |_| b"epi-hmac key:1700000000000:nonce:c2lnbmF0dXJl".to_vec(),
            move |line| {
                let headers = header(AUTHORIZATION, line);
                let _ = PresentedCredential::from_request(&headers, None).is_ok();
            },
        ),
        Reader::new(
            "credentials of tenants, queries",
            |_| b"a=b&auth=k%31&c=%zz".to_vec(),
            |query| {
                let query = text(query);
                let headers = HeaderMap::new();
                let _ = PresentedCredential::from_request(&headers, Some(&query)).is_ok();
            },
        ),
        Reader::new(
            "trace parents",
            |_| b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_vec(),
            move |line| {
                let _ = TraceParent::from_headers(&header(TRACEPARENT, line));
                let _ = TraceId::from_request_id(&text(line));
            },
        ),
        Reader::new(
            "trace states",
            |_| b"a=1,b@c=2, d=e f".to_vec(),
            move |line| {
                let state = HeaderName::from_static("tracestate");
                let _ = trace_state(&header(state, line)).len();
            },
        ),
        Reader::new(
            "API keys",
            |_| b"Bearer wg_0123456789".to_vec(),
            move |line| {
                let _ = (holds_api_key(line), ApiKey::parse(line).is_ok());
                let request = Request::builder().uri("/v1/models").body(()).unwrap();
                let (mut head, ()) = request.into_parts();
                head.headers = header(AUTHORIZATION, line);
                let _ = carries_api_key(&head);
            },
        ),
        Reader::new(
            "credentials of vendors",
            |_| b"Bearer sk-ant-oat01-0123456789".to_vec(),
            move |line| {
                let mut headers = header(AUTHORIZATION, line);
                let key = HeaderName::from_static("x-weirgate-key");
                headers.insert(key.clone(), HeaderValue::from_static("wg_0"));
                let _ = own_credential(&headers, &key).is_ok();
            },
        ),
        Reader::new(
            "heads of HTTP/2",
            |_| b"/v1/models?a=b".to_vec(),
            |target| {
                if let Ok(request) = Request::builder().uri(&*text(target)).body(()) {
                    let _ = check_http2(&request.into_parts().0, 1 << 20);
                }
            },
        ),
        Reader::new(
            "addresses of clients",
            |_| b"10.0.0.1, [2001:db8::1]:443, unknown".to_vec(),
            |line| {
                let trusted = ["10.0.0.0/8".parse::<Cidr>().unwrap()];
                let peer = IpAddr::from([10, 0, 0, 9]);
                let line = HeaderValue::from_bytes(line).ok();
                let _ = client_address(peer, line.iter(), &trusted);
            },
        ),
        Reader::new(
            "redirections of clients",
            |_| b"http://127.0.0.1:8080/callback?x=1".to_vec(),
            |named| {
                let registered = ["http://127.0.0.1/callback?x=1".to_owned()];
                let _ = redirect::find(&registered, &text(named)).is_some();
            },
        ),
        Reader::new(
            "signatures of datafiles",
            |_| b"{\"project_id\": 1}".to_vec(),
            |body| {
                let _ = check_signature(Some(b"secret"), body, b"sha1=00").is_ok();
            },
        ),
    ]
}

/// Returns the readers of tokens, of messages of the Model Context Protocol and of OAuth.
pub fn tokens() -> Vec<Reader> {
    let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "ec", "x": "o8bUs5KQkw46-LX6dc5CgFJ1Z5Hy3NqE366PmkeJNwU", "y": "or5_ZxQvltORA0YTfScyYj4lVEhjZ6_UdikAlJCJowk"},
        {"kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB"}]});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": "$any", "_meta?": {"progressToken": 1}}});
    let metadata = json!({"client_name": "$text", "redirect_uris": ["https://app.example/cb", "http://127.0.0.1/cb"], "grant_types": ["authorization_code"], "response_types": ["code"], "scope?": "models"});
    let request = json!({"grant_type": "client_credentials", "client_id": "c", "client_secret": "$text", "more": "$any"});
    let kinds = ["application/json", "application/x-www-form-urlencoded"];
    let asked = |kind| {
        move |body: &bytes::Bytes| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
            let _ = TokenRequest::read(&headers, body);
        }
    };
    let query = |_: &mut Choices<'_>| {
        b"client_id=client_1&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&response_type=code&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&scope=models+decisions"
            .to_vec()
    };
    vec![
        Reader::new(
            "our tokens",
            |choices| tokens::token(choices).into_bytes(),
            |token| {
                let _ = tokens::OURS.verify(&text(token), tokens::NOW_S);
            },
        ),
        Reader::new(
            "foreign tokens",
            |choices| tokens::token(choices).into_bytes(),
            |token| {
                let token = text(token);
                let _ = (
                    read_key_id(&token),
                    TenantClaims::from_unverified_token(&token),
                );
            },
        ),
        Reader::new("sets of keys", of_grammar(keys), |set| {
            let _ = KeySet::parse(set);
        }),
        Reader::new(
            "requests for tokens, JSON",
            of_grammar(request),
            asked(kinds[0]),
        ),
        Reader::new("requests for tokens, forms", query, asked(kinds[1])),
        Reader::new("messages", of_grammar(call), |body| {
            if let Err(error) = message::read(body) {
                let _ = error.body();
            }
        })
        .with(&attacks::MESSAGES),
        Reader::new("metadata of clients", of_grammar(metadata), |body| {
            let _ = ClientMetadata::read(body);
        }),
        Reader::new("authorization requests", query, |query| {
            let client = Client {
                id: "client_1".to_owned(),
                metadata: ClientMetadata {
                    name: None,
                    redirect_uris: vec!["https://app.example/cb".to_owned()],
                    auth: ClientAuth::None,
                    has_refresh_tokens: true,
                },
            };
            let query = text(query);
            let query = OAuthParameters::read(&query);
            let here = ("https://gw.example", "https://gw.example/mcp");
            let _ = AuthorizationRequest::read(&query, &client, here);
        }),
    ]
}
