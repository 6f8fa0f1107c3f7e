//! A table of three layers: its measures, its construction and its queries.

#[cfg(target_arch = "x86_64")]
use crate::bits::Isa;
use crate::bits::prefetch;
use crate::{Digest, parallel};

use super::band::{Band, again};
use super::layer::{BLOCK, Columns, Layer};
use super::machine::Machine;
use super::solve::{self, Entry, Solved, hashed_value};

/// The numbers that a table's shape follows from: buckets of the two bumping layers; for the last one, where equations
/// can begin, and the number of its hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::exact) struct Measures {
    pub(in crate::exact) buckets: [u64; 2],
    pub(in crate::exact) starts: u64,
    pub(in crate::exact) salt: u64,
}

/// A table whose words lie in memory that somebody else has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::exact) struct Table<B> {
    bumping: [Layer<B>; 2],
    last: Layer<B>,
    salt: u64,
    /// One word behind the last of its words.
    end: usize,
}

/// Where the equations of a layer come from: all entries whose digests lie in a range of upper halves, sorted. Without
/// an upper end, to the last.
pub(in crate::exact) type Source<'a, E> = &'a (dyn Fn(u64, Option<u64>) -> Vec<E> + Sync);

/// The last layer could not be solved. That does not happen unless the hash function is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exact) struct Unsolvable;

/// How many hash functions the last layer is tried with. Every one has more room than the one before it.
const SALTS: u64 = 64;

/// More buckets or places than any memory has.
const MOST: u64 = 1 << 48;

impl<B: Band> Table<B> {
    /// The table of these measures, whose words begin at `at`; `None` if no memory could hold it.
    pub(in crate::exact) fn new(measures: Measures, columns: Columns, at: usize) -> Option<Self> {
        let Measures { buckets, starts, salt } = measures;
        if buckets.iter().chain([&starts, &columns.wider]).any(|&number| number > MOST) {
            return None;
        }
        let mut table = Self {
            bumping: [Layer::bumping(buckets[0], columns), Layer::bumping(buckets[1], columns.beyond())],
            last: Layer::last(starts, columns.beyond()),
            salt,
            end: at,
        };
        table.place(at).then_some(table)
    }

    /// Puts the words of the layers one behind the other: first the rows, then the limits.
    fn place(&mut self, at: usize) -> bool {
        let mut end = at as u64;
        let mut take = |words: u64| {
            let at = end as usize;
            end = end.saturating_add(words);
            at
        };
        let [first, second] = &mut self.bumping;
        first.rows_at = take(first.row_words());
        second.rows_at = take(second.row_words());
        self.last.rows_at = take(self.last.row_words());
        first.limits_at = take(first.limit_words());
        second.limits_at = take(second.limit_words());
        self.end = end as usize;
        end < isize::MAX as u64 / 8
    }

    pub(in crate::exact) fn measures(&self) -> Measures {
        Measures {
            buckets: [self.bumping[0].buckets, self.bumping[1].buckets],
            starts: self.last.starts,
            salt: self.salt,
        }
    }

    pub(in crate::exact) fn columns(&self) -> Columns {
        self.bumping[0].columns
    }

    /// One behind the last of its words.
    pub(in crate::exact) fn end(&self) -> usize {
        self.end
    }

    /// How many unknowns it has.
    pub(in crate::exact) fn rows(&self) -> u64 {
        self.bumping[0].rows() + self.bumping[1].rows() + self.last.rows()
    }

    /// Whether no bits are set that nothing could have set.
    pub(in crate::exact) fn is_clean(&self, words: &[u64]) -> bool {
        self.bumping.iter().all(|layer| {
            let last = layer.limits_at + layer.limit_words() as usize;
            layer.buckets.is_multiple_of(32) || words[last - 1] >> (layer.buckets % 32 * 2) == 0
        })
    }

    /// Where the equation of a key begins in the first layer, if it is there, as most are: the row, and the rest of the
    /// digest.
    #[inline(always)]
    fn first_row(&self, words: &[u64], digest: Digest) -> Option<(u64, u64)> {
        let first = &self.bumping[0];
        if first.buckets == 0 {
            return None;
        }
        let spot = first.bumping_spot(digest);
        (!first.is_bumped(words, spot)).then(|| (Layer::<B>::bumping_row(spot), spot.rest))
    }

