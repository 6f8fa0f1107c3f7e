//! What the remote says of a quotient, and how it goes with what the filter has there.
//!
//! Keys and fingerprints are *paired* so that each key has a fingerprint of its own that is a prefix of its hash. Since
//! no fingerprint is a prefix of another, a key has at most one to be paired with, whatever the order. A key that is
//! left over has no fingerprint: its row was written by an operation that failed, or another key has taken its place in
//! the pairing, which is as good. A fingerprint that is left over has lost its row: nobody knows whose it is.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use crate::{AdaptiveError, KeyHasher, Remote, RemoteResult};

use super::fingerprint::Fingerprint;
use super::local::Local;
use super::table::BroomTable;

/// Pairs of the remote.
pub(super) type Pairs = Vec<(u64, Vec<u8>)>;

/// A key that the filter has, and where.
#[derive(Debug, Clone)]
pub(super) struct Stored<S> {
    pub(super) key: Vec<u8>,
    pub(super) fingerprint: Fingerprint,
    pub(super) spot: S,
}

/// A key that a table has.
pub(super) type StoredOn<G> = Stored<<G as BroomTable>::Spot>;

/// The keys of a quotient.
#[derive(Debug)]
pub(super) struct Home<S> {
    pub(super) stored: Vec<Stored<S>>,
    /// Those without a fingerprint.
    pub(super) homeless: Vec<(Vec<u8>, Fingerprint)>,
}

/// Which stored fingerprints keys were found for.
#[derive(Debug)]
pub(super) struct Claims<S> {
    /// By spot: how many keys claimed it. More than one only if they have the same digest, and stand in as many spots,
    /// of which a search finds the first.
    owners: BTreeMap<S, usize>,
}

impl<S: Copy + Ord> Claims<S> {
    pub(super) fn new() -> Self {
        Self { owners: BTreeMap::new() }
    }

    /// Where the filter has the key of this fingerprint; `None` if nowhere, or if that is another key's place.
    pub(super) fn claim<G: BroomTable<Spot = S>>(&mut self, table: &G, key: &Fingerprint) -> Option<S> {
        let spot = table.find(key)?;
        let owners = self.owners.entry(spot).or_default();
        if *owners > 0 && *owners >= table.count_matches(key) {
            return None;
        }
        *owners += 1;
        Some(spot)
    }
}

/// The pairs of a range.
pub(super) fn read<R: Remote>(addresses: RangeInclusive<u64>, remote: &mut R) -> RemoteResult<Pairs, R> {
    let mut pairs = Vec::new();
    let visit = &mut |address: u64, key: &[u8]| {
        pairs.push((address, key.to_vec()));
        ControlFlow::Continue(())
    };
    remote.range(addresses, visit).map_err(AdaptiveError::Remote)?;
    Ok(pairs)
}

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// The keys of a quotient, of which `last` is the last to be paired.
    pub(super) fn home_of<R: Remote>(
        &self,
        quotient: u64,
        last: Option<&[u8]>,
        remote: &mut R,
    ) -> RemoteResult<Home<G::Spot>, R> {
        Ok(self.paired(read(self.addresses(quotient), remote)?, last))
    }

    /// The keys among these pairs of one quotient, with their places. A fingerprint that could be that of two keys is
    /// not `last`'s: the row of a key that an operation is about may be there although the filter has never heard of
    /// it.
    pub(super) fn paired(&self, mut pairs: Pairs, last: Option<&[u8]>) -> Home<G::Spot> {
        pairs.sort_by_key(|(_, key)| Some(key.as_slice()) == last);
        let at_home = |(address, key): (u64, Vec<u8>)| Some((self.at_home(address, &key)?, key));
        let (prints, keys): (Vec<Fingerprint>, Vec<Vec<u8>>) = pairs.into_iter().filter_map(at_home).unzip();
        let spots = self.table.claim_all(&prints);
        let mut home = Home { stored: Vec::with_capacity(keys.len()), homeless: Vec::new() };
        for ((key, fingerprint), spot) in keys.into_iter().zip(prints).zip(spots) {
            match spot {
                Some(spot) => home.stored.push(Stored { key, fingerprint, spot }),
                None => home.homeless.push((key, fingerprint)),
            }
        }
        home
    }

    /// What says that filter and remote disagree on a quotient.
    pub(super) fn inconsistent<E>(&self, quotient: u64, found: usize) -> AdaptiveError<E> {
        let address = *self.addresses(quotient).start();
        AdaptiveError::Inconsistent { address, expected: self.table.stored_at(quotient), found }
    }

    /// Whether every key of a quotient has a fingerprint, and every fingerprint a key.
    fn check<E>(&self, quotient: u64, pairs: Pairs) -> Result<usize, AdaptiveError<E>> {
        let Home { stored, homeless } = self.paired(pairs, None);
        if !homeless.is_empty() || stored.len() != self.table.stored_at(quotient) {
            return Err(self.inconsistent(quotient, stored.len() + homeless.len()));
        }
        Ok(stored.len())
    }

    /// Whether the remote holds exactly the keys of this filter, in one scan. Debris is no disagreement.
    pub(super) fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        let (mut quotient, mut pairs, mut found, mut result) = (0, Vec::new(), 0, Ok(()));
        let visit = &mut |address: u64, key: &[u8]| {
            if self.quotient_at(address) != quotient {
                match self.check(quotient, std::mem::take(&mut pairs)) {
                    Ok(count) => found += count,
                    Err(error) => result = Err(error),
                }
                quotient = self.quotient_at(address);
            }
            pairs.push((address, key.to_vec()));
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        remote.range(self.all_addresses(), visit).map_err(AdaptiveError::Remote)?;
        result?;
        found += self.check(quotient, pairs)?;
        if found == self.table.len() { Ok(()) } else { Err(self.first_missing(remote)) }
    }

    /// The first quotient whose keys the remote lacks.
    #[cold]
    fn first_missing<R: Remote>(&self, remote: &mut R) -> AdaptiveError<R::Error> {
        for quotient in (0..self.quotients()).filter(|&quotient| self.table.stored_at(quotient) > 0) {
            let checked =
                read(self.addresses(quotient), remote).and_then(|pairs| self.check(quotient, pairs));
            if let Err(error) = checked {
                return error;
            }
        }
        self.inconsistent(0, 0)
    }
}
