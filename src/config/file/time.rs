//! Durations, which the file has as whole numbers.

/// Seconds.
pub(in crate::config) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_secs())
    }

    pub(in crate::config) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}

/// Milliseconds, of which 0 is none.
pub(in crate::config) mod optional_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let ms = value.map_or(0, |value| value.as_millis());
        serializer.serialize_u64(u64::try_from(ms).unwrap_or(u64::MAX))
    }

    pub(in crate::config) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let ms = u64::deserialize(deserializer)?;
        Ok((ms > 0).then(|| Duration::from_millis(ms)))
    }
}
