//! The frontier: adaptivity bits are reclaimed by carrying keys to a fresh hash function, a few at a time
//! (section 4.2 of the paper).
//!
//! The paper lets the frontier walk the keys in any fixed order that the remote can walk, and says that a key
//! has been carried if it is not greater than the frontier. Here the order is that of the strata, classes and
//! [columns](super::columns) **under the function that is being left**. So each of its steps concerns one address of
//! the remote, which it comes to four times in a phase, and steps that follow each other concern
//! [addresses](super::addresses) that do; and on which side of the frontier a key is follows from its hash, so a query
//! knows it without asking anybody.
//!
//! An address may have keys of both functions. When the frontier comes to it, the keys found there whose *old* quotient
//! and stratum it is at are carried; the others stay. Keys of either function share the runs, and Invariant 7 is about
//! the strings, whichever function made them.
//!
//! **When it moves.** A carried key forgets its repairs. So nothing is carried as long as there are no more adaptivity
//! bits than the filter's budget, and up to there a broom filter remembers everything, as an extension filter does.
//! Beyond, every operation that adds bits carries two keys more than these are. (The paper asks for more than 2.) A
//! repair adds E + 2 bits on average. So while a phase of n / (E + 4) repairs passes, in which all bits go that were
//! there before, fewer than n come, of which half are gone again on average: that is less than half a bit a key. Where
//! keys stay, no bits leave with them, and so much would come together (0.38 at a budget of 0.25, when the newest key
//! is the one that is replaced); so an eighth beyond the budget twice as many keys are carried.

use crate::{KeyHasher, Remote, RemoteResult};

use super::functions::{Step, Which};
use super::lists::StoredOn;
use super::table::BroomTable;
use super::transaction::Transaction;

/// Keys that are carried, ghosts included, beyond one for each new bit.
const MORE: usize = 2;

/// Keys that are looked at for each that is to be carried: one in four has its turn, or one in five where new keys are
/// crowded.
const EXAMINED: usize = 6;

/// Empty addresses that are passed for each key that is to be carried, so that a nearly empty table is crossed in time.
const PASSED: u64 = 64;

/// Steps whose addresses are read at once: about as many as a repair makes.
const AHEAD: u64 = 64;

/// What one step had.
struct Passed {
    carried: usize,
    examined: usize,
}

impl<G: BroomTable, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// Carries the next keys to the new function if adaptivity bits are short, of which there were so many before.
    pub(super) fn reclaim(&mut self, before: usize) -> RemoteResult<(), R> {
        let (bits, budget) = (self.local.adaptivity_bits(), self.local.budget);
        if bits > budget {
            let most = bits.saturating_sub(before) + MORE;
            self.advance(if bits > budget + budget / 8 { 2 * most } else { most })?;
        }
        Ok(())
    }

    /// Carries the next keys to the new function, up to so many. Returns how many were carried.
    ///
    /// Reads a range for every [`AHEAD`] steps, and one more for every key that collides under its new function.
    pub(super) fn advance(&mut self, most: usize) -> RemoteResult<usize, R> {
        #[cfg(test)]
        if !self.local.switches.frontier {
            return Ok(0);
        }
        let (mut carried, mut examined) = (0, 0);
        let (_, first) = self.local.functions.position();
        for step in first..self.local.functions.walk() {
            if carried >= most || examined >= EXAMINED * most || step - first >= PASSED * most as u64 {
                break;
            }
            let passed = self.pass(step)?;
            carried += passed.carried;
            examined += passed.examined;
        }
        Ok(carried)
    }

    /// Makes one step of the walk: moves the frontier over one address.
    fn pass(&mut self, step: u64) -> RemoteResult<Passed, R> {
        let here = self.local.functions.step(step);
        let (Step { quotient, .. }, old) = (here, self.local.functions.number(Which::Old));
        let ghosts = self.kill_ghosts(here, old);
        let list = if self.local.table.stored_at(quotient) > 0 {
            self.look_ahead(step)?;
            self.list(quotient)?
        } else {
            Vec::new()
        };
        if list.len() < self.local.table.stored_at(quotient) {
            // What has no key cannot be carried, and must not be left behind.
            return Err(self.local.inconsistent(quotient, list.len()));
        }
        let leaves =
            |stored: &&StoredOn<G>| (stored.fingerprint.function, stored.fingerprint.step()) == (old, here);
        let leaving: Vec<&StoredOn<G>> = list.iter().filter(leaves).collect();
        leaving.iter().for_each(|stored| self.take(stored));
        // From here on they are new: the side of the frontier says so, to everyone.
        self.step_over(step);
        for stored in &leaving {
            let fingerprint = self.local.fingerprint(stored.fingerprint.digest);
            self.place(&fingerprint, &stored.key)?;
        }
        Ok(Passed { carried: ghosts + leaving.len(), examined: list.len() })
    }

    /// Reads the addresses of the next steps at once, which follow each other, unless that was done.
    fn look_ahead(&mut self, step: u64) -> RemoteResult<(), R> {
        let here = self.local.addresses(self.local.functions.step(step).quotient);
        if self.has_ahead(&here) {
            return Ok(());
        }
        let last = (*self.local.all_addresses().end()).min(here.end() + 2 * (AHEAD - 1));
        self.read_ahead(*here.start()..=last)
    }

    /// Sets the frontier behind a step; behind the last one a new phase begins.
    fn step_over(&mut self, step: u64) {
        let (phase, _) = self.local.functions.position();
        let last = step + 1 == self.local.functions.walk();
        // The new function of this phase is the old one of the next.
        self.local.functions.set_position(if last { (phase + 1, 0) } else { (phase, step + 1) });
    }
}
