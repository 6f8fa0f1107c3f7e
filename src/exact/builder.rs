//! How a list comes to be: one pass over the keys that are stored, one over the others, and two systems solved.

use std::convert::Infallible;

use thiserror::Error;

use crate::bits::AlignedWords;
use crate::{BuildError, Digest, Key, KeyHasher, Seed, Xxh3, parallel};

use super::exclude::shown;
use super::list::{CHUNK, ExactList, Tables};
use super::lists::{List, Lists, Pair};
use super::plan::Plan;
use super::ribbon::{Entry, SolvedTable, Table, Unsolvable, solve_table};
use super::sorted::{Digests, Sorted};

/// A list could not be built.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ExactListError<E = Infallible> {
    /// A key is in both lists.
    #[error("the key {} is in both lists; a key is accepted or rejected, not both", shown(.key))]
    InBoth {
        /// The bytes of the key.
        key: Vec<u8>,
    },
    /// There is no such list.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A list was not the same when it was read again.
    #[error("a list returned other keys the second time it was read; return the same keys every time")]
    Changed,
    /// The last equations contradict each other for every hash function that was tried.
    #[error("no list can be built with this seed; choose another one")]
    Unsolvable,
    /// A list could not be read.
    #[error("cannot read the keys: {0}")]
    Lists(#[source] E),
}

/// Chooses what an [`ExactList`] is built with.
///
/// ```
/// use besom::Filter;
/// use besom::exact::ExactList;
///
/// let builder = ExactList::builder().seed(7_u64).unknown_rate(1.0 / 1024.0);
/// let list = builder.build(["yes", "of course"], ["no", "never"])?;
/// assert!(list.contains("yes") && !list.contains("never"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ExactListBuilder<H = Xxh3> {
    seed: Option<Seed>,
    unknown_rate: Option<f64>,
    hasher: std::marker::PhantomData<H>,
}

impl Default for ExactListBuilder {
    fn default() -> Self {
        Self { seed: None, unknown_rate: None, hasher: std::marker::PhantomData }
    }
}

/// Keys that are put through the first table at once, on all cores. Their digests fit into a cache.
const BATCH: usize = 1 << 16;

impl<H: KeyHasher> ExactListBuilder<H> {
    /// Sets the seed of the hash function; from the operating system unless given. One seed and two lists always give
    /// the same bytes, on any number of cores.
    #[must_use]
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// The share of keys of neither list that may be accepted: from 2^-31 up to 1, or to a half without a list of
    /// rejected keys.
    ///
    /// Without it a list is as small as can be, and accepts up to half of such keys, or nearly all if more keys are
    /// accepted than rejected. A list without rejected keys has a rate of 1/256.
    ///
    /// ```
    /// use besom::Filter;
    /// use besom::exact::ExactList;
    ///
    /// let list = ExactList::builder().unknown_rate(0.001).seed(1_u64).build(0..1000_u64, 1000..2000_u64)?;
    /// assert!((2000..102_000_u64).filter(|key| list.contains(key)).count() < 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unknown_rate(mut self, rate: f64) -> Self {
        self.unknown_rate = Some(rate);
        self
    }

    /// Uses another hash function.
    #[must_use]
    pub fn hasher<H2: KeyHasher>(self) -> ExactListBuilder<H2> {
        ExactListBuilder {
            seed: self.seed,
            unknown_rate: self.unknown_rate,
            hasher: std::marker::PhantomData,
        }
    }

    /// Builds the list that accepts all keys of `yes` and rejects all keys of `no`. Keys may come more than once.
    ///
    /// Each is gone through twice: to count its keys, and to read them. Takes 16 bytes of memory for every key of the
    /// shorter list and for every other key that the first table lets through, and the list itself.
    ///
    /// # Errors
    ///
    /// [`ExactListError::InBoth`] if a key is in both lists; [`BuildError`] for a rate that cannot be met, or too
    /// little memory.
    pub fn build<Y, N>(self, yes: Y, no: N) -> Result<ExactList<H>, ExactListError>
    where
        Y: IntoIterator<Item: Key> + Clone,
        N: IntoIterator<Item: Key> + Clone,
    {
        self.build_from(&mut Pair(yes, no))
    }

    /// Builds a static filter: all keys are accepted, and others at the [rate](Self::unknown_rate).
    ///
    /// ```
    /// use besom::Filter;
    /// use besom::exact::ExactList;
    ///
    /// let filter = ExactList::builder().unknown_rate(1.0 / 65536.0).build_filter(0..100_000_u64)?;
    /// assert!((0..100_000_u64).all(|key| filter.contains(&key)));
    /// assert!(filter.stats().bits_per_key() < 16.16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
    pub fn build_filter<Y>(self, keys: Y) -> Result<ExactList<H>, ExactListError>
    where
        Y: IntoIterator<Item: Key> + Clone,
    {
        self.build(keys, std::iter::empty::<&[u8]>())
    }

    /// Builds a list from keys that are read from somewhere, more than once. See [`Lists`].
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build), and [`ExactListError::Lists`] if reading fails.
    pub fn build_from<L: Lists>(self, lists: &mut L) -> Result<ExactList<H>, ExactListError<L::Error>> {
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        let count = |lists: &mut L, list| lists.count(list).map_err(ExactListError::Lists);
        let counts = (count(lists, List::Yes)?, count(lists, List::No)?);
        let plan = Plan::choose(counts.0, counts.1, self.unknown_rate)?;
        let tables = Construction { hasher: &hasher, plan, counts, lists }.run()?;
        Ok(ExactList { hasher, tables })
    }
}

