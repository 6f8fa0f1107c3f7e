//! The broom filter's verbs, on whichever table.

use std::ops::RangeInclusive;

use crate::filter::{Adaptation, Adaptive, Filter, FilterStats, clear_remote, collision_rate};
use crate::{
    AdaptiveError, Authority, BuildError, Change, Digest, FullError, Growable, InvariantError, Key,
    KeyHasher, Remote, Settled,
};

use super::addresses;
use super::builder::Blueprint;
use super::columns::{CROWDING, Columns};
use super::filter::BroomLevels;
use super::fingerprint::{Fingerprint, Remainders};
use super::local::Local;
use super::table::{BroomTable, Levels, NoMemory, PlaceOn};
use super::transaction::atomically;
use crate::RemoteResult;

/// A broom filter on a table; see [`BroomFilter`](super::BroomFilter).
#[derive(Debug, Clone)]
pub(super) struct Core<G: BroomTable, H> {
    pub(super) local: Local<G, H>,
    pub(super) blueprint: Blueprint<G::Cut>,
    pub(super) capacity: usize,
    pub(super) growable: bool,
    pub(super) adaptations: u64,
    pub(super) growths: u64,
}

impl<G: BroomTable, H: KeyHasher> Core<G, H> {
    pub(super) fn from_blueprint(
        blueprint: Blueprint<G::Cut>,
        capacity: usize,
        growable: bool,
        hasher: H,
        phase: u64,
    ) -> Result<Self, BuildError> {
        let local = Local::new(blueprint, capacity, hasher, phase)?;
        Ok(Self { local, blueprint, capacity, growable, adaptations: 0, growths: 0 })
    }

    /// An empty filter of this capacity, with hash functions that were never used.
    pub(super) fn anew(&self, capacity: usize) -> Result<Self, BuildError> {
        let ((phase, _), hasher) = (self.local.functions.position(), self.hasher().clone());
        Self::from_blueprint(self.blueprint, capacity, self.growable, hasher, phase + 2)
    }

    pub(super) fn levels(&self) -> BroomLevels {
        let (phase, frontier) = self.local.functions.position();
        let Levels {
            primary,
            elsewhere,
            hinted,
            bound,
            longest_shift,
            longest_secondary_shift,
            large_remainders,
        } = self.local.table.levels();
        let ([ghosts, _], budget) = (self.local.table.ghost_counts(), self.local.budget);
        let frontier = frontier as f64 / self.local.functions.walk() as f64;
        BroomLevels {
            primary,
            elsewhere,
            hinted,
            bound,
            longest_shift,
            longest_secondary_shift,
            ghosts,
            budget,
            phase,
            frontier,
            large_remainders,
        }
    }

    pub(super) fn full(&self) -> FullError {
        FullError { len: self.len(), capacity: self.capacity }
    }

    /// Where a key belongs, and a way to work out its address in the remote without the rest of its fingerprint.
    #[inline(always)]
    fn placed(&self, digest: Digest) -> (PlaceOn<G>, impl Fn() -> u64 + use<G, H>) {
        let (half, columns) = (self.local.half, self.local.functions.columns());
        let (place, function) = self.local.functions.numbered_place(digest);
        (place, move || addresses::first(half, columns, columns.column_and_class(place)) | function & 1)
    }

