//! What is remembered of removed keys (section 4.3 of the paper).
//!
//! A removed key leaves a *ghost*: its quotient, stratum and adaptivity bits, without its remainder. A newcomer whose
//! hash agrees with a ghost takes at least as many adaptivity bits as the ghost has, so a key that comes back has the
//! bits that it had, and no query that was told apart from it collides with it again. Who was told apart from it
//! does not matter, so equal ghosts of one quotient are one ghost. A ghost is not used up when a newcomer agrees
//! with it: the newcomer may be another key. It dies when its hash function does, in the step of its key.
//!
//! A newcomer that does not agree with a ghost, of either function, takes as many bits as tell it from the ghost, as it
//! would from a stored key.
//! The paper does not ask for that, but without it the roles can be exchanged: x was a false positive of y, so both
//! have one baseline; y is removed, x inserted without adaptivity bits, and a query for y finds it.
//!
//! Ghosts lie with their quotient's block or bin, whichever level their keys were on.

use crate::bits::BitString;
use crate::{InvariantError, KeyHasher, error::ensure};

use super::functions::{Step, Which};
use super::local::Local;
use super::table::BroomTable;

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// Remembers the adaptivity bits of a key that was removed, if there was a repair among what they come from: those
    /// that are owed to other insertions alone are no more than E, and nobody has seen anything of them.
    pub(super) fn add_ghost(&mut self, step: Step, function: u64, bits: BitString) {
        #[cfg(test)]
        if !self.switches.ghosts {
            return;
        }
        if bits.len() > self.extra {
            self.table.add_ghost(step, function, bits);
        }
    }

    /// A ghost of the old function died when the frontier came to it.
    pub(super) fn verify_ghosts(&self) -> Result<(), InvariantError> {
        let old = self.functions.number(Which::Old) & 1;
        for (step, parity) in self.table.ghosts() {
            ensure!(step.quotient < self.quotients(), "a ghost of quotient {}", step.quotient);
            let alive = parity != old || !self.functions.is_passed(step);
            ensure!(alive, "a ghost of {step:?} outlived its function");
        }
        Ok(())
    }
}
