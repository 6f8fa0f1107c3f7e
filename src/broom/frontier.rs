//! The frontier: adaptivity bits are reclaimed by carrying keys to a fresh hash function, a few at a time
//! (section 4.2 of the paper).
//!
//! The paper lets the frontier walk the keys in any fixed order that the remote can walk, and says that a key
//! has been carried if it is not greater than the frontier. Here the order is that of the [classes](super::functions), and
//! within a class that of the columns **under the function that is being left**: the addresses 0, 64, 128, …, then 1, 65,
//! 129, … with 64 classes. So the walk is `read(0)`, `read(64)`, … (above the generation) and the remote needs nothing that
//! it does not have; and on which side of the frontier a key is follows from its hash, so a query knows it without
//! asking anybody.
//!
//! A key that was carried stays in its class. So no class gets more keys than it had, and no part of the table: a frontier
//! that walked the old quotients would find the part ahead of it crowded with the keys that it has carried, up to a quarter
//! more than there should be, and as many more false positives. Here that is so in the one class that it is in.
//!
//! The addresses of a class that was passed have keys of the new function only, those of the classes ahead of the old one.
//! Between, an address that was not passed has keys of both. When the frontier comes to it, the keys found there whose *old*
//! quotient it is are carried; the others were carried before and stay. Keys of either function share the runs, and
//! Invariant 7 is about the strings, whichever function made them.
//!
//! **When it moves.** A carried key forgets its repairs. So nothing is carried as long as there are no more adaptivity bits than
//! the filter's budget, and up to there a broom filter remembers everything, as an extension filter does. Beyond, every
//! operation that adds bits carries more than two keys. A repair adds two bits on average, so while a phase of n / 4 repairs
//! passes, in which all bits go that were there before, n / 2 come: there are never more bits than the budget and half a
//! bit per key, and what the carried keys need in order to be told apart. Repairs of keys that lie right behind the
//! frontier can bring that about; others are reclaimed sooner.

use crate::{KeyHasher, Remote};

use super::functions::Which;
use super::ground::Ground;
use super::lists::Outcome;
use super::transaction::Transaction;

/// c: how many keys (ghosts included) an operation that adds bits carries. The paper asks for more than 2.
pub(super) const CARRIED: usize = 4;

/// How many keys such an operation looks at in order to carry [`CARRIED`]: in the class that the frontier is in up to
/// every second key has been carried already.
const EXAMINED: usize = 3 * CARRIED;

/// How many empty addresses it passes, so that a nearly empty table is crossed in time.
const PASSED: u64 = 64 * CARRIED as u64;

/// What one address had.
struct Passed {
    carried: usize,
    examined: usize,
}

impl<G: Ground, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// Carries the next keys to the new function if adaptivity bits are short.
    pub(super) fn reclaim(&mut self) -> Outcome<(), R> {
        if self.local.is_over_budget() {
            self.advance()?;
        }
        Ok(())
    }

    /// Carries the next keys to the new function. Returns how many were carried.
    ///
    /// Reads at most [`EXAMINED`] lists, or one more for every key that collides under its new function.
    pub(super) fn advance(&mut self) -> Outcome<usize, R> {
        #[cfg(test)]
        if !self.local.switches.frontier {
            return Ok(0);
        }
        let (mut carried, mut examined) = (0, 0);
        let (_, first) = self.local.functions.position();
        for step in first..self.local.functions.walk() {
            if carried >= CARRIED || examined >= EXAMINED || step - first >= PASSED {
                break;
            }
            let passed = self.pass(step)?;
            carried += passed.carried;
            examined += passed.examined;
        }
        Ok(carried)
    }

    /// Makes one step of the walk: moves the frontier over one address.
    fn pass(&mut self, step: u64) -> Outcome<Passed, R> {
        let quotient = self.local.functions.step(step);
        let ghosts = self.kill_ghosts(quotient, self.local.functions.number(Which::Old));
        let list = if self.local.ground.stored_at(quotient) > 0 { self.list(quotient)? } else { Vec::new() };
        let leaving: Vec<usize> = (0..list.len())
            .filter(|&rank| self.local.functions.side(list[rank].fingerprint.digest) == Which::Old)
            .collect();
        // The last one first, so that the ranks of the others stay.
        for &rank in leaving.iter().rev() {
            self.take(&list[rank], rank);
        }
        // From here on they are new: the side of the frontier says so, to everyone.
        self.step_over(step);
        for &rank in &leaving {
            let fingerprint = self.local.fingerprint(list[rank].fingerprint.digest);
            self.place(&fingerprint, &list[rank].key)?;
        }
        Ok(Passed { carried: ghosts + leaving.len(), examined: list.len() })
    }

    /// Sets the frontier behind a step; behind the last one a new phase begins.
    fn step_over(&mut self, step: u64) {
        let (phase, _) = self.local.functions.position();
        let last = step + 1 == self.local.functions.walk();
        // The new function of this phase is the old one of the next.
        self.local.functions.set_position(if last { (phase + 1, 0) } else { (phase, step + 1) });
    }
}
