//! The broom filter, whichever its table.

use std::ops::RangeInclusive;

#[cfg(doc)]
use crate::AdaptiveError;
use crate::extension::Place;
use crate::filter::{Adaptation, Adaptive, Filter, FilterStats};
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist};
use crate::{
    Authority, BuildError, Digest, Growable, InvariantError, Key, KeyHasher, Remote, RemoteResult, Settled,
    Table, Xxh3,
};

use super::core::Core;
use super::on_bins::BroomBins;
use super::on_quotients::BroomQuotients;
use super::persist;

/// An adaptive filter whose false-positive rate adversaries cannot raise: not by repeating false positives, not by
/// removing and inserting keys, not by collecting what false positives have in common.
///
/// Every query for a key that is not stored is a false positive with probability at most ε, whatever was asked
/// before, as long as each false positive is reported to [`adapt`](Adaptive::adapt); [`Guard`](crate::Guard) does
/// that. `docs/threat-model.md` says exactly what is promised to whom, and how it is known. No repair is ever forgotten
/// before the hash function that it was made under is given up, and none at all within the
/// [budget](super::BroomFilterBuilder::adaptivity_budget) of adaptivity bits. Below its capacity the filter refuses no key.
/// See the [module](crate::broom) for how it works.
///
/// **Which hash.** The promise is about a hash that looks random to the adversary. [`SipHash`](crate::SipHash) is
/// made for that, with a seed that nobody knows: take it if the adversary chooses keys. The default, [`Xxh3`], is fast
/// and keyed but no pseudo-random function: under it the rate holds for all keys that were not made for this hash, in
/// whatever order they are asked. A filter that is built anew takes the hash functions of its seed from the first one
/// on: give it a fresh seed, or load its last snapshot, or what was learned of its predecessor is true again.
///
/// **Costs.** `contains` reads one cache line, nearly always, and never the remote. Reads and writes of the remote:
///
/// | operation | reads | groups of changes |
/// |---|---|---|
/// | `insert` | none, nearly always; if the key needs adaptivity bits, what `adapt` reads | 1 |
/// | `remove` | 1 | 1 |
/// | `adapt` | 1; beyond the budget one of 128 addresses more, for the keys that it carries to a fresh hash function | 1 |
///
/// A read is a range of addresses: those of a quotient are two that follow each other. What is read is paired with what
/// is stored.
///
/// It is built on one of two [tables](crate::Table). What it promises is the same on both, but for speed and space. The
/// builder chooses [bins](Table::Bins) for 10,000 keys or more at rates from 1/80 to 2^-16, and quotient tables
/// otherwise, unless [told](super::BroomFilterBuilder::table).
///
/// Space at the default rate of 1/256, load 0.90 and default budget: at most 13.2 bits per key when filled, and at most
/// 14.5 under endless churn with repairs, for 20,000 keys or more (`broom::tests::churn` asserts both).
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
#[derive(Clone)]
pub struct BroomFilter<H = Xxh3> {
    pub(super) on: On<H>,
}

crate::filter::debug_by_figures!([H: KeyHasher] BroomFilter<H>);

/// The filter on its table.
#[derive(Debug, Clone)]
pub(super) enum On<H> {
    Quotient(Core<BroomQuotients, H>),
    Bins(Core<BroomBins, H>),
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

/// Where the keys of a [`BroomFilter`] are, and what keeping them there has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BroomLevels {
    /// Keys in the primary table, or in the lines of bins.
    pub primary: usize,
    /// Keys in the secondary table, or in the back yard if remainders are large; those beyond the lines of bins.
    pub elsewhere: usize,
    /// The share of all queries that have to look there too.
    pub hinted: f64,
    /// The most slots that any insertion or removal can touch in the primary table. On bins those of a line.
    pub bound: u64,
    /// The most slots that one did touch so far. On bins a line is written as a whole.
    pub longest_shift: u64,
    /// The same in the secondary table, which has no fixed bound but is never full; 0 for the back yard and on bins.
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

impl<H: KeyHasher> BroomFilter<H> {
    /// What the filter stands on.
    #[must_use]
    pub fn table(&self) -> Table {
        match self.on {
            On::Quotient(_) => Table::Quotient,
            On::Bins(_) => Table::Bins,
        }
    }

    /// Where the keys are. On quotient tables all of it is counted as it happens, so asking costs nothing; on bins it
    /// walks the lines.
    pub fn levels(&self) -> BroomLevels {
        on_table!(&self.on, filter => filter.levels())
    }

