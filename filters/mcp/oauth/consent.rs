//! The consent page, on which a person allows or denies an MCP client to act with an API key.
//!
//! The page is plain HTML with one style sheet and no script. All texts from a client are escaped, and long ones are
//! cut.

use std::fmt::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};

use super::scope::Scope;
use crate::proxy::is_loopback;

/// The contents of the page.
///
/// Its form sends `request`, `key` (the API key) and `decision` (`allow` or `deny`), as
/// `application/x-www-form-urlencoded`.
#[derive(Clone, Copy, Debug)]
pub struct Consent<'a> {
    /// The client's own name for itself.
    pub client_name: &'a str,
    /// The host that publishes the client's description, or `None` if the client registered itself.
    pub client_host: Option<&'a str>,
    /// The destination of the browser afterwards: a host, with its port if it has one.
    pub redirect_host: &'a str,
    pub scopes: &'a [Scope],
    /// The URL to which the form is sent.
    pub action: &'a str,
    /// The form's text for the client's request.
    pub request: &'a str,
    /// A sentence that says why the form is shown again.
    pub problem: Option<&'a str>,
}

/// The style sheet of both pages.
const STYLE: &str = include_str!("consent.css");
/// The logo: a gate in front of water.
const MARK: &str = r#"<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false"><path d="M3 4h18M6 4v10M12 4v10M18 4v10M2 17c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5 2 1.5 4 1.5 2-1.5 4-1.5M2 21c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5 2 1.5 4 1.5 2-1.5 4-1.5" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round"/></svg>"#;
/// The maximum characters of a client's text. Longer ones are cut.
const MAX_CHARS: usize = 80;

/// Writes the consent page.
pub fn page(consent: &Consent) -> String {
    let name = escaped(consent.client_name);
    let mut body = format!("<h1><bdi>{name}</bdi> asks for access</h1>\n");
    body.push_str(&origin(consent.client_host));
    body.push_str(&scopes(consent.scopes));
    body.push_str(&form(consent));
    body.push_str(
        "<p class=\"note\">To take this back later, run <code>weirgate mcp clients revoke</code> where the gateway runs, \
         or revoke the API key.</p>\n",
    );
    document(&format!("{name} asks for access"), &body)
}

/// Writes a page with a title and a sentence or two, without a form.
pub fn notice(title: &str, text: &str) -> String {
    let (title, text) = (escaped(title), whole(text));
    document(&title, &format!("<h1>{title}</h1>\n<p>{text}</p>\n"))
}

/// Returns the headers of both pages.
///
/// `redirect_uri` is the URI to which the response to the form may send the browser. Browsers check redirects after a
/// form against `form-action`, including those of the client itself. So https sites are permitted, and the URI's own
/// origin or scheme. The policy of `Referer` makes browsers send an `Origin` with the form; without one, the form
/// could come from a foreign page.
pub fn headers(redirect_uri: Option<&str>) -> [(HeaderName, HeaderValue); 6] {
    let policy = HeaderValue::try_from(policy(redirect_uri));
    let fixed = HeaderValue::from_static;
    [
        (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (header::CACHE_CONTROL, fixed("no-store")),
        (
            header::CONTENT_SECURITY_POLICY,
            policy.unwrap_or_else(|_| fixed("default-src 'none'; frame-ancestors 'none'")),
        ),
        (header::REFERRER_POLICY, fixed("same-origin")),
        (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (header::X_FRAME_OPTIONS, fixed("DENY")),
    ]
}

fn policy(redirect_uri: Option<&str>) -> String {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let form_action = match redirect_uri {
        Some(uri) => format!("'self' https: {}", source(uri).unwrap_or_default()),
        None => "'none'".to_owned(),
    };
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action {}; frame-ancestors 'none'",
        form_action.trim_end()
    )
}

/// Returns the source expression of a URI: its origin, or only its scheme if source expressions have no form for the
/// host.
/// Source: Content Security Policy Level 3, 2.3.1.
fn source(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let is_named = scheme.starts_with(|it: char| it.is_ascii_alphabetic());
    let is_mark = |it: char| matches!(it, '+' | '-' | '.');
    if !is_named
        || !scheme
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || is_mark(it))
    {
        return None;
    }
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let authority = rest.strip_prefix("//").filter(|_| is_web);
    let authority = authority.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':');
    Some(match authority {
        Some(authority) if !authority.is_empty() && authority.chars().all(is_plain) => {
            format!("{scheme}://{authority}")
        }
        _ => format!("{scheme}:"),
    })
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex\">\n\
         <title>{title} · Weirgate</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"brand\">{MARK}Weirgate</p>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn origin(client_host: Option<&str>) -> String {
    match client_host {
        Some(host) => format!(
            "<p class=\"lead\">It is the client that <b>{}</b> describes under this name.</p>\n",
            escaped(host)
        ),
        None => "<p class=\"lead\">It gave itself this name, and nobody has checked it. Go on only if you have just started \
                 it yourself.</p>\n"
            .to_owned(),
    }
}