    /// An insertion without growth.
    #[inline(always)]
    pub(super) fn insert_in_place<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let digest = self.digest(key);
        if self.len() < self.capacity {
            let (place, address) = self.placed(digest);
            let mut written = Ok(());
            // The table asks before it changes, in the middle of the one look at it.
            let push = || {
                let address = address();
                written = remote.apply(&[Change::Insert { address, key }]);
                written.is_ok()
            };
            match self.local.table.insert_fresh(place, push) {
                Some(true) => return written.map(|()| true).map_err(AdaptiveError::Remote),
                Some(false) => {}
                None => return self.insert_by_pointer(key, remote),
            }
        }
        self.insert_anywhere(key, remote)
    }

    /// [`insert_in_place`](Self::insert_in_place) where no version for the processor is compiled into it. Apart from
    /// it, or the closure there would have to lie in memory.
    #[inline(never)]
    fn insert_by_pointer<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let ((place, address), mut written) = (self.placed(self.digest(key)), Ok(()));
        let mut push = || {
            let address = address();
            written = remote.apply(&[Change::Insert { address, key }]);
            written.is_ok()
        };
        if self.local.table.insert_fresh_by_pointer(place, &mut push) {
            return written.map(|()| true).map_err(AdaptiveError::Remote);
        }
        self.insert_anywhere(key, remote)
    }

    /// [`insert_in_place`](Self::insert_in_place) for the keys that one look does not suffice for. They are hashed once
    /// more: so the half of the digest that others do not need is computed here alone.
    #[inline(never)]
    fn insert_anywhere<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let digest = self.digest(key);
        let ((place, address), mut written) = (self.placed(digest), Ok(()));
        if self.len() < self.capacity {
            let mut push = || {
                written = remote.apply(&[Change::Insert { address: address(), key }]);
                written.is_ok()
            };
            if self.local.table.insert_fresh_full(place, &mut push) {
                return written.map(|()| true).map_err(AdaptiveError::Remote);
            }
        }
        let alone = self.local.table.is_alone(place);
        let fingerprint = (!alone || !G::PLACES_SAY_ALL).then(|| self.local.fingerprint(digest));
        if let Some(fingerprint) = &fingerprint {
            let is_met = |local: &Local<G, H>| local.table.find(fingerprint).is_some();
            if !alone && (is_met(&self.local) || self.local.free_length(fingerprint) > 0) {
                return self.insert_in_steps(key, fingerprint, remote);
            }
        }
        if self.len() >= self.capacity {
            return Err(self.full().into());
        }
        // Nothing stands in the way: the remote is written, not read.
        let push = || {
            written = remote.apply(&[Change::Insert { address: address(), key }]);
            written.is_ok()
        };
        let inserted = match &fingerprint {
            Some(fingerprint) => self.local.table.insert_bare(fingerprint, push),
            None => self.local.table.insert_at(place, push),
        };
        inserted.map_err(|NoMemory| self.local.out_of_memory())?;
        written.map(|()| true).map_err(AdaptiveError::Remote)
    }

    /// An insertion into a filter that has to grow for it.
    #[cold]
    #[inline(never)]
    fn insert_grown<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.grow(remote)?;
        self.insert_in_place(key, remote)
    }

    /// An insertion of a key that needs adaptivity bits, or that a stored fingerprint is a prefix of: the key itself,
    /// or a collision.
    fn insert_in_steps<R: Remote>(
        &mut self,
        key: &[u8],
        fingerprint: &Fingerprint,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        let full = self.full();
        atomically(&mut self.local, remote, |steps| {
            if steps.local.table.find(fingerprint).is_some() {
                let list = steps.list_but(fingerprint.quotient(), Some(key))?;
                if list.iter().any(|stored| stored.key == key) {
                    return Ok(false);
                }
            }
            if full.len >= full.capacity {
                return Err(full.into());
            }
            let bits = steps.local.adaptivity_bits();
            steps.place(fingerprint, key)?;
            steps.reclaim(bits)?;
            Ok(true)
        })
    }
}

/// The digest of a key that was hashed before. Out of line, or the compiler would find that both are one, and compute
/// the half that nearly no query needs.
#[cold]
#[inline(never)]
fn digest_again<H: KeyHasher, K: Key + ?Sized>(hasher: &H, key: &K) -> Digest {
    hasher.digest_key(key)
}

/// What was counted, and where lists lie in the remote, does not matter.
impl<G: BroomTable, H: KeyHasher> PartialEq for Core<G, H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| (filter.blueprint, filter.capacity, filter.growable);
        parameters(self) == parameters(other) && self.local == other.local
    }
}

impl<G: BroomTable, H: KeyHasher> Filter for Core<G, H> {
    type Hasher = H;
    type Place = PlaceOn<G>;

    #[inline]
    fn hasher(&self) -> &H {
        self.local.functions.hasher()
    }

    #[inline(always)]
    fn place(&self, digest: Digest) -> PlaceOn<G> {
        self.local.functions.place(digest)
    }

    #[inline]
    fn prefetch(&self, place: PlaceOn<G>) {
        self.local.table.prefetch(place);
    }

    #[inline(always)]
    fn contains_at(&self, place: PlaceOn<G>, digest: impl FnOnce() -> Digest) -> bool {
        G::contains(&self.local, place, digest)
    }