    /// Takes all keys of `other` in; a key that both have is stored once. `other` and its remote stay as they are.
    ///
    /// This is not the method of [`Merge`](crate::Merge), because fingerprints are not enough: each filter made its own
    /// distinct, and the union needs the keys to do so again. They come from the remotes, so the two filters may differ
    /// in seed, hash function, rate and table. As everywhere, the filter's own remote comes last.
    ///
    /// Reads all keys of both remotes and writes all keys to `remote` again, in groups of a few hundred. The hash
    /// functions start afresh, so earlier repairs are forgotten, as if every hash function had timed out. A growable
    /// filter grows as far as it must.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Full`] if the union does not fit; [`AdaptiveError::Inconsistent`] if a remote does not hold its
    /// filter's keys, and [`AdaptiveError::Remote`] if one fails. The filter is unchanged then, and still agrees with
    /// its remote.
    ///
    /// ```
    /// use besom::{Adaptive, BroomFilter, Filter, MemoryRemote};
    ///
    /// let [mut left, mut right] = [BroomFilter::with_capacity(10)?, BroomFilter::with_capacity(10)?];
    /// let [mut left_remote, mut right_remote] = [MemoryRemote::new(), MemoryRemote::new()];
    /// left.insert("a", &mut left_remote)?;
    /// right.insert("b", &mut right_remote)?;
    /// left.merge(&right, &mut right_remote, &mut left_remote)?;
    /// assert!(left.contains("a") && left.contains("b") && left_remote.len() == 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge<G: KeyHasher, R: Remote>(
        &mut self,
        other: &BroomFilter<G>,
        other_remote: &mut R,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => {
            on_table!(&other.on, other => filter.merge(other, other_remote, remote))
        })
    }
}

/// Filters are equal if they have the same table, parameters and hash functions, and hold the same fingerprints, on the
/// same levels, and ghosts. What they have counted, and where their lists lie in the remote, does not matter.
impl<H: KeyHasher> PartialEq for BroomFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.on, &other.on) {
            (On::Quotient(filter), On::Quotient(other)) => filter == other,
            (On::Bins(filter), On::Bins(other)) => filter == other,
            _ => false,
        }
    }
}

impl<H: KeyHasher> Filter for BroomFilter<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        on_table!(&self.on, filter => filter.hasher())
    }

    #[inline(always)]
    fn place(&self, digest: Digest) -> Place {
        match &self.on {
            On::Quotient(filter) => Place::of_quotients(filter.place(digest)),
            On::Bins(filter) => Place::of_bins(filter.place(digest)),
        }
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        match &self.on {
            On::Quotient(filter) => filter.prefetch(place.in_quotients()),
            On::Bins(filter) => filter.prefetch(place.in_bins()),
        }
    }

    #[inline(always)]
    fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        match &self.on {
            On::Quotient(filter) => filter.contains_at(place.in_quotients(), digest),
            On::Bins(filter) => filter.contains_at(place.in_bins(), digest),
        }
    }

    #[inline(always)]
    fn contains_digest(&self, digest: Digest) -> bool {
        on_table!(&self.on, filter => filter.contains_digest(digest))
    }

    /// Nearly always the upper half of the digest is enough, and the hash need not compute the other one. In the
    /// few other cases the key is hashed once more.
    #[inline(always)]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        on_table!(&self.on, filter => filter.contains(key))
    }

    /// As for all filters, but the table is chosen once for all keys.
    #[inline]
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        on_table!(&self.on, filter => filter.contains_many(keys, answers));
    }

    fn len(&self) -> usize {
        on_table!(&self.on, filter => filter.len())
    }

    fn capacity(&self) -> usize {
        on_table!(&self.on, filter => filter.capacity())
    }

    /// The sustained rate, which holds against adversaries too, wherever the frontier is.
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

impl<H: KeyHasher> Adaptive for BroomFilter<H> {
    #[inline(always)]
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => filter.insert_bytes(key, remote))
    }

    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        on_table!(&mut self.on, filter => filter.remove_bytes(key, remote))
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        on_table!(&mut self.on, filter => filter.adapt_bytes(key, remote))
    }

    /// Repairs are forgotten with the hash functions that they were made under.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => filter.clear(remote))
    }

    /// Pairs that are not at their keys' addresses, which a growth that failed has left behind, are no disagreement.
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&self.on, filter => filter.verify_remote(remote))
    }

    /// Pairs that are not at their keys' addresses move there. Settle all addresses that a failed group has named.
    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        on_table!(&mut self.on, filter => filter.settle(addresses, authority, remote))
    }

    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        on_table!(&self.on, filter => filter.home(digest))
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        let on = match &self.on {
            On::Quotient(filter) => On::Quotient(filter.emptied()?),
            On::Bins(filter) => On::Bins(filter.emptied()?),
        };
        Ok(Self { on })
    }
}

impl<H: KeyHasher> Growable for BroomFilter<H> {
    /// Every key goes to hash functions that were never used, so a repaired false positive is a stranger to all of
    /// them.
    ///
    /// Reads every key once and writes it once at its new address, in groups of a few hundred, then removes the old
    /// pairs. If the remote fails in between, pairs stay behind that are not at their keys' addresses; every read
    /// passes over them, and the next growth, [`clear`](Adaptive::clear) or [`rebuild`](Adaptive::rebuild) removes
    /// them.
    fn grow<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        on_table!(&mut self.on, filter => filter.grow(remote))
    }
}

impl<H: KeyHasher> Persist for BroomFilter<H> {
    const KIND: Kind = Kind::Broom;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        on_table!(&self.on, filter => filter.encode(encoder))
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let on = match persist::table_of(decoder)? {
            Table::Quotient => On::Quotient(Core::decode(decoder)?),
            Table::Bins => On::Bins(Core::decode(decoder)?),
        };
        Ok(Self { on })
    }
}