fn scopes(scopes: &[Scope]) -> String {
    let mut out = "<h2>If you allow it, it may</h2>\n<ul>\n".to_owned();
    for scope in scopes {
        let (permits, name) = (scope.permits(), scope.as_str());
        _ = writeln!(out, "<li>{permits} <code>{name}</code></li>");
    }
    if scopes.is_empty() {
        out.push_str("<li>do nothing: it asks for no permission</li>\n");
    }
    out.push_str("</ul>\n");
    out
}

fn form(consent: &Consent) -> String {
    let problem = consent.problem.map_or_else(String::new, |problem| {
        let problem = whole(problem);
        format!("<p class=\"problem\" id=\"problem\" role=\"alert\">{problem}</p>\n")
    });
    // A person who is asked again has already read the page.
    let state = match consent.problem {
        Some(_) => "aria-describedby=\"problem hint\" aria-invalid=\"true\" autofocus",
        None => "aria-describedby=\"hint\"",
    };
    // The Enter key presses the first button.
    format!(
        "<form method=\"post\" action=\"{action}\">\n\
         <input type=\"hidden\" name=\"request\" value=\"{request}\">\n{problem}\
         <label for=\"key\">Your API key</label>\n\
         <input id=\"key\" name=\"key\" type=\"password\" required autocomplete=\"off\" autocapitalize=\"none\" \
         spellcheck=\"false\" placeholder=\"wg_…\" {state}>\n\
         <p class=\"hint\" id=\"hint\">It shows that this is you. The client never gets the key: it gets a token of its own, \
         for what stands above.</p>\n\
         <p class=\"target\">Your answer goes to <b>{host}</b>{place}.</p>\n\
         <div class=\"buttons\">\n<button name=\"decision\" value=\"allow\">Allow</button>\n\
         <button name=\"decision\" value=\"deny\" formnovalidate class=\"plain\">Deny</button>\n</div>\n</form>\n",
        action = whole(consent.action),
        request = whole(consent.request),
        host = escaped(consent.redirect_host),
        place = match is_loopback(consent.redirect_host) {
            true => ", a program on this computer",
            false => "",
        },
    )
}

/// Returns a text for an element or an attribute, cut to 80 characters. Control characters and those that change the
/// direction of writing are replaced: otherwise a name could change the way in which the text beside it is read.
fn escaped(text: &str) -> String {
    let cut = text.char_indices().nth(MAX_CHARS);
    match cut.and_then(|(at, _)| text.get(..at)) {
        Some(beginning) => whole(beginning) + "…",
        None => whole(text),
    }
}

/// Returns a whole text for an element or an attribute.
fn whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            it if it.is_control() || is_invisible(it) => out.push('\u{fffd}'),
            it => out.push(it),
        }
    }
    out
}

/// Returns whether a character is invisible or changes the direction of writing.
fn is_invisible(it: char) -> bool {
    matches!(
        it,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod tests;
