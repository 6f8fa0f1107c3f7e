//! Table and remote are brought together.
//!
//! A pair is *at home* if its slot holds its key's fingerprint; of several that are, the first. All others
//! are *strays*: debris of a group that was made although it was reported as failed, or keys that have no item. What an
//! item without a pair belonged to cannot be told from the item: its key may have moved to any slot. So items go only
//! if everything was read.

use std::ops::RangeInclusive;

use crate::{AdaptiveError, Authority, Change, KeyHasher, Remote, RemoteResult, Settled};

use super::AdaptiveCuckooFilter;
use super::variant::Variant;

/// Pairs that are not at home: slot and key.
type Strays = Vec<(usize, Box<[u8]>)>;

/// What the remote has in a range.
struct Found {
    /// By slot of the range: whether a key is at home there.
    explained: Vec<bool>,
    first: usize,
    strays: Strays,
}

impl Found {
    /// Whether a slot, which is in use, has no key.
    fn is_unexplained(&self, slot: usize) -> bool {
        slot.checked_sub(self.first).is_some_and(|at| self.explained.get(at) == Some(&false))
    }
}

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// Gives every key that the remote has in a range an item. Items without a key go if everything was read, with
    /// authority.
    pub(super) fn settle_slots<R: Remote>(
        &mut self,
        addresses: &RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        if self.littered {
            self.sweep(remote)?;
        }
        let Some(range) = self.addresses.of_range(addresses, self.table.layout().slots()) else {
            return Ok(Settled::Agreed);
        };
        let mut found = self.look_over(range.clone(), remote)?;
        let everything = range.len() == self.table.layout().slots() && authority == Authority::Authoritative;
        let debris = self.place_strays(&mut found, everything, remote)?;
        let slots: Vec<usize> = self.unexplained(range.clone(), remote)?;
        if !everything {
            let slots = slots.len();
            return Ok(if slots == 0 { Settled::Agreed } else { Settled::InQuestion { slots } });
        }
        let removals: Vec<Change<'_>> = debris
            .iter()
            .map(|(slot, key)| Change::Remove { address: self.addresses.of(*slot), key })
            .collect();
        if !removals.is_empty() {
            remote.apply(&removals).map_err(AdaptiveError::Remote)?;
        }
        for slot in slots {
            self.table.erase(slot);
            self.len -= 1;
        }
        Ok(Settled::Agreed)
    }

    /// Reads some slots.
    fn look_over<R: Remote>(&self, range: std::ops::Range<usize>, remote: &mut R) -> RemoteResult<Found, R> {
        let mut found = Found { explained: vec![false; range.len()], first: range.start, strays: Vec::new() };
        self.visit_slots(range, remote, |slot, key| {
            let explained = &mut found.explained[slot - found.first];
            if !*explained && self.table.holds(slot, self.place_of(self.hasher.digest(key))) {
                *explained = true;
            } else {
                found.strays.push((slot, key.into()));
            }
        })?;
        Ok(found)
    }

    /// The slots of a range that are in use and have no key.
    fn unexplained<R: Remote>(
        &self,
        range: std::ops::Range<usize>,
        remote: &mut R,
    ) -> RemoteResult<Vec<usize>, R> {
        let found = self.look_over(range.clone(), remote)?;
        let in_use = range.filter(|&slot| !self.table.is_vacant(slot));
        Ok(in_use.filter(|&slot| found.is_unexplained(slot)).collect())
    }

    /// Gives every stray that is not at home elsewhere an item: where it is, if that slot is vacant; elsewhere; or, if
    /// everything was read, in the place of an item without a key. Returns the pairs that are debris then.
    fn place_strays<R: Remote>(
        &mut self,
        found: &mut Found,
        everything: bool,
        remote: &mut R,
    ) -> RemoteResult<Strays, R> {
        let (mut debris, mut displaced) = (Strays::new(), Strays::new());
        for (slot, key) in std::mem::take(&mut found.strays) {
            let place = self.place_of(self.hasher.digest(&key));
            let candidate = self.table.is_candidate(slot, place);
            if self.find_pair(&key, slot, remote)? {
                debris.push((slot, key));
            } else if candidate && self.table.is_vacant(slot) {
                self.make_room()?;
                self.table.put(slot, place, 0);
                self.len += 1;
                found.explained[slot - found.first] = true;
            } else if candidate && everything && found.is_unexplained(slot) {
                displaced.push((slot, key));
            } else {
                self.make_room()?;
                self.insert_new_key(&key, remote)?;
                debris.push((slot, key));
            }
        }
        // Now that all others have items, whoever an item without a key belonged to has another, or is gone.
        for (slot, key) in displaced {
            if found.is_unexplained(slot) {
                self.table.put(slot, self.place_of(self.hasher.digest(&key)), 0);
                found.explained[slot - found.first] = true;
            } else {
                self.make_room()?;
                self.insert_new_key(&key, remote)?;
                debris.push((slot, key));
            }
        }
        Ok(debris)
    }

    /// Whether a key is at home in another slot than this one.
    fn find_pair<R: Remote>(&self, key: &[u8], except: usize, remote: &mut R) -> RemoteResult<bool, R> {
        let place = self.place_of(self.hasher.digest(key));
        let mut found = false;
        for slot in self.table.hits(place).into_iter().filter(|&slot| slot != except) {
            self.visit_slots(slot..slot + 1, remote, |_, other| found |= other == key)?;
        }
        Ok(found)
    }

    fn make_room<E>(&self) -> Result<(), AdaptiveError<E>> {
        if self.len < self.capacity { Ok(()) } else { Err(self.full().into()) }
    }
}
