//! Lists of clouds, at a scripted server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;

/// A status, headers in lines, and a body.
type ScriptedReply = (u16, String, Value);

/// A server that answers by the path of a request. Returns its address, and the heads of the requests.
fn serve(
    answer: impl Fn(&str) -> ScriptedReply + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 8192];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            // A connection without a request only tells that the server is there.
            let Some(path) = head.split(' ').nth(1) else {
                continue;
            };
            let (status, headers, body) = answer(path);
            let body = body.to_string();
            let reply = format!(
                "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            _ = stream.write_all(reply.as_bytes());
            seen.lock().unwrap().push(head);
        }
    });
    (url, heads)
}

/// Returns what `check --online` says of a provider whose catalogue has these names, each with its wire.
fn said(url: &str, provider: &str, names: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("models.toml");
    let model = |(number, (name, wire)): (usize, &(&str, &str))| {
        let wire = match *wire {
            "" => String::new(),
            wire => format!("wire = \"{wire}\"\n"),
        };
        format!(
            "[[models]]\nid = \"m{number}\"\n[[models.providers]]\nprovider = \"cloud\"\nname = \"{name}\"\n{wire}"
        )
    };
    let models: String = names.iter().enumerate().map(model).collect();
    std::fs::write(&file, models).unwrap();
    let text = format!(
        "[models]\nfile = \"{}\"\n[providers.cloud]\nbase_url = \"{url}\"\n{provider}",
        file.display()
    );
    let source = Source::Text {
        name: "w.toml".into(),
        text,
    };
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIA1"),
        ("AWS_SECRET_ACCESS_KEY", "s3cr3t"),
        ("KEY", "s3cr3t"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let loaded = config::load(&source, env);
    let (mut out, captured) = Output::captured();
    let args = CheckArgs {
        online: true,
        format: CheckFormat::Human,
    };
    let exit = report(&args, &source, loaded, &mut out);
    let shown = captured.out();
    assert_eq!(exit, Exit::Done, "{shown}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    shown
}

const AWS: &str = "kind = \"bedrock\"\nregion = \"eu-west-1\"\ncredentials = \"aws\"\n";
const AZURE: &str = "kind = \"azure\"\nkeys = [{ env = \"KEY\" }]\n";
const VERTEX: &str = "kind = \"vertex\"\nproject = \"p\"\nkeys = [{ env = \"KEY\" }]\n";

fn ok(body: Value) -> ScriptedReply {
    (200, String::new(), body)
}

#[test]
fn profiles_and_models_of_bedrock_are_listed_signed_and_page_by_page() {
    let (url, heads) = serve(|path| {
        ok(match path {
            "/inference-profiles?maxResults=1000" => {
                json!({"inferenceProfileSummaries": [{"inferenceProfileId": "eu.a"}], "nextToken": "a+b=/"})
            }
            "/inference-profiles?maxResults=1000&nextToken=a%2Bb%3D%2F" => {
                json!({"inferenceProfileSummaries": [{"inferenceProfileId": "eu.b"}]})
            }
            "/foundation-models" => json!({"modelSummaries": [{"modelId": "m.a"}]}),
            _ => json!({"inferenceProfileSummaries": []}),
        })
    });
    let names = [
        ("eu.a", "messages"),
        ("eu.b", ""),
        ("m.a", "chat"),
        ("m.gone", ""),
    ];
    let shown = said(&url, AWS, &names);
    let expected = "warning: providers.cloud: does not list m.gone\n  = cure: name a profile or a model of this region";
    assert!(shown.contains(expected), "{shown}");
    let counted =
        "note: providers.cloud.models: lists 3 of the 4 models that the catalogue has of it";
    assert!(shown.contains(counted), "{shown}");
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 4);
    for head in heads.iter() {
        assert!(head.contains("/eu-west-1/bedrock/aws4_request"), "{head}");
    }
}

#[test]
fn a_refused_list_says_which_right_is_missing_and_misses_no_model() {
    let denied = "x-amzn-errortype: AccessDeniedException:http://x\r\n";
    let (url, _) = serve(move |path| match path {
        "/foundation-models" => ok(json!({"modelSummaries": []})),
        _ => (
            403,
            denied.to_owned(),
            json!({"message": "s3cr3t is not allowed"}),
        ),
    });
    let shown = said(&url, AWS, &[("m.a", "")]);
    let expected = "warning: providers.cloud.credentials: its list of models could not be read: it answered 403, \
                    AccessDeniedException\n  = cure: grant bedrock:ListInferenceProfiles; calls do not need it";
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains("does not list"), "{shown}");
    assert_eq!(shown.matches("AccessDeniedException").count(), 1, "{shown}");
}

