//! The filter that all adaptive members of the family are: insertion, removal and the frame of a repair.

use crate::{
    Adaptation, Adaptive, AdaptiveError, BuildError, Change, Digest, Filter, FilterStats, FullError,
    InvariantError, Key, KeyHasher, Remote, Resync, Xxh3,
};

use super::builder::CuckooFilterBuilder;
use super::draft::{Draft, Resident};
use super::place::CuckooPlace;
use super::rebuild::place_in_epoch;
use super::repair::{Outcome, Repair};
use super::search::{BUDGET, Search, World};
use super::table::SlotTable;
use super::variant::{AdaptiveVariant, Variant};

/// A cuckoo filter whose keys lie in a remote: what [`CuckooFilter`](super::CuckooFilter),
/// [`CuckooingFilter`](super::CuckooingFilter), [`CyclicFilter`](super::CyclicFilter) and
/// [`SwappingFilter`](super::SwappingFilter) are, each with its own [`Variant`].
///
/// The address in the remote is the slot number, and each occupied slot has exactly one key there.
///
/// | operation | local | remote |
/// |---|---|---|
/// | `contains` | k reads of one bin each, overlapping | none |
/// | `insert` | the same, and one write | one group of changes; at high load some reads before it |
/// | `remove` | the same, and one write | a read per matching slot, one change |
/// | `adapt` | depends on the variant | a read per matching slot; the variant's moves as one group |
///
/// If a chain of kicks finds no end, the filter reads all keys from the remote, places them by new hash
/// functions and writes them all back as one group ([`FilterStats::rebuilds`] counts how often). That takes
/// memory for all keys while it lasts, forgets earlier repairs, and below the highest load it is rare.
#[derive(Debug, Clone)]
pub struct AdaptiveCuckooFilter<V: Variant, H: KeyHasher = Xxh3> {
    pub(super) table: SlotTable<V>,
    pub(super) hasher: H,
    /// The number of the hash functions in use; a rebuild takes the next that works.
    pub(super) epoch: u64,
    pub(super) len: usize,
    pub(super) capacity: usize,
    pub(super) adaptations: u64,
    resets: u64,
    pub(super) rebuilds: u64,
    /// How many slots a chain may look at before the filter is rebuilt instead.
    pub(super) budget: usize,
    scratch: Scratch,
}

/// What an operation plans with. Empty between operations, but it keeps its memory.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    pub(super) draft: Draft,
    search: Search<Resident>,
}

impl Scratch {
    fn new() -> Self {
        Self { draft: Draft::default(), search: Search::new() }
    }

    fn memory(&self) -> usize {
        self.draft.memory() + self.search.memory()
    }

    fn trim(&mut self) {
        self.draft.trim();
        self.search.trim();
    }
}

impl<V: AdaptiveVariant> AdaptiveCuckooFilter<V> {
    /// Starts to build a filter. See [`CuckooFilterBuilder`] for what can be chosen.
    #[must_use]
    pub fn builder() -> CuckooFilterBuilder<V> {
        CuckooFilterBuilder::new()
    }

