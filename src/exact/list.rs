//! The list: two tables, and its queries.

use crate::bits::{AlignedWords, Isa};
use crate::error::ensure;
use crate::{Digest, Filter, FilterStats, InvariantError, Key, KeyHasher, Xxh3};

use super::ExactListBuilder;
use super::ribbon::Table;
use super::ribbon::machine::{Machine, Portable, Version};

/// Accepts every key of one list and rejects every key of another, in about as few bits as that takes.
///
/// Two tables: the first has r hash bits of every accepted key and lets through one other key in 2^r; the second has
/// one bit for every accepted key and for every rejected one that got through. With k rejected keys for every accepted
/// one that comes to r + 1 + k/2^r bits, and r is chosen for the smallest sum. Both are bumped ribbons: with 10^6 keys
/// they took 0.6% more than that. If fewer keys are rejected than accepted, the rejected ones are stored and the
/// answers inverted.
///
/// | yes : no | limit | bits an accepted key |
/// |---|---|---|
/// | 1 : 1 | 2.00 | 2.01 |
/// | 1 : 10 | 4.83 | 5.28 |
/// | 1 : 70 | 7.58 | 8.13 |
/// | 1 : 110 | 8.23 | 8.76 |
/// | 1 : 1000 | 11.41 | 11.99 |
///
/// **Keys of neither list** are accepted by chance: half of those that pass the first table, so one in 2^(r+1) of all.
/// Ask for less with [`unknown_rate`](ExactListBuilder::unknown_rate). Without keys to reject,
/// the first table is a static filter by itself: [`build_filter`](ExactListBuilder::build_filter).
///
/// A list does not change. A query looks at two places, five cache lines at most for r up to 8; one key in twenty was
/// bumped, and is looked for in one place more.
///
/// ```
/// use besom::Filter;
/// use besom::exact::ExactList;
///
/// let (revoked, valid) = (0..10_000_u64, 10_000..110_000_u64);
/// let list = ExactList::builder().build(revoked.clone(), valid.clone())?;
/// assert!(revoked.clone().all(|key| list.contains(&key)));
/// assert!(valid.clone().all(|key| !list.contains(&key)));
/// assert!(list.stats().bits_per_key() < 5.4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ExactList<H = Xxh3> {
    pub(super) hasher: H,
    pub(super) tables: Tables,
}

/// The list without its hash function.
#[derive(Clone)]
pub(super) struct Tables {
    /// The words of both tables, the first table's first.
    pub(super) words: AlignedWords,
    /// What it lets through is asked of the second. Without it, everything is.
    pub(super) first: Option<Table<u64>>,
    /// Without it, what the first one lets through is stored.
    pub(super) second: Option<Table<u128>>,
    /// Whether the keys that are stored are those that are rejected.
    pub(super) inverted: bool,
    /// How many keys are accepted, and how many are known to be rejected.
    pub(super) accepted: u64,
    pub(super) rejected: u64,
    pub(super) version: Version,
}

impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |tables: &Self| (tables.inverted, tables.accepted, tables.rejected);
        let shape = self.first == other.first && self.second == other.second;
        shape && numbers(self) == numbers(other) && self.words == other.words
    }
}

impl ExactList {
    /// Returns a builder: choose seed and rate, then hand in the lists.
    #[must_use]
    pub fn builder() -> ExactListBuilder {
        ExactListBuilder::default()
    }
}

impl<H> ExactList<H> {
    /// Returns how many keys the list of rejected keys had.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.tables.rejected
    }

    /// Returns the share of keys of neither list that the list accepts, by its plan.
    #[must_use]
    pub fn unknown_rate(&self) -> f64 {
        let first = self.tables.first.as_ref().map_or(1.0, Table::chance);
        let stored = if self.tables.second.is_some() { first / 2.0 } else { first };
        if self.tables.inverted { 1.0 - stored } else { stored }
    }
}

/// Keys that are answered at once.
pub(super) const CHUNK: usize = 64;

/// Tables of more words are fetched ahead: 512 KiB and more.
const LARGE: usize = 1 << 16;

