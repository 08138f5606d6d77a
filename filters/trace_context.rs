//! Trace context: which trace a request belongs to, and whether it is recorded.
//!
//! Source: W3C Trace Context, and its level 2 for the digits that sampling reads.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

/// The header that names the trace and the span of the sender.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of a header of version 00.
const LENGTH: usize = 55;
/// The most bytes and members of a trace state that is kept.
const MAX_STATE_BYTES: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;
/// The most bytes of a key, and of a value, of a trace state.
const MAX_MEMBER_BYTES: usize = 256;
/// The digits of a trace id that are random, as a number below this.
const RANDOM_RANGE: u64 = 1 << 56;
/// The purpose of the hash of an id.
const ID_HASH: &[u8] = b"weirgate trace id, version 1\0";

/// The id of a trace; never zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceId([u8; 16]);

/// The id of a span; never zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SpanId([u8; 8]);

/// The place of the sender in a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether the sender records its spans.
    pub is_sampled: bool,
}

impl SpanId {
    /// Returns the id of a random number; `None`: it is zero.
    pub fn from_random(random: u64) -> Option<Self> {
        (random != 0).then(|| Self(random.to_be_bytes()))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl TraceId {
    /// Returns the trace of a request that names none: the id of the request, if that is 32 hex digits, also with the
    /// dashes of a UUID, and else a hash of it. So a request that is repeated under its id stays in one trace.
    pub fn from_request_id(id: &str) -> Self {
        let digits = id.bytes().filter(|byte| *byte != b'-');
        let is_plain = id.len() == 32 || id.len() == 36;
        let digits: Vec<u8> = digits.filter(|_| is_plain).collect();
        let own = decode(&digits.to_ascii_lowercase()).filter(|id| *id != [0; 16]);
        own.map_or_else(|| Self::hash(id), Self)
    }

    /// Returns the first half of a SHA-256.
    fn hash(id: &str) -> Self {
        let hash = Sha256::new().chain_update(ID_HASH).chain_update(id);
        let hash = hash.finalize();
        let mut half = [0; 16];
        half.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        // A hash of zeros would be no id.
        Self(if half == [0; 16] { [1; 16] } else { half })
    }

    /// Returns whether a trace of this id is among the recorded share of all. The id decides, so that all parts of a trace
    /// are recorded or none.
    pub fn is_within(&self, ratio: f64) -> bool {
        let random = self.0.iter().skip(9);
        let random = random.fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        ratio > 0.0 && random as f64 >= (1.0 - ratio) * RANDOM_RANGE as f64
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl TraceParent {
    /// Returns the place that the headers name. Several headers, and an invalid one, name none.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?;
        match values.next() {
            Some(_) => None,
            None => Self::parse(value.as_bytes()),
        }
    }

    /// Reads the value of a header. Of a version that is not known, only the parts of version 00 count.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(LENGTH)?;
        let mut parts = known.split(|byte| *byte == b'-');
        let version: [u8; 1] = decode(parts.next()?)?;
        let trace = decode(parts.next()?)?;
        let span = decode(parts.next()?)?;
        let flags: [u8; 1] = decode(parts.next()?)?;
        let is_known_form = match version {
            [0xff] => false,
            [0] => rest.is_empty(),
            _ => rest.is_empty() || rest.starts_with(b"-"),
        };
        let is_valid =
            parts.next().is_none() && is_known_form && trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags.iter().any(|flags| flags & 1 == 1),
        })
    }

    /// Returns the value of a header, of version 00.
    pub fn to_header(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.to_string()).ok()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        for byte in self.trace.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("-")?;
        for byte in self.span.0 {
            write!(f, "{byte:02x}")?;
        }
        write!(f, "-{:02x}", u8::from(self.is_sampled))
    }
}

/// Returns what other systems of the trace have to say, where the trace goes on. A state beyond its bounds, or in a wrong
/// form, is dropped whole.
pub fn trace_state(headers: &HeaderMap) -> String {
    let values = headers.get_all(TRACESTATE).iter();
    let mut joined = String::new();
    let mut members = 0;
    for value in values {
        let Ok(value) = value.to_str() else {
            return String::new();
        };
        let listed = value
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']));
        for member in listed.filter(|member| !member.is_empty()) {
            members += 1;
            let bytes = joined.len() + member.len() + 1;
            if members > MAX_STATE_MEMBERS || bytes > MAX_STATE_BYTES || !is_member(member) {
                return String::new();
            }
            if members > 1 {
                joined.push(',');
            }
            joined.push_str(member);
        }
    }
    joined
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let is_key_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_value_byte = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    let sizes = [key, value].map(|part| (1..=MAX_MEMBER_BYTES).contains(&part.len()));
    sizes == [true; 2] && key.bytes().all(is_key_byte) && value.bytes().all(is_value_byte)
}

