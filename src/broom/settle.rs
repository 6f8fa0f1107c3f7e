//! The way back: filter and remote are brought together where they may differ.
//!
//! A group of changes that failed may have been made all the same. It has put a key in, taken one out, or carried some
//! from one address to another; and the filter knows of none of that. So the keys of all addresses in question are
//! taken together, wherever they were found: a pair that is not at its key's present address says that there is such a
//! key, and leads to its home. Every key goes to where the filter has it, and those that it does not have are inserted.
//! A fingerprint that no key is found for stays, unless the read is authoritative: then it goes.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::filter::clear_range;
use crate::{Authority, KeyHasher, Remote, RemoteResult, Settled};

use super::core::Core;
use super::table::BroomTable;
use super::transaction::{Transaction, atomically};

/// Addresses that are settled at once.
const ADDRESSES: u64 = 512;

impl<G: BroomTable, H: KeyHasher> Core<G, H> {
    /// See [`Adaptive::settle`](crate::Adaptive::settle).
    pub(super) fn settle_range<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        let (all, mut slots) = (self.local.all_addresses(), 0);
        // Both addresses of a quotient.
        let (start, end) =
            ((addresses.start() & !1).max(*all.start()), (addresses.end() | 1).min(*all.end()));
        let mut next = start;
        while next <= end {
            let until = end.min(next + ADDRESSES - 1);
            slots += self.settle_part(next..=until, authority, remote)?;
            next = until + 1;
        }
        if authority == Authority::Authoritative {
            // Only a growth that failed has put anything outside of the filter's half.
            let other = self.local.other_half();
            let (from, to) = (addresses.start().max(other.start()), addresses.end().min(other.end()));
            if from <= to {
                clear_range(*from..=*to, remote)?;
            }
        }
        Ok(if slots == 0 { Settled::Agreed } else { Settled::InQuestion { slots } })
    }

    /// Settles some addresses, and those that keys found there belong to. How many fingerprints stay without a key.
    fn settle_part<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<usize, R> {
        // A full filter takes keys in, too: what was made after all may be in place of fingerprints that go only later.
        // Until then it takes no others.
        atomically(&mut self.local, remote, |steps| {
            let quotients = steps.gather(addresses)?;
            if authority == Authority::Authoritative {
                quotients.iter().try_for_each(|&quotient| steps.drop_spares(quotient))?;
            }
            let mut slots = 0;
            for quotient in quotients {
                let keys = steps.list(quotient)?.len();
                slots += steps.local.table.stored_at(quotient) - keys;
            }
            Ok(slots)
        })
    }
}

impl<G: BroomTable, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// Sends every key at these addresses, or found on the way, home. Returns all quotients that were looked at.
    fn gather(&mut self, addresses: RangeInclusive<u64>) -> RemoteResult<BTreeSet<u64>, R> {
        self.read_ahead(addresses.clone())?;
        let mut open: Vec<u64> =
            addresses.step_by(2).map(|address| self.local.quotient_at(address)).collect();
        let (mut seen, mut astray) = (BTreeSet::new(), Vec::new());
        while let Some(quotient) = open.pop() {
            if quotient >= self.local.quotients() || !seen.insert(quotient) {
                continue;
            }
            for (address, key) in self.read(self.local.addresses(quotient))? {
                if self.local.at_home(address, &key).is_none() {
                    let fingerprint = self.local.fingerprint(self.local.functions.hasher().digest(&key));
                    open.push(fingerprint.quotient());
                    astray.push((address, key, fingerprint));
                }
            }
        }
        // All of them before any is placed: what one of them is placed beside must be known to be there.
        for (address, key, fingerprint) in astray {
            self.set(address, &key, false);
            self.set(self.local.address(&fingerprint), &key, true);
        }
        Ok(seen)
    }
}
