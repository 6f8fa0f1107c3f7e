//! The extension filter: the broom filter's way of adapting, in the blocks of the telescoping filter (the paper's
//! exAF), or on cache-line bins.
//!
//! | | |
//! |---|---|
//! | the filter, whichever its table | this file, `builder` |
//! | what extensions are cut from | `strings` |
//! | on a quotient table | `scheme`, with the core that telescoping filters have too |
//! | on cache-line bins | `bins::extending` |

mod builder;
mod scheme;
mod strings;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use crate::bins::{ExtendingBins, Place as BinPlace};
use crate::filter::out_of_memory;
use crate::format::{Decoder, Encoder, FormatError, HasRuns, Kind, Persist, Runs};
use crate::quotient::Place as QuotientPlace;
use crate::values::Core;
use crate::{
    Adaptation, Adaptive, Authority, BuildError, Digest, Filter, FilterStats, Growable, HashAddressed,
    InvariantError, Key, KeyHasher, Remote, RemoteResult, Settled, Xxh3, batch, homes,
};

pub use builder::ExtensionFilterBuilder;
use homes::Table;
use scheme::Extending;

/// An extension filter: adapts by making a slot's fingerprint longer.
///
/// When a stored key is found to collide with a query, its fingerprint takes as many more of the key's hash bits
/// as tell the two apart, two on average. It never loses them again, so with
/// [`Overflow::Spill`](crate::Overflow::Spill) a repaired false positive stays away for as long as the stored key
/// stays, and many that were never asked for go with it.
///
/// | | |
/// |---|---|
/// | space | 11.13 bits a slot at ε = 2^-8: 11.72 per key at load 0.95; for other ε about log2(1/ε) + 3.1 a slot |
/// | false positives | ε for any query that was not one before, less for slots that were repaired |
/// | room for repairs | about a third of the telescoping filter's: five slots in 46; see [`Overflow`](crate::Overflow) for what happens then |
/// | `contains` | a quotient filter's speed: extensions are decoded only after quotient and remainder matched |
/// | `insert`, `remove` | one group of changes to the remote; one range read if the key seems to be there already |
/// | `adapt` | one range read, nothing written |
///
/// It stands on one of two [tables](Table), which its builder [chooses](ExtensionFilterBuilder::table): what it
/// promises is the same on both, but for speed and space. The table above is that of the quotient table;
/// [`Table::Bins`] says what is different there.
///
/// **Set semantics**: inserting a key twice stores it once. **Growth** scans the remote once and keeps all repairs: a
/// fingerprint that gets one more bit from the larger table gives back one bit of its extension.
///
/// **Deletion by an attacker**: a removed key takes its repairs with it. Anyone who can remove and insert a key that
/// collides with a query of theirs makes the same false positive again each time; where that is possible, use the
/// [`BroomFilter`](crate::BroomFilter), whose ghosts remember.
///
/// ```
/// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = ExtensionFilter::builder().capacity(1_000).seed(1_u64).build()?;
/// for key in 0..1_000_u32 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let strangers: Vec<u32> = (1_000..50_000).filter(|key| filter.contains(key)).collect();
/// assert!((100..300).contains(&strangers.len()));
/// for key in &strangers {
///     filter.adapt(key, &mut remote)?;
/// }
/// assert!(strangers.iter().all(|key| !filter.contains(key)));
/// assert!((0..1_000_u32).all(|key| filter.contains(&key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ExtensionFilter<H = Xxh3> {
    on: On<H>,
}

crate::filter::debug_by_figures!([H: KeyHasher] ExtensionFilter<H>);

/// The filter on its table.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a filter is a few words, and a query shall not follow a pointer to them"
)]
enum On<H> {
    Quotient(Core<Extending, H>),
    Bins(ExtendingBins<H>),
}

/// Does the same with a filter on either table.
macro_rules! on_table {
    ($on:expr, $filter:ident => $then:expr) => {
        match $on {
            On::Quotient($filter) => $then,
            On::Bins($filter) => $then,
        }
    };
}

/// Where a query looks: of a quotient table the quotient and the fraction, of bins the bin and what its line has of the
/// key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place([u64; 2]);

impl Place {
    #[inline(always)]
    pub(crate) fn of_quotients(QuotientPlace { quotient, fraction }: QuotientPlace) -> Self {
        Self([quotient, fraction])
    }

    #[inline(always)]
    pub(crate) fn of_bins(place: BinPlace) -> Self {
        Self(place.to_words())
    }

    #[inline(always)]
    pub(crate) fn in_bins(self) -> BinPlace {
        BinPlace::from_words(self.0)
    }

    #[inline(always)]
    pub(crate) fn in_quotients(self) -> QuotientPlace {
        let [quotient, fraction] = self.0;
        QuotientPlace { quotient, fraction }
    }
}

impl<H: KeyHasher> ExtensionFilter<H> {
    /// How many keys have an extension of no bits, of one bit, of two bits and so on: how far repairs have gone. Walks
    /// the whole filter.
    ///
    /// ```
    /// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
    ///
    /// let (mut filter, mut remote) = (ExtensionFilter::builder().capacity(100).seed(7_u64).build()?, MemoryRemote::new());
    /// (0..100_u64).try_for_each(|key| filter.insert(&key, &mut remote).map(drop))?;
    /// assert_eq!(filter.extension_lengths(), [100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn extension_lengths(&self) -> Vec<usize> {
        match &self.on {
            On::Quotient(core) => core.histogram(|extension| extension.len() as usize),
            On::Bins(bins) => bins.extension_lengths(),
        }
    }

    /// Returns which table the filter is built on.
    #[must_use]
    pub fn table(&self) -> Table {
        match self.on {
            On::Quotient(_) => Table::Quotient,
            On::Bins(_) => Table::Bins,
        }
    }
}