#[test]
fn a_refusal_by_a_server_with_another_time_names_the_clock() {
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(10);
    let date = later
        .strftime("date: %a, %d %b %Y %H:%M:%S GMT\r\n")
        .to_string();
    let (url, _) = serve(move |_| (403, date.clone(), json!({"message": "Signature expired"})));
    let shown = said(&url, AWS, &[("m.a", "")]);
    let expected = "the clock of this machine is 10 minutes behind that of the server\n  = cure: set the clock";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn lists_without_an_end_and_redirects_are_not_followed() {
    let (url, heads) = serve(|_| ok(json!({"inferenceProfileSummaries": [], "nextToken": "more"})));
    let shown = said(&url, AWS, &[("m.a", "")]);
    assert!(shown.contains("it has more than 10 pages"), "{shown}");
    assert!(heads.lock().unwrap().len() <= 30);
    let (elsewhere, asked) = serve(|_| ok(json!({"data": [{"id": "m.a"}]})));
    let location = format!("location: {elsewhere}/openai/v1/models\r\n");
    let (url, _) = serve(move |_| (302, location.clone(), json!({})));
    let shown = said(&url, AZURE, &[("m.a", "")]);
    assert!(
        shown.contains("a redirect (302), which is not followed"),
        "{shown}"
    );
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn deployments_of_azure_count_or_its_models_where_there_is_no_such_list() {
    let (url, heads) = serve(|path| match path.starts_with("/openai/deployments?") {
        true => ok(json!({"data": [{"id": "mine", "model": "gpt-5.5"}]})),
        false => ok(json!({"data": [{"id": "gpt-5.5"}]})),
    });
    let names = [("mine", ""), ("gpt-5.5", "")];
    let shown = said(&url, AZURE, &names);
    let expected = "does not list gpt-5.5\n  = cure: deploy them under these names";
    assert!(shown.contains(expected), "{shown}");
    assert!(
        heads
            .lock()
            .unwrap()
            .iter()
            .all(|head| head.contains("api-key: s3cr3t"))
    );
    let (url, _) = serve(|path| match path.starts_with("/openai/deployments?") {
        true => (404, String::new(), json!({"error": {"code": "404"}})),
        false => ok(json!({"data": [{"id": "gpt-5.5"}]})),
    });
    let shown = said(&url, AZURE, &names);
    assert!(shown.contains("does not list mine"), "{shown}");
    assert!(!shown.contains("404"), "{shown}");
}

#[test]
fn each_publisher_of_vertex_is_compared_with_its_own_wire() {
    let (url, _) = serve(|path| match path.split('?').next().unwrap() {
        "/v1beta1/publishers/google/models" => {
            ok(json!({"publisherModels": [{"name": "publishers/google/models/gemini"}]}))
        }
        _ => (
            403,
            String::new(),
            json!({"error": {"status": "PERMISSION_DENIED"}}),
        ),
    });
    let names = [
        ("gemini", ""),
        ("gemini-gone", "gemini"),
        ("claude", "messages"),
        ("openai/gpt-oss", "chat"),
    ];
    let shown = said(&url, VERTEX, &names);
    assert!(shown.contains("does not list gemini-gone\n"), "{shown}");
    let denied = "warning: providers.cloud.keys: its list of models could not be read: it answered 403, PERMISSION_DENIED\n  \
                  = cure: grant the role Vertex AI User (roles/aiplatform.user)";
    assert!(shown.contains(denied), "{shown}");
    assert!(shown.contains("lists 1 of the 2 models"), "{shown}");
}
