//! Elimination as the equations come, with bumping, and the way back.
//!
//! A row holds the equation whose first unknown it is. An equation whose row is taken has the row added to it and
//! begins later then. Buckets are filled from left to right, and each from right to left: what the bucket before it
//! left over takes the rows on its left, so the equations there fail first. Rows that were filled never change, so a
//! group of equations is taken back by emptying the rows that it filled.

use crate::Digest;

use super::band::{Band, fold};
use super::layer::{BLOCK, Layer};

/// A key, and what its equation is to come to.
pub(in crate::exact) trait Entry: Copy + Send + Sync {
    fn digest(&self) -> Digest;

    /// The same key with its digest in the next layer.
    fn with_digest(self, digest: Digest) -> Self;

    /// The value, a bit for each column; `rest` are hash bits that the equation does not depend on.
    fn value(&self, rest: u64) -> u32;
}

/// The values of a table without values: hash bits of the key.
#[inline(always)]
pub(in crate::exact) fn hashed_value(rest: u64) -> u32 {
    (rest >> 32) as u32
}

/// The value is some bits of the digest: the table is a filter.
impl Entry for Digest {
    fn digest(&self) -> Digest {
        *self
    }

    fn with_digest(self, digest: Digest) -> Self {
        digest
    }

    fn value(&self, rest: u64) -> u32 {
        hashed_value(rest)
    }
}

/// A segment that was solved.
pub(super) struct Solved<E> {
    /// The unknowns, a block after the other.
    pub(super) words: Vec<u64>,
    /// The limits of its buckets.
    pub(super) limits: Vec<u8>,
    /// What goes to the next layer.
    pub(super) bumped: Vec<E>,
}

/// An equation of a segment.
struct Equation<B> {
    bucket: u64,
    start: u64,
    coefficients: B,
    value: u32,
}

/// The rows of a segment.
struct System<B> {
    rows: Vec<B>,
    values: Vec<u32>,
    /// The rows that the present group filled.
    filled: Vec<u32>,
}

impl<B: Band> System<B> {
    fn new(rows: usize) -> Self {
        Self { rows: vec![B::NONE; rows], values: vec![0; rows], filled: Vec::new() }
    }

    /// Adds an equation that begins in this row. `false` if it contradicts the others.
    #[inline(always)]
    fn add(&mut self, mut row: usize, mut coefficients: B, mut value: u32) -> bool {
        loop {
            let taken = self.rows[row];
            if taken == B::NONE {
                (self.rows[row], self.values[row]) = (coefficients, value);
                self.filled.push(row as u32);
                return true;
            }
            coefficients.add(taken);
            value ^= self.values[row];
            if coefficients == B::NONE {
                return value == 0;
            }
            let zeros = coefficients.leading_zeros();
            coefficients.skip(zeros);
            row += zeros as usize;
        }
    }

    /// Adds all of them, the last one first, or none.
    #[inline(always)]
    fn add_group(&mut self, group: &[Equation<B>], first_row: u64) -> bool {
        self.filled.clear();
        let fits = group.iter().rev().all(|equation| {
            self.add((first_row + equation.start) as usize, equation.coefficients, equation.value)
        });
        if !fits {
            for &row in &self.filled {
                (self.rows[row as usize], self.values[row as usize]) = (B::NONE, 0);
            }
        }
        fits
    }

    /// Adds the equations of a bucket as far as they fit, and returns its limit.
    #[inline(always)]
    fn fill_bucket(&mut self, mut equations: &[Equation<B>], first_row: u64) -> u8 {
        for level in (0..3).rev() {
            let before = equations.partition_point(|equation| equation.start < B::LIMITS[level]);
            let (left, group) = equations.split_at(before);
            if !self.add_group(group, first_row) {
                return level as u8 + 1;
            }
            equations = left;
        }
        0
    }

    /// Works out the unknowns from the last to the first. Those that no equation decides are as good as random: with
    /// zeros, tables of few keys would not give every answer to half of all others.
    #[inline(always)]
    fn unknowns(&self, columns: u64, mut put: impl FnMut(u64, u64, u64)) {
        let mut solved = vec![B::NONE; columns as usize];
        for block in (0..self.rows.len() as u64 / BLOCK).rev() {
            for index in (block * BLOCK..(block + 1) * BLOCK).rev() {
                let (row, value) = (self.rows[index as usize], self.values[index as usize]);
                let value = if row == B::NONE { noise(index) } else { value };
                for (column, solved) in solved.iter_mut().enumerate() {
                    solved.push(row.odd(*solved) ^ (value >> column & 1 == 1));
                }
            }
            for (column, solved) in solved.iter().enumerate() {
                put(block, column as u64, solved.first());
            }
        }
    }
}

/// Bits that depend on nothing but the row.
#[cold]
fn noise(row: u64) -> u32 {
    (fold(row ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93) >> 16) as u32
}

/// Solves a segment of a bumping layer. Its entries must be sorted.
#[inline(always)]
pub(super) fn segment<B: Band, E: Entry>(layer: &Layer<B>, segment: u64, entries: &[E]) -> Solved<E> {
    let equations = equations(layer, entries);
    let (first, behind) = (layer.rows_before(segment), layer.rows_before(segment + 1));
    let mut system = System::new((behind - first) as usize);
    let (mut limits, mut bumped, mut taken) = (Vec::new(), Vec::new(), 0);
    let first_bucket = segment << B::SEGMENT;
    for bucket in first_bucket..layer.buckets.min((segment + 1) << B::SEGMENT) {
        let count = equations[taken..].partition_point(|equation| equation.bucket == bucket);
        let here = taken..taken + count;
        taken += count;
        let limit = system.fill_bucket(&equations[here.clone()], (bucket - first_bucket) * B::BUCKET);
        limits.push(limit);
        let bound = B::LIMITS[limit as usize];
        bumped.extend(here.take_while(|&index| equations[index].start < bound).map(|index| entries[index]));
    }
    let words = blocks(layer, &system, first / BLOCK);
    Solved { words, limits, bumped }
}

/// Solves a layer that does not bump; `None` if that cannot be.
#[inline(always)]
pub(super) fn last<B: Band, E: Entry>(layer: &Layer<B>, entries: &[E]) -> Option<Vec<u64>> {
    let mut system = System::new(layer.rows() as usize);
    system.add_group(&equations(layer, entries), 0).then(|| blocks(layer, &system, 0))
}

fn equations<B: Band, E: Entry>(layer: &Layer<B>, entries: &[E]) -> Vec<Equation<B>> {
    let most = u32::MAX >> (32 - layer.columns.most());
    let equation = |entry: &E| {
        let (digest, spot) = (entry.digest(), layer.spot(entry.digest()));
        let (coefficients, value) = (B::coefficients(digest), entry.value(spot.rest) & most);
        Equation { bucket: spot.bucket, start: spot.start, coefficients, value }
    };
    entries.iter().map(equation).collect()
}

/// The words of a system whose first block has this number.
#[inline(always)]
fn blocks<B: Band>(layer: &Layer<B>, system: &System<B>, first: u64) -> Vec<u64> {
    let at = |block: u64| layer.columns.words_before(first + block) - layer.columns.words_before(first);
    let mut words = vec![0; at(system.rows.len() as u64 / BLOCK) as usize];
    system.unknowns(layer.columns.most(), |block, column, word| {
        // A column that only the first blocks have is worked out for all of them.
        if at(block) + column < at(block + 1) {
            words[(at(block) + column) as usize] = word;
        }
    });
    words
}
