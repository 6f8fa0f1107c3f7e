//! What bins whose items have extensions say of their items: see [`Homed`].

use crate::coding::Extension;
use crate::filter::out_of_memory;
use crate::homes::{Homed, Homes, tell};
use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote};

use super::super::line::Entry;
use super::super::table::Table;
use super::ExtendingBins;
use super::grow::FillingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    /// The bin of a home, and the class and tag of its items.
    pub(super) fn item_of(&self, home: u64) -> (u64, Entry) {
        let entries = self.table.shape().entries();
        (home / entries, Entry((home % entries) as u32))
    }
}

/// The home of a key is its whole fingerprint, and the items of a home are equal but for their extensions.
impl<H: KeyHasher> Homed for ExtendingBins<H> {
    type Hasher = H;
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

    fn homes(&self) -> Homes {
        let shape = self.table.shape();
        Homes { units: self.table.bins(), parts: shape.classes.into(), digits: shape.tag_bits() }
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    #[inline]
    fn accepts(&self, value: Extension, digest: Digest) -> bool {
        value.begins(&self.string(digest), 0)
    }

    fn items(&self, home: u64) -> Vec<Extension> {
        let (bin, entry) = self.item_of(home);
        let ranks = self.table.items_of(bin).equal(entry);
        ranks.map(|rank| self.values.get(bin, rank)).collect()
    }

    fn items_of_unit(&self, bin: u64, items: &mut Vec<(u64, Extension)>) {
        let (entries, first) = (self.table.items_of(bin), bin * self.table.shape().entries());
        let homes = entries.iter().map(|entry| first + u64::from(entry.0));
        if self.table.has_flags(bin) {
            items.extend(homes.zip(self.load(bin, &entries)));
        } else {
            items.extend(homes.map(|home| (home, Extension::default())));
        }
    }

    /// Among extensions that one key has in common, each begins the longer ones: the longest can go.
    fn dispensable(values: &[Extension]) -> Option<usize> {
        (0..values.len()).max_by_key(|&index| values[index].len())
    }

    fn insert_item<R: Remote>(
        &mut self,
        digest: Digest,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.insert_bare(digest, changes, remote)
    }

    fn remove_item<R: Remote>(
        &mut self,
        home: u64,
        index: usize,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let (bin, entry) = self.item_of(home);
        let adapted = self.table.has_flags(bin).then(|| {
            let items = self.table.items_of(bin);
            let mut values = self.load(bin, &items);
            values.remove(items.equal(entry).start + index);
            values
        });
        tell(changes, remote)?;
        self.table.remove_entry(bin, entry);
        if let Some(values) = adapted {
            self.store(bin, &self.table.items_of(bin), &values);
        }
        Ok(())
    }

    fn repair<R: Remote>(
        &mut self,
        home: u64,
        stored: &[Digest],
        query: Digest,
        _: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let (bin, entry) = self.item_of(home);
        let items = self.table.items_of(bin);
        let mut values = self.load(bin, &items);
        let Some(slots) = self.lengthen(&mut values[items.equal(entry)], stored, query) else {
            return Ok(Adaptation::Unfixable);
        };
        self.store(bin, &items, &values);
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots })
    }

    fn can_double(&self, times: u32) -> bool {
        self.table.bins() <= Table::MAX_BINS.checked_shr(times).unwrap_or(0)
    }

    fn filling<E>(&self, times: u32, capacity: usize) -> Result<FillingBins, AdaptiveError<E>> {
        let (bins, shape) = (self.table.bins() << times, self.table.shape());
        FillingBins::new(bins, shape, capacity).map_err(out_of_memory)
    }

    fn become_filled(&mut self, filled: FillingBins, capacity: usize) {
        (self.table, self.values) = filled.into_parts();
        self.capacity = capacity;
    }
}