/// A list that is being built.
struct Construction<'a, H, L> {
    hasher: &'a H,
    plan: Plan,
    /// How many keys the lists said they have.
    counts: (u64, u64),
    lists: &'a mut L,
}

impl<H: KeyHasher, L: Lists> Construction<'_, H, L> {
    fn run(mut self) -> Result<Tables, ExactListError<L::Error>> {
        let (stored, streamed) =
            if self.plan.inverted { (List::No, List::Yes) } else { (List::Yes, List::No) };
        let expected = if self.plan.inverted { self.counts.1 } else { self.counts.0 };
        let mut digests = Digests::with_capacity(usize::try_from(expected).unwrap_or(0));
        self.visit(stored, |digest| digests.push(digest))?;
        let digests = digests.sorted();
        let first = self.solve_first(&digests)?;
        let mut tables = assemble(first.as_ref(), None)?;
        tables.inverted = self.plan.inverted;
        (tables.accepted, tables.rejected) = (digests.len() as u64, self.counts.1);
        if self.plan.exact {
            let (through, accepted) = self.put_through(&tables, streamed)?;
            let second = self.solve_second(&digests, &through, streamed)?;
            if self.plan.inverted {
                (tables.accepted, tables.rejected) = (accepted, digests.len() as u64);
            }
            drop((digests, through));
            tables = Tables { ..assemble(first.as_ref(), Some(&second))?.with_numbers(&tables) };
        }
        Ok(tables)
    }

    /// Calls `take` with the digest of every key of a list.
    fn visit(&mut self, list: List, mut take: impl FnMut(Digest)) -> Result<(), ExactListError<L::Error>> {
        let hasher = self.hasher;
        self.lists.visit(list, |key| take(hasher.digest(key))).map_err(ExactListError::Lists)
    }

    fn solve_first(&self, digests: &Sorted) -> Result<Option<SolvedTable>, ExactListError<L::Error>> {
        let Plan { columns, wider, .. } = self.plan;
        if columns == 0 {
            return Ok(None);
        }
        let entries = |from, to| digests.range(from, to).copied().collect();
        let solved = solve_table::<u64, Digest>(&entries, digests.len(), columns.into(), wider);
        Ok(Some(solved.map_err(|Unsolvable| ExactListError::Unsolvable)?))
    }

    /// The keys of a list that the first table lets through, and how many keys it has.
    fn put_through(
        &mut self,
        tables: &Tables,
        list: List,
    ) -> Result<(Sorted, u64), ExactListError<L::Error>> {
        let (mut through, mut batch, mut count) = (Digests::with_capacity(0), Vec::with_capacity(BATCH), 0);
        self.visit(list, |digest| {
            count += 1;
            batch.push(digest);
            if batch.len() == BATCH {
                take_through(tables, &batch, &mut through);
                batch.clear();
            }
        })?;
        take_through(tables, &batch, &mut through);
        Ok((through.sorted(), count))
    }

    fn solve_second(
        &mut self,
        stored: &Sorted,
        through: &Sorted,
        streamed: List,
    ) -> Result<SolvedTable, ExactListError<L::Error>> {
        if let Some(common) = stored.common(through) {
            return Err(self.name(common, streamed)?);
        }
        let entries = |from, to| merged(stored, through, from, to);
        let solved = solve_table::<u128, Tagged>(&entries, stored.len() + through.len(), 1, 0.0);
        solved.map_err(|Unsolvable| ExactListError::Unsolvable)
    }

    /// The error for a key that is in both lists.
    fn name(
        &mut self,
        common: Digest,
        list: List,
    ) -> Result<ExactListError<L::Error>, ExactListError<L::Error>> {
        let (hasher, mut found) = (self.hasher, None);
        let mut find = |key: &[u8]| {
            if found.is_none() && hasher.digest(key) == common {
                found = Some(key.to_vec());
            }
        };
        self.lists.visit(list, &mut find).map_err(ExactListError::Lists)?;
        Ok(found.map_or(ExactListError::Changed, |key| ExactListError::InBoth { key }))
    }
}

