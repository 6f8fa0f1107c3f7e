//! What the remote says, and whether it can be so.
//!
//! The list of an address must hold exactly the keys that the filter has there: each at home at the address, each
//! matched by a stored fingerprint that no other one is matched by, and as many as there are fingerprints. The
//! filter knows all of that of itself, whatever level its keys are on, so a list that lacks a key, has one too many or
//! has another one is noticed, but for a stranger whose hash begins with the fingerprint of the key that it replaces.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::{AdaptiveError, KeyHasher, Remote};

use super::fingerprint::Fingerprint;
use super::ground::Ground;
use super::local::Local;

/// The keys of one address.
pub(super) type List = Vec<Vec<u8>>;

pub(super) type Outcome<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

/// A key of a list, and where the filter has it.
#[derive(Debug, Clone)]
pub(super) struct Stored<S> {
    pub(super) key: Vec<u8>,
    pub(super) fingerprint: Fingerprint,
    pub(super) spot: S,
}

/// A key that a ground has.
pub(super) type StoredOn<G> = Stored<<G as Ground>::Spot>;

/// Which stored fingerprints keys were found for.
#[derive(Debug)]
pub(super) struct Claims<S> {
    /// By spot: how many keys claimed it. More than one only if they have the same digest, and stand in as many spots, of
    /// which a search finds the first.
    owners: BTreeMap<S, usize>,
    total: usize,
}

impl<S: Copy + Ord> Claims<S> {
    pub(super) fn new() -> Self {
        Self { owners: BTreeMap::new(), total: 0 }
    }

    /// Where the filter has the key of this fingerprint; `None` if nowhere, or if that is another key's place.
    pub(super) fn claim<G: Ground<Spot = S>>(&mut self, ground: &G, key: &Fingerprint) -> Option<S> {
        let spot = ground.find(key)?;
        let owners = self.owners.entry(spot).or_default();
        if *owners > 0 && *owners >= ground.count_matches(key) {
            return None;
        }
        *owners += 1;
        self.total += 1;
        Some(spot)
    }

    /// For how many fingerprints a key was found.
    pub(super) fn total(&self) -> usize {
        self.total
    }
}

/// Whether a list has a key twice.
fn has_twice(keys: &[Vec<u8>]) -> bool {
    let mut sorted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The keys at an address, unchecked.
pub(super) fn read<R: Remote>(address: u64, remote: &mut R) -> Outcome<List, R> {
    let mut keys = Vec::new();
    remote.read(address, &mut |key| keys.push(key.to_vec())).map_err(AdaptiveError::Remote)?;
    Ok(keys)
}

impl<G: Ground, H: KeyHasher> Local<G, H> {
    /// The keys of a quotient.
    pub(super) fn list<R: Remote>(&self, quotient: u64, remote: &mut R) -> Outcome<Vec<StoredOn<G>>, R> {
        self.checked(quotient, read(self.address(quotient), remote)?)
    }

    /// These keys with their places, if they are the keys of this quotient.
    pub(super) fn checked<E>(&self, quotient: u64, keys: List) -> Result<Vec<StoredOn<G>>, AdaptiveError<E>> {
        let (address, expected) = (self.address(quotient), self.ground.stored_at(quotient));
        if keys.len() != expected {
            return Err(AdaptiveError::Inconsistent { address, expected, found: keys.len() });
        }
        // As many as there should be, but one that should not.
        let wrong = || AdaptiveError::Inconsistent { address, expected, found: expected - 1 };
        let fingerprint = |key: &Vec<u8>| self.fingerprint(self.functions.hasher().digest(key));
        let prints: Vec<Fingerprint> = keys.iter().map(fingerprint).collect();
        if prints.iter().any(|print| print.quotient() != quotient) || has_twice(&keys) {
            return Err(wrong());
        }
        let spots = self.ground.claim_all(&prints).ok_or_else(wrong)?;
        let stored = keys.into_iter().zip(prints).zip(spots);
        Ok(stored.map(|((key, fingerprint), spot)| Stored { key, fingerprint, spot }).collect())
    }

    /// Fails for the first quotient of this range that has keys: the remote has none.
    fn check_empty<E>(&self, quotients: std::ops::Range<u64>) -> Result<(), AdaptiveError<E>> {
        for quotient in quotients {
            let (address, expected) = (self.address(quotient), self.ground.stored_at(quotient));
            if expected > 0 {
                return Err(AdaptiveError::Inconsistent { address, expected, found: 0 });
            }
        }
        Ok(())
    }

    /// Whether the remote holds exactly the keys of this filter, list by list in one scan. Lists of other generations
    /// are what a growth has left behind: nobody reads them.
    pub(super) fn verify_remote<R: Remote>(&self, remote: &mut R) -> Outcome<(), R> {
        let mut walk = Walk { next: 0, quotient: 0, keys: Vec::new() };
        let mut result = Ok(());
        let mut visit = |address: u64, key: &[u8]| {
            let Some(quotient) = self.quotient_at(address) else { return ControlFlow::Continue(()) };
            if quotient != walk.quotient {
                result = walk.close(self);
                walk.quotient = quotient;
            }
            walk.keys.push(key.to_vec());
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        remote.scan(&mut visit).map_err(AdaptiveError::Remote)?;
        result?;
        walk.close(self)?;
        self.check_empty(walk.next..self.quotients())
    }
}

/// How far a scan of the remote has come.
struct Walk {
    /// All quotients below were compared.
    next: u64,
    /// Whose keys are being read.
    quotient: u64,
    keys: List,
}

impl Walk {
    /// Compares the list that was read, and those that were not because they are empty.
    fn close<G: Ground, H: KeyHasher, E>(&mut self, local: &Local<G, H>) -> Result<(), AdaptiveError<E>> {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return Ok(());
        }
        if self.quotient < self.next || self.quotient >= local.quotients() {
            // The remote comes back to an address, or has one that no key of the filter can have.
            let address = local.address(self.quotient);
            return Err(AdaptiveError::Inconsistent { address, expected: 0, found: keys.len() });
        }
        local.check_empty(self.next..self.quotient)?;
        self.next = self.quotient + 1;
        local.checked(self.quotient, keys).map(drop)
    }
}
