//! The broom filter's verbs.

use crate::filter::{Adaptation, Adaptive, Filter, FilterStats};
use crate::quotient::{Answer, Place};
use crate::{
    AdaptiveError, BuildError, Change, Digest, FullError, Growable, InvariantError, Key, KeyHasher, Remote,
    Resync, Xxh3,
};

use super::builder::{Blueprint, BroomFilterBuilder};
use super::elsewhere::Elsewhere;
use super::fingerprint::{Fingerprint, Site, Spot};
use super::growth::Leftovers;
use super::level::Baseline;
use super::lists::Outcome;
use super::local::Local;
use super::transaction::atomically;

/// An adaptive filter whose false-positive rate no adversary can raise: not by repeating false positives, not by
/// removing and inserting keys, not with any other sequence of operations.
///
/// Every query for a key that is not stored is a false positive with probability at most ε, whatever was asked
/// before, as long as each false positive is reported to [`adapt`](Adaptive::adapt); [`Guard`](crate::Guard) does
/// that. No repair is ever forgotten before the hash function that it was made under is given up, and none at all within
/// the [budget](BroomFilterBuilder::adaptivity_budget) of adaptivity bits. Below its capacity the filter refuses no key.
/// See the [module](crate::broom) for how it works.
///
/// **Which hash.** The paper's promise is about a hash that looks random to the adversary. [`SipHash`](crate::SipHash) is
/// made for that, with a seed that nobody knows: take it if the adversary chooses keys. The default, [`Xxh3`], is fast and
/// keyed but no pseudo-random function: under it the rate holds for all keys that were not made for this hash, in whatever
/// order they are asked.
///
/// **Costs.** `contains` reads one cache line, nearly always, and never the remote. Reads and writes of the remote:
///
/// | operation | reads | groups of changes |
/// |---|---|---|
/// | `insert` | none, nearly always; if the key needs adaptivity bits, what `adapt` reads | 1 |
/// | `remove` | 1 | 1 |
/// | `adapt` | 1; beyond the budget up to 12 more, for the keys that it carries to a fresh hash function | 1 |
///
/// Every list that is read is checked against what is stored: its keys, no others, none missing.
///
/// Space at the default rate of 1/256, load 0.90 and default budget: 12.9 bits per key when filled, and at most 16.5 under endless
/// churn (`broom::tests::churn` asserts both).
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
    pub(super) blueprint: Blueprint,
    pub(super) capacity: usize,
    pub(super) growable: bool,
    pub(super) adaptations: u64,
    pub(super) growths: u64,
    /// The last generation of addresses that was written under.
    pub(super) generations: u16,
    /// Lists in the remote that are not the filter's any more.
    pub(super) leftovers: Option<Leftovers>,
}

