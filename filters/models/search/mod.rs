//! Searches of the web: what wires need to know of a request, and what a result looks like.

use crate::json::{Object, Str};

/// What a front found in a request to search the web.
#[derive(Clone, Debug)]
pub struct SearchFacts {
    pub queries: usize,
    pub max_results: u64,
    pub kind: Option<SearchKind>,
    /// The country that it searches for, in capitals.
    pub country: Option<Box<str>>,
    /// Domains that results have to be of; empty: any.
    pub included: Vec<Box<str>>,
    /// Domains that results must not be of.
    pub excluded: Vec<Box<str>>,
    /// How old results may be, in the convention's word.
    pub recency: Option<&'static str>,
    /// The first day that results may be of.
    pub after: Option<Day>,
    /// The last day that results may be of.
    pub before: Option<Day>,
}

/// A kind of search. Source: docs/facts/model-gateway.md 1.14.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SearchKind {
    /// The usual one.
    Web,
    /// A quicker one.
    Fast,
}

impl SearchKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Web, Self::Fast];

    /// Returns the convention's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Fast => "fast",
        }
    }
}

impl SearchFacts {
    /// How many results a request gets that names no number. Source: docs/facts/model-gateway.md 1.14.
    pub const USUAL_RESULTS: u64 = 10;

    /// Returns whether a kind of search, in the word of a provider, is one that the request accepts.
    pub fn accepts(&self, word: &str) -> bool {
        let is_fast = word == SearchKind::Fast.as_str();
        self.kind
            .is_none_or(|kind| (kind == SearchKind::Fast) == is_fast)
    }
}

/// A day, as the convention writes it: `MM/DD/YYYY`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// Parses it; months and days may lack their zeros. `None`: it is not a day.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('/');
        let mut number = |longest: usize| {
            let text = numbers.next()?;
            let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
            (is_digits && text.len() <= longest).then(|| text.parse::<u16>().ok())?
        };
        let (month, day, year) = (number(2)?, number(2)?, number(4)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            _ => return None,
        };
        let is_day = (1..=days).contains(&day) && year >= 1000 && numbers.next().is_none();
        is_day.then_some(Self {
            year,
            month: month as u8,
            day: day as u8,
        })
    }

    /// Returns it as `YYYY-MM-DD`.
    pub fn to_iso(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A result of a provider whose results have other members. Strings are as the reply has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoundPage<'a> {
    pub title: Option<Str<'a>>,
    pub url: Option<Str<'a>>,
    /// What it says about the query.
    pub snippet: Option<Str<'a>>,
    /// When it was published.
    pub date: Option<Str<'a>>,
}

impl FoundPage<'_> {
    /// Writes it in the convention's shape. A result without a title has an empty one.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut result = Object::open(out);
        let texts = [
            ("title", self.title),
            ("url", self.url),
            ("snippet", self.snippet),
        ];
        for (key, text) in texts {
            let text = text.unwrap_or(Str::Plain(""));
            result.value(key, |out| text.write(out));
        }
        if let Some(date) = self.date {
            result.value("date", |out| date.write(out));
        }
        result.close();
    }
}

impl Default for SearchFacts {
    fn default() -> Self {
        Self {
            queries: 0,
            max_results: Self::USUAL_RESULTS,
            kind: None,
            country: None,
            included: Vec::new(),
            excluded: Vec::new(),
            recency: None,
            after: None,
            before: None,
        }
    }
}
