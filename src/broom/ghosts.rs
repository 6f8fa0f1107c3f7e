//! What is remembered of removed keys (section 4.3 of the paper).
//!
//! A removed key leaves a *ghost*: its quotient and adaptivity bits, without its remainder. A newcomer whose hash
//! agrees with a ghost takes at least as many adaptivity bits as the ghost has, so a key that comes back has the
//! bits that it had, and no query that was told apart from it collides with it again. Who was told apart from it
//! does not matter, so equal ghosts of one quotient are one ghost. A ghost is not used up when a newcomer agrees
//! with it: the newcomer may be another key. It dies when its hash function does.
//!
//! Ghosts lie with their quotient's block or bin, whichever level their keys were on.

use crate::bits::BitString;
use crate::{InvariantError, KeyHasher, error::ensure};

use super::functions::Which;
use super::ground::Ground;
use super::local::Local;

impl<G: Ground, H: KeyHasher> Local<G, H> {
    /// Remembers the adaptivity bits of a key that was removed.
    pub(super) fn add_ghost(&mut self, quotient: u64, function: u64, bits: BitString) {
        #[cfg(test)]
        if !self.switches.ghosts {
            return;
        }
        self.ground.add_ghost(quotient, function, bits);
    }

    /// A ghost of the old function died when the frontier came to it.
    pub(super) fn verify_ghosts(&self) -> Result<(), InvariantError> {
        let old = self.functions.number(Which::Old) & 1;
        for (quotient, parity) in self.ground.ghosts() {
            ensure!(quotient < self.quotients(), "a ghost of quotient {quotient}");
            let alive = parity != old || !self.functions.is_passed(quotient);
            ensure!(alive, "a ghost of {quotient} outlived its function");
        }
        Ok(())
    }
}
