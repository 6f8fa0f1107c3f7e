//! The frontier: adaptivity bits are reclaimed by carrying keys to a fresh hash function, a few at a time
//! (section 4.2 of the paper).
//!
//! The paper lets the frontier walk the keys in any fixed order that the remote can walk, and says that a key
//! has been carried if it is not greater than the frontier. Here the order is that of the quotient **under the
//! function that is being left**, in strides of 64: 0, 64, 128, …, 1, 65, 129, … Quotients are the remote's
//! addresses (below the generation), so the walk is `read(0)`, `read(64)`, … and the remote needs nothing that it does not have; and on
//! which side of the frontier a key is follows from its hash, so a query knows it without asking anybody.
//!
//! The stride is there for the load. Carried keys go anywhere, so a walk from left to right would leave a thin
//! table behind and a crowded one ahead: half way through, 0.45 and 1.35 of the slots at load 0.90. With the
//! stride any 64 neighbouring quotients have lost the same share of their old keys, to within one.
//!
//! An address that was passed has keys of the new function only, any other keys of both. When the frontier
//! comes to an address, the keys found there whose *old* quotient it is are carried; the others were carried
//! before and stay. Keys of either function share the runs, and Invariant 7 is about the strings, whichever
//! function made them.

use crate::{KeyHasher, Remote};

use super::functions::Which;
use super::lists::Outcome;
use super::transaction::Transaction;

/// c: how many keys (ghosts included) an adaptation carries. The paper asks for more than 2.
pub(super) const CARRIED: usize = 4;

/// How many keys an adaptation looks at in order to carry [`CARRIED`]: ahead of the frontier up to every second
/// key has been carried already.
const EXAMINED: usize = 3 * CARRIED;

/// How many empty addresses an adaptation passes, so that a nearly empty table is crossed in time.
const PASSED: u64 = 64 * CARRIED as u64;

/// What one address had.
enum Passed {
    Keys {
        carried: usize,
        examined: usize,
    },
    /// A key of it found no place under the new function: the frontier waits here.
    Stuck,
}

impl<H: KeyHasher, R: Remote> Transaction<'_, H, R> {
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
                return Ok(carried);
            }
            let mark = self.mark();
            match self.pass(step)? {
                Passed::Keys { carried: keys, examined: seen } => {
                    carried += keys;
                    examined += seen;
                }
                Passed::Stuck => {
                    self.back_to(mark);
                    return Ok(carried);
                }
            }
        }
        Ok(carried)
    }

    /// Makes one step of the walk: moves the frontier over one address.
    fn pass(&mut self, step: u64) -> Outcome<Passed, R> {
        let Some(quotient) = self.local.functions.step(step) else {
            self.step_over(step);
            return Ok(Passed::Keys { carried: 0, examined: 0 });
        };
        let old = self.local.functions.number(Which::Old);
        let mut carried = self.kill_ghosts(quotient, old);
        let list = if self.local.stored_at(quotient) > 0 { self.list(quotient)? } else { Vec::new() };
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
            if !self.place(&fingerprint, &list[rank].key)? {
                return Ok(Passed::Stuck);
            }
        }
        carried += leaving.len();
        Ok(Passed::Keys { carried, examined: list.len() })
    }

    /// Sets the frontier behind a step; behind the last one a new phase begins.
    fn step_over(&mut self, step: u64) {
        let (phase, _) = self.local.functions.position();
        let last = step + 1 == self.local.functions.walk();
        // The new function of this phase is the old one of the next.
        self.local.functions.set_position(if last { (phase + 1, 0) } else { (phase, step + 1) });
    }
}