    /// A filter for so many keys with a false-positive rate of at most 1/256 and a random seed.
    ///
    /// # Errors
    ///
    /// [`BuildError`](crate::BuildError) if there is no memory for it, or if `capacity` is 0.
    pub fn with_capacity(capacity: usize) -> Result<Self, crate::BuildError> {
        Self::builder().capacity(capacity).build()
    }
}

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    pub(super) fn from_parts(table: SlotTable<V>, hasher: H, capacity: usize) -> Self {
        Self {
            table,
            hasher,
            epoch: 0,
            len: 0,
            capacity,
            adaptations: 0,
            resets: 0,
            rebuilds: 0,
            budget: BUDGET,
            scratch: Scratch::new(),
        }
    }

    /// k: how many tables there are, and thereby how many bins a query looks at.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.table.layout().tables
    }

    /// b: how many slots a bin has.
    #[must_use]
    pub fn slots_per_bin(&self) -> usize {
        self.table.layout().bin_slots
    }

    /// Bits of one slot: the fingerprint, and the selector where there is one.
    #[must_use]
    pub fn slot_bits(&self) -> u32 {
        self.table.layout().width
    }

    #[inline]
    pub(super) fn place_of(&self, digest: Digest) -> CuckooPlace {
        place_in_epoch(&self.hasher, digest, self.epoch)
    }

    /// Reads the key of an occupied slot. The remote must have exactly one there, and it must be one that the
    /// filter could have put there.
    pub(super) fn read_slot<T, R: Remote>(
        &self,
        slot: usize,
        remote: &mut R,
        visit: impl FnOnce(&[u8], CuckooPlace) -> T,
    ) -> Result<T, AdaptiveError<R::Error>> {
        let (mut visit, mut seen, mut found) = (Some(visit), None, 0);
        let address = slot as u64;
        remote
            .read(address, &mut |key| {
                let place = self.place_of(self.hasher.digest(key));
                if let Some(visit) = visit.take_if(|_| self.table.holds(slot, place)) {
                    seen = Some(visit(key, place));
                }
                found += 1;
            })
            .map_err(AdaptiveError::Remote)?;
        // A single key that does not belong here counts as none.
        let found = if found == 1 && seen.is_none() { 0 } else { found };
        seen.filter(|_| found == 1).ok_or(AdaptiveError::Inconsistent { address, expected: 1, found })
    }

    /// The slot in which the remote has exactly this key.
    fn find<R: Remote>(
        &self,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> Result<Option<usize>, AdaptiveError<R::Error>> {
        for slot in self.table.hits(place) {
            if self.read_slot(slot, remote, |stored, _| stored == key)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    fn insert_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let place = self.place_of(self.hasher.digest(key));
        let look = self.table.look(place);
        if look.hit && self.find(key, place, remote)?.is_some() {
            return Ok(false);
        }
        if self.len >= self.capacity {
            return Err(self.full().into());
        }
        if let Some(slot) = look.vacancy {
            let push = [Change::Push { address: slot as u64, key }];
            remote.apply(&push).map_err(AdaptiveError::Remote)?;
            self.table.put(slot, place, 0);
        } else {
            self.insert_by_chain(key, place, remote)?;
        }
        self.len += 1;
        Ok(true)
    }

    /// Makes room for a key whose slots are all taken.
    #[inline(never)]
    fn insert_by_chain<R: Remote>(
        &mut self,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut scratch = std::mem::replace(&mut self.scratch, Scratch::new());
        let result = self.insert_by_chain_with(&mut scratch, key, place, remote);
        scratch.trim();
        self.scratch = scratch;
        result
    }

    fn insert_by_chain_with<R: Remote>(
        &mut self,
        scratch: &mut Scratch,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let newcomer = scratch.draft.resident(key, place);
        if self.draft_chain(newcomer, 0..self.table.layout().tables, None, scratch, remote)? {
            scratch.draft.commit(&mut self.table, remote)
        } else if self.rehash_all(Some(key), None, remote)? {
            self.resets += 1;
            Ok(())
        } else {
            Err(self.full().into())
        }
    }

    /// Plans the moves that get `newcomer` into one of its bins in `tables`. `false`, and no plan, if no chain
    /// was found. No moved key is going to collide with `avoid`.
    pub(super) fn draft_chain<R: Remote>(
        &self,
        newcomer: Resident,
        tables: impl Iterator<Item = usize>,
        avoid: Option<CuckooPlace>,
        scratch: &mut Scratch,
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let Scratch { draft, search } = scratch;
        let mut live = Live { filter: self, draft, remote, avoid };
        let found = search.run(&mut live, self.table.layout(), newcomer, tables, self.budget)?;
        if found {
            search.moves().for_each(|step| draft.put(step.slot, Some(step.item)));
        }
        Ok(found)
    }

    fn remove_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let place = self.place_of(self.hasher.digest(key));
        let Some(slot) = self.find(key, place, remote)? else { return Ok(false) };
        let change = [Change::Remove { address: slot as u64, rank: 0, key }];
        remote.apply(&change).map_err(AdaptiveError::Remote)?;
        self.table.erase(slot);
        self.len -= 1;
        Ok(true)
    }

    fn full(&self) -> FullError {
        FullError { len: self.len, capacity: self.capacity }
    }
}

impl<V: AdaptiveVariant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    fn adapt_bytes<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        let query = self.place_of(digest);
        let mut scratch = Scratch::new();
        let mut collisions = Vec::new();
        for slot in self.table.hits(query) {
            let draft = &mut scratch.draft;
            let resident =
                self.read_slot(slot, remote, |stored, place| draft.occupant(slot, stored, place))?;
            if draft.key(resident) == key {
                return Ok(Adaptation::NotFalsePositive);
            }
            collisions.push((slot, resident));
        }
        if collisions.is_empty() {
            return Ok(Adaptation::NotFalsePositive);
        }
        if collisions.iter().any(|(_, resident)| resident.place == query) {
            return Ok(Adaptation::Unfixable);
        }
        let repair = Repair { filter: self, query, collisions: &collisions };
        let outcome = repair.plan(&mut scratch, remote)?;
        self.carry_out(outcome, &scratch.draft, digest, remote)
    }

    fn carry_out<R: Remote>(
        &mut self,
        outcome: Outcome,
        draft: &Draft,
        query: Digest,
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let adaptation = match outcome {
            Outcome::Fixed => {
                draft.commit(&mut self.table, remote)?;
                Adaptation::Fixed { slots: draft.len() }
            }
            Outcome::Rebuild if self.rehash_all(None, Some(query), remote)? => {
                self.resets += 1;
                Adaptation::FixedAfterReset { slots: self.len, resets: 1 }
            }
            Outcome::Rebuild => Adaptation::Unfixable,
            Outcome::Unfixable => {
                draft.commit(&mut self.table, remote)?;
                Adaptation::Unfixable
            }
        };
        self.adaptations += u64::from(adaptation.is_fixed());
        Ok(adaptation)
    }
}