    /// Nearly always the upper half of the digest is enough, and the hash need not compute the other one. In the
    /// few other cases the key is hashed once more.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.place(self.hasher().digest_key(key)), || digest_again(self.hasher(), key))
    }

    #[inline]
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        G::contains_many(&self.local, keys, answers);
    }

    #[inline]
    fn len(&self) -> usize {
        self.local.table.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn false_positive_rate(&self) -> f64 {
        let Remainders { table_bits, rest_bits } = G::remainders(self.blueprint.cut);
        let quotients = self.local.functions.columns().quotients();
        (CROWDING * collision_rate(self.capacity, quotients, table_bits + rest_bits)).min(1.0)
    }

    fn stats(&self) -> FilterStats {
        let table = &self.local.table;
        let (items, slots) = (self.len(), table.slots());
        let ([adapted_slots, _], [ghosts, ghost_bits]) = (table.string_counts(), table.ghost_counts());
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: table.memory_bits(),
            adaptations: self.adaptations,
            adapted_slots,
            adaptivity_bits: self.local.adaptivity_bits(),
            ghosts,
            ghost_bits,
            rebuilds: self.growths,
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.local.verify()
    }
}

impl<G: BroomTable, H: KeyHasher> Adaptive for Core<G, H> {
    #[inline(always)]
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        match self.insert_in_place(key, remote) {
            Err(AdaptiveError::Full(_)) if self.growable => self.insert_grown(key, remote),
            result => result,
        }
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let fingerprint = self.local.fingerprint(self.digest(key));
        if self.local.table.find(&fingerprint).is_none() {
            return Ok(false);
        }
        let home = self.local.home_of(fingerprint.quotient(), Some(key), remote)?;
        let stored = home.stored.iter().find(|stored| stored.key == key);
        if stored.is_none() && home.homeless.iter().all(|(homeless, _)| homeless != key) {
            return Ok(false);
        }
        let address = self.local.address(&fingerprint);
        remote.apply(&[Change::Remove { address, key }]).map_err(AdaptiveError::Remote)?;
        // The filter may never have heard of it, though its row was there.
        let Some(site) = stored.map(|stored| G::site(stored.spot)) else { return Ok(false) };
        let bits = self.local.table.take(&fingerprint, site);
        self.local.add_ghost(fingerprint.step(), fingerprint.function, bits);
        Ok(true)
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        let digest = self.digest(key);
        let adaptation = atomically(&mut self.local, remote, |steps| {
            let mut slots = 0;
            // A second turn only if the frontier has just passed the key, which then is a stranger to all
            // that is stored and may be unlucky once more.
            while let Some((fingerprint, spot)) = {
                let fingerprint = steps.local.fingerprint(digest);
                steps.local.table.find(&fingerprint).map(|spot| (fingerprint, spot))
            } {
                let list = steps.list(fingerprint.quotient())?;
                if list.iter().any(|stored| stored.key == key) {
                    return Ok(Adaptation::NotFalsePositive);
                }
                let owner = steps.owner(&list, spot, fingerprint.quotient())?;
                // Keys of one digest have no other bits.
                if !G::is_extensible(spot) || owner.tail == fingerprint.tail {
                    return Ok(Adaptation::Unfixable);
                }
                let bits = steps.local.adaptivity_bits();
                steps.tell_apart(&owner, &fingerprint, steps.local.extra);
                slots += 1;
                if slots == 1 {
                    steps.reclaim(bits)?;
                }
            }
            Ok(if slots == 0 { Adaptation::NotFalsePositive } else { Adaptation::Fixed { slots } })
        })?;
        self.adaptations += u64::from(adaptation.is_fixed());
        Ok(adaptation)
    }

    /// Repairs are forgotten with the hash functions that they were made under.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        let empty = self.emptied().map_err(|_| self.local.out_of_memory())?;
        clear_remote(remote)?;
        self.local = empty.local;
        Ok(())
    }

    /// Pairs that are not at their keys' addresses, which a growth that failed has left behind, are no disagreement.
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        self.local.verify_remote(remote)
    }

    /// Pairs that are not at their keys' addresses move there. Whoever drives a filter that moves keys settles all
    /// addresses of the group that failed.
    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        self.settle_range(addresses, authority, remote)
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        Some(self.local.home(digest))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        self.anew(self.capacity)
    }
}
