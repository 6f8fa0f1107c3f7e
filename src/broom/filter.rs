//! The broom filter's verbs.

use crate::filter::{Adaptation, Adaptive, Filter, FilterStats};
use crate::quotient::{Answer, Place};
use crate::{
    AdaptiveError, BuildError, Change, Digest, FullError, InvariantError, Key, KeyHasher, Remote, Resync,
    Xxh3,
};

use super::builder::{BroomFilterBuilder, Plan};
use super::fingerprint::{Fingerprint, Local, Overflow, Spot};
use super::level::Baseline;
use super::transaction::{List, Outcome, atomically};

/// An adaptive filter whose false-positive rate no adversary can raise: not by repeating false positives, not by
/// removing and inserting keys, not with any other sequence of operations.
///
/// Every query for a key that is not stored is a false positive with probability at most ε, whatever was asked
/// before, as long as each false positive is reported to [`adapt`](Adaptive::adapt); [`Guard`](crate::Guard) does
/// that. No repair is ever forgotten before the hash function that it was made under is given up. See the
/// [module](crate::broom) for how it works.
///
/// **Costs.** `contains` reads one cache line, nearly always, and never the remote. Reads and writes of the remote:
///
/// | operation | reads | groups of changes |
/// |---|---|---|
/// | `insert` | none; a few with probability below ε | 1 |
/// | `remove` | 1 | 1 |
/// | `adapt` | 1, and up to 12 for the keys that it carries to a fresh hash function | 1 |
///
/// Space: about 14 bits per key at the default rate of 1/256 and load 0.90, and the adaptivity bits.
///
/// **Set semantics**: a key is stored once, however often it is inserted.
///
/// ```
/// use besom::{Adaptive, BroomFilter, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = BroomFilter::builder().capacity(1000).false_positive_rate(0.1).seed(1_u64).build()?;
/// for key in 0..1000_u64 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let false_positive = (1000_u64..).find(|key| filter.contains(key)).unwrap();
/// assert!(filter.adapt(&false_positive, &mut remote)?.is_fixed());
/// assert!(!filter.contains(&false_positive));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BroomFilter<H = Xxh3> {
    pub(super) local: Local<H>,
    pub(super) plan: Plan,
    pub(super) capacity: usize,
    pub(super) max_capacity: usize,
    adaptations: u64,
    pub(super) growths: u64,
}

/// Where the keys of a [`BroomFilter`] are, and what keeping them there has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BroomLevels {
    /// Keys in the primary table.
    pub primary: usize,
    /// Keys in the secondary table, or in the back yard if remainders are large.
    pub overflow: usize,
    /// The share of all queries that have to look there too.
    pub hinted: f64,
    /// The most slots that any insertion or removal can touch in the primary table.
    pub bound: u64,
    /// The most slots that one did touch so far.
    pub longest_shift: u64,
    /// The same in the secondary table, which has no fixed bound but is never full; 0 for the back yard.
    pub longest_secondary_shift: u64,
    /// Removed keys whose adaptivity bits are remembered.
    pub ghosts: usize,
    /// Hash functions given up so far.
    pub phase: u64,
    /// How much of the way to the next one is done, from 0 to 1.
    pub frontier: f64,
    /// Whether remainders are large: cut into signature and rest.
    pub large_remainders: bool,
}

impl BroomFilter<Xxh3> {
    /// Asks for a filter; see [`BroomFilterBuilder`].
    pub fn builder() -> BroomFilterBuilder<Xxh3> {
        BroomFilterBuilder::new()
    }

    /// A filter for so many keys, with a false-positive rate of 1/256.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for capacity 0 and for more than memory holds.
    pub fn with_capacity(keys: usize) -> Result<Self, BuildError> {
        Self::builder().capacity(keys).build()
    }
}

impl<H: KeyHasher> BroomFilter<H> {
    pub(super) fn from_plan(
        plan: Plan,
        capacity: usize,
        max_capacity: usize,
        hasher: H,
        phase: u64,
    ) -> Result<Self, BuildError> {
        let local = Local::new(plan.shape(capacity)?, plan.load, hasher, phase)?;
        Ok(Self { local, plan, capacity, max_capacity, adaptations: 0, growths: 0 })
    }

