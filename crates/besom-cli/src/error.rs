//! How commands end: what scripts see is the exit code, what people see is one sentence.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use besom::format::FormatError;
use besom_lab::workload::WorkloadError;
use thiserror::Error;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Fine, or the answer is yes.
    Fine,
    /// The answer is no.
    No,
    /// Stopped by an interrupt; what was done so far was shown.
    Interrupted,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Fine => Self::SUCCESS,
            Ending::No => Self::from(1),
            Ending::Interrupted => Self::from(130),
        }
    }
}

/// Why a command could not do what it was asked for: exit code 2, of a closed pipe 141.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file of keys.
    #[error("{name}: {source}")]
    Keys {
        /// What it is called.
        name: String,
        source: WorkloadError,
    },
    /// A filter file.
    #[error("{}: {}", path.display(), file_problem(source))]
    Filter { path: PathBuf, source: FormatError },
    /// Any other file.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// Standard output.
    #[error("standard output: {0}")]
    Output(io::Error),
    /// The store that filters are compared in front of.
    #[error("the store in the temporary directory failed: {0}; free some space there, or use --store memory")]
    Store(String),
    /// A filter failed, or does not exist with these parameters.
    #[error("{filter}: {problem}")]
    Contender { filter: String, problem: String },
    /// An interrupt came before there was anything to show.
    #[error("interrupted")]
    Interrupted,
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
}

/// What is wrong with a filter file, in words of the command line.
fn file_problem(error: &FormatError) -> String {
    match error {
        FormatError::SeedMissing => "this file does not contain its seed; pass it with --seed".into(),
        FormatError::SeedMismatch => {
            "--seed is not the one that this filter was built with, so its keys would not be found; pass the right one".into()
        }
        error => error.to_string(),
    }
}

/// What a shell sees of a program that wrote to a pipe which nobody reads any more.
const CLOSED_PIPE: u8 = 141;

impl Failure {
    /// An error of the system about something that has a name.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// An error of a filter.
    #[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
    pub(crate) fn contender(filter: &str, problem: impl ToString) -> Self {
        Self::Contender { filter: filter.to_owned(), problem: problem.to_string() }
    }

    /// Whether nobody reads standard output any more: no reason for a word.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What a script sees.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Interrupted => Ending::Interrupted.into(),
            failure if failure.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
            _ => ExitCode::from(2),
        }
    }
}

/// How commands end.
pub(crate) type Outcome<T = Ending> = Result<T, Failure>;
