//! Bills of any provider as a table: CSV with a row of names, or a JSON array of objects with these names.

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::Value;

use super::bill::{Amounts, BillLine, parse_amount};
use super::report::tier;

/// A row of a table. `cost` is a text in CSV, and a text or a number in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow<C> {
    day: Box<str>,
    #[serde(default = "none")]
    model: Option<Box<str>>,
    #[serde(default = "none")]
    service_tier: Option<Box<str>>,
    #[serde(default = "none")]
    requests: Option<u64>,
    #[serde(default = "none")]
    input_tokens: Option<u64>,
    #[serde(default = "none")]
    cached_tokens: Option<u64>,
    #[serde(default = "none")]
    cache_write_tokens: Option<u64>,
    #[serde(default = "none")]
    output_tokens: Option<u64>,
    #[serde(default = "none")]
    cost: Option<C>,
}

fn none<T>() -> Option<T> {
    None
}

/// Reads a table. Its first character says which of the two forms it has.
///
/// Errors: the row and the member, and what is accepted.
pub fn read_table(text: &str) -> Result<Vec<BillLine>, String> {
    match text.trim_start().starts_with('[') {
        true => read_json(text),
        false => read_csv(text),
    }
}

fn read_csv(text: &str) -> Result<Vec<BillLine>, String> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.trim(csv::Trim::All).from_reader(text.as_bytes());
    let rows = reader.deserialize::<WrittenRow<Box<str>>>();
    let lines = rows.zip(1..).map(|(row, number)| {
        let row = row.map_err(|error| format!("row {number}: {error}"))?;
        let cost = row.cost.clone();
        row.into_line(cost.as_deref(), number)
    });
    lines.collect()
}

fn read_json(text: &str) -> Result<Vec<BillLine>, String> {
    let rows: Vec<WrittenRow<Value>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let lines = rows.into_iter().zip(1..).map(|(row, number)| {
        let cost = row.cost.as_ref().map(|cost| match cost {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        row.into_line(cost.as_deref(), number)
    });
    lines.collect()
}

impl<C> WrittenRow<C> {
    fn into_line(self, cost: Option<&str>, number: usize) -> Result<BillLine, String> {
        let day: Date = self.day.parse().map_err(|_| {
            let day: String = self.day.chars().take(40).collect();
            format!("row {number}: `day` is {day:?}; accepted is a day in UTC such as 2026-11-01")
        })?;
        let cost = cost.filter(|cost| !cost.is_empty());
        let cost = cost.map(|text| {
            parse_amount(text).ok_or_else(|| {
                let text: String = text.chars().take(40).collect();
                format!(
                    "row {number}: `cost` is {text:?}; accepted is an amount of USD such as 1.25"
                )
            })
        });
        let amounts = Amounts {
            requests: self.requests,
            input: self.input_tokens,
            cached: self.cached_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
            cost: cost.transpose()?,
        };
        if amounts == Amounts::default() {
            return Err(format!(
                "row {number}: it says nothing; accepted are requests, input_tokens, cached_tokens, cache_write_tokens, \
                 output_tokens and cost"
            ));
        }
        let model = self.model.filter(|model| !model.is_empty());
        if model.is_none() && amounts.cost.is_none() {
            return Err(format!(
                "row {number}: `model` is missing; only a cost may be of no model"
            ));
        }
        Ok(BillLine {
            day,
            model,
            tier: tier(self.service_tier),
            amounts,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let csv = "day,model,requests,input_tokens,cost\n2026-11-01, m ,2,10,0.5\n2026-11-02,\"a, b\",,,1e-3\n2026-11-02,,,,4\n";
        let json = r#" [{"day": "2026-11-01", "model": "m", "requests": 2, "input_tokens": 10, "cost": 0.5},
            {"day": "2026-11-02", "model": "a, b", "cost": "0.001"}, {"day": "2026-11-02", "model": null, "cost": 4}]"#;
        let lines = read_table(csv).unwrap();
        assert_eq!(lines, read_table(json).unwrap());
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].amounts.input, Some(10));
        assert_eq!(lines[1].model.as_deref(), Some("a, b"));
        assert_eq!(lines[1].amounts.cost.unwrap().to_string(), "0.001");
        assert_eq!(lines[2].model, None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_row() {
        for (text, said) in [
            (
                "day,model,tokens\n2026-11-01,m,1\n",
                "unknown field `tokens`",
            ),
            ("model,cost\nm,1\n", "missing field `day`"),
            (
                "day,model,cost\n2026-11-01,m,1\n2026-13-01,m,1\n",
                "row 2: `day` is \"2026-13-01\"",
            ),
            (
                "day,model,cost\n2026-11-01,m,one\n",
                "row 1: `cost` is \"one\"",
            ),
            ("day,model,requests\n2026-11-01,m,-1\n", "row 1"),
            ("day,model,requests\n2026-11-01,m\n", "row 1"),
            (
                "day,model,requests\n2026-11-01,m,\n",
                "row 1: it says nothing",
            ),
            (
                "day,model,requests\n2026-11-01,,4\n",
                "row 1: `model` is missing",
            ),
            (
                r#"[{"day": "2026-11-01", "model": "m", "cost": {}}]"#,
                "row 1: `cost`",
            ),
            (
                r#"[{"day": "2026-11-01", "model": "m", "price": 1}]"#,
                "unknown field `price`",
            ),
            ("[", "EOF"),
        ] {
            let error = read_table(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(read_table("").unwrap(), []);
    }
}