    /// Where the keys are.
    pub fn levels(&self) -> BroomLevels {
        let (phase, frontier) = self.local.functions.position();
        let longest_secondary_shift = match &self.local.overflow {
            Overflow::Secondary(secondary) => secondary.level.longest_shift,
            Overflow::BackYard(_) => 0,
        };
        BroomLevels {
            primary: self.local.table().len(),
            overflow: self.local.overflow_len(),
            hinted: self.local.hinted_share(),
            bound: self.local.primary.bound(),
            longest_shift: self.local.primary.longest_shift,
            longest_secondary_shift,
            ghosts: self.local.ghosts.len(),
            phase,
            frontier: frontier as f64 / self.local.functions.walk() as f64,
            large_remainders: self.local.primary.has_rest(),
        }
    }

    pub(super) fn out_of_memory<E>(&self) -> AdaptiveError<E> {
        AdaptiveError::OutOfMemory { bytes: self.local.memory_bits() / 8 }
    }

    fn full(&self) -> FullError {
        FullError { len: self.len(), capacity: self.capacity }
    }

    /// What quotient and remainder say of a query to which the primary table did not answer no. `None` if the whole
    /// hash is needed.
    #[inline]
    fn settle(&self, place: Place, answer: Answer) -> Option<bool> {
        let (local, quotient) = (&self.local, place.quotient);
        let Overflow::Secondary(secondary) = &local.overflow else { return None };
        if answer == Answer::Ask {
            let remainder = local.table().remainder_of(place.fraction);
            if !local.table().contains(quotient, remainder) {
                let baseline = Baseline { quotient, remainder, rest: 0 };
                // Only the flag was set, and nearly always for another remainder.
                return if secondary.may_contain(baseline) { None } else { Some(false) };
            }
        }
        // Without adaptivity bits in its blocks, a run needs no second look.
        let plain = |slot: u64| local.primary.strings.is_plain(local.table().block_of(slot).0);
        let is_plain = match local.table().local_run(quotient) {
            Some(_) => plain(quotient),
            None => local.table().run(quotient).is_some_and(|run| run.slots().all(plain)),
        };
        is_plain.then_some(true)
    }

    #[inline(never)]
    fn contains_fully(&self, digest: Digest, place: Place, answer: Answer) -> bool {
        self.settle(place, answer)
            .unwrap_or_else(|| self.local.find(&self.local.fingerprint(digest)).is_some())
    }

    /// An insertion that no stored fingerprint stands in the way of: the remote is written, not read.
    fn insert_freely<R: Remote>(
        &mut self,
        key: &[u8],
        fingerprint: &Fingerprint,
        remote: &mut R,
    ) -> Outcome<bool, R> {
        let len = self.local.free_length(fingerprint);
        if self.len() >= self.capacity || !self.local.place(fingerprint, len) {
            return self.grow_and_insert(key, remote);
        }
        let push = Change::Push { address: fingerprint.quotient(), key };
        if let Err(error) = remote.apply(&[push]) {
            self.local.unplace(fingerprint);
            return Err(AdaptiveError::Remote(error));
        }
        Ok(true)
    }

    /// An insertion of a key that a stored fingerprint is a prefix of: the key itself, or a collision.
    fn insert_colliding<R: Remote>(
        &mut self,
        key: &[u8],
        fingerprint: &Fingerprint,
        remote: &mut R,
    ) -> Outcome<bool, R> {
        let (full, room) = (self.full(), self.len() < self.capacity);
        let result = atomically(&mut self.local, remote, |steps| {
            let list = steps.list(fingerprint.quotient())?;
            if list.iter().any(|stored| stored == key) {
                return Ok(false);
            }
            if !room || !steps.place(fingerprint, key)? {
                return Err(full.into());
            }
            // The collision has cost adaptivity bits, so others are reclaimed.
            steps.advance()?;
            Ok(true)
        });
        match result {
            Err(AdaptiveError::Full(_)) => self.grow_and_insert(key, remote),
            result => result,
        }
    }

    /// After a key of this address, which has the keys of `list` now, has gone from elsewhere.
    fn refresh_hint<R: Remote>(&mut self, address: u64, list: List, remote: &mut R) {
        let mut known = Some(list);
        // A list that cannot be read leaves the flag as it is, which is no error of the removal.
        let _ = self.local.refresh_hint(address, |_, at| {
            if let Some(list) = known.take_if(|_| at == address) {
                return Ok(list);
            }
            let mut list = Vec::new();
            remote.read(at, &mut |key| list.push(key.to_vec())).map(|()| list)
        });
    }

