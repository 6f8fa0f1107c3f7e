//! The filter that all adaptive members of the family are: its state, and the traits that it has in common with
//! other filters.

use std::ops::RangeInclusive;

use crate::{
    Adaptation, Adaptive, Authority, BuildError, Digest, Filter, FilterStats, InvariantError, KeyHasher,
    Remote, RemoteResult, Settled, Xxh3, filter::clear_remote,
};

use super::address::Addresses;
use super::draft::{Draft, Resident};
use super::layout::promised_rate;
use super::place::CuckooPlace;
use super::rehash::place_in_epoch;
use super::search::{BUDGET, Search};
use super::table::SlotTable;
use super::variant::{AdaptiveVariant, Variant};

/// A cuckoo filter whose keys lie in a remote: what [`RemoteCuckooFilter`](super::RemoteCuckooFilter),
/// [`CuckooingFilter`](super::CuckooingFilter), [`CyclicFilter`](super::CyclicFilter) and
/// [`SwappingFilter`](super::SwappingFilter) are, each with its own [`Variant`].
///
/// The address in the remote is the slot number (or, after every second rehash, the slot number behind that of the
/// last slot), and each occupied slot has exactly one key there that fits it. What else is there is debris of groups
/// that failed, and ignored.
///
/// | operation | local | remote |
/// |---|---|---|
/// | `contains` | k reads of one bin each, overlapping | none |
/// | `insert` | the same, and one write | one group of changes; at high load some reads before it |
/// | `remove` | the same, and one write | a read per matching slot, one change |
/// | `adapt` | depends on the variant | a read per matching slot; the variant's moves as one group |
///
/// # Rehashes
///
/// If a chain of kicks finds no end, the filter places all keys by new hash functions ([`FilterStats::rebuilds`] counts
/// how often). That forgets earlier repairs, and below the highest load it is rare. It scans the remote for the keys'
/// digests, copies the keys to other addresses in groups of a few hundred, changes over, and removes the old pairs;
/// it takes some 16 bytes a key and 16 a slot while it lasts, and the room for a second copy of the keys in the remote.
///
/// If the remote fails half-way, no key is lost: the filter goes on with the old hash functions or, if all keys were
/// copied already, with the new ones. Copies may be left over at the addresses that are not in use. No operation reads
/// them; [`verify_remote`](Adaptive::verify_remote) reports them, and the next [`settle`](Adaptive::settle), rehash,
/// [`rebuild`](Adaptive::rebuild) or [`clear`](Adaptive::clear) removes them.
///
/// # Equality
///
/// Two filters are equal if they have the same parameters, the same hash functions and the same slots, repairs
/// included. What they have counted does not matter.
#[derive(Clone)]
pub struct AdaptiveCuckooFilter<V: Variant, H: KeyHasher = Xxh3> {
    pub(super) table: SlotTable<V>,
    pub(super) hasher: H,
    /// The number of the hash functions in use; a rehash takes the next that works.
    pub(super) epoch: u64,
    pub(super) addresses: Addresses,
    /// Whether copies of keys may lie at addresses that are not in use.
    pub(super) littered: bool,
    pub(super) len: usize,
    pub(super) capacity: usize,
    pub(super) adaptations: u64,
    pub(super) resets: u64,
    pub(super) rebuilds: u64,
    /// How many slots a chain may look at before the filter is rehashed instead.
    pub(super) budget: usize,
    pub(super) scratch: Scratch,
}

crate::filter::debug_by_figures!([V: AdaptiveVariant, H: KeyHasher] AdaptiveCuckooFilter<V, H>);

/// What an operation plans with. Empty between operations, but it keeps its memory.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    pub(super) draft: Draft,
    pub(super) search: Search<Resident>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self { draft: Draft::default(), search: Search::new() }
    }

    fn memory(&self) -> usize {
        self.draft.memory() + self.search.memory()
    }

    pub(super) fn trim(&mut self) {
        self.draft.trim();
        self.search.trim();
    }
}

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    pub(super) fn from_parts(table: SlotTable<V>, hasher: H, capacity: usize) -> Self {
        Self {
            addresses: Addresses::new(table.layout().slots()),
            table,
            hasher,
            epoch: 0,
            littered: false,
            len: 0,
            capacity,
            adaptations: 0,
            resets: 0,
            rebuilds: 0,
            budget: BUDGET,
            scratch: Scratch::new(),
        }
    }

    /// Returns k, the number of tables, which is how many bins a query reads.
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

    fn false_positive_rate(&self) -> f64 {
        promised_rate::<V>(self.table.layout(), self.capacity)
    }

    fn stats(&self) -> FilterStats {
        let slots = self.table.layout().slots();
        FilterStats {
            items: self.len,
            slots,
            load: self.len as f64 / slots as f64,
            bits: 8 * self.table.memory(),
            working_bits: 8 * self.scratch.memory(),
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
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.insert_key(key, remote)
    }

    /// Reads only where other keys have to make room.
    fn insert_new_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        self.insert_new_key(key, remote)
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.remove_key(key, remote)
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        self.adapt_key(key, remote)
    }

    /// The hash functions and the counters stay.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        clear_remote(remote)?;
        self.table.clear();
        (self.len, self.littered) = (0, false);
        Ok(())
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        self.check_all(remote)
    }

    /// Sweeps away what a failed rehash has left over as well. An item without a key goes only if the range has all
    /// addresses: a group that was reported as failed may have moved its key to any slot.
    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        self.settle_slots(&addresses, authority, remote)
    }

    /// With the next hash functions, and the other half of the addresses: of what a rebuild writes before it fails,
    /// nothing can be taken for a key of the old filter's slots.
    fn emptied(&self) -> Result<Self, BuildError> {
        let table = SlotTable::new(*self.table.layout())?;
        let empty = Self::from_parts(table, self.hasher.clone(), self.capacity);
        Ok(Self {
            epoch: self.epoch + 1,
            addresses: self.addresses.other(),
            adaptations: self.adaptations,
            resets: self.resets,
            rebuilds: self.rebuilds,
            ..empty
        })
    }
}

impl<V: Variant, H: KeyHasher> PartialEq for AdaptiveCuckooFilter<V, H> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
            && self.hasher == other.hasher
            && (self.epoch, self.addresses) == (other.epoch, other.addresses)
            && (self.len, self.capacity) == (other.len, other.capacity)
    }
}