    /// The layer that has the equation of a key that was bumped, if there is one, and the digest that it has there.
    fn find_bumped(&self, words: &[u64], digest: Digest) -> Option<(&Layer<B>, Digest)> {
        let (second, digest) = (&self.bumping[1], again(digest, 0));
        if second.buckets > 0 && !second.is_bumped(words, second.spot(digest)) {
            return Some((second, digest));
        }
        (self.last.buckets > 0).then(|| (&self.last, again(digest, self.salt)))
    }

    /// Asks the processor to fetch what a query in the first layer reads.
    #[inline(always)]
    pub(in crate::exact) fn prefetch(&self, words: &[u64], digest: Digest) {
        let layer = &self.bumping[0];
        if layer.buckets == 0 {
            return;
        }
        let block = Layer::<B>::bumping_row(layer.bumping_spot(digest)) / BLOCK;
        let first = layer.rows_at + layer.columns.words_before(block) as usize;
        let reach = layer.columns.most() as usize * (1 + B::WIDTH as usize / BLOCK as usize);
        // As many fetches for every key, though some are of one line: what depends on where a key's words begin cannot
        // be foretold.
        let start = words.as_ptr().wrapping_add(first);
        prefetch(start);
        prefetch(start.wrapping_add(reach - 1));
        (LINE..reach - 1).step_by(LINE).for_each(|word| prefetch(start.wrapping_add(word)));
    }
}

/// Words of a cache line.
const LINE: usize = 8;

/// Where the unknowns of an equation are: the words of the block that it begins in, and how far the next ones are
/// behind them.
#[derive(Clone, Copy)]
struct Site {
    at: usize,
    gap: usize,
    columns: usize,
}

impl Table<u64> {
    /// The share of other keys that match.
    pub(in crate::exact) fn chance(&self) -> f64 {
        let (columns, blocks) = (self.columns(), (self.bumping[0].rows() / BLOCK).max(1));
        let wider = columns.wider.min(blocks) as f64 / blocks as f64;
        if self.rows() == 0 { 0.0 } else { (1.0 - wider / 2.0) * 2.0_f64.powi(-(columns.count as i32)) }
    }

    /// Whether the sums of the key's equation are the hash bits that they are for all keys of the table.
    #[inline(always)]
    pub(in crate::exact) fn matches(&self, machine: impl Machine, words: &[u64], digest: Digest) -> bool {
        let Some((row, rest)) = self.first_row(words, digest) else {
            return self.bumped_matches(machine, words, digest);
        };
        let first = &self.bumping[0];
        let (at, block) = (first.rows_at, (row / BLOCK) as usize);
        // The usual number, known when this is compiled.
        if first.columns == Columns::all(8) {
            let site = Site { at: at + 8 * block, gap: 8, columns: 8 };
            return matches(machine, words, site, row, digest, rest);
        }
        matches(machine, words, first.site(row), row, digest, rest)
    }

    /// The same for a key that was bumped.
    #[cold]
    #[inline(never)]
    fn bumped_matches(&self, machine: impl Machine, words: &[u64], digest: Digest) -> bool {
        let Some((layer, digest)) = self.find_bumped(words, digest) else { return false };
        let spot = layer.spot(digest);
        let row = layer.row(spot);
        let mut site = layer.site(row);
        // The last equation of a layer may end with a block; what is behind it is multiplied by 0.
        if row / BLOCK + 1 == layer.rows() / BLOCK {
            site.gap = 0;
        }
        matches(machine, words, site, row, digest, spot.rest)
    }
}

#[inline(always)]
fn matches(machine: impl Machine, words: &[u64], site: Site, row: u64, digest: Digest, rest: u64) -> bool {
    let (coefficients, shift) = (u64::coefficients(digest), row % BLOCK);
    let (low, high) = (coefficients << shift, coefficients >> 1 >> (63 - shift));
    let sums = machine.sums(&words[site.at..], site.gap, site.columns, low, high);
    (sums ^ hashed_value(rest)) << (32 - site.columns) == 0
}

