//! Which queries have to look beyond the primary table.
//!
//! About one key in a hundred is not in the primary table, and no query should pay for that but those that might
//! find one there. So every quotient has a flag in the code of its block, the cache line that a query reads
//! anyway. The last quotients of a block share a flag (2 of 46 with remainders of 8 bits): a flag is set exactly if
//! a key of one of its quotients is elsewhere.
//!
//! It is set when a key goes elsewhere, and looked at again when one comes from there.

use crate::{InvariantError, error::ensure};

use super::on_quotients::BroomQuotients;

impl BroomQuotients {
    /// Whether a key of this quotient may be elsewhere.
    #[inline(always)]
    pub(super) fn is_hinted(&self, quotient: u64) -> bool {
        self.primary.table.flag(quotient)
    }

    /// The share of the quotients whose queries have to look elsewhere.
    pub(super) fn hinted_share(&self) -> f64 {
        self.hinted as f64 / self.table().slots() as f64
    }

    /// Sets or clears the flag of a quotient and of those that share it.
    pub(super) fn set_hint(&mut self, quotient: u64, value: bool) {
        if self.is_hinted(quotient) == value {
            return;
        }
        let range = self.table().sharing(quotient);
        let sharing = (range.end - range.start) as usize;
        self.hinted = if value { self.hinted + sharing } else { self.hinted - sharing };
        self.primary.table.set_flag(quotient, value);
    }

    /// Clears the flag of a quotient that has lost a key elsewhere, unless another key needs it.
    pub(super) fn refresh_hint(&mut self, quotient: u64) {
        let mut sharing = self.table().sharing(quotient);
        let clear = self.is_hinted(quotient) && sharing.all(|quotient| self.elsewhere.count(quotient) == 0);
        if clear {
            self.set_hint(quotient, false);
        }
    }

    /// Exactly the quotients that have a key elsewhere, and those that share a flag with them, are flagged.
    pub(super) fn verify_hints(&self) -> Result<(), InvariantError> {
        let (mut flags, mut hinted) = (std::collections::BTreeSet::new(), 0);
        for home in self.elsewhere.quotients() {
            ensure!(self.is_hinted(home), "a key of quotient {home} is elsewhere, but has no flag");
            let sharing = self.table().sharing(home);
            if flags.insert(sharing.start) {
                hinted += (sharing.end - sharing.start) as usize;
            }
        }
        ensure!(hinted == self.hinted, "{hinted} quotients need a flag, {} are counted", self.hinted);
        let flagged = (0..self.table().slots()).filter(|&quotient| self.is_hinted(quotient)).count();
        ensure!(flagged == hinted, "{flagged} quotients are flagged, {hinted} need to be");
        Ok(())
    }
}