impl<H: KeyHasher> Filter for ExtensionFilter<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        on_table!(&self.on, filter => filter.hasher())
    }

    #[inline(always)]
    fn place(&self, digest: Digest) -> Place {
        match &self.on {
            On::Quotient(core) => Place::of_quotients(core.place(digest)),
            On::Bins(bins) => Place::of_bins(bins.place(digest)),
        }
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        match &self.on {
            On::Quotient(core) => core.prefetch(place.in_quotients()),
            On::Bins(bins) => bins.prefetch(place.in_bins()),
        }
    }

    #[inline(always)]
    fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        match &self.on {
            On::Quotient(core) => core.contains_at(place.in_quotients(), digest),
            On::Bins(bins) => bins.contains_at(place.in_bins(), digest),
        }
    }

    #[inline(always)]
    fn contains_digest(&self, digest: Digest) -> bool {
        on_table!(&self.on, filter => filter.contains_digest(digest))
    }

    /// The upper half of the digest is nearly always enough, and the hash need not compute the other one. In the few
    /// other cases the key is hashed once more.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match &self.on {
            On::Quotient(core) => {
                let digest = || core.hasher().digest_key(key);
                core.contains_at(core.place(digest()), digest)
            }
            On::Bins(bins) => bins.contains_hashed(|| bins.hasher().digest_key(key)),
        }
    }

    /// As for all filters, but the table is chosen once for all keys.
    #[inline]
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        match &self.on {
            On::Quotient(core) => {
                let prepare = |key: &K| {
                    let place = core.place(core.hasher().digest_key(key));
                    core.prefetch(place);
                    place
                };
                batch::contains_many(keys, answers, prepare, |key, place| {
                    core.contains_at(place, || core.hasher().digest_key(key))
                });
            }
            On::Bins(bins) => bins.contains_many(keys, answers),
        }
    }

    fn len(&self) -> usize {
        on_table!(&self.on, filter => filter.len())
    }

    fn capacity(&self) -> usize {
        on_table!(&self.on, filter => filter.capacity())
    }

    fn false_positive_rate(&self) -> f64 {
        on_table!(&self.on, filter => filter.false_positive_rate())
    }

    fn stats(&self) -> FilterStats {
        on_table!(&self.on, filter => filter.stats())
    }

    fn verify(&self) -> Result<(), InvariantError> {
        on_table!(&self.on, filter => filter.verify())
    }
}

impl<H: KeyHasher> Adaptive for ExtensionFilter<H> {
    const HASH_ADDRESSED: bool = true;

    #[inline(always)]
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => filter.insert(key, remote))
    }

    fn insert_new_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => filter.insert_new(key, remote))
    }

    fn remove_stored_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => homes::remove_stored(filter, key, remote))
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => homes::remove(filter, key, remote))
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        on_table!(&mut self.on, filter => homes::adapt(filter, key, remote))
    }

    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => filter.clear(remote))
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&self.on, filter => homes::verify_remote(filter, remote))
    }

    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        on_table!(&mut self.on, filter => homes::settle(filter, addresses, authority, remote))
    }

    fn rebuild_sorted<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => {
            let empty = filter.emptied().map_err(out_of_memory)?;
            *filter = homes::from_sorted(empty, remote)?;
        });
        Ok(true)
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        Some(on_table!(&self.on, filter => homes::home(filter, digest)))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        let on = match &self.on {
            On::Quotient(core) => On::Quotient(core.emptied()?),
            On::Bins(bins) => On::Bins(bins.emptied()?),
        };
        Ok(Self { on })
    }
}

impl<H: KeyHasher> HashAddressed for ExtensionFilter<H> {}

impl<H: KeyHasher> Growable for ExtensionFilter<H> {
    fn grow<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => homes::grow(filter, remote))
    }
}

/// Equal filters have the same table, parameters, hash function, keys (as far as they can tell) and repairs, in the
/// same slots.
impl<H: KeyHasher> PartialEq for ExtensionFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.on, &other.on) {
            (On::Quotient(core), On::Quotient(other)) => core == other,
            (On::Bins(bins), On::Bins(other)) => bins == other,
            _ => false,
        }
    }
}

/// Parameters: of a quotient table as for all filters with values; of bins see there. The sixth, the code bits of the
/// blocks, is 0 on bins alone.
impl<H: KeyHasher> Persist for ExtensionFilter<H> {
    const KIND: Kind = Kind::Extension;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        on_table!(&self.on, filter => filter.encode(encoder))
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [.., code] = decoder.parameters::<6>()?;
        let on = match code {
            0 => On::Bins(ExtendingBins::decode(decoder)?),
            _ => On::Quotient(Core::decode(decoder)?),
        };
        Ok(Self { on })
    }
}

impl<H: KeyHasher> HasRuns for ExtensionFilter<H> {
    fn runs(&self) -> Option<Runs> {
        Some(on_table!(&self.on, filter => filter.runs()))
    }

    fn with_runs(&self, runs: &Runs) -> Option<Self> {
        let on = match &self.on {
            On::Quotient(core) => On::Quotient(core.with_runs(runs)?),
            On::Bins(bins) => On::Bins(bins.with_runs(runs)?),
        };
        Some(Self { on })
    }
}

/// Bare cores for the tests that all schemes share.
#[cfg(test)]
pub(crate) mod testing {
    use super::scheme::Extending;
    use crate::KeyHasher;
    use crate::values::{Core, Parameters, Scheme};

    pub(crate) fn extension_core<H: KeyHasher>(parameters: Parameters) -> Core<impl Scheme, H> {
        Extending::core(parameters).unwrap()
    }
}