impl Layer<u64> {
    #[inline(always)]
    fn site(&self, row: u64) -> Site {
        let (block, Columns { count, wider }) = (row / BLOCK, self.columns);
        Site {
            at: self.rows_at + self.columns.words_before(block) as usize,
            gap: (count + u64::from(block < wider)) as usize,
            // As many as the next block has, which may be fewer.
            columns: (count + u64::from(block + 1 < wider)) as usize,
        }
    }
}

impl Table<u128> {
    /// The value of a key of the table; anything for another.
    #[inline(always)]
    pub(in crate::exact) fn value(&self, words: &[u64], digest: Digest) -> bool {
        let Some((row, _)) = self.first_row(words, digest) else { return self.bumped_value(words, digest) };
        let block = (row / BLOCK) as usize;
        let blocks = words[self.bumping[0].rows_at + block..].first_chunk();
        blocks.is_some_and(|&blocks| value(blocks, digest, row))
    }

    /// The same for one that was bumped.
    #[cold]
    #[inline(never)]
    fn bumped_value(&self, words: &[u64], digest: Digest) -> bool {
        let Some((layer, digest)) = self.find_bumped(words, digest) else { return false };
        let row = layer.row(layer.spot(digest));
        // The last equation of a layer may end with a block; what is behind it is multiplied by 0.
        let (first, last) = (row / BLOCK, layer.rows() / BLOCK - 1);
        let word = |block: u64| words[layer.rows_at + block.min(last) as usize];
        value([word(first), word(first + 1), word(first + 2)], digest, row)
    }
}

/// The sum of the unknowns in three blocks, the first of which has this row.
#[inline(always)]
fn value(blocks: [u64; 3], digest: Digest, row: u64) -> bool {
    let (coefficients, shift) = (u128::coefficients(digest), row % BLOCK);
    let (low, high) = (coefficients << shift, (coefficients >> 64) as u64 >> 1 >> (63 - shift));
    let sum = blocks[0] & low as u64 ^ blocks[1] & (low >> 64) as u64 ^ blocks[2] & high;
    sum.count_ones() & 1 == 1
}

/// A table that was solved, and its words.
pub(in crate::exact) struct SolvedTable {
    pub(in crate::exact) measures: Measures,
    pub(in crate::exact) columns: Columns,
    /// The rows of the layers, then the limits, as [`Table`] has them.
    parts: [Vec<u64>; 5],
}

impl SolvedTable {
    /// How many words it takes.
    pub(in crate::exact) fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Writes all words, as many as there are.
    pub(in crate::exact) fn write(&self, mut words: &mut [u64]) {
        for part in &self.parts {
            let (here, behind) = words.split_at_mut(part.len());
            here.copy_from_slice(part);
            words = behind;
        }
    }
}

/// Builds a table from this many sorted entries, no two of one digest.
///
/// `wider` is the share of blocks that have one more column.
pub(in crate::exact) fn solve_table<B: Band, E: Entry>(
    entries: Source<'_, E>,
    count: usize,
    columns: u64,
    wider: f64,
) -> Result<SolvedTable, Unsolvable> {
    let mut columns = Columns::all(columns);
    let buckets = Layer::<B>::buckets_for(count);
    if wider > 0.0 {
        let blocks = Layer::<B>::bumping(buckets, columns).rows() / BLOCK;
        columns.wider = ((blocks as f64 * wider).ceil() as u64).max(1);
    }
    let first = Bumped::solve(Layer::<B>::bumping(buckets, columns), entries);
    let bumped = next(first.bumped, 0);
    let buckets = Layer::<B>::buckets_for(bumped.len());
    let layer = Layer::<B>::bumping(buckets, columns.beyond());
    let second = Bumped::solve(layer, &|from, to| range(&bumped, from, to).to_vec());
    let (starts, salt, rows) = solve_last::<B, E>(&second.bumped, columns.beyond())?;
    let measures = Measures { buckets: [first.layer.buckets, layer.buckets], starts, salt };
    let parts = [first.rows, second.rows, rows, first.limits, second.limits];
    Ok(SolvedTable { measures, columns, parts })
}

/// A bumping layer that was solved.
struct Bumped<B, E> {
    layer: Layer<B>,
    rows: Vec<u64>,
    limits: Vec<u64>,
    bumped: Vec<E>,
}

