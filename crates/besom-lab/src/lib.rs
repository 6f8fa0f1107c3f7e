//! The laboratory: everything that the papers behind besom measured, measured again with one command.
//!
//! ```text
//!  workload ──keys──▶ subject (a filter, its remote, the exact set) ◀──oracle── adversary
//!                        │ points
//!                        ▼
//!  experiment (one per table or figure) ──▶ run (threads, journal, progress) ──▶ report (terminal, JSON, HTML)
//! ```
//!
//! - [`workload`]: seeded streams of keys, and files of keys.
//! - [`subject`]: every filter under one interface, built at equal space; the registry has one line for each.
//! - [`adversary`]: attacks that see nothing but answers.
//! - [`comparison`]: filters that the papers compare with and that nobody needs in production.
//! - [`experiment`]: what is measured, what the paper claims about it, and whether the two agree.
//! - [`run`]: works through the tasks of experiments on all cores, and loses no finished point.
//! - [`report`]: tables, JSON, plots, one self-contained HTML page.
//! - [`command`]: what programs offer of this.
//!
//! The lab sees only what the library makes public. Without the feature `experiments`, which is on by default, it has
//! no `experiment`, `run` and `command`.

pub mod adversary;
#[cfg(feature = "experiments")]
mod clock;
#[cfg(feature = "experiments")]
pub mod command;
pub mod comparison;
#[cfg(feature = "experiments")]
pub mod experiment;
pub mod random;
pub mod report;
#[cfg(feature = "experiments")]
pub mod run;
pub mod stats;
pub mod subject;
pub mod workload;
