//! Requests of contents that once cost too much, and their like.

use super::Attack;
use super::attacks::items;

fn of_contents(contents: &str) -> Vec<u8> {
    format!(r#"{{"model":"m","contents":[{contents}]}}"#).into_bytes()
}

fn called_part(number: usize) -> String {
    format!(r#"{{"functionCall":{{"id":"c{number}","name":"f","args":{{}}}}}}"#)
}

fn answered_part(number: usize) -> String {
    format!(r#"{{"functionResponse":{{"id":"c{number}","name":"f","response":{{}}}}}}"#)
}

pub const OF_CONTENTS: [Attack; 8] = [
    ("many calls and their results in another order", |bytes| {
        let count = bytes / 120;
        let calls: Vec<String> = (0..count).map(called_part).collect();
        let results: Vec<String> = (0..count).rev().map(answered_part).collect();
        of_contents(&format!(
            r#"{{"role":"model","parts":[{}]}},{{"role":"user","parts":[{}]}}"#,
            calls.join(","),
            results.join(",")
        ))
    }),
    ("many calls and results without ids", |bytes| {
        let calls = items(bytes / 2, |_| r#"{"functionCall":{"name":"f"}}"#.to_owned());
        let results = items(bytes / 2, |_| {
            r#"{"functionResponse":{"name":"g"}}"#.to_owned()
        });
        of_contents(&format!(
            r#"{{"role":"model","parts":[{calls}]}},{{"role":"user","parts":[{results}]}}"#
        ))
    }),
    ("many turns of a call and its result", |bytes| {
        of_contents(&items(bytes, |number| {
            let (call, result) = (called_part(number), answered_part(number));
            format!(r#"{{"role":"model","parts":[{call}]}},{{"parts":[{result}]}}"#)
        }))
    }),
    ("many short contents", |bytes| {
        of_contents(&items(bytes, |_| r#"{"parts":[{"text":"a"}]}"#.to_owned()))
    }),
    ("many signatures of others", |bytes| {
        of_contents(&items(bytes, |_| {
            r#"{"role":"model","parts":[{"text":"a","thoughtSignature":"WGS1MAAAAAAAAAAAAAAAAAAAAAAAAAAAc2ln"}]}"#.to_owned()
        }))
    }),
    ("many functions and a choice among them", |bytes| {
        let tools = items(bytes / 2, |number| format!(r#"{{"name":"f{number}"}}"#));
        let names = items(bytes / 2, |number| format!(r#""f{}""#, number % 100));
        format!(r#"{{"model":"m","contents":[{{"parts":[{{"text":"a"}}]}}],"tools":[{{"functionDeclarations":[{tools}]}}],"toolConfig":{{"functionCallingConfig":{{"mode":"ANY","allowedFunctionNames":[{names}]}}}}}}"#).into_bytes()
    }),
    ("a schema of many levels", |bytes| {
        let levels = 100.min(bytes / 40);
        let deep = [
            r#"{"type":"OBJECT","properties":{"a":"#.repeat(levels / 2),
            "{}".to_owned(),
            "}}".repeat(levels / 2),
        ]
        .concat();
        let tools = items(bytes, |number| {
            format!(r#"{{"name":"f{number}","parameters":{deep}}}"#)
        });
        format!(r#"{{"model":"m","contents":[{{"parts":[{{"text":"a"}}]}}],"tools":[{{"functionDeclarations":[{tools}]}}]}}"#).into_bytes()
    }),
    ("many keys in the other spelling", |bytes| {
        of_contents(&items(bytes, |_| {
            r#"{"parts":[{"function_call":{"name":"f"}},{"a_b_c_d":1}]}"#.to_owned()
        }))
    }),
];