/// Decodes lower-case hex digits.
fn decode<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = (*byte << 4) | value;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn parent(version: &str, flags: &str, rest: &str) -> Option<TraceParent> {
        TraceParent::parse(format!("{version}-{TRACE}-{SPAN}-{flags}{rest}").as_bytes())
    }

    #[test]
    fn a_header_names_a_trace_and_comes_back_as_it_was() {
        let read = parent("00", "01", "").unwrap();
        assert!(read.is_sampled);
        assert_eq!(read.to_string(), format!("00-{TRACE}-{SPAN}-01"));
        assert!(!parent("00", "02", "").unwrap().is_sampled);
        // Of a later version the rest may follow a dash.
        assert_eq!(parent("cc", "01", ""), Some(read));
        assert_eq!(parent("cc", "01", "-what-comes"), Some(read));
    }

    #[test]
    fn a_wrong_header_names_none() {
        assert_eq!(parent("ff", "01", ""), None);
        assert_eq!(parent("00", "01", "-more"), None);
        assert_eq!(parent("cc", "01", ".more"), None);
        assert_eq!(parent("0G", "01", ""), None);
        assert_eq!(parent("00", "0", ""), None);
        let upper = format!("00-{}-{SPAN}-01", TRACE.to_uppercase());
        let zero_trace = format!("00-{}-{SPAN}-01", "0".repeat(32));
        let zero_span = format!("00-{TRACE}-{}-01", "0".repeat(16));
        let moved = format!("00-{TRACE}{SPAN}--01x");
        for wrong in [&*upper, &zero_trace, &zero_span, &moved, "", "00", "\u{e9}"] {
            assert_eq!(TraceParent::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn several_headers_name_none() {
        let mut headers = HeaderMap::new();
        let value = || HeaderValue::try_from(format!("00-{TRACE}-{SPAN}-01")).unwrap();
        headers.append(TRACEPARENT, value());
        assert!(TraceParent::from_headers(&headers).is_some());
        headers.append(TRACEPARENT, value());
        assert_eq!(TraceParent::from_headers(&headers), None);
    }

    fn state(values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACESTATE, HeaderValue::from_str(value).unwrap());
        }
        trace_state(&headers)
    }

    #[test]
    fn a_state_is_kept_within_its_bounds_and_else_dropped() {
        assert_eq!(state(&["a=1, b=2", "c@d=x y"]), "a=1,b=2,c@d=x y");
        assert_eq!(state(&[]), "");
        for wrong in ["a", "A=1", "=1", "a=", "a=1=2"] {
            assert_eq!(state(&["b=2", wrong]), "", "{wrong}");
        }
        let many: Vec<String> = (0..33).map(|at| format!("k{at}=1")).collect();
        assert_eq!(state(&[&many.join(",")]), "");
        assert!(!state(&[&many[..32].join(",")]).is_empty());
        let long = format!("a={},b={}", "x".repeat(250), "y".repeat(250));
        assert_eq!(state(&[&long]), long);
        assert_eq!(state(&[&format!("{long},cc=yyyyyyy")]), "");
    }

    #[test]
    fn the_trace_of_a_request_without_one_follows_from_its_id() {
        let own = TraceId::from_request_id(TRACE);
        assert_eq!(own, parent("00", "01", "").unwrap().trace);
        assert_eq!(own, TraceId::from_request_id(&TRACE.to_uppercase()));
        let uuid = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";
        assert_eq!(own, TraceId::from_request_id(uuid));
        let hashed = TraceId::from_request_id("job-7");
        assert_eq!(hashed, TraceId::from_request_id("job-7"));
        assert_ne!(hashed, TraceId::from_request_id("job-8"));
        assert_ne!(TraceId::from_request_id(&"0".repeat(32)).bytes(), &[0; 16]);
    }

    #[test]
    fn the_id_decides_which_share_is_recorded() {
        let ids: Vec<TraceId> = (0..10_000)
            .map(|at| TraceId::from_request_id(&format!("request {at}")))
            .collect();
        let within = |ratio| ids.iter().filter(|id| id.is_within(ratio)).count();
        assert_eq!((within(0.0), within(1.0)), (0, ids.len()));
        let quarter = within(0.25);
        assert!((2_300..2_700).contains(&quarter), "{quarter}");
        let is_kept = |id: &&TraceId| id.is_within(0.25);
        assert!(ids.iter().filter(is_kept).all(|id| id.is_within(0.5)));
    }
}
