//! The way back for a few addresses: makes filter and lists agree where a failed operation may have changed one of them.
//!
//! As on quotient tables: the keys of the lists are matched with the items. If every item has a key, keys that the filter did
//! not know are taken in, and those that it knew keep their extensions, in the order of the lists. In the lists, keys that
//! stand twice or do not belong there are removed, and keys that were found elsewhere only are pushed; the pushes come first,
//! so that a group which was made by half loses nothing. All of this happens to a copy of the filter, which takes its place
//! when the remote has been told.

use std::collections::{BTreeMap, BTreeSet};

use crate::coding::Extension;
use crate::values::{List, match_slots};
use crate::{AdaptiveError, Change, Digest, FullError, KeyHasher, Remote, Resync};

use super::super::line::Entry;
use super::super::next::Refused;
use super::{Begins, ExtendingBins};

/// Keys that belong elsewhere are followed to their own lists so often. What is still not at home then was never written
/// by this filter.
const ROUNDS: usize = 4;

type Lists = BTreeMap<u64, List>;

/// A key that the filter is going to have.
struct Member<'l> {
    key: &'l [u8],
    digest: Digest,
    /// Whether its own list has it.
    listed: bool,
    /// Whether it was seen in lists of another generation only.
    stale: bool,
}

/// The keys of each fingerprint in question, in the order that their items are going to have.
type Members<'l> = BTreeMap<(u64, Entry), Vec<Member<'l>>>;

