//! What bins whose items have extensions say of their items: see [`Listed`].

use crate::coding::Extension;
use crate::filter::out_of_memory;
use crate::ground::{Addresses, Agreed, Listed};
use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote};

use super::super::line::Entry;
use super::super::table::{Place, Table};
use super::ExtendingBins;
use super::grow::FillingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    /// The address of a place. A list has the keys of a class.
    #[inline(always)]
    pub(super) fn address_of_place(&self, place: Place) -> u64 {
        address_of_place(self.addresses, place, self.table.shape().class_bits)
    }

    /// The runs whose keys are in the list at this address, as bins and classes.
    pub(super) fn runs_at(&self, address: u64) -> impl Iterator<Item = (u64, u32)> {
        let class_bits = self.table.shape().class_bits;
        let runs = self.addresses.units(address, self.table.bins() << class_bits);
        runs.map(move |run| (run >> class_bits, (run & ((1 << class_bits) - 1)) as u32))
    }
}

/// The address of a place in a table with classes of so many bits.
#[inline(always)]
pub(super) fn address_of_place(addresses: Addresses, place: Place, class_bits: u32) -> u64 {
    addresses.of(place.bin << class_bits | place.class(class_bits))
}

/// The bin and the class and tag of a key.
pub(super) fn item(table: &Table, digest: Digest) -> (u64, Entry) {
    let place = table.place(digest);
    (place.bin, table.entry(place))
}

/// The home of a key is its whole fingerprint, and the items of a home are equal but for their extensions.
impl<H: KeyHasher> Listed for ExtendingBins<H> {
    type Hasher = H;
    type Home = (u64, Entry);
    type Item = Extension;
    type Filling = FillingBins;

    fn hasher(&self) -> &H {
        &self.hasher
    }

    fn len(&self) -> usize {
        self.table.len
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn is_growable(&self) -> bool {
        self.growable
    }

    fn addresses(&self) -> Addresses {
        self.addresses
    }

    fn units(&self) -> (u64, u32) {
        (self.table.bins() << self.table.shape().class_bits, 0)
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    fn home(&self, digest: Digest) -> (u64, Entry) {
        item(&self.table, digest)
    }

    fn address(&self, (bin, entry): (u64, Entry)) -> u64 {
        self.addresses.of(bin << self.table.shape().class_bits | u64::from(self.table.class(entry)))
    }

    fn accepts(&self, value: Extension, digest: Digest) -> bool {
        value.begins(&self.string(digest), 0)
    }

    fn all_items(&self, address: u64, mut visit: impl FnMut((u64, Entry), Extension) -> bool) -> bool {
        let tag_bits = self.table.shape().tag_bits();
        self.runs_at(address).all(|(bin, class)| {
            let items = self.table.items_of(bin);
            let mut ranks = items.of_class(class, tag_bits);
            ranks.all(|rank| visit((bin, items.get(rank)), self.values.get(bin, rank)))
        })
    }

    fn expected_addresses(&self) -> impl Iterator<Item = u64> {
        (0..self.table.bins()).flat_map(move |bin| {
            let items: Vec<Entry> = self.table.items_of(bin).iter().collect();
            items.into_iter().map(move |entry| self.address((bin, entry)))
        })
    }

    fn insert_new<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.insert_new(digest, key, remote)
    }

    fn remove_item<R: Remote>(
        &mut self,
        (bin, entry): (u64, Entry),
        before: usize,
        change: Change<'_>,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let adapted = self.table.has_flags(bin).then(|| {
            let items = self.table.items_of(bin);
            let mut values = self.load(bin, &items);
            values.remove(items.equal(entry).start + before);
            values
        });
        remote.apply(&[change]).map_err(AdaptiveError::Remote)?;
        self.table.remove_entry(bin, entry);
        if let Some(values) = adapted {
            self.store(bin, &self.table.items_of(bin), &values);
        }
        Ok(())
    }

    fn repair<R: Remote>(
        &mut self,
        (bin, entry): (u64, Entry),
        stored: &[Digest],
        query: Digest,
        _: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let items = self.table.items_of(bin);
        let mut values = self.load(bin, &items);
        let Some(slots) = self.lengthen(&mut values[items.equal(entry)], stored, query) else {
            return Ok(Adaptation::Unfixable);
        };
        self.store(bin, &items, &values);
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots })
    }

    fn with_items<R: Remote>(
        &self,
        agreed: &Agreed<Self>,
        _: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>> {
        let mut copied = self.clone();
        copied.take_in(agreed)?;
        Ok(copied)
    }

    fn can_double(&self, times: u32) -> bool {
        self.table.bins() << times <= Table::MAX_BINS
    }

    fn filling<E>(&self, times: u32, _: u32, capacity: usize) -> Result<FillingBins, AdaptiveError<E>> {
        let (bins, shape) = (self.table.bins() << times, self.table.shape());
        FillingBins::new(bins, shape, capacity).map_err(out_of_memory)
    }

    fn become_filled(&mut self, filled: FillingBins, addresses: Addresses, capacity: usize) {
        (self.table, self.values) = filled.into_parts();
        (self.addresses, self.capacity) = (addresses, capacity);
    }
}
