//! The consent page holds whatever a client calls itself.

use super::*;

const ASKED: Consent = Consent {
    client_name: "Editor",
    client_host: None,
    redirect_host: "127.0.0.1:4711",
    scopes: &[Scope::Models, Scope::LimitsRead],
    action: "/mcp/oauth/authorize",
    request: "r-1",
    problem: None,
};

/// Returns the text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap().1;
    rest.split_once(to).unwrap().0
}

fn policy_of(redirect_uri: Option<&str>) -> String {
    let headers = headers(redirect_uri);
    let policy = headers
        .iter()
        .find(|(name, _)| name == header::CONTENT_SECURITY_POLICY);
    policy.unwrap().1.to_str().unwrap().to_owned()
}

#[test]
fn the_page_says_who_asks_for_what_and_where_the_answer_goes() {
    let text = page(&ASKED);
    for part in [
        "<html lang=\"en\">",
        "<title>Editor asks for access · Weirgate</title>",
        "<h1><bdi>Editor</bdi> asks for access</h1>",
        "nobody has checked it",
        "<li>call models, at the cost of the key’s organization <code>models</code></li>",
        "<code>limits:read</code>",
        "<b>127.0.0.1:4711</b>, a program on this computer.",
        "weirgate mcp clients revoke",
        "The client never gets the key",
        "<form method=\"post\" action=\"/mcp/oauth/authorize\">",
        "<input type=\"hidden\" name=\"request\" value=\"r-1\">",
        "<label for=\"key\">Your API key</label>",
        "<button name=\"decision\" value=\"allow\">",
        "<button name=\"decision\" value=\"deny\" formnovalidate",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("<code>decisions</code>") && !text.contains("role=\"alert\""));
    // The Enter key allows: it presses the first button.
    assert!(text.find("value=\"allow\"") < text.find("value=\"deny\""));
    let described = page(&Consent {
        client_host: Some("editor.example.com"),
        redirect_host: "editor.example.com",
        scopes: &[],
        ..ASKED
    });
    assert!(described.contains("<b>editor.example.com</b> describes"));
    assert!(described.contains("goes to <b>editor.example.com</b>."));
    assert!(described.contains("it asks for no permission"));
    assert!(!described.contains("nobody has checked it"));
}

#[test]
fn a_problem_is_announced_and_belongs_to_the_field() {
    let text = page(&Consent {
        problem: Some("This API key is not known."),
        ..ASKED
    });
    let alert = between(&text, "role=\"alert\">", "</p>");
    assert_eq!(alert, "This API key is not known.");
    assert!(text.contains("aria-describedby=\"problem hint\" aria-invalid=\"true\" autofocus"));
    for id in ["problem", "hint", "key"] {
        assert_eq!(text.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
}

#[test]
fn what_a_client_says_stays_text() {
    let hostile = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' autofocus onfocus='alert(1)",
        "</title></style><svg onload=alert(1)>",
        "&lt;b&gt;",
        "Bank\u{202e}evil\u{2066}\u{0}\r\n\u{200b}",
    ];
    let plain = Consent {
        client_host: Some("a.example.com"),
        scopes: &[],
        problem: Some("No."),
        ..ASKED
    };
    let elements = page(&plain).matches('<').count();
    for name in hostile {
        let text = page(&Consent {
            client_name: name,
            client_host: Some(name),
            redirect_host: name,
            scopes: &[],
            action: name,
            request: name,
            problem: Some(name),
        });
        assert_eq!(text.matches('<').count(), elements, "{name}");
        assert!(!text.contains(name), "{name}");
        let notice = notice(name, name);
        assert_eq!(
            notice.matches('<').count(),
            super::notice("", "").matches('<').count()
        );
        for turned in ['\u{202e}', '\u{2066}', '\u{0}', '\r', '\u{200b}'] {
            assert!(
                !text.contains(turned) && !notice.contains(turned),
                "{turned:?}"
            );
        }
    }
    let text = page(&Consent {
        client_name: "&lt;b&gt; 'a'",
        ..ASKED
    });
    assert!(text.contains("<bdi>&amp;lt;b&amp;gt; &#39;a&#39;</bdi>"));
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let name = "é".repeat(10_000);
    let text = page(&Consent {
        client_name: &name,
        client_host: Some(&name),
        redirect_host: &name,
        ..ASKED
    });
    let shown = between(&text, "<bdi>", "</bdi>");
    assert_eq!(shown, format!("{}…", "é".repeat(MAX_CHARS)));
    assert!(text.len() < 10_000, "{}", text.len());
    let exact = "a".repeat(MAX_CHARS);
    assert_eq!(escaped(&exact), exact);
    // Texts that the form sends back are never cut.
    let request = "r".repeat(500);
    let text = page(&Consent {
        request: &request,
        ..ASKED
    });
    assert!(text.contains(&format!("value=\"{request}\"")));
}

#[test]
fn the_policy_permits_the_style_sheet_and_nothing_else() {
    for text in [page(&ASKED), notice("Gone", "This request has ended.")] {
        let style = between(&text, "<style>", "</style>");
        let hash = BASE64_STANDARD.encode(Sha256::digest(style));
        let policy = policy_of(None);
        assert!(
            policy.contains(&format!("style-src 'sha256-{hash}';")),
            "{policy}"
        );
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        for part in [
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{part}");
        }
        for foreign in [
            "<script", "<link", " style=", "src=", "href=", "//", "@import", "url(",
        ] {
            assert!(!text.contains(foreign), "{foreign}");
        }
    }
}

#[test]
fn the_form_may_lead_to_where_the_answer_goes() {
    for (uri, own) in [
        (
            "http://127.0.0.1:4711/callback?a=b",
            " http://127.0.0.1:4711",
        ),
        ("https://app.example.com/cb", " https://app.example.com"),
        // A source expression has no form for these hosts.
        ("http://[::1]:4711/callback", " http:"),
        ("https://a_b.example.com/", " https:"),
        ("cursor://anysphere.cursor-mcp/oauth", " cursor:"),
        ("com.example.app:/callback", " com.example.app:"),
        ("https://a;b 'unsafe-inline'/", " https:"),
        ("x;script-src *://a", ""),
        ("no uri", ""),
        ("", ""),
    ] {
        let policy = policy_of(Some(uri));
        let form_action = format!("; form-action 'self' https:{own}; frame-ancestors 'none'");
        assert!(policy.ends_with(&form_action), "{uri}: {policy}");
    }
}
