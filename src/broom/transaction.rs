//! Changes that succeed or fail as a whole, in the filter and in the remote.
//!
//! An operation that needs the remote changes the filter as it goes and writes down how to take each step back;
//! what it has to change in the remote it collects. At the end one group of changes goes to the remote. If that,
//! or a read before it, fails, the steps are taken back.

use crate::{AdaptiveError, Change, KeyHasher, Remote};

use super::fingerprint::{Fingerprint, Local, Spot};
use crate::bits::BitString;

/// How to take a step back.
#[derive(Debug)]
enum Undo {
    Placed(Fingerprint),
    Unplaced { key: Fingerprint, len: u32, primary: bool },
    Extended(Fingerprint, u32),
    Killed { quotient: u64, function: u64, ghosts: Vec<BitString> },
}

/// A change that the remote does not know of yet.
#[derive(Debug)]
enum Pending {
    Push { address: u64, key: Vec<u8> },
    Remove { address: u64, rank: usize, key: Vec<u8> },
}

/// How far a transaction was at some time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    undo: usize,
    pending: usize,
    position: (u64, u64),
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Transaction<'t, H, R> {
    pub(super) local: &'t mut Local<H>,
    remote: &'t mut R,
    pending: Vec<Pending>,
    undo: Vec<Undo>,
}

/// The keys of one address.
pub(super) type List = Vec<Vec<u8>>;

pub(super) type Outcome<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

/// Does what `steps` say, or nothing.
pub(super) fn atomically<H: KeyHasher, R: Remote, T>(
    local: &mut Local<H>,
    remote: &mut R,
    steps: impl FnOnce(&mut Transaction<'_, H, R>) -> Outcome<T, R>,
) -> Outcome<T, R> {
    let mut transaction = Transaction { local, remote, pending: Vec::new(), undo: Vec::new() };
    let start = transaction.mark();
    let result = steps(&mut transaction).and_then(|value| transaction.commit().map(|()| value));
    if result.is_err() {
        transaction.back_to(start);
    }
    result
}

impl<H: KeyHasher, R: Remote> Transaction<'_, H, R> {
    /// The keys at an address, as they will be after the changes so far.
    pub(super) fn list(&mut self, address: u64) -> Outcome<List, R> {
        let mut keys = Vec::new();
        self.remote.read(address, &mut |key| keys.push(key.to_vec())).map_err(AdaptiveError::Remote)?;
        for change in &self.pending {
            match change {
                Pending::Push { address: at, key } if *at == address => keys.push(key.clone()),
                Pending::Remove { address: at, rank, .. } if *at == address && *rank < keys.len() => {
                    keys.remove(*rank);
                }
                _ => {}
            }
        }
        Ok(keys)
    }

    /// Which of the keys of an address is the one in `spot`.
    pub(super) fn owner(&self, address: u64, list: &List, spot: Spot) -> Outcome<Fingerprint, R> {
        let hasher = self.local.functions.hasher();
        let mut stored = list.iter().map(|key| self.local.fingerprint(hasher.digest(key)));
        let owner = stored.find(|key| key.quotient() == address && self.local.find(key) == Some(spot));
        owner.ok_or_else(|| {
            let expected = self.local.table().run(address).map_or(0, |run| run.len()).max(list.len() + 1);
            AdaptiveError::Inconsistent { address, expected, found: list.len() }
        })
    }

    /// Extends the fingerprint of `owner`, which is a prefix of the key, until it is not. `false` if the two
    /// cannot be told apart.
    pub(super) fn tell_apart(&mut self, owner: &Fingerprint, key: &Fingerprint) -> bool {
        let common = owner.tail.common(key.tail);
        if common >= owner.tail.len() {
            return false;
        }
        let old = self.local.set_length(owner, common + 1);
        self.undo.push(Undo::Extended(*owner, old));
        true
    }

    /// Makes way for a newcomer and stores it. `false`, and only the way is made, if there is no place for it.
    pub(super) fn place(&mut self, fingerprint: &Fingerprint, key: &[u8]) -> Outcome<bool, R> {
        let address = fingerprint.quotient();
        if let Some(spot) = self.local.find(fingerprint) {
            let list = self.list(address)?;
            let owner = self.owner(address, &list, spot)?;
            self.tell_apart(&owner, fingerprint);
        }
        let len = self.local.free_length(fingerprint);
        if !self.local.place(fingerprint, len) {
            return Ok(false);
        }
        self.undo.push(Undo::Placed(*fingerprint));
        self.pending.push(Pending::Push { address, key: key.to_vec() });
        Ok(true)
    }

    /// Takes a stored key out, which is the `rank`-th at its address.
    pub(super) fn unplace(&mut self, fingerprint: &Fingerprint, rank: usize, key: &[u8]) {
        let (string, primary) = self.local.unplace(fingerprint);
        self.undo.push(Undo::Unplaced { key: *fingerprint, len: string.len(), primary });
        self.pending.push(Pending::Remove { address: fingerprint.quotient(), rank, key: key.to_vec() });
    }

    /// Lets the ghosts of a quotient and a function die; returns how many there were.
    pub(super) fn kill_ghosts(&mut self, quotient: u64, function: u64) -> usize {
        let ghosts = self.local.ghosts.kill(quotient, function);
        let count = ghosts.len();
        if count > 0 {
            self.undo.push(Undo::Killed { quotient, function, ghosts });
        }
        count
    }

    pub(super) fn mark(&self) -> Mark {
        let position = self.local.functions.position();
        Mark { undo: self.undo.len(), pending: self.pending.len(), position }
    }

    /// Takes all steps since the mark back.
    pub(super) fn back_to(&mut self, mark: Mark) {
        for step in self.undo.drain(mark.undo..).rev() {
            match step {
                Undo::Placed(key) => {
                    self.local.unplace(&key);
                }
                Undo::Unplaced { key, len, primary } => {
                    // The place that it left is free again by now.
                    let local = &mut *self.local;
                    let back = if primary {
                        local.place_primary(&key, len)
                    } else {
                        local.place_overflow(&key, len)
                    };
                    debug_assert!(back, "nobody else took the place of a key");
                }
                Undo::Extended(key, len) => {
                    self.local.set_length(&key, len);
                }
                Undo::Killed { quotient, function, ghosts } => {
                    ghosts.into_iter().for_each(|bits| self.local.ghosts.add(quotient, function, bits));
                }
            }
        }
        self.pending.truncate(mark.pending);
        self.local.functions.set_position(mark.position);
    }

    /// Tells the remote of everything.
    fn commit(&mut self) -> Outcome<(), R> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let changes = self.pending.iter().map(|change| match change {
            Pending::Push { address, key } => Change::Push { address: *address, key },
            Pending::Remove { address, rank, key } => Change::Remove { address: *address, rank: *rank, key },
        });
        self.remote.apply(&changes.collect::<Vec<_>>()).map_err(AdaptiveError::Remote)
    }
}
