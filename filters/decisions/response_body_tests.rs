#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use crate::decisions::protocol::{Agent, Document, Protocol};

fn decided(keys: usize) -> Vec<Decision<'static>> {
    let one = |key: usize| Decision {
        flag_key: key.to_string().into(),
        ..Decision::default()
    };
    (0..keys).map(one).collect()
}

#[test]
fn a_list_holds_the_bytes_that_its_results_have_alone() {
    let body =
        r#"{"userId":"<ü\">","userAttributes":{"b":1.0,"a":["\u2028",null],"c":{"z":1,"y":2}}}"#;
    let user = Document.read(body.as_bytes()).unwrap();
    let user = { user }.user().unwrap();
    for shape in [Document.result_shape(), Agent.result_shape()] {
        for keys in [0, 1, 3] {
            let all = decided(keys);
            let alone = all.iter().map(|one| {
                let mut out = Vec::new();
                write_decision(one, &user.id, &user.attributes, shape, &mut out);
                String::from_utf8(out).unwrap()
            });
            let expected = format!("[{}]", alone.collect::<Vec<_>>().join(","));
            let listed = decision_list(all.iter(), &user, shape).unwrap();
            assert_eq!(String::from_utf8(listed).unwrap(), expected);
        }
    }
}

#[test]
fn nothing_is_written_once_an_answer_is_over_its_bound() {
    let mut written = 0;
    let fault = list(0..1000, |_, out| {
        written += 1;
        out.resize(out.len() + MAX_BODY_BYTES / 4, b' ');
    })
    .unwrap_err();
    assert_eq!(written, 4);
    assert_eq!(
        (fault.status(), &*fault.message),
        (
            413,
            "the answer has 16777220 bytes or more; at most 16777216 are answered at once: ask for fewer flags, or \
             with a smaller user"
        )
    );
    assert!(check_body(vec![b' '; MAX_BODY_BYTES]).is_ok());
    assert!(check_body(vec![b' '; MAX_BODY_BYTES + 1]).is_err());
}
