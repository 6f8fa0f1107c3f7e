//! Where the equation of a key begins, and where its unknowns lie in memory.
//!
//! ```text
//! hi × buckets          integer part: the bucket
//!   fraction × starts   integer part: the place in the bucket      fraction: the key's value, from the left
//!
//! rows      | 2^SEGMENT buckets            | tail | 2^SEGMENT buckets            | tail | …
//! words     64 rows × columns at a time: the first column of 64 rows, the second, …
//! ```
//!
//! The buckets of a segment and the rows behind them, which the last equations reach into, are solved by themselves: on
//! all cores, and with the same result on one.

use std::marker::PhantomData;

use crate::Digest;

use super::band::Band;

/// Rows whose bits of one column are one word.
pub(super) const BLOCK: u64 = 64;

/// One layer of a table, and where its words begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exact) struct Layer<B> {
    /// 0 if there is no such layer; 1 in the last one.
    pub(super) buckets: u64,
    /// In how many places the equations of a bucket can begin.
    pub(super) starts: u64,
    /// Whether buckets have limits.
    pub(super) bumps: bool,
    pub(super) columns: Columns,
    /// Where the words of the rows begin, and those of the limits.
    pub(super) rows_at: usize,
    pub(super) limits_at: usize,
    band: PhantomData<B>,
}

/// How many columns a table has: the first blocks may have one more than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exact) struct Columns {
    pub(in crate::exact) count: u64,
    /// This many blocks of the first layer have one more. In the other layers all have, unless this is 0.
    pub(in crate::exact) wider: u64,
}

impl Columns {
    pub(in crate::exact) const fn all(count: u64) -> Self {
        Self { count, wider: 0 }
    }

    /// The columns of the layers behind the first.
    pub(super) fn beyond(self) -> Self {
        Self::all(self.most())
    }

    /// The columns of the widest blocks.
    pub(in crate::exact) fn most(self) -> u64 {
        self.count + u64::from(self.wider > 0)
    }

    /// Where the words of a block begin, counted from the first.
    #[inline(always)]
    pub(super) fn words_before(self, block: u64) -> u64 {
        block * self.count + block.min(self.wider)
    }
}

/// Where an equation begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// The bucket, and the place in it.
    pub(super) bucket: u64,
    pub(super) start: u64,
    /// What is left of the digest: the key's value, from the left.
    pub(super) rest: u64,
}

impl<B: Band> Layer<B> {
    /// A layer of this many buckets that bumps.
    pub(super) fn bumping(buckets: u64, columns: Columns) -> Self {
        let starts = B::BUCKET;
        Self { buckets, starts, bumps: true, columns, rows_at: 0, limits_at: 0, band: PhantomData }
    }

    /// A layer of one bucket that does not; none if its equations can begin nowhere.
    pub(super) fn last(starts: u64, columns: Columns) -> Self {
        let buckets = starts.min(1);
        Self { buckets, starts, bumps: false, columns, rows_at: 0, limits_at: 0, band: PhantomData }
    }

    /// How many buckets a layer for this many equations has: none for few.
    pub(super) fn buckets_for(equations: usize) -> u64 {
        if equations <= B::FEW {
            return 0;
        }
        // About half of the tail of every segment is used.
        let rows = equations as f64 / B::LOAD;
        let segments = (rows / (B::BUCKET << B::SEGMENT) as f64).ceil();
        (((rows - segments * B::WIDTH as f64 / 2.0) / B::BUCKET as f64).round() as u64).max(1)
    }

    /// How many segments are solved by themselves.
    pub(super) fn segments(&self) -> u64 {
        if self.bumps { self.buckets.div_ceil(1 << B::SEGMENT) } else { self.buckets }
    }

    /// The rows of all segments before this one.
    pub(super) fn rows_before(&self, segment: u64) -> u64 {
        let buckets = (segment << B::SEGMENT).min(self.buckets);
        buckets * self.starts + segment * B::WIDTH
    }

    /// How many rows it has: a multiple of 64.
    pub(super) fn rows(&self) -> u64 {
        match (self.buckets, self.bumps) {
            (0, _) => 0,
            (_, true) => self.rows_before(self.segments()),
            (_, false) => (self.starts - 1 + B::WIDTH).next_multiple_of(BLOCK),
        }
    }

    /// How many words its rows take.
    pub(super) fn row_words(&self) -> u64 {
        self.columns.words_before(self.rows() / BLOCK)
    }

    /// How many words its limits take.
    pub(super) fn limit_words(&self) -> u64 {
        if self.bumps { self.buckets.div_ceil(32) } else { 0 }
    }

    /// The smallest upper half of the digests in this bucket and those behind it; `None` behind the last.
    pub(super) fn first_hi(&self, bucket: u64) -> Option<u64> {
        let first = (u128::from(bucket) << 64).div_ceil(u128::from(self.buckets));
        u64::try_from(first).ok()
    }

    /// Where the equation of a key begins. There must be a bucket.
    #[inline(always)]
    pub(super) fn spot(&self, digest: Digest) -> Spot {
        let product = u128::from(digest.hi) * u128::from(self.buckets);
        let places = u128::from(product as u64) * u128::from(self.starts);
        Spot { bucket: (product >> 64) as u64, start: (places >> 64) as u64, rest: places as u64 }
    }

    /// The same for a layer that bumps, whose measures are known when this is compiled.
    #[inline(always)]
    pub(super) fn bumping_spot(&self, digest: Digest) -> Spot {
        let product = u128::from(digest.hi) * u128::from(self.buckets);
        let places = u128::from(product as u64) * u128::from(B::BUCKET);
        Spot { bucket: (product >> 64) as u64, start: (places >> 64) as u64, rest: places as u64 }
    }

    /// The row in which the equation begins.
    #[inline(always)]
    pub(super) fn row(&self, spot: Spot) -> u64 {
        if self.bumps { Self::bumping_row(spot) } else { spot.bucket * self.starts + spot.start }
    }

    /// The same for a layer that bumps.
    #[inline(always)]
    pub(super) fn bumping_row(spot: Spot) -> u64 {
        spot.bucket * B::BUCKET + spot.start + (spot.bucket >> B::SEGMENT) * B::WIDTH
    }

    /// Whether the equation was bumped.
    #[inline(always)]
    pub(super) fn is_bumped(&self, words: &[u64], spot: Spot) -> bool {
        let limits = words[self.limits_at + (spot.bucket / 32) as usize];
        let limit = limits >> (spot.bucket % 32 * 2) & 3;
        spot.start < B::LIMITS[limit as usize]
    }
}