impl<H: KeyHasher> ExtendingBins<H> {
    pub(crate) fn resync<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        let lists = self.gather(addresses, remote)?;
        if lists.values().all(|list| self.check_list::<R::Error>(list).is_ok()) {
            return Ok(Resync::Agreed);
        }
        let mut members = self.sort_out(&lists);
        let (mut values, mut unexplained) = (BTreeMap::new(), 0);
        for (&item, members) in &mut members {
            let (kept, missing) = self.explain(item, members);
            values.insert(item, kept);
            unexplained += missing;
        }
        if unexplained > 0 {
            return Ok(Resync::InQuestion { slots: unexplained });
        }
        let mut copied = self.clone();
        copied.take_in(&values)?;
        let changes = self.corrections(&lists, &members);
        if !changes.is_empty() {
            remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        }
        *self = copied;
        Ok(Resync::Agreed)
    }

    /// Reads these lists, and those that their keys belong to.
    fn gather<R: Remote>(&self, addresses: &[u64], remote: &mut R) -> Result<Lists, AdaptiveError<R::Error>> {
        let (mut lists, mut wanted) = (Lists::new(), addresses.to_vec());
        for _ in 0..ROUNDS {
            let mut homes = Vec::new();
            for address in wanted {
                if lists.contains_key(&address) {
                    continue;
                }
                let list = List::read(address, &self.hasher, remote)?;
                homes.extend(list.digests.iter().map(|&digest| self.home(digest)));
                lists.insert(address, list);
            }
            wanted = homes;
        }
        match wanted.into_iter().find(|address| !lists.contains_key(address)) {
            Some(address) => Err(self.inconsistent(address, 0)),
            None => Ok(lists),
        }
    }

    /// The address of a key.
    fn home(&self, digest: Digest) -> u64 {
        self.address(self.table.place(digest))
    }

    /// The keys of every fingerprint that has one of these addresses: first those of its own list, in order, then the others.
    /// Fingerprints that are stored and have no key are there too.
    fn sort_out<'l>(&self, lists: &'l Lists) -> Members<'l> {
        let mut members = Members::new();
        for &address in lists.keys() {
            let (bins, class) = self.runs_at(address);
            for bin in bins {
                let items = self.table.items_of(bin);
                let ranks = items.of_class(class, self.table.shape().tag_bits());
                members.extend(ranks.map(|rank| ((bin, items.get(rank)), Vec::new())));
            }
        }
        for at_home in [true, false] {
            for list in lists.values() {
                for (key, &digest) in list.keys.iter().zip(&list.digests) {
                    if (self.home(digest) == list.address) != at_home {
                        continue;
                    }
                    let stale = self.addresses.is_stale(list.address);
                    let members = members.entry(self.item(digest)).or_default();
                    match members.iter_mut().find(|member| member.key == key) {
                        Some(member) => member.stale &= stale,
                        None => members.push(Member { key, digest, listed: at_home, stale }),
                    }
                }
            }
        }
        members
    }

    /// Finds a key for every item of a fingerprint. Keeps the keys that the filter is going to have, returns their extensions,
    /// and how many items have no key.
    fn explain(&self, (bin, entry): (u64, Entry), members: &mut Vec<Member<'_>>) -> (Vec<Extension>, usize) {
        let ranks = self.table.items_of(bin).equal(entry);
        let values: Vec<Extension> = ranks.map(|rank| self.values.get(bin, rank)).collect();
        let matched = match_slots(values.len(), members.len(), |slot, member| {
            values[slot].begins(&self.string(members[member].digest))
        });
        let mut value_of = vec![None; members.len()];
        for (&value, &member) in values.iter().zip(&matched) {
            member.into_iter().for_each(|member| value_of[member] = Some(value));
        }
        // A key that was left behind is taken only where an item would have none.
        let needed: Vec<bool> =
            members.iter().zip(&value_of).map(|(member, value)| value.is_some() || !member.stale).collect();
        let kept = value_of.iter().zip(&needed).filter(|(_, needed)| **needed);
        let kept = kept.map(|(value, _)| value.unwrap_or_default()).collect();
        let mut needed = needed.into_iter();
        members.retain(|_| needed.next().unwrap_or_default());
        (kept, matched.iter().filter(|member| member.is_none()).count())
    }

    /// Makes the items of these fingerprints as many as there are extensions for them, and gives them these. There are not
    /// fewer than there are items.
    fn take_in<E>(
        &mut self,
        values: &BTreeMap<(u64, Entry), Vec<Extension>>,
    ) -> Result<(), AdaptiveError<E>> {
        let (len, bytes) = (self.table.len, self.table.memory_bits() / 8);
        let bins: BTreeSet<u64> = values.keys().map(|&(bin, _)| bin).collect();
        for bin in bins {
            let items = self.table.items_of(bin);
            let mut stored: BTreeMap<Entry, Vec<Extension>> = BTreeMap::new();
            for (entry, value) in items.iter().zip(self.load(bin, &items)) {
                stored.entry(entry).or_default().push(value);
            }
            for (&(_, entry), values) in values.range((bin, Entry(0))..=(bin, Entry(u32::MAX))) {
                for _ in items.equal(entry).len()..values.len() {
                    // A filter that can grow does so at the next insertion.
                    if self.table.len >= self.capacity && !self.growable {
                        return Err(FullError { len, capacity: self.capacity }.into());
                    }
                    let inserted = self.table.insert_entry(bin, entry);
                    inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
                }
                stored.insert(entry, values.clone());
            }
            let values: Vec<Extension> = stored.into_values().flatten().collect();
            self.store(bin, &self.table.items_of(bin), &values);
        }
        Ok(())
    }

    /// What is to change in the lists.
    fn corrections<'l>(&self, lists: &'l Lists, members: &Members<'l>) -> Vec<Change<'l>> {
        let mut changes = Vec::new();
        for member in members.values().flatten().filter(|member| !member.listed) {
            changes.push(Change::Push { address: self.home(member.digest), key: member.key });
        }
        for (&address, list) in lists {
            // The last rank first, so that the others stay right. Of a key that stands twice the first one stays.
            for rank in (0..list.keys.len()).rev() {
                let key = list.keys.get(rank);
                if self.home(list.digests[rank]) != address || list.rank(key) != Some(rank) {
                    changes.push(Change::Remove { address, rank, key });
                }
            }
        }
        changes
    }
}