/// Where the keys of a [`BroomFilter`] are, and what keeping them there has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BroomLevels {
    /// Keys in the primary table.
    pub primary: usize,
    /// Keys in the secondary table, or in the back yard if remainders are large.
    pub elsewhere: usize,
    /// The share of all queries that have to look there too.
    pub hinted: f64,
    /// The most slots that any insertion or removal can touch in the primary table.
    pub bound: u64,
    /// The most slots that one did touch so far.
    pub longest_shift: u64,
    /// The same in the secondary table, which has no fixed bound but is never full; 0 for the back yard.
    pub longest_secondary_shift: u64,
    /// Adaptivity bits of removed keys that are remembered: what several of them have alike counts once.
    pub ghosts: usize,
    /// How many adaptivity bits there may be, those of ghosts included, before the frontier moves.
    pub budget: usize,
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
    pub(super) fn from_blueprint(
        blueprint: Blueprint,
        capacity: usize,
        growable: bool,
        hasher: H,
        phase: u64,
    ) -> Result<Self, BuildError> {
        let local = Local::new(blueprint, capacity, hasher, phase)?;
        let (generations, leftovers) = (0, None);
        Ok(Self { local, blueprint, capacity, growable, adaptations: 0, growths: 0, generations, leftovers })
    }

    /// An empty filter of this capacity, with hash functions that were never used.
    pub(super) fn anew(&self, capacity: usize) -> Result<Self, BuildError> {
        let ((phase, _), hasher) = (self.local.functions.position(), self.hasher().clone());
        Self::from_blueprint(self.blueprint, capacity, self.growable, hasher, phase + 2)
    }

    /// Where the keys are. All of it is counted as it happens, so asking costs nothing.
    pub fn levels(&self) -> BroomLevels {
        let (phase, frontier) = self.local.functions.position();
        BroomLevels {
            primary: self.local.table().len(),
            elsewhere: self.local.elsewhere.len(),
            hinted: self.local.hinted_share(),
            bound: self.local.primary.bound(),
            longest_shift: self.local.primary.longest_shift,
            longest_secondary_shift: self.local.elsewhere.longest_shift(),
            ghosts: self.local.primary.strings.ghosts(),
            budget: self.local.budget,
            phase,
            frontier: frontier as f64 / self.local.functions.walk() as f64,
            large_remainders: self.local.primary.has_rest(),
        }
    }

    pub(super) fn full(&self) -> FullError {
        FullError { len: self.len(), capacity: self.capacity }
    }

    /// What adaptivity bits and the other level say of a query that the primary table alone does not settle.
    #[cold]
    #[inline(never)]
    fn settle(&self, answer: Answer, digest: Digest, place: Place) -> bool {
        let local = &self.local;
        if let Elsewhere::Secondary(secondary) = &local.elsewhere {
            // A fingerprint without adaptivity bits is a prefix of every query that has its baseline.
            if answer.slots().is_some_and(|slots| local.primary.any_bare(place.quotient, slots)) {
                return true;
            }
            // A flag is nearly always set for another remainder.
            let remainder = local.table().remainder_of(place.fraction);
            let baseline = Baseline { quotient: place.quotient, remainder, rest: 0 };
            if answer == Answer::ELSEWHERE && !secondary.may_contain(baseline) {
                return false;
            }
        }
        local.find(&local.fingerprint(digest)).is_some()
    }

    /// An insertion without growth.
    #[inline]
    pub(super) fn insert_in_place<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<bool, R> {
        let digest = self.digest(key);
        let place = self.place(digest);
        let address = self.local.address(place.quotient);
        let mut written = Ok(());
        let mut push = || {
            written = remote.apply(&[Change::Push { address, key }]);
            written.is_ok()
        };
        if self.len() < self.capacity && self.local.insert_fresh(place, &mut push) {
            return written.map(|()| true).map_err(AdaptiveError::Remote);
        }
        self.insert_anywhere(key, digest, remote)
    }

    /// [`insert_in_place`](Self::insert_in_place) for the keys that the block of their quotient does not suffice for.
    #[inline(never)]
    fn insert_anywhere<R: Remote>(&mut self, key: &[u8], digest: Digest, remote: &mut R) -> Outcome<bool, R> {
        let place = self.place(digest);
        let alone = self.local.table().answer(place) == Answer::NO && self.local.is_plain_at(place.quotient);
        let fingerprint = self.local.fingerprint(digest);
        if !alone && (self.local.find(&fingerprint).is_some() || self.local.free_length(&fingerprint) > 0) {
            return self.insert_in_steps(key, &fingerprint, remote);
        }
        if self.len() >= self.capacity {
            return Err(self.full().into());
        }
        // Nothing stands in the way: the remote is written, not read.
        let room = self.local.make_room(&fingerprint).map_err(|_| self.local.out_of_memory())?;
        let address = self.local.address(fingerprint.quotient());
        remote.apply(&[Change::Push { address, key }]).map_err(AdaptiveError::Remote)?;
        self.local.place(&fingerprint, 0, room.site);
        Ok(true)
    }

    /// An insertion of a key that needs adaptivity bits, or that a stored fingerprint is a prefix of: the key itself, or a
    /// collision.
    fn insert_in_steps<R: Remote>(
        &mut self,
        key: &[u8],
        fingerprint: &Fingerprint,
        remote: &mut R,
    ) -> Outcome<bool, R> {
        let full = self.full();
        atomically(&mut self.local, remote, |steps| {
            if steps.local.find(fingerprint).is_some() {
                let list = steps.list(fingerprint.quotient())?;
                if list.iter().any(|stored| stored.key == key) {
                    return Ok(false);
                }
            }
            if full.len >= full.capacity {
                return Err(full.into());
            }
            steps.place(fingerprint, key)?;
            steps.reclaim()?;
            Ok(true)
        })
    }
}

