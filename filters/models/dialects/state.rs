//! State that only its maker can read, sealed on its way through the client and back.
//!
//! A seal stands before the state, and says in 24 bytes whose state it is: [`MAGIC`], a byte for its dialect and its
//! form, the [`Maker`] in 8 bytes, and a code of authentication in 12 over these, the organization, and the length and
//! the CRC of the state. A state that another organization got, that another maker made, or that is damaged does not
//! open. Both are base64, and 24 bytes need no padding, so the whole is base64 too: clients that decode and encode it
//! again keep it. Source: docs/decisions.md 4.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Dialect;

/// The first characters of a seal. They decode to its first three bytes, in both alphabets of base64.
const MAGIC: &str = "WGS1";
/// The first bytes of a seal: [`MAGIC`] decoded.
const MAGIC_BYTES: [u8; 3] = [0x58, 0x64, 0xb5];
/// The characters of a seal.
const SEAL_CHARS: usize = 32;

/// The flag of state in base64's alphabet for URLs.
const FOR_URLS: u8 = 1;
/// The flag of state that ends with padding.
const PADDED: u8 = 2;
/// The flag of state that is not base64, so it is encoded.
const ENCODED: u8 = 4;
/// The bits below those of the dialect.
const DIALECT_SHIFT: u32 = 4;

/// The way in which an organization's states are sealed.
#[derive(Clone, Debug, Default)]
pub struct States {
    secret: Secret,
    organization: Option<Arc<str>>,
}

#[derive(Clone, Copy, Default)]
struct Secret([u8; 32]);

/// What makes state: a model at the providers of one family, called with one key.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a> {
    pub states: &'a States,
    /// The provider, or what several providers are called that read each other's state.
    pub family: &'a str,
    /// The catalogue's id of the model; empty: any model of the family.
    pub model: &'a str,
    /// The id of the organization's own key at the provider; `None`: the gateway's keys.
    pub own_key: Option<&'a str>,
}

/// Counts what is left out of earlier turns because another maker made it, or because it is damaged.
#[derive(Clone, Copy, Debug)]
pub struct LeftOutState<'a>(Option<&'a Cell<u32>>);

impl<'a> LeftOutState<'a> {
    /// Adds to no count.
    pub const UNCOUNTED: Self = Self(None);

    /// Adds to a count.
    pub fn counted(count: &'a Cell<u32>) -> Self {
        Self(Some(count))
    }

    /// Adds one piece.
    pub fn add(self) {
        if let Self(Some(count)) = self {
            count.set(count.get().saturating_add(1));
        }
    }
}

/// A maker of its own.
#[derive(Clone, Debug)]
pub struct OwnedMaker {
    pub states: States,
    /// As [`Maker::name`] returns it.
    pub name: Arc<str>,
    /// The dialect of its wire; `None`: it is not known.
    pub dialect: Option<Dialect>,
    /// Whether its host is one of the dialect's vendor. To clients of the same dialect it says state as it is, because it
    /// recognizes its own.
    pub is_vendor: bool,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl States {
    /// The states of no organization.
    pub const NONE: &'static Self = &Self {
        secret: Secret([0; 32]),
        organization: None,
    };

    /// Returns the way in which an organization's states are sealed with a secret.
    pub fn new(secret: [u8; 32], organization: Option<Arc<str>>) -> Self {
        Self {
            secret: Secret(secret),
            organization,
        }
    }

    fn mac(&self) -> Hmac<Sha256> {
        // A key of one block, which zeros fill up.
        let mut block = [0; 64];
        if let Some((first, _)) = block.split_first_chunk_mut() {
            *first = self.secret.0;
        }
        Hmac::new(&block.into())
    }
}

impl OwnedMaker {
    /// Borrows it.
    pub fn borrow(&self) -> Maker<'_> {
        Maker::from_name(&self.states, &self.name)
    }

    /// Returns whether clients of this dialect get its state without a seal.
    pub fn speaks_bare(&self, dialect: Dialect) -> bool {
        self.is_vendor && self.dialect == Some(dialect)
    }
}

