//! The source of datafiles: its URLs, and the meaning of its statuses. Source: docs/decisions.md 20.

use http::StatusCode;

use super::credentials::key_name;

/// The meaning of a reply of the source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SourceAnswer {
    Datafile,
    /// The datafile has not changed.
    Unchanged,
    /// The source refuses the SDK key.
    Refused,
    /// Any other failure. The last good datafile stays in force.
    Failed,
}

impl SourceAnswer {
    /// Returns the meaning of a status.
    pub fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::OK => Self::Datafile,
            StatusCode::NOT_MODIFIED => Self::Unchanged,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Self::Refused
            }
            _ => Self::Failed,
        }
    }
}

/// Returns the URL of an SDK key's datafile. `%s` in `template` stands for the key without its access token.
pub fn datafile_url(template: &str, sdk_key: &str) -> String {
    template.replace("%s", key_name(sdk_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_token_is_not_part_of_the_url() {
        let url = |key| datafile_url("https://source/%s.json", key);
        assert_eq!(url("key"), "https://source/key.json");
        assert_eq!(url("key:token:more"), "https://source/key.json");
    }

    #[test]
    fn only_a_refused_key_is_refused() {
        for (status, answer) in [
            (200, SourceAnswer::Datafile),
            (304, SourceAnswer::Unchanged),
            (401, SourceAnswer::Refused),
            (403, SourceAnswer::Refused),
            (404, SourceAnswer::Refused),
            (204, SourceAnswer::Failed),
            (410, SourceAnswer::Failed),
            (503, SourceAnswer::Failed),
        ] {
            let found = StatusCode::from_u16(status).map(SourceAnswer::from_status);
            assert_eq!(found.ok(), Some(answer), "{status}");
        }
    }
}
