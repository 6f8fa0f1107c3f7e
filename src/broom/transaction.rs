//! Changes that succeed or fail as a whole, in the filter and in the remote.
//!
//! Insertions of keys that collide with nothing, and removals, are planned, written to the remote and only then made
//! in the filter. Where the frontier moves this does not do: what one step has to read depends on what the step
//! before it did. Such an operation changes the filter as it goes and writes down how to take each step back; what
//! it has to change in the remote it collects, and at the end one group of changes goes there. Unless that succeeds,
//! the steps are taken back: after an error, and when a panic of the remote unwinds. Nobody sees the filter in
//! between, because the operation has borrowed it.
//!
//! **Taking back is exact.** Steps are taken back last one first, so each finds the filter as it left it. How the runs
//! of a table lie follows from how long they are, so a fingerprint that comes back to its level finds the room that it
//! left there. In the back yard a key has a choice of places, so it is the place itself that is written down: put back
//! anywhere else, it could take the place of the next one to come back. A back yard that grows gives all keys other
//! places, so the one that it was is kept until the end: when all that came later was taken back, it holds the
//! same keys, where the steps before left them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::bits::BitString;
use crate::{AdaptiveError, Change, KeyHasher, Remote, RemoteResult};

use super::fingerprint::{Fingerprint, TAIL_BITS};
use super::functions::Step;
use super::lists::{self, Home, Pairs, Stored, StoredOn};
use super::local::Local;
use super::table::{BroomTable, NoMemory, Room};

/// How to take a step back.
#[derive(Debug)]
enum Undo<G: BroomTable> {
    Placed { key: Fingerprint, site: G::Site },
    Taken { key: Fingerprint, len: u32, site: G::Site },
    Extended { key: Fingerprint, len: u32 },
    Killed { step: Step, function: u64, ghosts: Vec<BitString> },
    Grown { outgrown: G::Outgrown },
}

/// Pairs that were read ahead: all of a range.
#[derive(Debug)]
struct Ahead {
    addresses: RangeInclusive<u64>,
    pairs: Pairs,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Transaction<'t, G: BroomTable, H: KeyHasher, R: Remote> {
    pub(super) local: &'t mut Local<G, H>,
    remote: &'t mut R,
    /// Changes that the remote does not know of yet: whether a pair is to be there.
    pending: BTreeMap<(u64, Vec<u8>), bool>,
    ahead: Option<Ahead>,
    undo: Vec<Undo<G>>,
    /// Where the frontier was.
    position: (u64, u64),
}

/// Does what `steps` say, or nothing.
pub(super) fn atomically<G: BroomTable, H: KeyHasher, R: Remote, T>(
    local: &mut Local<G, H>,
    remote: &mut R,
    steps: impl FnOnce(&mut Transaction<'_, G, H, R>) -> RemoteResult<T, R>,
) -> RemoteResult<T, R> {
    let position = local.functions.position();
    local.table.begin();
    let (pending, undo) = (BTreeMap::new(), Vec::new());
    let mut transaction = Transaction { local, remote, pending, ahead: None, undo, position };
    let value = steps(&mut transaction)?;
    transaction.commit()?;
    Ok(value)
}

/// Whatever was not committed is taken back, when a panic unwinds as well.
impl<G: BroomTable, H: KeyHasher, R: Remote> Drop for Transaction<'_, G, H, R> {
    fn drop(&mut self) {
        self.take_back();
        self.local.table.end();
    }
}