/// Filters are equal if they have the same parameters and hash functions, and hold the same fingerprints, on the same
/// levels, and ghosts. What they have counted, and where their lists lie in the remote, does not matter.
impl<H: KeyHasher> PartialEq for BroomFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |filter: &Self| (filter.blueprint, filter.capacity, filter.growable);
        parameters(self) == parameters(other) && self.local == other.local
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
        if answer == Answer::NO {
            return false;
        }
        // Where the block has no adaptivity bits, nothing but the rest of a large remainder can say otherwise.
        let settled = answer == Answer::YES && self.local.remainders.rest_bits == 0;
        settled || self.settle(answer, digest(), place)
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
        let (items, slots) = (self.len(), self.local.table().slots() as usize);
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: self.local.memory_bits(),
            adaptations: self.adaptations,
            adapted_slots: self.local.adapted_keys(),
            adaptivity_bits: self.local.adaptivity_bits(),
            ghosts: self.local.primary.strings.ghosts(),
            ghost_bits: self.local.primary.strings.ghost_bits(),
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
        key.with_bytes(|key| match self.insert_in_place(key, remote) {
            Err(AdaptiveError::Full(_)) if self.growable => {
                self.grow(remote)?;
                self.insert_in_place(key, remote)
            }
            result => result,
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
            let list = self.local.list(fingerprint.quotient(), remote)?;
            let Some(rank) = list.iter().position(|stored| stored.key == key) else { return Ok(false) };
            let (address, site) = (self.local.address(fingerprint.quotient()), list[rank].spot.site());
            remote.apply(&[Change::Remove { address, rank, key }]).map_err(AdaptiveError::Remote)?;
            let bits = self.local.take(&fingerprint, site);
            self.local.add_ghost(fingerprint.quotient(), fingerprint.function, bits);
            if site != Site::Primary {
                self.local.refresh_hint(fingerprint.quotient());
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
                    if list.iter().any(|stored| stored.key == key) {
                        return Ok(Adaptation::NotFalsePositive);
                    }
                    let owner = steps.owner(&list, spot, fingerprint.quotient())?;
                    // The back yard has all bits that it uses, and keys of one digest have no others.
                    if matches!(spot, Spot::BackYard(_)) || owner.tail == fingerprint.tail {
                        return Ok(Adaptation::Unfixable);
                    }
                    steps.tell_apart(&owner, &fingerprint);
                    slots += 1;
                    if slots == 1 {
                        steps.reclaim()?;
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
        let empty = self.emptied().map_err(|_| self.local.out_of_memory())?;
        remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        (self.local, self.generations, self.leftovers) = (empty.local, empty.generations, None);
        Ok(())
    }

    /// Lists of other generations, which a growth that failed has left behind, are no disagreement.
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.local.verify_remote(remote)
    }

    fn resync<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        let full = self.full();
        atomically(&mut self.local, remote, |steps| steps.resync(addresses, full))
    }

    fn address_of(&self, digest: Digest) -> Option<u64> {
        Some(self.local.address(self.place(digest).quotient))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        self.anew(self.capacity)
    }
}
