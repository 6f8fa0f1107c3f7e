//! The way back: filter and remote are brought together where they may differ.
//!
//! A group of changes that failed may have been made all the same. It has put a key in, taken one out, or carried some from one
//! address to another; and the filter knows of none of that. So the keys of all addresses in question are taken together, wherever
//! they were found: a pair that is not at its key's present address says that there is such a key, and leads to its home. Every key
//! goes to where the filter has it, and those that it does not have are inserted. A fingerprint that no key is found for stays,
//! unless the read is authoritative: then it goes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::filter::clear_range;
use crate::{Authority, KeyHasher, Remote, Settled};

use super::core::Core;
use super::fingerprint::Fingerprint;
use super::ground::Ground;
use super::lists::Outcome;
use super::local::Local;
use super::transaction::{Transaction, atomically};

/// Addresses that are settled at once.
const ADDRESSES: u64 = 512;

/// The keys of some quotients.
type Keys = BTreeMap<u64, Vec<Fingerprint>>;

impl<G: Ground, H: KeyHasher> Core<G, H> {
    /// See [`Adaptive::settle`](crate::Adaptive::settle).
    pub(super) fn settle_range<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> Outcome<Settled, R> {
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
    ) -> Outcome<usize, R> {
        let room = self.capacity.saturating_sub(self.local.ground.len());
        let full = self.full();
        let keys = atomically(&mut self.local, remote, |steps| {
            let before = steps.local.ground.len();
            let keys = steps.gather(addresses)?;
            if steps.local.ground.len() > before + room { Err(full.into()) } else { Ok(keys) }
        })?;
        let spare = |local: &Local<G, H>, quotient: u64, keys: &[Fingerprint]| {
            local.ground.stored_at(quotient).saturating_sub(keys.len())
        };
        let mut slots = 0;
        for (&quotient, keys) in &keys {
            while authority == Authority::Authoritative && spare(&self.local, quotient, keys) > 0 {
                if !self.local.drop_spare(quotient, keys) {
                    break;
                }
            }
            slots += spare(&self.local, quotient, keys);
        }
        Ok(slots)
    }
}

impl<G: Ground, H: KeyHasher> Local<G, H> {
    /// Takes out a fingerprint of a quotient that none of its keys has. `false` if there is none that stands for itself: those of keys
    /// with one digest cannot be told apart.
    fn drop_spare(&mut self, quotient: u64, keys: &[Fingerprint]) -> bool {
        let claimed = self.ground.claim_all(keys);
        let items = self.ground.items_of(quotient);
        let spare = items.iter().find(|(spot, item)| {
            let alone = !G::is_extensible(*spot) || self.ground.find(item) == Some(*spot);
            alone && !claimed.contains(&Some(*spot))
        });
        let Some(&(spot, item)) = spare else { return false };
        let _ = self.ground.take(&item, G::site(spot));
        true
    }
}

impl<G: Ground, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// Gives every key at these addresses, or found on the way, a fingerprint and its pair. Returns the keys of all quotients that were
    /// looked at.
    fn gather(&mut self, addresses: RangeInclusive<u64>) -> Outcome<Keys, R> {
        self.read_ahead(addresses.clone())?;
        let mut open: Vec<u64> =
            addresses.step_by(2).map(|address| self.local.quotient_at(address)).collect();
        let mut seen = Keys::new();
        let mut astray = Vec::new();
        while let Some(quotient) = open.pop() {
            if quotient >= self.local.quotients() || seen.contains_key(&quotient) {
                continue;
            }
            for (address, key) in self.read(self.local.addresses(quotient))? {
                if self.local.at_home(address, &key).is_none() {
                    open.push(self.local.fingerprint(self.local.functions.hasher().digest(&key)).quotient());
                    astray.push((address, key));
                }
            }
            seen.insert(quotient, Vec::new());
        }
        // All of them first: what one of them is placed beside must be known to be there.
        for (address, key) in astray {
            let fingerprint = self.local.fingerprint(self.local.functions.hasher().digest(&key));
            self.set(address, &key, false);
            self.set(self.local.address(&fingerprint), &key, true);
        }
        for (&quotient, keys) in &mut seen {
            self.list(quotient)?;
            *keys = self.home_of(quotient)?.stored.into_iter().map(|stored| stored.fingerprint).collect();
        }
        Ok(seen)
    }
}
