//! The way back of a few addresses: filter and remote are made to agree by what the lists say.
//!
//! A group of changes that failed may have been made all the same, or a part of it by a store that keeps no promise. It
//! has pushed a key, removed one, or carried some from one address to another. So the keys of all these lists are
//! taken together. If every fingerprint that the filter has at these addresses belongs to one of them, nothing is
//! missing: each goes to the list where the filter has it, and keys that the filter does not have are inserted. All
//! that is one [transaction](super::transaction).

use std::collections::{BTreeMap, BTreeSet};

use crate::{FullError, KeyHasher, Remote, Resync};

use super::fingerprint::Fingerprint;
use super::ground::Ground;
use super::lists::{Claims, Outcome};
use super::transaction::Transaction;

/// A key that was found in a list.
struct Found {
    address: u64,
    rank: usize,
    key: Vec<u8>,
    fingerprint: Fingerprint,
}

/// What is to become of the keys that were found.
#[derive(Default)]
struct Sorted<'f> {
    /// They leave the list where they are, the last of a list first.
    leaving: Vec<&'f Found>,
    /// They belong to another list than where they were found.
    moving: Vec<&'f Found>,
    /// The filter does not have them.
    newcomers: Vec<&'f Found>,
}

impl<G: Ground, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// Makes filter and remote agree at these addresses, and at those that keys found there belong to.
    pub(super) fn resync(&mut self, addresses: &[u64], full: FullError) -> Outcome<Resync, R> {
        let lists = self.gather(addresses)?;
        let found: Vec<&Found> = lists.values().flatten().collect();
        let mut claims = Claims::new();
        let sorted = self.sort(&found, &mut claims);
        let quotients = lists.keys().filter_map(|&address| self.local.quotient_at(address));
        let in_table = quotients.filter(|&quotient| quotient < self.local.quotients());
        let stored: usize = in_table.map(|quotient| self.local.ground.stored_at(quotient)).sum();
        if claims.total() < stored {
            return Ok(Resync::InQuestion { slots: stored - claims.total() });
        }
        if full.len + sorted.newcomers.len() > full.capacity && !sorted.newcomers.is_empty() {
            return Err(full.into());
        }
        for found in sorted.leaving {
            self.remove(found.address, found.rank, &found.key);
        }
        for found in sorted.moving {
            self.push(self.local.address(found.fingerprint.quotient()), &found.key);
        }
        for found in sorted.newcomers {
            self.place(&found.fingerprint, &found.key)?;
        }
        Ok(Resync::Agreed)
    }

    /// The lists at these addresses, and at the homes of all keys found there. Addresses of other generations are not
    /// the filter's.
    fn gather(&mut self, addresses: &[u64]) -> Outcome<BTreeMap<u64, Vec<Found>>, R> {
        let mut lists = BTreeMap::new();
        let mut open = addresses.to_vec();
        while let Some(address) = open.pop() {
            if lists.contains_key(&address) || self.local.quotient_at(address).is_none() {
                continue;
            }
            let keys = self.unchecked(address)?.into_iter().enumerate();
            let found = keys.map(|(rank, key)| {
                let fingerprint = self.local.fingerprint(self.local.functions.hasher().digest(&key));
                Found { address, rank, key, fingerprint }
            });
            let found: Vec<Found> = found.collect();
            open.extend(found.iter().map(|found| self.local.address(found.fingerprint.quotient())));
            lists.insert(address, found);
        }
        Ok(lists)
    }

    /// Finds out for each key whether the filter has it, and where it should be listed.
    fn sort<'f>(&self, found: &[&'f Found], claims: &mut Claims<G::Spot>) -> Sorted<'f> {
        let (mut sorted, mut seen) = (Sorted::default(), BTreeSet::new());
        for &found in found {
            let first = seen.insert(&found.key);
            let known = first && claims.claim(&self.local.ground, &found.fingerprint).is_some();
            let home = self.local.address(found.fingerprint.quotient());
            if first && !known {
                sorted.newcomers.push(found);
            } else if known && home != found.address {
                sorted.moving.push(found);
            }
            // A newcomer is listed anew when it is placed.
            if !known || home != found.address {
                sorted.leaving.push(found);
            }
        }
        sorted.leaving.reverse();
        sorted
    }
}