impl Tables {
    #[inline(always)]
    fn answer_with(&self, machine: impl Machine, digest: Digest) -> bool {
        let words = &self.words[..];
        let through = self.first.as_ref().is_none_or(|table| table.matches(machine, words, digest));
        let stored = through && self.second.as_ref().is_none_or(|table| table.value(words, digest));
        stored != self.inverted
    }

    /// Answers up to [`CHUNK`] keys: all in the first table, then those that got through in the second.
    #[inline(always)]
    fn answer_chunk_with(&self, machine: impl Machine, digests: &[Digest], answers: &mut [bool]) {
        let words = &self.words[..];
        let pairs = digests.iter().zip(&mut *answers);
        let (first, second) = match (&self.first, &self.second) {
            (Some(first), Some(second)) => (first, second),
            (Some(first), None) => {
                return pairs.for_each(|(&digest, answer)| {
                    *answer = first.matches(machine, words, digest) != self.inverted;
                });
            }
            _ => return pairs.for_each(|(&digest, answer)| *answer = self.answer_with(machine, digest)),
        };
        let (mut through, mut count) = ([0_u8; CHUNK], 0);
        for (index, (&digest, answer)) in digests.iter().zip(&mut *answers).enumerate().take(CHUNK) {
            let passed = first.matches(machine, words, digest);
            *answer = self.inverted;
            // Without a branch: nobody could foretell which ones get through.
            through[count] = index as u8;
            count += usize::from(passed);
        }
        let through = through[..count].iter().map(|&index| usize::from(index));
        if self.is_large() {
            through.clone().for_each(|index| second.prefetch(words, digests[index]));
        }
        for index in through {
            answers[index] = second.value(words, digests[index]) != self.inverted;
        }
    }

    /// Whether it takes more memory than the caches that are near: only then does fetching ahead pay.
    fn is_large(&self) -> bool {
        self.words.len() > LARGE
    }

    /// Asks the processor to fetch what the first table that is asked reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, digest: Digest) {
        match (&self.first, &self.second) {
            (Some(first), _) => first.prefetch(&self.words, digest),
            (None, Some(second)) => second.prefetch(&self.words, digest),
            (None, None) => {}
        }
    }
}