    fn grow_and_insert<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<bool, R> {
        if self.capacity >= self.max_capacity {
            return Err(self.full().into());
        }
        self.grow(key, remote)?;
        Ok(true)
    }
}

impl<H: KeyHasher> Filter for BroomFilter<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        self.local.functions.hasher()
    }

    #[inline(always)]
    fn place(&self, digest: Digest) -> Place {
        self.local.functions.place(digest)
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        self.local.table().prefetch(place.quotient);
    }

    #[inline(always)]
    fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        let answer = self.local.table().answer(place);
        answer != Answer::No && self.contains_fully(digest(), place, answer)
    }

    /// Nearly always the upper half of the digest is enough, and the hash need not compute the other one. In the
    /// few other cases the key is hashed once more.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.place(self.hasher().digest_key(key)), || self.hasher().digest_key(key))
    }

    fn len(&self) -> usize {
        self.local.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stats(&self) -> FilterStats {
        let (items, slots) = (self.len(), self.local.shape.slots as usize);
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: self.local.memory_bits(),
            adaptations: self.adaptations,
            adapted_slots: self.local.adapted_keys(),
            adaptivity_bits: self.local.adaptivity_bits(),
            rebuilds: self.growths,
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.local.verify()
    }
}

impl<H: KeyHasher> Adaptive for BroomFilter<H> {
    fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|key| {
            let fingerprint = self.local.fingerprint(self.digest(key));
            match self.local.find(&fingerprint) {
                None => self.insert_freely(key, &fingerprint, remote),
                Some(_) => self.insert_colliding(key, &fingerprint, remote),
            }
        })
    }

    fn remove<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|key| {
            let fingerprint = self.local.fingerprint(self.digest(key));
            if self.local.find(&fingerprint).is_none() {
                return Ok(false);
            }
            let address = fingerprint.quotient();
            let mut list = Vec::new();
            let mut visit = |stored: &[u8]| list.push(stored.to_vec());
            remote.read(address, &mut visit).map_err(AdaptiveError::Remote)?;
            let Some(rank) = list.iter().position(|stored| stored == key) else { return Ok(false) };
            remote.apply(&[Change::Remove { address, rank, key }]).map_err(AdaptiveError::Remote)?;
            let (bits, primary) = self.local.unplace(&fingerprint);
            self.local.add_ghost(&fingerprint, bits);
            if !primary {
                list.remove(rank);
                self.refresh_hint(address, list, remote);
            }
            Ok(true)
        })
    }

    fn adapt<K, R>(&mut self, key: &K, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        let adaptation = key.with_bytes(|key| {
            let digest = self.digest(key);
            atomically(&mut self.local, remote, |steps| {
                let mut slots = 0;
                // A second turn only if the frontier has just passed the key, which then is a stranger to all
                // that is stored and may be unlucky once more.
                while let Some((fingerprint, spot)) = {
                    let fingerprint = steps.local.fingerprint(digest);
                    steps.local.find(&fingerprint).map(|spot| (fingerprint, spot))
                } {
                    let list = steps.list(fingerprint.quotient())?;
                    if list.iter().any(|stored| stored == key) {
                        return Ok(Adaptation::NotFalsePositive);
                    }
                    let owner = steps.owner(fingerprint.quotient(), &list, spot)?;
                    if spot == Spot::BackYard || !steps.tell_apart(&owner, &fingerprint) {
                        return Ok(Adaptation::Unfixable);
                    }
                    slots += 1;
                    if slots == 1 {
                        steps.advance()?;
                    }
                }
                Ok(if slots == 0 { Adaptation::NotFalsePositive } else { Adaptation::Fixed { slots } })
            })
        })?;
        self.adaptations += u64::from(adaptation.is_fixed());
        Ok(adaptation)
    }

    /// Repairs are forgotten with the hash functions that they were made under.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let empty = self.emptied().map_err(|_| self.out_of_memory())?;
        remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        self.local = empty.local;
        Ok(())
    }

    fn verify_remote<R: Remote>(&self, _remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        Ok(())
    }

    fn resync<R: Remote>(
        &mut self,
        _addresses: &[u64],
        _remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        Ok(Resync::InQuestion { slots: 1 })
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        let (phase, _) = self.local.functions.position();
        let hasher = self.local.functions.hasher().clone();
        Self::from_plan(self.plan, self.capacity, self.max_capacity, hasher, phase + 2)
    }
}