impl<B: Band, E: Entry> Bumped<B, E> {
    fn solve(layer: Layer<B>, entries: Source<'_, E>) -> Self {
        let mut solved = Self { layer, rows: Vec::new(), limits: Vec::new(), bumped: Vec::new() };
        if layer.buckets == 0 {
            // Nothing to solve: all are for the layers behind this one.
            solved.bumped = entries(0, None);
            return solved;
        }
        let mut buckets = 0;
        for segment in parallel::map((0..layer.segments()).collect(), |segment| {
            let first = layer.first_hi(segment << B::SEGMENT).unwrap_or(u64::MAX);
            let behind = ((segment + 1) << B::SEGMENT).min(layer.buckets);
            solve_segment(&layer, segment, &entries(first, layer.first_hi(behind)))
        }) {
            solved.rows.extend(segment.words);
            solved.bumped.extend(segment.bumped);
            for limit in segment.limits {
                if buckets % 32 == 0 {
                    solved.limits.push(0);
                }
                if let Some(word) = solved.limits.last_mut() {
                    *word |= u64::from(limit) << (buckets % 32 * 2);
                }
                buckets += 1;
            }
        }
        solved
    }
}

/// The entries of a sorted slice whose digests have their upper halves in this range.
fn range<E: Entry>(entries: &[E], from: u64, to: Option<u64>) -> &[E] {
    let below = |bound: u64| entries.partition_point(|entry| entry.digest().hi < bound);
    &entries[below(from)..to.map_or(entries.len(), below)]
}

/// The entries as the next layer has them.
fn next<E: Entry>(entries: Vec<E>, salt: u64) -> Vec<E> {
    let mut entries: Vec<E> =
        entries.into_iter().map(|entry| entry.with_digest(again(entry.digest(), salt))).collect();
    entries.sort_unstable_by_key(|entry| entry.digest().to_u128());
    entries
}

/// Solves the last layer with as little room as one of the salts allows. Returns where equations can begin, the salt
/// and the words.
fn solve_last<B: Band, E: Entry>(
    entries: &[E],
    columns: Columns,
) -> Result<(u64, u64, Vec<u64>), Unsolvable> {
    if entries.is_empty() {
        return Ok((0, 0, Vec::new()));
    }
    for salt in 1..=SALTS {
        // A hundredth more every time, and a few rows, which only few equations notice.
        let rows = (entries.len() as f64 * (1.0 + 0.01 * salt as f64)) as u64 + 2 * salt;
        // Whole blocks are stored anyway.
        let rows = rows.next_multiple_of(BLOCK).max(B::WIDTH);
        let layer = Layer::<B>::last(rows - B::WIDTH + 1, columns);
        if let Some(words) = last(&layer, &next(entries.to_vec(), salt)) {
            return Ok((layer.starts, salt, words));
        }
    }
    Err(Unsolvable)
}

/// Solves a segment with the instructions that the processor has: counting bits is most of the way back.
fn solve_segment<B: Band, E: Entry>(layer: &Layer<B>, segment: u64, entries: &[E]) -> Solved<E> {
    #[cfg(target_arch = "x86_64")]
    if Isa::active() >= Isa::Avx2 {
        #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
        fn fast<B: Band, E: Entry>(layer: &Layer<B>, segment: u64, entries: &[E]) -> Solved<E> {
            solve::segment(layer, segment, entries)
        }
        // SAFETY: a processor that has AVX2 here has these.
        return unsafe { fast(layer, segment, entries) };
    }
    solve::segment(layer, segment, entries)
}

/// The same for a last layer.
fn last<B: Band, E: Entry>(layer: &Layer<B>, entries: &[E]) -> Option<Vec<u64>> {
    #[cfg(target_arch = "x86_64")]
    if Isa::active() >= Isa::Avx2 {
        #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
        fn fast<B: Band, E: Entry>(layer: &Layer<B>, entries: &[E]) -> Option<Vec<u64>> {
            solve::last(layer, entries)
        }
        // SAFETY: a processor that has AVX2 here has these.
        return unsafe { fast(layer, entries) };
    }
    solve::last(layer, entries)
}