/// All questions for every machine: whole, so that everything below is inlined with its instructions.
macro_rules! compiled {
    ($($machine:ident: $new:expr, $features:literal, $one:ident, $filter:ident, $chunk:ident;)*) => {$(
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $one(tables: &Tables, digest: Digest) -> bool {
            // SAFETY: this function is called where the processor has these features.
            tables.answer_with(unsafe { $new }, digest)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $filter(words: &[u64], first: &Table<u64>, digest: Digest) -> bool {
            // SAFETY: as above.
            first.matches(unsafe { $new }, words, digest)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $chunk(tables: &Tables, digests: &[Digest], answers: &mut [bool]) {
            // SAFETY: as above.
            tables.answer_chunk_with(unsafe { $new }, digests, answers);
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
use super::ribbon::machine::x86::{Avx2, Avx512};

compiled! {
    Avx2: Avx2::new(), "avx2,bmi1,bmi2,popcnt,lzcnt", answer_avx2, filter_avx2, answer_chunk_avx2;
    Avx512: Avx512::new(), "avx512f,avx512vpopcntdq,avx512vl,avx512bw,avx2,bmi1,bmi2,popcnt,lzcnt", answer_avx512, filter_avx512, answer_chunk_avx512;
}

impl Tables {
    #[inline]
    pub(super) fn answer(&self, digest: Digest) -> bool {
        // A static filter has one table, and a function of its own that needs fewer registers.
        #[cfg(target_arch = "x86_64")]
        if let (Some(first), None) = (&self.first, &self.second) {
            match self.version {
                // SAFETY: the version is one that the processor runs.
                Version::Avx2 => return unsafe { filter_avx2(&self.words, first, digest) } != self.inverted,
                Version::Avx512 => {
                    // SAFETY: as above.
                    let accepted = unsafe { filter_avx512(&self.words, first, digest) };
                    return accepted != self.inverted;
                }
                Version::Portable => {}
            }
        }
        match self.version {
            Version::Portable => self.answer_with(Portable, digest),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Version::Neon => self.answer_with(super::ribbon::machine::neon::Neon, digest),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the version is one that the processor runs.
            Version::Avx2 => unsafe { answer_avx2(self, digest) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the version is one that the processor runs.
            Version::Avx512 => unsafe { answer_avx512(self, digest) },
        }
    }

    pub(super) fn answer_chunk(&self, digests: &[Digest], answers: &mut [bool]) {
        match self.version {
            Version::Portable => self.answer_chunk_with(Portable, digests, answers),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Version::Neon => self.answer_chunk_with(super::ribbon::machine::neon::Neon, digests, answers),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the version is one that the processor runs.
            Version::Avx2 => unsafe { answer_chunk_avx2(self, digests, answers) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the version is one that the processor runs.
            Version::Avx512 => unsafe { answer_chunk_avx512(self, digests, answers) },
        }
    }

    /// The version of the queries for this process.
    pub(super) fn active_version() -> Version {
        Version::of(Isa::active())
    }
}

impl<H: KeyHasher> Filter for ExactList<H> {
    type Hasher = H;
    type Place = Digest;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    #[inline]
    fn prefetch(&self, place: Digest) {
        self.tables.prefetch(place);
    }

    #[inline]
    fn contains_at(&self, place: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.tables.answer(place)
    }

    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        answers.resize(keys.len(), false);
        // While one chunk is answered, the memory for the next one is under way.
        let (mut digests, large) = ([[Digest { hi: 0, lo: 0 }; CHUNK]; 2], self.tables.is_large());
        let prepare = |digests: &mut [Digest], keys: &[K]| {
            for (digest, key) in digests.iter_mut().zip(keys) {
                *digest = self.hasher.digest_key(key);
                if large {
                    self.tables.prefetch(*digest);
                }
            }
        };
        let mut ahead = keys.chunks(CHUNK);
        prepare(&mut digests[0], ahead.next().unwrap_or(&[]));
        for answers in answers.chunks_mut(CHUNK) {
            let [now, next] = &mut digests;
            prepare(next, ahead.next().unwrap_or(&[]));
            self.tables.answer_chunk(&now[..answers.len()], answers);
            digests.swap(0, 1);
        }
    }

    /// How many keys are accepted for certain. If the list of accepted keys is the longer one, a key that it repeats
    /// counts each time: only the shorter list is kept while the other one is read.
    fn len(&self) -> usize {
        self.tables.accepted as usize
    }

    /// As many as there are, but at least one.
    fn capacity(&self) -> usize {
        self.len().max(1)
    }

    /// The share of keys of neither list that is accepted: [`unknown_rate`](Self::unknown_rate).
    fn false_positive_rate(&self) -> f64 {
        self.unknown_rate()
    }

    fn stats(&self) -> FilterStats {
        let Tables { words, first, second, .. } = &self.tables;
        let rows = first.as_ref().map_or(0, Table::rows) + second.as_ref().map_or(0, Table::rows);
        FilterStats {
            items: self.len(),
            slots: rows as usize,
            load: 1.0,
            bits: words.len() * 64,
            ..FilterStats::default()
        }
    }

    /// Every table of the right size is a list, if not the one that was meant: files are told from damaged ones by
    /// their checksums.
    fn verify(&self) -> Result<(), InvariantError> {
        let Tables { words, first, second, .. } = &self.tables;
        let end = second.as_ref().map(Table::end).or(first.as_ref().map(Table::end)).unwrap_or(0);
        ensure!(end == words.len(), "the tables have {end} words, and there are {}", words.len());
        let clean = first.as_ref().is_none_or(|table| table.is_clean(words))
            && second.as_ref().is_none_or(|table| table.is_clean(words));
        ensure!(clean, "there are limits for buckets that do not exist");
        Ok(())
    }
}

impl<H: KeyHasher> std::fmt::Debug for ExactList<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tables { accepted, rejected, words, .. } = &self.tables;
        write!(f, "ExactList({accepted} accepted, {rejected} rejected, {} bytes)", words.len() * 8)
    }
}