impl From<&str> for OwnedMaker {
    /// Returns the maker of this name, whose state belongs to no organization.
    fn from(name: &str) -> Self {
        Self {
            states: States::default(),
            name: name.into(),
            dialect: None,
            is_vendor: false,
        }
    }
}

impl<'a> Maker<'a> {
    /// Returns the maker of this name.
    pub fn from_name(states: &'a States, name: &'a str) -> Self {
        let (scope, model) = name.split_once('/').unwrap_or((name, ""));
        let (own_key, family) = match scope.split_once(':') {
            Some((own_key, family)) => (Some(own_key), family),
            None => (None, scope),
        };
        Self {
            states,
            family,
            model,
            own_key,
        }
    }

    /// Returns its name: the family, a slash and the model, behind the own key and a colon where there is one.
    pub fn name(&self) -> String {
        let Self { family, model, .. } = self;
        match self.own_key {
            Some(own_key) => format!("{own_key}:{family}/{model}"),
            None => format!("{family}/{model}"),
        }
    }

    /// Returns the maker that all models of the family with this key are.
    pub fn any_model(self) -> Self {
        Self { model: "", ..self }
    }

    /// Returns a state with its seal. An empty state's seal says whose the object is that it stands in.
    pub fn seal(&self, dialect: Dialect, state: &str) -> String {
        let (flags, state) = match Form::read(state) {
            Some(form) => (form.flags(), Cow::Borrowed(state)),
            None => (ENCODED | PADDED, Cow::Owned(STANDARD.encode(state))),
        };
        let mut seal = Vec::with_capacity(24);
        seal.extend_from_slice(&MAGIC_BYTES);
        seal.push(flags | bits(dialect));
        seal.extend_from_slice(&self.id());
        let code = self.code(&seal, &state).finalize().into_bytes();
        seal.extend_from_slice(code.get(..12).unwrap_or_default());
        let mut sealed = String::with_capacity(SEAL_CHARS + state.len());
        match flags & FOR_URLS {
            0 => STANDARD_NO_PAD.encode_string(seal, &mut sealed),
            _ => URL_SAFE_NO_PAD.encode_string(seal, &mut sealed),
        }
        sealed.push_str(&state);
        sealed
    }

    /// Returns the state that this maker has made in a dialect; `None`: it has not, or the state is damaged.
    pub fn open<'s>(&self, dialect: Dialect, sealed: &'s str) -> Option<Cow<'s, str>> {
        let (seal, state) = sealed.split_at_checked(SEAL_CHARS)?;
        let seal = STANDARD_NO_PAD
            .decode(recoded(seal, false).as_bytes())
            .ok()?;
        let (said, code) = seal.split_at_checked(12)?;
        let flags = *said.strip_prefix(&MAGIC_BYTES)?.first()?;
        let mut state = recoded(state, flags & FOR_URLS != 0);
        let bare = state.trim_end_matches('=').len();
        let padded = match flags & PADDED {
            0 => bare,
            _ => bare.next_multiple_of(4),
        };
        if padded != state.len() {
            let text = state.to_mut();
            text.truncate(bare);
            text.extend(std::iter::repeat_n('=', padded - bare));
        }
        if said.get(4..)? != self.id() || flags >> DIALECT_SHIFT << DIALECT_SHIFT != bits(dialect) {
            return None;
        }
        self.code(said, &state).verify_truncated_left(code).ok()?;
        match flags & ENCODED {
            0 => Some(state),
            _ => String::from_utf8(STANDARD.decode(&*state).ok()?)
                .ok()
                .map(Cow::Owned),
        }
    }

    /// Returns what says this maker in a seal.
    fn id(&self) -> [u8; 8] {
        let mut mac = self.states.mac();
        mac.update(b"maker");
        for part in [self.own_key.unwrap_or_default(), self.family, self.model] {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        let code = mac.finalize().into_bytes();
        code.first_chunk().copied().unwrap_or_default()
    }

    /// Returns the code of the first bytes of a seal and its state.
    fn code(&self, said: &[u8], state: &str) -> Hmac<Sha256> {
        let mut mac = self.states.mac();
        mac.update(said);
        mac.update(&(state.len() as u64).to_le_bytes());
        mac.update(&crc32fast::hash(state.as_bytes()).to_le_bytes());
        let organization = self.states.organization.as_deref();
        mac.update(organization.unwrap_or_default().as_bytes());
        mac
    }
}

