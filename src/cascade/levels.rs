//! The levels of a cascade between two rebuilds: where a digest is, and how it is moved down.

use super::dead::DeadCells;
use super::level::{LevelFilter, LevelStats};
use super::sizes::{LevelSize, Sizes};
use crate::digest_set::DigestSet;
use crate::error::ensure;
use crate::{BuildError, Digest, InvariantError, KeyHasher};

/// A level has no room for a key or a dead cell: the cascade must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRoom;

/// All levels under one choice of hash functions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Levels<F> {
    /// Level 0, which is all that most queries see: not behind a pointer.
    first: Level<F>,
    /// The other levels that are filters.
    others: Vec<Level<F>>,
    /// Whole digests of the keys that every level above passes on.
    last: DigestSet,
    last_capacity: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Level<F> {
    filter: F,
    dead: DeadCells,
    cells: u64,
    rate: f64,
    /// Insertions less removals, where removal is possible: what the filter's capacity is spent on.
    keys: usize,
    capacity: usize,
    mixer: Mixer,
}

/// A hash function of digests.
///
/// Both halves of a digest are random bits that nobody outside knows. Multiplied with secret odd numbers they are
/// so again, and whether two digests collide in their high bits is decided again: multiplicative hashing, for a
/// fraction of what hashing the digest as a whole would cost every query.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mixer {
    factors: [u64; 2],
}

impl Mixer {
    /// The function of a level after this many rebuilds.
    fn new<H: KeyHasher>(hasher: &H, level: usize, rebuilds: u64) -> Self {
        // No key has this digest but by chance, and then nothing follows from it.
        let Digest { hi, lo } = hasher.rehash(Digest { hi: level as u64, lo: 0 }, rebuilds);
        Self { factors: [hi | 1, lo | 1] }
    }

    /// The lower bits of a product depend on few bits of the factors. Filters take a key's place from the high bits
    /// of `hi`, but may use `lo` from either end: its halves are swapped, so that both ends are good.
    #[inline(always)]
    fn mix(&self, digest: Digest) -> Digest {
        let [a, b] = self.factors;
        Digest { hi: digest.hi.wrapping_mul(a), lo: digest.lo.wrapping_mul(b).rotate_left(32) }
    }
}

/// The part of `parts` equal parts of all digests that this one is in.
#[inline(always)]
pub(super) fn part(digest: Digest, parts: u64) -> u64 {
    ((u128::from(digest.hi) * u128::from(parts)) >> 64) as u64
}

impl<F: LevelFilter> Levels<F> {
    /// Empty levels with the hash functions that follow this many rebuilds.
    pub(super) fn new<H: KeyHasher>(sizes: &Sizes, hasher: &H, rebuilds: u64) -> Result<Self, BuildError> {
        let level = |index: usize| {
            let LevelSize { rate, keys, cells, dead } = sizes.levels[index];
            Ok::<_, BuildError>(Level {
                filter: F::for_level(keys, rate)?,
                dead: DeadCells::new(cells, dead)?,
                cells,
                rate,
                keys: 0,
                capacity: keys,
                mixer: Mixer::new(hasher, index, rebuilds),
            })
        };
        sizes.check_memory::<F>()?;
        let others = (1..sizes.levels.len()).map(level).collect::<Result<_, _>>()?;
        Ok(Self { first: level(0)?, others, last: DigestSet::default(), last_capacity: sizes.last })
    }

    /// Levels that were there before, as they are: their filters, their dead cells and the last level. `None` without
    /// any filter.
    pub(super) fn from_parts<H: KeyHasher>(
        parts: Vec<(F, DeadCells)>,
        last: DigestSet,
        sizes: &Sizes,
        hasher: &H,
        rebuilds: u64,
    ) -> Option<Self> {
        let level = |(index, ((filter, dead), size)): (usize, ((F, DeadCells), &LevelSize))| {
            let (keys, mixer) = (filter.len(), Mixer::new(hasher, index, rebuilds));
            let &LevelSize { rate, keys: capacity, cells, .. } = size;
            Level { filter, dead, cells, rate, keys, capacity, mixer }
        };
        let mut levels = parts.into_iter().zip(&sizes.levels).enumerate().map(level);
        let first = levels.next()?;
        Some(Self { first, others: levels.collect(), last, last_capacity: sizes.last })
    }

