//! Checks the keys of `[shared]`.

use super::Rules;
use crate::config::checked::{OnOutage, SharedConfig};
use crate::config::document::SourceSpan;
use crate::config::file;
use crate::config::origin::without_password;
use crate::config::secret::Secret;

/// Converts the section.
pub(super) fn check(rules: &mut Rules<'_>, shared: &file::SharedConfig) -> SharedConfig {
    const KEY: &str = "shared.redis";
    let in_file = matches!(rules.span_of(KEY), SourceSpan::Bytes(_));
    if in_file && without_password(&shared.redis) != shared.redis {
        rules.warn(
            KEY,
            "the password stands in the file",
            "set WEIRGATE_SHARED__REDIS",
        );
    }
    let url = Some(shared.redis.as_str()).filter(|url| !url.is_empty());
    SharedConfig {
        redis: url.map(Secret::new),
        on_outage: match shared.on_outage {
            file::OnOutage::Open => OnOutage::Open,
            file::OnOutage::Local => OnOutage::Local,
            file::OnOutage::Closed => OnOutage::Closed,
        },
    }
}