/// Returns the bits of a dialect.
fn bits(dialect: Dialect) -> u8 {
    let number = match dialect {
        Dialect::Chat => 0,
        Dialect::Messages => 1,
        Dialect::Responses => 2,
        Dialect::Contents => 3,
        Dialect::Completions => 4,
        Dialect::Converse => 5,
        Dialect::ChatV2 => 6,
    };
    number << DIALECT_SHIFT
}

/// Returns whether a text looks like a seal with a state.
pub fn is_sealed(text: &str) -> bool {
    text.len() >= SEAL_CHARS && text.starts_with(MAGIC)
}

/// Returns the dialect that the seal of a state names, whoever has made it; `None`: it has no seal.
pub fn sealed_dialect(text: &str) -> Option<Dialect> {
    if !is_sealed(text) {
        return None;
    }
    let seal = recoded(text.get(..SEAL_CHARS)?, false);
    let seal = STANDARD_NO_PAD.decode(seal.as_bytes()).ok()?;
    let flags = *seal.strip_prefix(&MAGIC_BYTES)?.first()?;
    let dialects = [
        Dialect::Chat,
        Dialect::Messages,
        Dialect::Responses,
        Dialect::Contents,
        Dialect::Converse,
        Dialect::ChatV2,
    ];
    let mut dialects = dialects.into_iter();
    dialects.find(|dialect| bits(*dialect) == flags >> DIALECT_SHIFT << DIALECT_SHIFT)
}

/// How base64 is written.
struct Form {
    is_for_urls: bool,
    is_padded: bool,
}

impl Form {
    /// Returns the form of a text; `None`: decoding and encoding would not keep it.
    fn read(text: &str) -> Option<Self> {
        let bare = text.trim_end_matches('=');
        let is_for_urls = bare.bytes().any(|byte| matches!(byte, b'-' | b'_'));
        let value = |byte: u8| match byte {
            b'A'..=b'Z' => Some(byte - b'A'),
            b'a'..=b'z' => Some(byte - b'a' + 26),
            b'0'..=b'9' => Some(byte - b'0' + 52),
            b'+' | b'-' if is_for_urls == (byte == b'-') => Some(62),
            b'/' | b'_' if is_for_urls == (byte == b'_') => Some(63),
            _ => None,
        };
        if bare.bytes().any(|byte| value(byte).is_none()) {
            return None;
        }
        // The last character holds bits beyond the last byte, which decoding drops.
        let (padding, beyond) = match bare.len() % 4 {
            0 => (0, 0),
            2 => (2, 0b1111),
            3 => (1, 0b11),
            _ => return None,
        };
        let last = bare.bytes().last().and_then(value).unwrap_or(0);
        let said = text.len() - bare.len();
        (last & beyond == 0 && (said == 0 || said == padding)).then_some(Self {
            is_for_urls,
            is_padded: said > 0,
        })
    }

    fn flags(&self) -> u8 {
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        flag(FOR_URLS, self.is_for_urls) | flag(PADDED, self.is_padded)
    }
}

