//! Operations of adaptive filters in steps, for stores that must be waited for.
//!
//! An operation of an [`Adaptive`](crate::Adaptive) filter reads ranges of its [`Remote`], makes at most one group of
//! changes there, and changes memory last. If the remote fails, memory is as it was. So an operation can be **played**:
//! run as often as it takes, each time against a remote that answers at once from what is known so far.
//!
//! 1. It asks for a range that is not known: the run fails, and [`Play::step`] returns [`Step::Needs`]. The driver
//!    reads the range, gives the pairs to [`Play::evidence`], and plays again.
//! 2. It makes its group: the run fails, and `step` returns [`Step::Commit`]. The driver makes the changes, calls
//!    [`Play::committed`], and plays for the last time.
//! 3. The last run asks for the same ranges, makes the same group, is told that it was made, and changes memory:
//!    [`Step::Done`].
//!
//! Nothing here waits, locks or does input and output. The driver does, in whatever way it likes: blocking, with a
//! future, on another thread. It locks the filter for one step at a time, and keeps the filter from being changed by
//! others between [`Step::Commit`] and [`Step::Done`]. [`Sharded`](crate::Sharded) is such a driver; so are the stores
//! of `besom-store`.
//!
//! ```
//! use besom::play::{Adapt, Insert, Play, Step};
//! use besom::{Filter, MemoryRemote, Remote, TelescopingFilter};
//!
//! let mut filter = TelescopingFilter::with_capacity(100)?;
//! let mut remote = MemoryRemote::new(); // stands for something slow
//! let mut play = Play::new();
//! let inserted = loop {
//!     match play.step(&mut filter, &Insert(b"key"))? {
//!         Step::Needs(range) => play.evidence().read(range, usize::MAX, &mut remote).map(drop)?,
//!         Step::Commit => {
//!             remote.apply(&play.group())?;
//!             play.committed();
//!         }
//!         Step::Beyond => unreachable!("a telescoping filter makes one group"),
//!         Step::Done(inserted) => break inserted,
//!     }
//! };
//! assert!(inserted && filter.contains(&b"key"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod evidence;
mod operation;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::{AdaptiveError, Change, Remote, Visit};

pub use evidence::{Evidence, OwnedChange};
pub use operation::{Adapt, Insert, InsertNew, Operation, Remove, RemoveStored, Settle};

/// How far an operation came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// It needs to know the pairs of these addresses. The filter is unchanged.
    Needs(RangeInclusive<u64>),
    /// Its [group](Play::group) of changes has to be made now. The filter is unchanged.
    Commit,
    /// It makes more than one group, as a rehash does: run it on a copy of the filter with the remote itself, and put
    /// the copy in the filter's place. A group that was committed does no harm, as changes are idempotent. The filter
    /// is unchanged.
    Beyond,
    /// It is done.
    Done(T),
}

/// What becomes of the group of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It is made before the filter changes.
    Pausing,
    /// It was made.
    Made,
    /// The driver makes it later, or has no need to.
    Taking,
}

/// One operation, or several, of a filter that is played in steps; see the [module](self).
#[derive(Debug)]
pub struct Play {
    evidence: Evidence,
    group: Vec<OwnedChange>,
    mode: Mode,
}

impl Default for Play {
    fn default() -> Self {
        Self::new()
    }
}

impl Play {
    /// Plays operations whose changes are made before the filter changes.
    #[must_use]
    pub fn new() -> Self {
        Self { evidence: Evidence::default(), group: Vec::new(), mode: Mode::Pausing }
    }

    /// Plays operations whose changes are made afterwards, or by the store itself: no step is [`Step::Commit`].
    ///
    /// Several operations can be played one after the other. [`group`](Self::group) gathers their changes, and the
    /// evidence is kept up to date with them. A driver that fails to make the changes has a filter that knows of them;
    /// see [`Settle`] for the way back.
    #[must_use]
    pub fn taking() -> Self {
        Self { mode: Mode::Taking, ..Self::new() }
    }

    /// Forgets everything but the memory that it has, for another operation.
    pub fn clear(&mut self) {
        self.evidence.clear();
        self.group.clear();
        if self.mode == Mode::Made {
            self.mode = Mode::Pausing;
        }
    }

    /// What is known of the remote.
    pub fn evidence(&mut self) -> &mut Evidence {
        &mut self.evidence
    }

    /// The changes that the operation makes.
    pub fn group(&self) -> Vec<Change<'_>> {
        self.group.iter().map(OwnedChange::as_change).collect()
    }

    /// Takes the changes out, for a driver that goes on without this.
    pub fn take_group(&mut self) -> Vec<OwnedChange> {
        std::mem::take(&mut self.group)
    }

    /// Says that the remote has made the [group](Self::group).
    pub fn committed(&mut self) {
        if self.mode == Mode::Pausing {
            self.mode = Mode::Made;
        }
    }

    /// Runs the operation as far as it comes with what is known.
    ///
    /// # Errors
    ///
    /// What the operation says.
    pub fn step<F, O: Operation<F>>(
        &mut self,
        filter: &mut F,
        operation: &O,
    ) -> Result<Step<O::Output>, AdaptiveError<Infallible>> {
        let before = self.group.len();
        let pause = match operation.run(filter, &mut Stage(self)) {
            Ok(output) => return Ok(Step::Done(output)),
            Err(AdaptiveError::Remote(pause)) => pause,
            Err(error) => {
                self.take_back(before);
                // Pauses are steps, and never come here.
                return Err(error.map_remote(|_| AdaptiveError::UNTOLD));
            }
        };
        match pause {
            Pause::Needs(first, last) => {
                self.take_back(before);
                Ok(Step::Needs(first..=last))
            }
            Pause::Commit => Ok(Step::Commit),
            Pause::Groups | Pause::Differs => {
                self.take_back(before);
                Ok(Step::Beyond)
            }
        }
    }

    /// A run that failed has made no changes.
    fn take_back(&mut self, before: usize) {
        if self.mode == Mode::Taking {
            for change in self.group.drain(before..).rev() {
                self.evidence.take_back(&change);
            }
        }
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Pause> {
        match self.mode {
            Mode::Made => match self.group.iter().map(OwnedChange::as_change).eq(changes.iter().copied()) {
                true => Ok(()),
                false => Err(Pause::Differs),
            },
            Mode::Pausing => {
                self.group.clear();
                self.group.extend(changes.iter().map(OwnedChange::from));
                Err(Pause::Commit)
            }
            Mode::Taking => {
                for change in changes {
                    let change = OwnedChange::from(change);
                    // What has no effect is not to be taken back.
                    if self.evidence.make(&change) {
                        self.group.push(change);
                    }
                }
                Ok(())
            }
        }
    }
}

/// Why a run did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum Pause {
    #[error("the addresses {0} to {1} have not been read yet")]
    Needs(u64, u64),
    #[error("the changes have not been made yet")]
    Commit,
    #[error("there are more changes than one group")]
    Groups,
    #[error("other changes were made than these")]
    Differs,
}

/// The remote of a run.
struct Stage<'p>(&'p mut Play);

impl Remote for Stage<'_> {
    type Error = Pause;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Pause> {
        let (first, last) = (*addresses.start(), *addresses.end());
        if self.0.evidence.visit(addresses, visit) { Ok(()) } else { Err(Pause::Needs(first, last)) }
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Pause> {
        self.0.apply(changes)
    }

    fn begin_groups(&mut self) -> Result<(), Pause> {
        Err(Pause::Groups)
    }
}
