//! Inputs that once cost too much, and their like.

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use serde_json::{Value, json};

use super::Attack;

/// Repeats items of a list, each made of its number, until they have so many bytes.
pub fn items(bytes: usize, item: impl Fn(usize) -> String) -> String {
    let mut list = String::new();
    for number in 0.. {
        if number > 0 {
            list.push(',');
        }
        list.push_str(&item(number));
        if list.len() >= bytes {
            break;
        }
    }
    list
}

fn chat(members: &str) -> Vec<u8> {
    let hi = r#"{"role":"user","content":"Hi"}"#;
    format!(r#"{{"model":"m","messages":[{hi}],{members}}}"#).into_bytes()
}

fn with_schema(schema: &Value) -> Vec<u8> {
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": schema, "strict": true}});
    let form = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": true}});
    chat(&format!(r#""tools":[{tool}],"response_format":{form}"#))
}

fn recursive(node: Value) -> Vec<u8> {
    with_schema(&json!({"$ref": "#/$defs/n", "$defs": {"n": node}}))
}

fn node() -> Value {
    json!({"$ref": "#/$defs/n"})
}

fn messages(list: &str) -> Vec<u8> {
    let hi = r#"{"role":"user","content":"Hi"}"#;
    format!(r#"{{"model":"m","messages":[{hi},{list},{hi}]}}"#).into_bytes()
}

fn call(number: usize) -> String {
    format!(
        r#"{{"id":"c{number}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#
    )
}

pub const CHATS: [Attack; 16] = [
    ("anyOf of three references to itself", |_| {
        recursive(json!({"anyOf": [node(), node(), node()]}))
    }),
    ("a tree of references", |_| {
        recursive(json!({"type": "object", "properties": {"left": node(), "right": node()}}))
    }),
    ("an array of 64 of itself", |_| {
        with_schema(&json!({"type": "array", "minItems": 64, "items": {"$ref": "#"}}))
    }),
    ("many required names of many properties", |bytes| {
        let properties = items(bytes / 4, |number| format!(r#""p{number}":{{}}"#));
        let required = items(bytes / 8, |number| format!(r#""p{number}""#));
        let schema =
            format!(r#"{{"type":"object","properties":{{{properties}}},"required":[{required}]}}"#);
        with_schema(&serde_json::from_str(&schema).unwrap())
    }),
    ("many references to one long definition", |bytes| {
        let long = items(bytes / 2, |number| format!(r#""p{number}":1"#));
        let uses = items(bytes / 2, |_| r##"{"$ref":"#/$defs/n"}"##.to_owned());
        let schema = format!(r#"{{"anyOf":[{uses}],"$defs":{{"n":{{{long}}}}}}}"#);
        chat(&format!(
            r#""tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]"#
        ))
    }),
    ("many calls and their results", |bytes| {
        let calls = items(bytes / 2, call);
        let results = items(bytes / 2, |number| {
            format!(r#"{{"role":"tool","tool_call_id":"c{number}","content":"x"}}"#)
        });
        messages(&format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}},{results}"#
        ))
    }),
    ("many calls and their results in another order", |bytes| {
        let count = bytes / 120;
        let calls: Vec<String> = (0..count).map(call).collect();
        let results: Vec<String> = (0..count)
            .rev()
            .map(|number| format!(r#"{{"role":"tool","tool_call_id":"c{number}","content":"x"}}"#))
            .collect();
        messages(&format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{}]}},{}"#,
            calls.join(","),
            results.join(",")
        ))
    }),
    ("many turns of a call and its result", |bytes| {
        messages(&items(bytes, |number| {
            let call = call(number);
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"c{number}","content":"x"}}"#
            )
        }))
    }),
    ("many short messages", |bytes| {
        messages(&items(bytes, |_| {
            r#"{"role":"user","content":"a"}"#.to_owned()
        }))
    }),
    ("many system messages between others", |bytes| {
        messages(&items(bytes, |_| {
            r#"{"role":"system","content":"a"},{"role":"user","content":"a"}"#.to_owned()
        }))
    }),
    ("many parts", |bytes| {
        let parts = items(bytes, |_| r#"{"type":"text","text":"a"}"#.to_owned());
        messages(&format!(r#"{{"role":"user","content":[{parts}]}}"#))
    }),
    ("many parts to cache", |bytes| {
        let parts = items(bytes, |_| {
            r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#.to_owned()
        });
        messages(&format!(r#"{{"role":"user","content":[{parts}]}}"#))
    }),
    ("many details of reasoning", |bytes| {
        let sealed =
            Maker::from_name(States::NONE, "here/upstream-model").seal(Dialect::Responses, "gAAA");
        let details = items(bytes, |number| {
            format!(
                r#"{{"type":"reasoning.encrypted","format":"openai-responses-v1","index":{number},"id":"r{number}","data":"{sealed}"}}"#
            )
        });
        messages(&format!(
            r#"{{"role":"assistant","content":"a","reasoning_details":[{details}]}}"#
        ))
    }),
    ("many items of messages", |bytes| {
        let told = items(bytes, |_| {
            r#"{"text":"a","phase":"final_answer","preceding_tool_calls":0}"#.to_owned()
        });
        messages(&format!(
            r#"{{"role":"assistant","content":"a","message_items":[{told}]}}"#
        ))
    }),
    ("many tools", |bytes| {
        let tools = items(bytes, |number| {
            format!(
                r#"{{"type":"function","function":{{"name":"f{number}","parameters":{{"type":"object"}}}}}}"#
            )
        });
        chat(&format!(
            r#""tools":[{tools}],"tool_choice":{{"type":"function","function":{{"name":"f0"}}}}"#
        ))
    }),
    ("many unknown members", |bytes| {
        chat(&items(bytes, |number| format!(r#""x{number}":[[],[]]"#)))
    }),
];

pub const OCR: [Attack; 2] = [
    ("ranges of a thousand pages", |bytes| {
        let ranges = "0-999,".repeat(bytes / 6);
        format!(r#"{{"model":"m","document":{{"file_id":"f"}},"pages":"{ranges}0"}}"#).into_bytes()
    }),
    ("the same page again and again", |bytes| {
        let pages = items(bytes, |_| "7".to_owned());
        format!(r#"{{"model":"m","document":{{"file_id":"f"}},"pages":[{pages}]}}"#).into_bytes()
    }),
];

fn part(number: usize) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"x{number}\"\r\n\r\n1\r\n")
}

fn form(parts: &str) -> Vec<u8> {
    let model = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n";
    format!("{model}{parts}--b--\r\n").into_bytes()
}

pub const FORMS: [Attack; 5] = [
    ("many fields", |bytes| {
        let parts: String = (0..bytes / 60).map(part).collect();
        form(&parts)
    }),
    ("one field again and again", |bytes| {
        form(&part(0).repeat(bytes / 60))
    }),
    ("nearly a boundary", |bytes| {
        let content = "\r\n--\r\n-".repeat(bytes / 7);
        form(&format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{content}\r\n"
        ))
    }),
    ("a long head of a part", |bytes| {
        let name = "a;".repeat(bytes / 2);
        form(&format!(
            "--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n1\r\n"
        ))
    }),
    ("many lines in a head", |bytes| {
        let lines = "a: b\r\n".repeat(bytes / 6);
        form(&format!(
            "--b\r\n{lines}Content-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n"
        ))
    }),
];

pub const MESSAGES: [Attack; 2] = [
    ("a batch of empty lists", |bytes| {
        format!("[{}]", items(bytes, |_| "[]".to_owned())).into_bytes()
    }),
    ("arguments of empty lists", |bytes| {
        let lists = items(bytes, |_| "[]".to_owned());
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"x":[{lists}]}}}}}}"#).into_bytes()
    }),
];

pub const DATAFILES: [Attack; 3] = [
    ("audiences that each name the one before twice", |bytes| {
        let audiences = items(bytes, |number| {
            let before = number.saturating_sub(1);
            format!(
                r#"{{"id":"{number}","name":"a{number}","conditions":["and","{before}","{before}"]}}"#
            )
        });
        format!(r#"{{"version":"4","typedAudiences":[{audiences}],"featureFlags":[{{"id":"f","key":"f","rolloutId":"r","experimentIds":[],"variables":[]}}],
            "rollouts":[{{"id":"r","experiments":[{{"id":"e","key":"e","layerId":"l","status":"Running","audienceIds":["40","30"],"trafficAllocation":[],"variations":[]}}]}}]}}"#)
            .into_bytes()
    }),
    ("many flags with the same rules", |bytes| {
        let ids = items(bytes / 4, |number| format!(r#""e{number}""#));
        let flags = items(bytes / 4, |number| {
            format!(
                r#"{{"id":"f{number}","key":"f{number}","rolloutId":"","experimentIds":["e{number}"],"variables":[]}}"#
            )
        });
        let rules = items(bytes / 2, |number| {
            format!(
                r#"{{"id":"e{number}","key":"e{number}","layerId":"l","status":"Running","audienceIds":[],"trafficAllocation":[{{"entityId":"v","endOfRange":10000}}],"variations":[{{"id":"v","key":"on"}}]}}"#
            )
        });
        format!(r#"{{"version":"4","events":[{{"id":"1","key":"b","experimentIds":[{ids}]}}],"featureFlags":[{flags}],"experiments":[{rules}]}}"#).into_bytes()
    }),
    ("a rule of many variations and ranges", |bytes| {
        let variations = items(bytes / 2, |number| {
            format!(r#"{{"id":"v{number}","key":"k{number}","variables":[]}}"#)
        });
        let ranges = items(bytes / 2, |number| {
            format!(r#"{{"entityId":"v{number}","endOfRange":{number}}}"#)
        });
        format!(r#"{{"version":"4","featureFlags":[{{"id":"f","key":"f","rolloutId":"","experimentIds":["e"],"variables":[]}}],"experiments":[
            {{"id":"e","key":"e","layerId":"l","status":"Running","audienceIds":[],"trafficAllocation":[{ranges}],"variations":[{variations}]}}]}}"#).into_bytes()
    }),
];

/// Returns a stream of events made of their numbers, and its end.
fn events(bytes: usize, event: impl Fn(usize) -> String) -> Vec<u8> {
    let mut stream = String::new();
    for number in 0.. {
        stream.push_str(&format!("data: {}\n\n", event(number)));
        if stream.len() >= bytes {
            break;
        }
    }
    stream.into_bytes()
}

fn delta(delta: &str) -> String {
    format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

pub const COMPATIBLE_EVENTS: [Attack; 5] = [
    ("many choices", |bytes| {
        events(bytes, |number| {
            format!(r#"{{"choices":[{{"index":{number},"delta":{{"content":"a"}}}}]}}"#)
        })
    }),
    ("many calls", |bytes| {
        events(bytes, |number| {
            delta(&format!(
                r#"{{"tool_calls":[{{"index":{number},"id":"c{number}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
            ))
        })
    }),
    ("pieces of one call", |bytes| {
        events(bytes, |_| {
            delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"["}}]}"#)
        })
    }),
    ("short texts", |bytes| {
        events(bytes, |_| delta(r#"{"content":"{\""}"#))
    }),
    ("thinking and its details", |bytes| {
        events(bytes, |number| {
            delta(&format!(
                r#"{{"reasoning":"a","reasoning_details":[{{"type":"reasoning.text","index":{number},"text":"a"}}]}}"#
            ))
        })
    }),
];

/// What the Responses API of a provider streams.
pub const RESPONSES_EVENTS: [Attack; 2] = [
    ("many items", |bytes| {
        events(bytes, |number| {
            format!(
                r#"{{"type":"response.output_item.added","output_index":{number},"item":{{"type":"function_call","id":"i{number}","call_id":"c{number}","name":"f","arguments":""}}}}"#
            )
        })
    }),
    ("many parts", |bytes| {
        events(bytes, |number| {
            format!(
                r#"{{"type":"response.output_text.delta","output_index":0,"content_index":{number},"delta":"a"}}"#
            )
        })
    }),
];

pub const CONTENTS_EVENTS: [Attack; 1] = [("many candidates", |bytes| {
    events(bytes, |number| {
        format!(r#"{{"candidates":[{{"index":{number},"content":{{"parts":[{{"text":"a"}}]}}}}]}}"#)
    })
})];

pub const MESSAGES_EVENTS: [Attack; 3] = [
    ("pieces of the last of many blocks", |bytes| {
        events(bytes, |number| match number % 2 {
            0 => format!(
                r#"{{"type":"content_block_start","index":{number},"content_block":{{"type":"text","text":""}}}}"#
            ),
            _ => format!(
                r#"{{"type":"content_block_delta","index":{},"delta":{{"type":"text_delta","text":"a"}}}}"#,
                number - 1
            ),
        })
    }),
    ("many open blocks", |bytes| {
        events(bytes, |number| {
            format!(
                r#"{{"type":"content_block_start","index":{number},"content_block":{{"type":"tool_use","id":"t{number}","name":"f","input":{{}}}}}}"#
            )
        })
    }),
    ("many citations", |bytes| {
        events(bytes, |_| {
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"t","cited_text":"c"}}}"#.to_owned()
        })
    }),
];

pub const LINES: [Attack; 3] = [
    ("lines of data", |bytes| b"data\n".repeat(bytes / 5)),
    ("comments", |bytes| b":\n".repeat(bytes / 2)),
    ("carriage returns", |bytes| b"\r".repeat(bytes)),
];

pub const TEXTS: [Attack; 6] = [
    ("open lists", |bytes| b"[".repeat(bytes)),
    ("open objects", |bytes| b"{\"a\":".repeat(bytes / 5)),
    ("quotes", |bytes| b"\"".repeat(bytes)),
    ("single quotes", |bytes| {
        [&b"{"[..], &b"'a' ".repeat(bytes / 4)].concat()
    }),
    ("fences", |bytes| b"```json\n{".repeat(bytes / 9)),
    ("commas", |bytes| [&b"["[..], &b",".repeat(bytes)].concat()),
];

fn embedded(text: &str) -> Vec<u8> {
    json!({"model": "m", "input": text})
        .to_string()
        .into_bytes()
}

/// One text without a break, or with few of them. A megabyte of the first costs a tokenizer that counts every piece exactly half a
/// second.
pub const RUNS: [Attack; 6] = [
    ("a run of slashes", |bytes| embedded(&"/".repeat(bytes))),
    ("a run of spaces", |bytes| embedded(&" ".repeat(bytes))),
    ("a run of tabs", |bytes| embedded(&"\t".repeat(bytes / 2))),
    ("a run of letters", |bytes| embedded(&"a".repeat(bytes))),
    ("runs of 64 slashes", |bytes| {
        embedded(&format!("{}a ", "/".repeat(64)).repeat(bytes / 66))
    }),
    ("runs of 127 slashes", |bytes| {
        embedded(&format!("{}a ", "/".repeat(127)).repeat(bytes / 129))
    }),
];

fn of_messages(list: &str) -> Vec<u8> {
    let hi = r#"{"role":"user","content":"Hi"}"#;
    format!(r#"{{"model":"m","max_tokens":9,"messages":[{hi},{list},{hi}]}}"#).into_bytes()
}

fn use_of_tool(number: usize) -> String {
    format!(r#"{{"type":"tool_use","id":"c{number}","name":"f","input":{{}}}}"#)
}

fn result_of_tool(number: usize) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"c{number}","content":"x"}}"#)
}

pub const OF_COMPLETIONS: [Attack; 4] = [
    ("a prompt of many tokens", |bytes| {
        let tokens = items(bytes, |number| number.to_string());
        format!(r#"{{"model":"m","prompt":[{tokens}]}}"#).into_bytes()
    }),
    ("many prompts of one token", |bytes| {
        let prompts = items(bytes.min(8 << 10), |_| "[1]".to_owned());
        format!(r#"{{"model":"m","prompt":[{prompts}]}}"#).into_bytes()
    }),
    ("a bias of many tokens", |bytes| {
        let biases = items(bytes, |number| format!("\"{number}\":1"));
        format!(r#"{{"model":"m","prompt":"a","logit_bias":{{{biases}}}}}"#).into_bytes()
    }),
    ("long stop sequences", |bytes| {
        let stop = "a".repeat(bytes / 64);
        format!(
            r#"{{"model":"m","prompt":"a","n":128,"stop":{:?}}}"#,
            vec![stop; 64]
        )
        .into_bytes()
    }),
];

pub const OF_MESSAGES: [Attack; 7] = [
    ("many calls and their results", |bytes| {
        let calls = items(bytes / 2, use_of_tool);
        let results = items(bytes / 2, result_of_tool);
        of_messages(&format!(
            r#"{{"role":"assistant","content":[{calls}]}},{{"role":"user","content":[{results}]}}"#
        ))
    }),
    ("many calls and their results in another order", |bytes| {
        let count = bytes / 100;
        let all = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>();
        let calls = all(&use_of_tool).join(",");
        let results = all(&|number| result_of_tool(count - 1 - number)).join(",");
        of_messages(&format!(
            r#"{{"role":"assistant","content":[{calls}]}},{{"role":"user","content":[{results}]}}"#
        ))
    }),
    ("many turns of a call and its result", |bytes| {
        of_messages(&items(bytes, |number| {
            let (call, result) = (use_of_tool(number), result_of_tool(number));
            format!(
                r#"{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}}"#
            )
        }))
    }),
    ("many system messages between others", |bytes| {
        of_messages(&items(bytes, |_| {
            r#"{"role":"system","content":"a"},{"role":"user","content":"a"}"#.to_owned()
        }))
    }),
    ("many blocks", |bytes| {
        let blocks = items(bytes, |_| r#"{"type":"text","text":"a"}"#.to_owned());
        of_messages(&format!(r#"{{"role":"user","content":[{blocks}]}}"#))
    }),
    ("many deferred tools and references to them", |bytes| {
        let tools = items(bytes / 2, |number| {
            format!(
                r#"{{"name":"t{number}","input_schema":{{"type":"object"}},"defer_loading":true}}"#
            )
        });
        let count = bytes / 2 / 70;
        let references = (0..count)
            .rev()
            .map(|number| format!(r#"{{"type":"tool_reference","tool_name":"t{number}"}}"#));
        let references = references.collect::<Vec<_>>().join(",");
        let call = use_of_tool(0);
        let result =
            format!(r#"{{"type":"tool_result","tool_use_id":"c0","content":[{references}]}}"#);
        let turns = format!(
            r#"{{"role":"user","content":"Hi"}},{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}}"#
        );
        format!(r#"{{"model":"m","max_tokens":9,"tools":[{tools}],"messages":[{turns}]}}"#)
            .into_bytes()
    }),
    ("thinking of others in each turn", |bytes| {
        of_messages(&items(bytes, |_| {
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"c2ln"},{"type":"text","text":"a"}]},{"role":"user","content":"a"}"#.to_owned()
        }))
    }),
];

fn of_responses(list: &str) -> Vec<u8> {
    let hi = r#"{"role":"user","content":"Hi"}"#;
    format!(r#"{{"model":"m","input":[{hi},{list},{hi}]}}"#).into_bytes()
}

fn called_item(number: usize) -> String {
    format!(r#"{{"type":"function_call","call_id":"c{number}","name":"f","arguments":"{{}}"}}"#)
}

fn answered_item(number: usize) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"c{number}","output":"x"}}"#)
}

pub const OF_RESPONSES: [Attack; 7] = [
    ("many calls and their results", |bytes| {
        let calls = items(bytes / 2, called_item);
        of_responses(&format!("{calls},{}", items(bytes / 2, answered_item)))
    }),
    ("many turns of a call and its result", |bytes| {
        of_responses(&items(bytes, |number| {
            format!("{},{}", called_item(number), answered_item(number))
        }))
    }),
    ("many short messages", |bytes| {
        of_responses(&items(bytes, |_| {
            r#"{"role":"user","content":"a"}"#.to_owned()
        }))
    }),
    ("reasoning of others before each message", |bytes| {
        of_responses(&items(bytes, |_| {
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"c2ln"},{"role":"assistant","content":"a"}"#.to_owned()
        }))
    }),
    ("ids of our making", |bytes| {
        of_responses(&items(bytes, |number| {
            format!(r#"{{"type":"message","id":"msg_wg_1_{number}","role":"user","content":"a"}}"#)
        }))
    }),
    ("many tools of one name and a choice among them", |bytes| {
        let tools = items(bytes / 3, |number| {
            format!(r#"{{"type":"function","name":"f{}"}}"#, number % 2)
        });
        let allowed = items(bytes / 3, |number| {
            format!(r#"{{"type":"function","name":"f{number}"}}"#)
        });
        format!(r#"{{"model":"m","input":"Hi","tools":[{tools}],"tool_choice":{{"type":"allowed_tools","mode":"auto","tools":[{allowed}]}}}}"#).into_bytes()
    }),
    ("many tools that searches have found", |bytes| {
        of_responses(&items(bytes, |number| {
            format!(
                r#"{{"type":"tool_search_output","call_id":"c{number}","tools":[{{"type":"function","name":"f{number}"}}]}}"#
            )
        }))
    }),
];

fn of_kept(input: &str) -> Vec<u8> {
    format!(r#"{{"model":"m","previous_response_id":"resp_1","input":[{input}]}}"#).into_bytes()
}

pub const OF_KEPT_RESPONSES: [Attack; 3] = [
    ("a long chain", |bytes| {
        of_kept(&items(bytes, |number| {
            format!(r#"{{"type":"message","id":"msg_{number}","role":"user","content":"a"}}"#)
        }))
    }),
    ("many references to a long item", |bytes| {
        let long = "x".repeat(bytes / 2);
        let long = format!(r#"{{"id":"msg_1","role":"user","content":"{long}"}}"#);
        let references = items(bytes / 2, |_| {
            r#"{"type":"item_reference","id":"msg_1"}"#.to_owned()
        });
        of_kept(&format!("{long},{references}"))
    }),
    ("many references to nothing", |bytes| {
        of_kept(&items(bytes, |number| {
            format!(r#"{{"type":"item_reference","id":"msg_{number}"}}"#)
        }))
    }),
];