/// Returns base64 in one of both alphabets.
fn recoded(text: &str, for_urls: bool) -> Cow<'_, str> {
    let (from, to) = match for_urls {
        true => (['+', '/'], ["-", "_"]),
        false => (['-', '_'], ["+", "/"]),
    };
    if !text.contains(from) {
        return Cow::Borrowed(text);
    }
    let [plus, slash] = from;
    let [minus, underscore] = to;
    text.replace(plus, minus).replace(slash, underscore).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use base64::alphabet;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    use proptest::prelude::*;

    use super::*;

    const MESSAGES: Dialect = Dialect::Messages;
    const MAKER: Maker<'static> = Maker {
        states: States::NONE,
        family: "here",
        model: "m/1",
        own_key: None,
    };

    /// Base64 in either alphabet, with or without padding.
    fn decoded(text: &str) -> Vec<u8> {
        let config =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let text = recoded(text, false);
        GeneralPurpose::new(&alphabet::STANDARD, config)
            .decode(&*text)
            .unwrap()
    }

    #[test]
    fn the_magic_reads_the_same_in_both_alphabets() {
        assert_eq!(STANDARD_NO_PAD.encode(MAGIC_BYTES), MAGIC);
        assert_eq!(URL_SAFE_NO_PAD.encode(MAGIC_BYTES), MAGIC);
    }

    #[test]
    fn a_state_opens_for_its_maker_its_organization_and_its_secret_alone() {
        let states = States::new([7; 32], Some("org".into()));
        let maker = Maker {
            states: &states,
            ..MAKER
        };
        let sealed = maker.seal(MESSAGES, "gAAAB+/=");
        assert!(is_sealed(&sealed));
        assert_eq!(sealed_dialect(&sealed), Some(MESSAGES));
        assert_eq!(maker.open(MESSAGES, &sealed).unwrap(), "gAAAB+/=");
        let other_secret = States::new([8; 32], Some("org".into()));
        let other_organization = States::new([7; 32], Some("other".into()));
        let of_none = States::new([7; 32], None);
        for others in [
            Maker {
                states: &other_secret,
                ..maker
            },
            Maker {
                states: &other_organization,
                ..maker
            },
            Maker {
                states: &of_none,
                ..maker
            },
            Maker {
                family: "there",
                ..maker
            },
            Maker {
                model: "m/2",
                ..maker
            },
            Maker {
                own_key: Some("pk_1"),
                ..maker
            },
            maker.any_model(),
        ] {
            assert_eq!(others.open(MESSAGES, &sealed), None, "{others:?}");
        }
        assert_eq!(maker.open(Dialect::Contents, &sealed), None);
        assert_eq!(maker.open(MESSAGES, "gAAAB+/="), None);
        assert_eq!(maker.open(MESSAGES, ""), None);
    }

    #[test]
    fn a_maker_is_told_by_its_name() {
        let own = Maker {
            own_key: Some("pk_1"),
            ..MAKER
        };
        for maker in [MAKER, own] {
            let name = maker.name();
            let named = Maker::from_name(States::NONE, &name);
            assert_eq!(
                named
                    .open(MESSAGES, &maker.seal(MESSAGES, "QQ=="))
                    .as_deref(),
                Some("QQ==")
            );
            assert_eq!(named.name(), name);
        }
        assert_eq!(own.name(), "pk_1:here/m/1");
    }

    proptest! {
        #[test]
        fn any_state_comes_back_and_a_damaged_one_does_not(
            state in prop_oneof!["[A-Za-z0-9+/]{0,60}={0,2}", "[A-Za-z0-9_-]{0,60}={0,2}", "\\PC{0,30}"],
            at in 0_usize..200,
        ) {
            let sealed = MAKER.seal(MESSAGES, &state);
            let opened = MAKER.open(MESSAGES, &sealed);
            prop_assert_eq!(opened.as_deref(), Some(&*state));
            let mut damaged = sealed.clone().into_bytes();
            let at = at % damaged.len();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            // Padding is written anew, so it cannot be damaged.
            prop_assert!(sealed.as_bytes()[at] == b'=' || MAKER.open(MESSAGES, &damaged).is_none());
        }

        #[test]
        fn a_client_may_decode_and_encode_it(state in prop_oneof!["[A-Za-z0-9+/]{0,60}={0,2}", "[A-Za-z0-9_-]{0,60}", "\\PC{0,30}"]) {
            let sealed = MAKER.seal(MESSAGES, &state);
            let bytes = decoded(&sealed);
            for recoded in [STANDARD.encode(&bytes), STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                let opened = MAKER.open(MESSAGES, &recoded);
                prop_assert_eq!(opened.as_deref(), Some(&*state));
            }
        }
    }
}
