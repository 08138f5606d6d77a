//! Hours of the week with other prices.

const DAY_MINUTES: u64 = 24 * 60;
const DAY_S: u64 = DAY_MINUTES * 60;
const WEEK: u64 = 7;
/// The weekday of 1970-01-01, a Thursday, counted from Monday as 0.
const FIRST_WEEKDAY: u64 = 3;

/// Hours of the week, in UTC.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Schedule {
    windows: Vec<HoursWindow>,
}

/// A part of a day. A part that passes midnight belongs to the day on which it starts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HoursWindow {
    /// As written: `16:30-00:30`.
    text: Box<str>,
    start: u64,
    /// Units: minutes from the start, 1 to 1440.
    minutes: u64,
    /// Weekdays from 1, Monday, to 7; empty means all days.
    weekdays: Box<[u8]>,
}

impl HoursWindow {
    /// Reads `16:30-00:30`. Two equal times are a whole day from that time on.
    ///
    /// Errors: says what is wrong with the text or the days.
    pub fn parse(text: &str, weekdays: &[u8]) -> Result<Self, String> {
        let ends = text
            .split_once('-')
            .map(|(start, end)| (parse_minute(start), parse_minute(end)));
        let Some((Some(start), Some(end))) = ends else {
            return Err(format!("{text:?} is no window such as \"16:30-00:30\""));
        };
        if let Some(day) = weekdays.iter().find(|day| !(1..=7).contains(*day)) {
            return Err(format!("{day} is no weekday from 1, Monday, to 7, Sunday"));
        }
        let start = start % DAY_MINUTES;
        let minutes = match (end + DAY_MINUTES - start) % DAY_MINUTES {
            0 => DAY_MINUTES,
            minutes => minutes,
        };
        Ok(Self {
            text: text.into(),
            start,
            minutes,
            weekdays: weekdays.into(),
        })
    }

    /// Returns the window as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the weekdays of the window from 1, Monday, to 7; empty means all days.
    pub fn weekdays(&self) -> &[u8] {
        &self.weekdays
    }

    /// Returns whether the window covers a minute since 1970.
    fn is_active_at(&self, minute: u64) -> bool {
        let (day, minute) = (minute / DAY_MINUTES, minute % DAY_MINUTES);
        let is_started = minute >= self.start;
        // Before its start a window only covers the minute if it started on the day before and passed midnight.
        let (day, passed) = match is_started {
            true => (Some(day), minute - self.start),
            false => (day.checked_sub(1), minute + DAY_MINUTES - self.start),
        };
        let weekday = |day: u64| ((day + FIRST_WEEKDAY) % WEEK + 1) as u8;
        let is_day = |day| self.weekdays.is_empty() || self.weekdays.contains(&weekday(day));
        passed < self.minutes && day.is_some_and(is_day)
    }
}

/// Reads `16:30`; `24:00` is the end of the day.
fn parse_minute(text: &str) -> Option<u64> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| match text.len() {
        1 | 2 => text.parse::<u64>().ok(),
        _ => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minute = hours * 60 + minutes;
    (minutes < 60 && minute <= DAY_MINUTES).then_some(minute)
}

impl Schedule {
    /// Makes a schedule of its windows.
    pub fn new(windows: Vec<HoursWindow>) -> Self {
        Self { windows }
    }

    /// Returns the windows.
    pub fn windows(&self) -> &[HoursWindow] {
        &self.windows
    }

    /// Returns whether one of the windows covers the time. Units: unix seconds.
    pub fn is_active_at(&self, unix_s: u64) -> bool {
        let minute = unix_s / DAY_S * DAY_MINUTES + unix_s % DAY_S / 60;
        self.windows
            .iter()
            .any(|window| window.is_active_at(minute))
    }
}
