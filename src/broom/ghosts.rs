//! What is remembered of removed keys (section 4.3 of the paper).
//!
//! A removed key leaves a *ghost*: its quotient and adaptivity bits, without its remainder. A newcomer whose hash
//! agrees with a ghost takes at least as many adaptivity bits as the ghost has, so a key that comes back has the
//! bits that it had, and no query that was told apart from it collides with it again. Who was told apart from it
//! does not matter, so equal ghosts of one quotient are one ghost. A ghost is not used up when a newcomer agrees
//! with it: the newcomer may be another key. It dies when its hash function does.
//!
//! Ghosts lie with the strings of their quotient's block, whichever level their keys were on.

use crate::bits::BitString;
use crate::{InvariantError, KeyHasher, error::ensure};

use super::fingerprint::Fingerprint;
use super::functions::Which;
use super::local::Local;

impl<H: KeyHasher> Local<H> {
    /// The block of a quotient, and the number of its ghosts there under a function.
    fn ghost_number(&self, quotient: u64, function: u64) -> (usize, u32) {
        let (block, in_block) = self.table().block_of(quotient);
        (block, 2 * in_block + (function & 1) as u32)
    }

    /// How many adaptivity bits a newcomer must take for the sake of the ghosts.
    pub(super) fn longest_ghost(&self, key: &Fingerprint) -> u32 {
        let (block, number) = self.ghost_number(key.quotient(), key.function);
        self.primary.strings.longest_ghost(block, number, key.tail)
    }

    /// Remembers the adaptivity bits of a key that was removed.
    pub(super) fn add_ghost(&mut self, quotient: u64, function: u64, bits: BitString) {
        #[cfg(test)]
        if !self.switches.ghosts {
            return;
        }
        let (block, number) = self.ghost_number(quotient, function);
        self.primary.add_ghost(block, number, bits);
    }

    /// Lets the ghosts of a quotient and a function die, and returns their adaptivity bits.
    pub(super) fn kill_ghosts(&mut self, quotient: u64, function: u64) -> Vec<BitString> {
        let (block, number) = self.ghost_number(quotient, function);
        self.primary.kill_ghosts(block, number)
    }

    /// A ghost of the old function died when the frontier came to it.
    pub(super) fn verify_ghosts(&self) -> Result<(), InvariantError> {
        let old = (self.functions.number(Which::Old) & 1) as u32;
        for (block, number, _) in self.primary.strings.all_ghosts() {
            let quotient = self.table().first_slot(block) + u64::from(number / 2);
            ensure!(quotient < self.table().slots(), "a ghost of quotient {quotient}");
            let alive = number % 2 != old || !self.functions.is_passed(quotient);
            ensure!(alive, "a ghost of {quotient} outlived its function");
        }
        Ok(())
    }
}
