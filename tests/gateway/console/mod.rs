//! The console on the operator's listener.

mod access;
mod account_changes;
mod audit;
mod bounds;
mod browser;
mod calls;
mod flags;
mod limits;
mod link;
mod live;
mod models;
mod money;
mod money_changes;
mod overview;
mod playground;
mod prompts;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};

/// A person's browser, as far as the console sees it: it keeps the cookie.
pub(super) struct Browser<'g> {
    gateway: &'g Gateway,
    cookie: Option<String>,
}

impl<'g> Browser<'g> {
    /// One that has not signed in.
    pub(super) fn new(gateway: &'g Gateway) -> Self {
        Self {
            gateway,
            cookie: None,
        }
    }

    pub(super) fn send(&mut self, request: &Ask) -> Answer {
        let request = match &self.cookie {
            Some(cookie) => request.clone().header("Cookie", cookie),
            None => request.clone(),
        };
        let answer = ask(self.gateway.running.admin, &request);
        if let Some(set) = answer.header("set-cookie") {
            let pair = set.split(';').next().unwrap();
            let is_ended = pair.ends_with('=');
            self.cookie = (!is_ended).then(|| pair.to_owned());
        }
        answer
    }

    /// Opens a page, which has to be shown.
    pub(super) fn page(&mut self, path: &str) -> String {
        let answer = self.send(&Ask::get(path));
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
        answer.text().to_owned()
    }

    /// Sends a form with the proof of the session.
    pub(super) fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        // Whoever needed no token has nothing to sign out of.
        let pages = ["/console", "/console/playground"].into_iter();
        let csrf = { pages }.find_map(|page| field(&self.page(page), "csrf"));
        let csrf = csrf.unwrap();
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend(fields);
        self.send(&form(path, &all))
    }
}

/// The configuration of a console that may change things.
pub(super) const WRITE: &str = "[admin]\nwrite = true\n";

/// A form of a page, as a browser sends it.
pub(super) struct OpenForm {
    pub(super) path: String,
    pub(super) csrf: String,
    pub(super) seen: Option<String>,
    once: Option<String>,
}

impl OpenForm {
    /// Opens a page and finds the form that is sent to a path.
    pub(super) fn open(browser: &mut Browser<'_>, page: &str, path: &str) -> Self {
        let page = browser.page(page);
        let start = format!("action=\"{path}?");
        let from = page
            .find(&start)
            .unwrap_or_else(|| panic!("{path}: {page}"));
        let form = page[from..].split("</form>").next().unwrap();
        let value = |name: &str| field(form, name).map(|it| plain(&it));
        let action = form.split('"').nth(1).unwrap();
        Self {
            path: plain(action),
            csrf: value("csrf").unwrap(),
            seen: value("seen"),
            once: value("once"),
        }
    }

    pub(super) fn send(&self, browser: &mut Browser<'_>, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("csrf", &*self.csrf)];
        all.extend(self.seen.as_deref().map(|seen| ("seen", seen)));
        all.extend(self.once.as_deref().map(|once| ("once", once)));
        all.extend(fields);
        browser.send(&form(&self.path, &all))
    }
}

/// The text of an attribute.
pub(super) fn plain(text: &str) -> String {
    let text = text.replace("&quot;", "\"").replace("&lt;", "<");
    text.replace("&gt;", ">").replace("&amp;", "&")
}

/// A form without anything else.
pub(super) fn form(path: &str, fields: &[(&str, &str)]) -> Ask {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    Ask::new("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body.finish())
}

/// The value of the first hidden field of this name.
pub(super) fn field(page: &str, name: &str) -> Option<String> {
    let start = format!("name=\"{name}\" value=\"");
    let from = page.find(&start)? + start.len();
    Some(page[from..].split('"').next().unwrap().to_owned())
}

/// The text of a piece of a page, as a person reads it.
pub(super) fn html_text(html: &str) -> String {
    let mut text = String::new();
    for (at, part) in html.split('<').enumerate() {
        text.push_str(match at {
            0 => part,
            _ => part.split_once('>').map_or("", |(_, text)| text),
        });
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    text.replace("&amp;", "&").trim().to_owned()
}

/// The rows of all tables of a piece of a page, each as the texts of its cells.
pub(super) fn table_rows(html: &str) -> Vec<Vec<String>> {
    let rows = html.split("<tr>").skip(1);
    let cells = |row: &str| {
        let row = row.split("</tr>").next().unwrap().replace("<th", "<td");
        let cells = row.split("<td").skip(1);
        let cells = cells.map(|cell| html_text(cell.split_once('>').unwrap().1));
        cells.collect()
    };
    rows.map(cells).collect()
}