    /// The filters and their dead cells, from level 0 on.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&F, &DeadCells)> {
        self.filters().map(|level| (&level.filter, &level.dead))
    }

    /// The last level.
    pub(super) fn last(&self) -> &DigestSet {
        &self.last
    }

    /// The levels that are filters, from level 0 on.
    fn filters(&self) -> impl Iterator<Item = &Level<F>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// How many they are: the number of the last level.
    fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// A level that is a filter; `None` for the last one.
    fn filter_mut(&mut self, index: usize) -> Option<&mut Level<F>> {
        if index == 0 { Some(&mut self.first) } else { self.others.get_mut(index - 1) }
    }

    #[inline(always)]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.first.accepts(digest) && (self.first.dead.len() == 0 || self.accepting_level(digest).is_some())
    }

    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        self.first.filter.prefetch(self.first.filter.place(self.first.mixer.mix(digest)));
    }

    /// The level that accepts a digest which level 0's filter accepts; the number of filters for the last level.
    ///
    /// Not inlined: few queries come here, and the others need the registers.
    #[inline(never)]
    fn accepting_level(&self, digest: Digest) -> Option<usize> {
        for (index, level) in self.filters().enumerate() {
            if index > 0 && !level.accepts(digest) {
                return None;
            }
            if !level.is_dead(digest) {
                return Some(index);
            }
        }
        self.last.contains(digest).then_some(self.count())
    }

    /// How many levels store a key with this digest: one more than those at whose dead cells it is at home.
    fn depth(&self, digest: Digest) -> usize {
        1 + self.filters().take_while(|level| level.is_dead(digest)).count()
    }

    /// Inserts a key: into level 0, and as deep as its home cells are dead. [`reserve`](Self::reserve) has made room,
    /// so this fails only if memory is lacking.
    pub(super) fn insert(&mut self, digest: Digest) -> Result<(), NoRoom> {
        (0..self.depth(digest)).try_for_each(|index| self.insert_at(index, digest))
    }

    /// Makes sure that there is room for a key.
    pub(super) fn reserve(&mut self, digest: Digest) -> Result<(), NoRoom> {
        (0..self.depth(digest)).try_for_each(|index| self.reserve_at(index, 1))
    }

    /// Makes sure that a level takes this many more keys.
    fn reserve_at(&mut self, index: usize, keys: usize) -> Result<(), NoRoom> {
        let fits = match self.filter_mut(index) {
            Some(level) => level.keys + keys <= level.capacity,
            None => self.last.len() + keys <= self.last_capacity && self.last.reserve(keys).is_ok(),
        };
        if fits { Ok(()) } else { Err(NoRoom) }
    }

    /// Inserts into one level.
    fn insert_at(&mut self, index: usize, digest: Digest) -> Result<(), NoRoom> {
        match self.filter_mut(index) {
            Some(level) => {
                level.filter.take_in(level.mixer.mix(digest)).map_err(|_| NoRoom)?;
                level.keys += 1;
            }
            None => {
                self.last.insert(digest);
            }
        }
        Ok(())
    }

    /// Removes a key that is stored, as far as the filters can: it may be accepted still.
    pub(super) fn remove(&mut self, digest: Digest) {
        for index in 0..self.depth(digest) {
            match self.filter_mut(index) {
                Some(level) if F::REMOVES => {
                    level.filter.take_out(level.mixer.mix(digest));
                    level.keys -= 1;
                }
                Some(_) => {}
                None => {
                    self.last.remove(digest);
                }
            }
        }
    }

    /// Rejects a digest that no stored key has: how many cells died and keys moved for it. `neighbours` are the digests
    /// of all keys in its list. A digest that the last level holds is a stored key's after all, and is accepted still.
    ///
    /// [`reserve_rejection`](Self::reserve_rejection) has made room, so this fails only if memory is lacking. Whatever
    /// was done before is harmless: every cell that died has its keys one level down.
    pub(super) fn reject(&mut self, digest: Digest, neighbours: &[Digest]) -> Result<usize, NoRoom> {
        let mut slots = 0;
        while let Some(index) = self.accepting_filter(digest) {
            slots += self.kill(index, digest, neighbours)?;
        }
        Ok(slots)
    }

    /// Makes sure that there is room to reject a digest: for every cell that may have to die, one per level from the
    /// accepting one on, and for the keys that are at home there.
    pub(super) fn reserve_rejection(&mut self, digest: Digest, neighbours: &[Digest]) -> Result<(), NoRoom> {
        let Some(first) = self.accepting_filter(digest) else { return Ok(()) };
        for index in first..self.count() {
            let level = self.filter_mut(index).filter(|level| !level.dead.is_full()).ok_or(NoRoom)?;
            let moving = level.at_home(digest, neighbours).count();
            self.reserve_at(index + 1, moving)?;
            // Without new keys the next level rejects what it rejects now. With new ones nobody knows.
            if moving == 0 && !self.filters().nth(index + 1).is_some_and(|next| next.accepts(digest)) {
                break;
            }
        }
        Ok(())
    }

    /// The level whose filter settles that a digest is accepted; `None` if it is rejected, or in the last level.
    fn accepting_filter(&self, digest: Digest) -> Option<usize> {
        let accepted = self.first.accepts(digest).then(|| self.accepting_level(digest)).flatten();
        accepted.filter(|&index| index < self.count())
    }

    /// Moves the keys that are at home where a digest is one level down, and marks that home dead.
    fn kill(&mut self, index: usize, digest: Digest, neighbours: &[Digest]) -> Result<usize, NoRoom> {
        let level = self.filter_mut(index).ok_or(NoRoom)?;
        // Anyone who shares this home shares those of all levels above, and so is stored in this level too.
        let moving: Vec<Digest> = level.at_home(digest, neighbours).collect();
        self.reserve_at(index + 1, moving.len())?;
        // The keys before the cell: should there be no memory for one of them, all are found where they were.
        moving.iter().try_for_each(|&key| self.insert_at(index + 1, key))?;
        let marked = self.filter_mut(index).is_some_and(|level| level.dead.insert(level.home(digest)));
        if marked { Ok(1 + moving.len()) } else { Err(NoRoom) }
    }

    /// The filter of level 0.
    pub(super) fn first(&self) -> &F {
        &self.first.filter
    }

    /// How many home cells are dead, on all levels.
    pub(super) fn dead_cells(&self) -> usize {
        self.filters().map(|level| level.dead.len()).sum()
    }

    /// The state of every level, the last one included.
    pub(super) fn stats(&self) -> Vec<LevelStats> {
        let filters = self.filters().map(|level| LevelStats {
            rate: level.rate,
            keys: level.keys,
            capacity: level.capacity,
            dead_cells: level.dead.len(),
            dead_capacity: level.dead.capacity(),
            bits: level.filter.stats().bits + level.dead.memory_bits(),
        });
        let last = LevelStats {
            rate: 0.0,
            keys: self.last.len(),
            capacity: self.last_capacity,
            dead_cells: 0,
            dead_capacity: 0,
            bits: self.last.memory_bits(),
        };
        filters.chain([last]).collect()
    }

    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        for (index, level) in self.filters().enumerate() {
            level.filter.verify()?;
            level.dead.verify()?;
            let (keys, len, capacity) = (level.keys, level.filter.len(), level.capacity);
            ensure!(keys == len, "level {index} counts {keys} keys, its filter {len}");
            ensure!(keys <= capacity, "level {index} holds {keys} keys of {capacity}");
        }
        for digest in self.last.iter() {
            ensure!(self.depth(digest) > self.count(), "{digest:?} is stored too deep");
            let accepted = self.filters().all(|level| level.accepts(digest));
            ensure!(accepted, "{digest:?} is in the last level and not in all above it");
        }
        let (last, capacity) = (self.last.len(), self.last_capacity);
        ensure!(last <= capacity, "the last level holds {last} digests of {capacity}");
        Ok(())
    }
}

impl<F: LevelFilter> Level<F> {
    #[inline(always)]
    fn accepts(&self, digest: Digest) -> bool {
        self.filter.contains_digest(self.mixer.mix(digest))
    }

    #[inline]
    fn home(&self, digest: Digest) -> u64 {
        part(digest, self.cells)
    }

    /// Those of some keys that are at home where a digest is.
    fn at_home(&self, digest: Digest, keys: &[Digest]) -> impl Iterator<Item = Digest> {
        let home = self.home(digest);
        keys.iter().copied().filter(move |&key| self.home(key) == home)
    }

    /// Whether the home cell of a digest is dead.
    #[inline]
    fn is_dead(&self, digest: Digest) -> bool {
        self.dead.len() > 0 && self.dead.contains(self.home(digest))
    }
}
