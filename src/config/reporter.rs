//! Resolves findings to problems with lines and columns.

use std::ops::Range;

use super::document::SourceSpan;
use super::origin::ValueSource;
use super::problem::{Location, Problem, Spot};
use super::walk::Finding;

/// The text that findings refer to.
pub(super) struct Reporter<'a> {
    /// The file as the caller named it.
    pub name: &'a str,
    pub text: &'a str,
    /// The ranges of bytes that must never be shown.
    pub hidden: &'a [Range<usize>],
}

impl Reporter<'_> {
    /// Converts findings to problems, in the order of the file, followed by variables and then the rest.
    pub(super) fn to_problems(&self, mut findings: Vec<Finding>) -> Vec<Problem> {
        findings.sort_by_key(|finding| match &finding.at {
            SourceSpan::Bytes(bytes) => (0, bytes.start),
            SourceSpan::Variable(_) => (1, 0),
            SourceSpan::Nowhere => (2, 0),
        });
        findings
            .into_iter()
            .map(|finding| self.to_problem(finding))
            .collect()
    }

    fn to_problem(&self, finding: Finding) -> Problem {
        let place = match finding.at {
            SourceSpan::Bytes(bytes) => Location::File(self.locate(&bytes)),
            SourceSpan::Variable(variable) => Location::Variable { variable },
            SourceSpan::Nowhere => Location::Nowhere {},
        };
        Problem {
            key: finding.key,
            place,
            message: finding.message,
            cure: finding.cure,
        }
    }

    fn locate(&self, bytes: &Range<usize>) -> Spot {
        let spot = Spot::from_bytes(self.name, self.text, bytes.start, bytes.end);
        self.hidden
            .iter()
            .fold(spot, |spot, hidden| spot.mask(self.text, hidden))
    }

    /// Returns the origin of a value.
    pub(super) fn find_origin(&self, at: &SourceSpan) -> Option<ValueSource> {
        match at {
            SourceSpan::Bytes(bytes) => {
                let line = Spot::from_bytes(self.name, self.text, bytes.start, bytes.end).line;
                Some(ValueSource::File {
                    file: self.name.to_owned(),
                    line,
                })
            }
            SourceSpan::Variable(name) => Some(ValueSource::Variable(name.clone())),
            SourceSpan::Nowhere => None,
        }
    }
}
