//! Which queries have to look beyond the primary table.
//!
//! About one key in a hundred is not in the primary table, and no query should pay for that but those that might
//! find one there. So every quotient has a flag in the code of its block, the cache line that a query reads
//! anyway: set if a key of this quotient is elsewhere.
//!
//! A flag is set when a key goes elsewhere. It is cleared when the keys of the quotient have been read from the
//! remote for another reason (one of them was removed, or the frontier passes) and none of them is elsewhere any
//! more. In between it may be set for nothing, which costs a look and no more. The last quotients of a block
//! share a flag (3 of 46 with remainders of 8 bits), and are looked at together.

use crate::{InvariantError, KeyHasher, Remote, error::ensure};

use super::fingerprint::{Local, Overflow, Spot};
use super::transaction::{List, Outcome, Transaction};

impl<H: KeyHasher> Local<H> {
    /// Whether a key of this quotient may be elsewhere.
    #[inline(always)]
    pub(super) fn is_hinted(&self, quotient: u64) -> bool {
        self.primary.table.flag(quotient)
    }

    /// The share of the quotients whose queries have to look elsewhere.
    pub(super) fn hinted_share(&self) -> f64 {
        let table = self.table();
        let hinted = (0..table.slots()).filter(|&quotient| table.flag(quotient)).count();
        hinted as f64 / table.slots() as f64
    }

    /// Whether one of these keys is stored elsewhere.
    fn any_elsewhere(&self, keys: &List) -> bool {
        keys.iter().any(|key| {
            let spot = self.find(&self.fingerprint(self.functions.hasher().digest(key)));
            spot.is_some_and(|spot| !matches!(spot, Spot::Primary(_)))
        })
    }

    /// Clears the flag of a quotient if no key needs it any more; `list` reads the keys of an address. The flag
    /// stays if a list cannot be read: it does no harm.
    pub(super) fn refresh_hint<E>(
        &mut self,
        quotient: u64,
        mut list: impl FnMut(&Self, u64) -> Result<List, E>,
    ) -> Result<(), E> {
        for address in self.table().sharing(quotient) {
            let keys = list(self, address)?;
            if self.any_elsewhere(&keys) {
                return Ok(());
            }
        }
        self.primary.table.set_flag(quotient, false);
        Ok(())
    }

    /// Every key that is elsewhere has a flag. (The back yard does not know the homes of its keys.)
    pub(super) fn verify_hints(&self) -> Result<(), InvariantError> {
        let Overflow::Secondary(secondary) = &self.overflow else { return Ok(()) };
        for home in secondary.homes() {
            ensure!(self.is_hinted(home), "a key of quotient {home} is elsewhere, but has no flag");
        }
        Ok(())
    }
}

impl<H: KeyHasher, R: Remote> Transaction<'_, H, R> {
    /// [`Local::refresh_hint`] behind the frontier, once for all quotients that share a flag. Returns how many lists
    /// were read for it.
    pub(super) fn refresh_hint_behind(&mut self, address: u64) -> Outcome<usize, R> {
        let sharing = self.local.table().sharing(address);
        if !self.local.is_hinted(address) || address + 1 != sharing.end {
            return Ok(0);
        }
        let mut read = 0;
        for address in sharing {
            let keys = self.list(address)?;
            read += 1;
            if self.local.any_elsewhere(&keys) {
                return Ok(read);
            }
        }
        self.local.primary.table.set_flag(address, false);
        Ok(read)
    }
}