impl<V: Variant, H: KeyHasher> Filter for AdaptiveCuckooFilter<V, H> {
    type Hasher = H;
    type Place = CuckooPlace;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> CuckooPlace {
        self.place_of(digest)
    }

    #[inline]
    fn prefetch(&self, place: CuckooPlace) {
        self.table.prefetch(place);
    }

    #[inline]
    fn contains_at(&self, place: CuckooPlace, _: impl FnOnce() -> Digest) -> bool {
        self.table.contains(place)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stats(&self) -> FilterStats {
        let slots = self.table.layout().slots();
        FilterStats {
            items: self.len,
            slots,
            load: self.len as f64 / slots as f64,
            bits: 8 * (self.table.memory() + self.scratch.memory() + size_of::<Self>()),
            adaptations: self.adaptations,
            resets: self.resets,
            adapted_slots: self.table.selected(),
            adaptivity_bits: slots * V::SELECTOR_BITS as usize,
            rebuilds: self.rebuilds,
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify(self.len)
    }
}

impl<V: AdaptiveVariant, H: KeyHasher> Adaptive for AdaptiveCuckooFilter<V, H> {
    fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|bytes| self.insert_bytes(bytes, remote))
    }

    fn remove<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|bytes| self.remove_bytes(bytes, remote))
    }

    fn adapt<K, R>(&mut self, key: &K, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote,
    {
        key.with_bytes(|bytes| self.adapt_bytes(bytes, remote))
    }

    /// The hash functions and the counters stay.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        self.table.clear();
        self.len = 0;
        Ok(())
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        for slot in 0..self.table.layout().slots() {
            if !self.table.is_vacant(slot) {
                self.read_slot(slot, remote, |_, _| ())?;
                continue;
            }
            let mut found = 0;
            remote.read(slot as u64, &mut |_| found += 1).map_err(AdaptiveError::Remote)?;
            if found > 0 {
                return Err(AdaptiveError::Inconsistent { address: slot as u64, expected: 0, found });
            }
        }
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
        let table = SlotTable::new(*self.table.layout())?;
        let empty = Self::from_parts(table, self.hasher.clone(), self.capacity);
        Ok(Self {
            epoch: self.epoch + 1,
            adaptations: self.adaptations,
            resets: self.resets,
            rebuilds: self.rebuilds,
            ..empty
        })
    }
}

/// The filter as it would be after the draft, with the keys in the remote.
struct Live<'a, V: Variant, H: KeyHasher, R> {
    filter: &'a AdaptiveCuckooFilter<V, H>,
    draft: &'a mut Draft,
    remote: &'a mut R,
    avoid: Option<CuckooPlace>,
}

impl<V: Variant, H: KeyHasher, R: Remote> World for Live<'_, V, H, R> {
    type Item = Resident;
    type Error = AdaptiveError<R::Error>;

    #[inline]
    fn is_vacant(&self, slot: usize) -> bool {
        match self.draft.planned(slot) {
            Some(resident) => resident.is_none(),
            None => self.filter.table.is_vacant(slot),
        }
    }

    fn item(&mut self, slot: usize) -> Result<Resident, Self::Error> {
        match self.draft.planned(slot) {
            Some(Some(resident)) => Ok(resident),
            _ => self.filter.read_slot(slot, self.remote, |key, place| self.draft.occupant(slot, key, place)),
        }
    }

    #[inline]
    fn expect(&self, slot: usize) {
        self.remote.prefetch(slot as u64);
    }

    #[inline]
    fn first_slot(&self, item: Resident, table: usize) -> usize {
        self.filter.table.first_slot(item.place, table)
    }

    #[inline]
    fn is_welcome(&self, item: Resident, slot: usize) -> bool {
        self.avoid.is_none_or(|avoid| !self.filter.table.would_collide(item.place, avoid, slot))
    }
}
