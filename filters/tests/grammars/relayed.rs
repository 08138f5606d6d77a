//! The grammar of an event stream of Responses in a provider's own words.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

type Checked = Result<(), String>;

fn rule(holds: bool, said: &str) -> Checked {
    holds.then_some(()).ok_or_else(|| said.to_owned())
}

/// Reads the events of a stream that a provider has said and the gateway has passed on: numbers may be missing but never fall, items
/// may come in turns, and events may be of any type. What holds nevertheless: what is said of an item stands between its beginning
/// and its end, texts are the sum of their pieces, and one event ends the stream with all items that were told. Returns the
/// response of that event.
///
/// Errors: the rule that is broken, and where.
pub(crate) fn fold<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Value, String> {
    let mut relayed = Relayed::default();
    for (name, data) in events {
        let read: Value =
            serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?;
        relayed
            .take(name, &read)
            .map_err(|why| format!("{why}: {data}"))?;
    }
    relayed.ended.ok_or_else(|| "no end".to_owned())
}

/// A stream in a provider's own words.
#[derive(Default)]
struct Relayed {
    number: Option<u64>,
    /// Items by their indexes: as they have begun, and whether they have ended.
    items: BTreeMap<u64, (Value, bool)>,
    /// Texts by the event of their pieces, their item and their part.
    texts: HashMap<(String, u64, u64), String>,
    ended: Option<Value>,
}

impl Relayed {
    fn take(&mut self, name: &str, data: &Value) -> Checked {
        let kind = data["type"].as_str().unwrap_or_default();
        rule(name == kind, "another name than type")?;
        rule(self.ended.is_none(), "it stands behind the end")?;
        if let Some(number) = data["sequence_number"].as_u64() {
            rule(self.number < Some(number), "a number that is not higher")?;
            self.number = Some(number);
        }
        let index = data["output_index"].as_u64();
        match (kind, index) {
            ("response.completed" | "response.incomplete" | "response.failed", _) => {
                self.end(&data["response"], kind.trim_start_matches("response."))
            }
            ("response.output_item.added", Some(index)) => {
                let begun = self.items.insert(index, (data["item"].clone(), false));
                rule(begun.is_none(), "an item that begins twice")
            }
            ("response.output_item.done", Some(index)) => {
                let (item, has_ended) = self.items.get_mut(&index).ok_or("no such item")?;
                rule(!*has_ended, "an item that ends twice")?;
                let ended = &data["item"];
                let is_same = ended["type"] == item["type"] && ended["id"] == item["id"];
                rule(is_same, "an item that has become another")?;
                (*item, *has_ended) = (ended.clone(), true);
                Ok(())
            }
            (kind, Some(index)) => {
                let item = self.items.get(&index);
                rule(item.is_some_and(|(_, ended)| !ended), "no open item")?;
                self.text(kind, index, data)
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, kind: &str, index: u64, data: &Value) -> Checked {
        let part = ["content_index", "summary_index", "command_index"]
            .iter()
            .find_map(|key| data[*key].as_u64());
        let place = |kind: &str| (kind.to_owned(), index, part.unwrap_or_default());
        if let (Some(of), Some(piece)) = (kind.strip_suffix(".delta"), data["delta"].as_str()) {
            self.texts.entry(place(of)).or_default().push_str(piece);
            return Ok(());
        }
        let of = kind.strip_suffix(".done").unwrap_or_default();
        let Some(said) = self.texts.get(&place(of)) else {
            return Ok(());
        };
        let keys = [
            "text",
            "refusal",
            "arguments",
            "input",
            "code",
            "diff",
            "command",
        ];
        let whole = keys.iter().find_map(|key| data[*key].as_str());
        rule(whole == Some(said), "another text than its pieces")
    }

    fn end(&mut self, response: &Value, status: &str) -> Checked {
        rule(response["status"] == status, "another status than event")?;
        let is_whole = status != "failed";
        let all_ended = self.items.values().all(|(_, ended)| *ended);
        rule(all_ended || !is_whole, "an open item at the end")?;
        let ended = self.items.values().filter(|(_, ended)| *ended);
        let told: Vec<Value> = ended.map(|(item, _)| item.clone()).collect();
        let is_told = response["output"] == Value::from(told.clone());
        rule(
            is_told || is_whole && told.is_empty(),
            "other items than the events have told",
        )?;
        self.ended = Some(response.clone());
        Ok(())
    }
}
