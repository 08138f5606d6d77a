//! A day as it might be: what calls come, what providers cost, and what happens to them.

use serde_json::{Value, json};

/// Midnight of the day. Units: unix seconds.
pub(crate) const MIDNIGHT_S: u64 = 20_833 * 86_400;
/// When the catalogue's prices change.
pub(crate) const PRICE_CHANGE_MS: u64 = 12 * HOUR_MS;
pub(crate) const HOUR_MS: u64 = 3_600_000;
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;
pub(crate) const PROVIDERS: [&str; 4] = ["alder", "birch", "cedar", "elm"];
/// The region that calls name in the form `provider/model:region`.
pub(crate) const FAR: &str = "far";

/// What is wrong with a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Connections are refused at once.
    Refuses,
    /// Nothing comes until a timeout.
    Hangs,
    /// Three of ten calls are answered with 500.
    BrownsOut,
    /// The first content takes six times as long.
    IsSlow,
    /// So many calls of a minute are answered, the others get 429.
    Throttles(u32),
}

/// Trouble with a provider, from and until. Units: milliseconds since midnight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) provider: &'static str,
    pub(crate) trouble: Trouble,
    pub(crate) from_ms: u64,
    pub(crate) until_ms: u64,
}

const fn event(provider: &'static str, trouble: Trouble, from_min: u64, minutes: u64) -> Event {
    Event {
        provider,
        trouble,
        from_ms: from_min * 60_000,
        until_ms: (from_min + minutes) * 60_000,
    }
}

/// Each provider that a strategy likes best fails in each way, and two of them at once.
pub(crate) const EVENTS: [Event; 13] = [
    event("alder", Trouble::Refuses, 2 * 60, 20),
    event("cedar", Trouble::Refuses, 3 * 60, 10),
    event("elm", Trouble::Refuses, 4 * 60, 10),
    event("elm", Trouble::Hangs, 5 * 60, 15),
    event("alder", Trouble::Hangs, 6 * 60, 15),
    event("cedar", Trouble::Hangs, 7 * 60, 15),
    event("alder", Trouble::BrownsOut, 8 * 60, 60),
    event("alder", Trouble::Refuses, 10 * 60, 10),
    event("birch", Trouble::Refuses, 10 * 60, 10),
    event("cedar", Trouble::BrownsOut, 11 * 60, 30),
    event("cedar", Trouble::IsSlow, 16 * 60 + 30, 60),
    event("birch", Trouble::Hangs, 19 * 60, 20),
    event("birch", Trouble::Throttles(6), 20 * 60, 60),
];

/// Returns the trouble that a provider has.
pub(crate) fn troubles(provider: &str, at_ms: u64) -> impl Iterator<Item = Trouble> {
    let all = EVENTS.iter().filter(move |it| it.provider == provider);
    all.filter(move |it| (it.from_ms..it.until_ms).contains(&at_ms))
        .map(|it| it.trouble)
}

/// Median milliseconds to the first content, and median tokens a second.
pub(crate) fn speed(provider: &str, at_ms: u64) -> (f64, f64) {
    let (latency_ms, rate) = match provider {
        "alder" => (900.0, 60.0),
        "birch" => (600.0, 45.0),
        "cedar" => (450.0, 90.0),
        _ => (700.0, 120.0),
    };
    let is_slow = troubles(provider, at_ms).any(|it| it == Trouble::IsSlow);
    (
        if is_slow {
            6.0 * latency_ms
        } else {
            latency_ms
        },
        rate,
    )
}

/// The catalogue of the day, before and after its prices change.
pub(crate) fn models(is_after: bool) -> Value {
    let mapping = |provider: &str, input: &str, output: &str| json!({"provider": provider, "name": "up", "input_price": input, "output_price": output});
    let (input, output) = if is_after {
        ("1.7", "6.8")
    } else {
        ("2.2", "8.8")
    };
    let mut alder = mapping("alder", "2", "8");
    alder["regions"] = json!([FAR]);
    alder["region_prices"] = json!({FAR: {"multiplier": "1"}});
    let mut elm = mapping("elm", "3.2", "12.8");
    let nights = json!({"windows": [{"hours_utc": ["14:00-18:00"]}], "multiplier": "0.5"});
    elm["off_peak"] = nights;
    let large = [
        alder,
        mapping("birch", input, output),
        mapping("cedar", "2.6", "10.4"),
        elm,
    ];
    let small = [
        mapping("alder", "0.2", "0.8"),
        mapping("birch", "0.2", "0.8"),
        mapping("cedar", "0.25", "1"),
    ];
    json!({"models": [{"id": "large", "providers": large}, {"id": "small", "providers": small}]})
}

/// One call of the day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) at_ms: u64,
    pub(crate) model: &'static str,
    pub(crate) is_stream: bool,
    pub(crate) session: Option<u64>,
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
}

impl Call {
    /// Returns whether providers compete for it.
    pub(crate) fn is_free(&self) -> bool {
        !self.model.contains('/')
    }
}

/// Returns a number of 0 to 1 that two numbers decide.
pub(crate) fn chance(one: u64, other: u64) -> f64 {
    let mut mixed =
        one.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ other.wrapping_mul(0xD1B5_4A32_D192_ED03);
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the calls of a day, one in so many milliseconds on average: streams and whole replies, a fourth in sessions of
/// half an hour, one of twenty in the far region.
pub(crate) fn calls(mean_ms: u64) -> impl Iterator<Item = Call> {
    let mut at_ms = 1000;
    (0..).map_while(move |number| {
        let draw = |what| chance(number, what);
        at_ms += (2.0 * mean_ms as f64 * draw(0)) as u64;
        let model = match draw(1) {
            x if x < 0.05 => "alder/large:far",
            x if x < 0.25 => "small",
            _ => "large",
        };
        let is_in_session = draw(2) < 0.25;
        let talk = at_ms / (HOUR_MS / 2) * 20 + (draw(3) * 20.0) as u64;
        let call = Call {
            number,
            at_ms,
            model,
            is_stream: draw(4) < 0.7,
            session: is_in_session.then_some(talk),
            prompt: (40.0 * (5.0 * draw(5)).exp()) as u64,
            completion: (20.0 * (3.5 * draw(6)).exp()) as u64,
        };
        (at_ms < DAY_MS).then_some(call)
    })
}