impl<G: BroomTable, H: KeyHasher, R: Remote> Transaction<'_, G, H, R> {
    /// The keys of a quotient, as they will be after the changes so far, each with its fingerprint: those that have
    /// none get one.
    pub(super) fn list(&mut self, quotient: u64) -> RemoteResult<Vec<StoredOn<G>>, R> {
        self.list_but(quotient, None)
    }

    /// The same, but one key, whose turn comes last, may stay without.
    pub(super) fn list_but(
        &mut self,
        quotient: u64,
        but: Option<&[u8]>,
    ) -> RemoteResult<Vec<StoredOn<G>>, R> {
        loop {
            let mut home = self.home_of(quotient, but)?;
            home.homeless.retain(|(key, _)| Some(key.as_slice()) != but);
            let Some((key, fingerprint)) = home.homeless.pop() else { return Ok(home.stored) };
            self.settle_in(&fingerprint, &key, &home.stored)?;
        }
    }

    /// The keys of a quotient, as they will be after the changes so far, of which `last` is the last to be paired.
    pub(super) fn home_of(&mut self, quotient: u64, last: Option<&[u8]>) -> RemoteResult<Home<G::Spot>, R> {
        let pairs = self.read(self.local.addresses(quotient))?;
        Ok(self.local.paired(pairs, last))
    }

    /// The pairs of a range, as they will be after the changes so far.
    pub(super) fn read(&mut self, addresses: RangeInclusive<u64>) -> RemoteResult<Pairs, R> {
        let (start, end) = (*addresses.start(), *addresses.end());
        let covers = |ahead: &&Ahead| *ahead.addresses.start() <= start && *ahead.addresses.end() >= end;
        let mut pairs = match self.ahead.as_ref().filter(covers) {
            Some(Ahead { pairs, .. }) => {
                let (first, behind) = (
                    pairs.partition_point(|pair| pair.0 < start),
                    pairs.partition_point(|pair| pair.0 <= end),
                );
                pairs[first..behind].to_vec()
            }
            None => lists::read(addresses, self.remote)?,
        };
        for ((address, key), &there) in self.pending.range((start, Vec::new())..) {
            if *address > end {
                break;
            }
            let is_it = |pair: &(u64, Vec<u8>)| pair.0 == *address && pair.1 == *key;
            let at = pairs.iter().position(is_it);
            match (at, there) {
                (None, true) => pairs.push((*address, key.clone())),
                (Some(at), false) => drop(pairs.remove(at)),
                _ => {}
            }
        }
        Ok(pairs)
    }

    /// Reads a range that is going to be read in parts.
    pub(super) fn read_ahead(&mut self, addresses: RangeInclusive<u64>) -> RemoteResult<(), R> {
        let mut pairs = lists::read(addresses.clone(), self.remote)?;
        // As they should come.
        pairs.sort_unstable();
        self.ahead = Some(Ahead { addresses, pairs });
        Ok(())
    }

    /// Whether a range was read ahead.
    pub(super) fn has_ahead(&self, addresses: &RangeInclusive<u64>) -> bool {
        let covers = |ahead: &Ahead| {
            ahead.addresses.start() <= addresses.start() && ahead.addresses.end() >= addresses.end()
        };
        self.ahead.as_ref().is_some_and(covers)
    }

    /// Which key of a list is the one in `spot`.
    pub(super) fn owner(
        &self,
        list: &[StoredOn<G>],
        spot: G::Spot,
        quotient: u64,
    ) -> RemoteResult<Fingerprint, R> {
        let owner = list.iter().find(|stored| stored.spot == spot);
        let owner = owner.map(|stored| stored.fingerprint);
        owner.ok_or_else(|| self.local.inconsistent(quotient, list.len()))
    }

    /// Extends the fingerprint of `owner`, which is a prefix of the key, until it is not, and by so many bits more; to
    /// its end if the two cannot be told apart.
    pub(super) fn tell_apart(&mut self, owner: &Fingerprint, key: &Fingerprint, extra: u32) {
        let common = owner.tail.common(key.tail);
        let len = self.local.table.set_length(owner, (common + 1 + extra).min(TAIL_BITS));
        self.undo.push(Undo::Extended { key: *owner, len });
    }

    /// Makes way for a newcomer and stores it.
    pub(super) fn place(&mut self, fingerprint: &Fingerprint, key: &[u8]) -> RemoteResult<(), R> {
        if self.local.table.find(fingerprint).is_some() {
            let mut list = self.list_but(fingerprint.quotient(), Some(key))?;
            // A row of its own that is there already speaks for no fingerprint.
            list.retain(|stored| stored.key != key);
            return self.settle_in(fingerprint, key, &list);
        }
        self.settle_in(fingerprint, key, &[])
    }

    /// The same where the keys of the quotient are known.
    fn settle_in(
        &mut self,
        fingerprint: &Fingerprint,
        key: &[u8],
        list: &[StoredOn<G>],
    ) -> RemoteResult<(), R> {
        if let Some(spot) = self.local.table.find(fingerprint) {
            let accepted = |stored: &&StoredOn<G>| self.local.table.find(&stored.fingerprint) == Some(spot);
            let owner = list.iter().find(accepted).map(|stored| stored.fingerprint);
            // Nobody can tell a newcomer from a key that is not there. If it was there after all, both would have one
            // fingerprint, which goes with the first of them.
            let owner = owner.ok_or_else(|| self.local.inconsistent(fingerprint.quotient(), list.len()))?;
            if G::is_extensible(spot) {
                self.tell_apart(&owner, fingerprint, 0);
            }
        }
        let len = self.local.free_length(fingerprint);
        let placed = self.local.table.put(fingerprint, len);
        let Room { site, outgrown } = placed.map_err(|NoMemory| self.local.out_of_memory())?;
        if let Some(outgrown) = outgrown {
            self.undo.push(Undo::Grown { outgrown });
        }
        self.undo.push(Undo::Placed { key: *fingerprint, site });
        self.set(self.local.address(fingerprint), key, true);
        Ok(())
    }

    /// Takes a stored key out.
    pub(super) fn take(&mut self, Stored { key, fingerprint, .. }: &StoredOn<G>) {
        // Not where it was when the list was read: keys of one digest are found in one place until that is empty.
        let Some(site) = self.local.table.find(fingerprint).map(G::site) else {
            debug_assert!(false, "the key was found when its list was read");
            return;
        };
        let len = self.local.table.take(fingerprint, site).len();
        self.undo.push(Undo::Taken { key: *fingerprint, len, site });
        self.set(self.local.address(fingerprint), key, false);
    }

    /// Takes out the fingerprints of a quotient that none of its keys has, but those that do not stand for themselves:
    /// those of keys with one digest cannot be told apart.
    pub(super) fn drop_spares(&mut self, quotient: u64) -> RemoteResult<(), R> {
        let keys: Vec<Fingerprint> =
            self.home_of(quotient, None)?.stored.into_iter().map(|stored| stored.fingerprint).collect();
        while self.local.table.stored_at(quotient) > keys.len() {
            // What stands behind a fingerprint that goes moves.
            let table = &self.local.table;
            let (claimed, items) = (table.claim_all(&keys), table.items_of(quotient));
            let spare = items.into_iter().find(|(spot, item)| {
                let alone = !G::is_extensible(*spot) || table.find(item) == Some(*spot);
                alone && !claimed.contains(&Some(*spot))
            });
            let Some((spot, key)) = spare else { break };
            let site = G::site(spot);
            let len = self.local.table.take(&key, site).len();
            self.undo.push(Undo::Taken { key, len, site });
        }
        Ok(())
    }

    /// A pair is to be in the remote, or not.
    pub(super) fn set(&mut self, address: u64, key: &[u8], there: bool) {
        self.pending.insert((address, key.to_vec()), there);
    }

    /// Lets the ghosts of a step and a function die; returns how many there were.
    pub(super) fn kill_ghosts(&mut self, step: Step, function: u64) -> usize {
        let ghosts = self.local.table.kill_ghosts(step, function);
        let count = ghosts.len();
        if count > 0 {
            self.undo.push(Undo::Killed { step, function, ghosts });
        }
        count
    }

    /// Takes all steps back that were not committed.
    fn take_back(&mut self) {
        for step in self.undo.drain(..).rev() {
            match step {
                Undo::Placed { key, site } => {
                    self.local.table.take(&key, site);
                }
                Undo::Taken { key, len, site } => self.local.table.restore(&key, len, site),
                Undo::Extended { key, len } => {
                    self.local.table.set_length(&key, len);
                }
                Undo::Killed { step, function, ghosts } => {
                    ghosts.into_iter().for_each(|bits| self.local.add_ghost(step, function, bits));
                }
                Undo::Grown { outgrown } => self.local.table.shrink(outgrown),
            }
        }
        self.local.functions.set_position(self.position);
    }

    /// Tells the remote of everything. If that succeeds there is no way back.
    fn commit(&mut self) -> RemoteResult<(), R> {
        if !self.pending.is_empty() {
            let changes = self.pending.iter().map(|(&(address, ref key), &there)| match there {
                true => Change::Insert { address, key },
                false => Change::Remove { address, key },
            });
            self.remote.apply(&changes.collect::<Vec<_>>()).map_err(AdaptiveError::Remote)?;
        }
        self.undo.clear();
        self.position = self.local.functions.position();
        Ok(())
    }
}