/// Keeps the digests that the first table lets through.
fn take_through(tables: &Tables, digests: &[Digest], through: &mut Digests) {
    let pieces: Vec<&[Digest]> = digests.chunks(BATCH / 16).collect();
    for piece in parallel::map(pieces, |piece| let_through(tables, piece)) {
        piece.into_iter().for_each(|digest| through.push(digest));
    }
}

fn let_through(tables: &Tables, digests: &[Digest]) -> Vec<Digest> {
    let (mut through, mut answers) = (Vec::new(), [false; CHUNK]);
    for chunk in digests.chunks(CHUNK) {
        chunk.iter().for_each(|&digest| tables.prefetch(digest));
        tables.answer_chunk(chunk, &mut answers[..chunk.len()]);
        let passed = chunk.iter().zip(&answers).filter(|(_, answer)| **answer != tables.inverted);
        through.extend(passed.map(|(digest, _)| *digest));
    }
    through
}

/// A key of the second table.
#[derive(Clone, Copy)]
struct Tagged {
    digest: Digest,
    stored: bool,
}

impl Entry for Tagged {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn with_digest(self, digest: Digest) -> Self {
        Self { digest, ..self }
    }

    fn value(&self, _: u64) -> u32 {
        self.stored.into()
    }
}

/// The keys of both kinds in a range, sorted.
fn merged(stored: &Sorted, through: &Sorted, from: u64, to: Option<u64>) -> Vec<Tagged> {
    let tagged = |sorted: &Sorted, stored| -> Vec<Tagged> {
        sorted.range(from, to).map(|&digest| Tagged { digest, stored }).collect()
    };
    let mut entries = tagged(stored, true);
    entries.extend(tagged(through, false));
    // Two runs: a stable sort merges them.
    entries.sort_by_key(|entry| entry.digest.to_u128());
    entries
}

/// Two tables in one piece of memory.
fn assemble(first: Option<&SolvedTable>, second: Option<&SolvedTable>) -> Result<Tables, BuildError> {
    let [first_len, second_len] = [first, second].map(|table| table.map_or(0, SolvedTable::len));
    let bytes = (first_len + second_len) * size_of::<u64>();
    let out_of_memory = BuildError::OutOfMemory { bytes };
    let mut words = AlignedWords::zeroed(first_len + second_len).ok_or_else(|| out_of_memory.clone())?;
    let (first_words, second_words) = words.split_at_mut(first_len);
    first.inspect(|table| table.write(first_words));
    second.inspect(|table| table.write(second_words));
    let first = first.map(|table| Table::new(table.measures, table.columns, 0));
    let second = second.map(|table| Table::new(table.measures, table.columns, first_len));
    Ok(Tables {
        words,
        first: first.map(|table| table.ok_or_else(|| out_of_memory.clone())).transpose()?,
        second: second.map(|table| table.ok_or_else(|| out_of_memory.clone())).transpose()?,
        inverted: false,
        accepted: 0,
        rejected: 0,
        version: Tables::active_version(),
    })
}

impl Tables {
    /// These tables with the numbers of others.
    fn with_numbers(self, other: &Self) -> Self {
        let Self { inverted, accepted, rejected, .. } = *other;
        Self { inverted, accepted, rejected, ..self }
    }
}
