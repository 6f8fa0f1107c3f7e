//! Claims: the paper's word beside the measurement.

use serde::Serialize;

/// Whether a measurement bears out a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Agrees,
    /// It does not.
    Disagrees,
    /// There are no points to judge by: the run was cut short, or the data is not there.
    Open,
}

/// A statement of a paper, and what was measured about it.
///
/// ```
/// use besom_lab::report::{Claim, Verdict};
///
/// let claim = Claim::new("at most 11.8 bits a key").measured("11.6", true);
/// assert_eq!(claim.verdict, Verdict::Agrees);
/// let claim = Claim::new("faster than light").measured("0.9 c", false).because("nothing is");
/// assert_eq!(claim.reason.as_deref(), Some("nothing is"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// What the paper says.
    pub statement: String,
    /// What was measured.
    pub measured: String,
    /// Whether the two agree.
    pub verdict: Verdict,
    /// Why not, where that is known; or what else a reader should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Claim {
    /// A claim that nothing has been measured about yet.
    pub fn new(statement: impl Into<String>) -> Self {
        Self {
            statement: statement.into(),
            measured: "no points".into(),
            verdict: Verdict::Open,
            reason: None,
        }
    }

    /// The same claim with what was measured, and whether that agrees.
    #[must_use]
    pub fn measured(self, measured: impl Into<String>, agrees: bool) -> Self {
        let verdict = if agrees { Verdict::Agrees } else { Verdict::Disagrees };
        Self { measured: measured.into(), verdict, ..self }
    }

    /// The same claim with a reason or a remark.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// The same claim without a verdict: not everything was measured.
    #[must_use]
    pub fn opened(self) -> Self {
        Self { verdict: Verdict::Open, ..self }
    }

    /// Adds a reason if the measurement disagrees.
    #[must_use]
    pub fn if_not(self, reason: impl Into<String>) -> Self {
        if self.verdict == Verdict::Disagrees { self.because(reason) } else { self }
    }
}
