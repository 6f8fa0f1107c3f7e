//! All blocks of a filter: the core of [`TinySet`](super::TinySet), which knows digests and no keys.

use super::block::{Block, BlockMut, Insertion};
use super::geometry::{Geometry, Place};
use super::line::{GENERAL, Line, LineKind, NARROW, WIDE};
use super::machine::Portable;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
use super::neon::Neon;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::bits::prefetch;
use crate::bits::{AlignedWords, Isa, LINE};
use crate::error::{InvariantError, ensure};
use crate::{Digest, bits};

/// The blocks, and how many items are in them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    geometry: Geometry,
    words: AlignedWords,
    blocks: usize,
    /// Items that are there: the sum of the blocks' actual counts.
    len: usize,
    /// The sum of the blocks' logical counts.
    logical: usize,
    /// Faster versions of the operations, if the geometry is fit for them.
    line: Option<&'static Line>,
    /// The instructions that they are to use: a version that this processor runs.
    isa: Isa,
}

impl Table {
    /// Empty blocks; `None` if the memory is not available.
    pub(crate) fn new(geometry: Geometry, blocks: usize) -> Option<Self> {
        let words = AlignedWords::zeroed(geometry.words(blocks)?)?;
        Some(Self::from_words(geometry, words, blocks, 0, 0))
    }

    /// The blocks that these words hold, and their sums. There must be as many words as the geometry says.
    pub(crate) fn from_words(
        geometry: Geometry,
        words: AlignedWords,
        blocks: usize,
        len: usize,
        logical: usize,
    ) -> Self {
        debug_assert_eq!(Some(words.len()), geometry.words(blocks));
        Self { geometry, words, blocks, len, logical, line: Line::get(&geometry), isa: Isa::active() }
    }

    /// All words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn logical(&self) -> usize {
        self.logical
    }

    /// The memory in use, in bits.
    pub(crate) fn bits(&self) -> usize {
        self.words.len() * 64
    }

    /// Where the key with this digest belongs.
    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        Place::new(digest, self.blocks, self.geometry.chains)
    }

    /// Asks the processor to fetch the block of `place`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: Place) {
        let (words, _) = self.geometry.locate(place.block);
        for word in words.step_by(LINE / 8) {
            prefetch(&raw const self.words[word]);
        }
    }

    #[inline(always)]
    pub(crate) fn contains(&self, Place { block, chain, remainder }: Place) -> bool {
        if let Some(line) = self.line {
            let answer = match line.kind() {
                LineKind::Narrow => self.ask::<8, NARROW>(line, block, chain, remainder),
                kind => self.contains_line(line, kind, block, chain, remainder),
            };
            return answer.unwrap_or_else(|| self.contains_anyhow(block, chain, remainder));
        }
        self.contains_anyhow(block, chain, remainder)
    }

    #[inline(never)]
    fn contains_anyhow(&self, block: usize, chain: u32, remainder: u64) -> bool {
        let (words, base) = self.geometry.locate(block);
        Block::new(self.geometry, &self.words[words], base, bits::select).contains(chain, remainder)
    }

    /// All versions for a line but the commonest.
    fn contains_line(
        &self,
        line: &Line,
        kind: LineKind,
        block: usize,
        chain: u32,
        remainder: u64,
    ) -> Option<bool> {
        match kind {
            LineKind::Narrow => None,
            LineKind::Wide => self.ask::<8, WIDE>(line, block, chain, remainder),
            LineKind::General => self.ask::<8, GENERAL>(line, block, chain, remainder),
            LineKind::HalfNarrow => self.ask::<4, NARROW>(line, block, chain, remainder),
            LineKind::Half => self.ask::<4, GENERAL>(line, block, chain, remainder),
        }
    }

    /// [`Line::contains`] on this processor, for blocks of `N` words.
    #[inline(always)]
    fn ask<const N: usize, const KIND: u8>(
        &self,
        line: &Line,
        block: usize,
        chain: u32,
        remainder: u64,
    ) -> Option<bool> {
        let words = &self.words.as_chunks::<N>().0[block];
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is one that this processor runs.
            Isa::Avx2 | Isa::Avx512 => unsafe { x86::contains::<N, KIND>(line, words, chain, remainder) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Isa::Neon => line.contains::<Neon, N, KIND>(Neon, words, chain, remainder),
            _ => line.contains::<Portable, N, KIND>(Portable, words, chain, remainder),
        }
    }

    /// Inserts an item, and says whether none matched before; `None`, and nothing changes, if its block has no bit left
    /// for it.
    pub(crate) fn insert(&mut self, place: Place) -> Option<bool> {
        let Insertion { grown, fresh } = self.insert_into_block(place)?;
        self.len += 1;
        self.logical += grown;
        Some(fresh)
    }

    #[inline]
    fn insert_into_block(&mut self, Place { block, chain, remainder }: Place) -> Option<Insertion> {
        if let Some(line) = self.line {
            let inserted = match line.kind() {
                LineKind::Narrow => self.put::<8, NARROW>(line, block, chain, remainder),
                LineKind::Wide | LineKind::General => self.put::<8, GENERAL>(line, block, chain, remainder),
                LineKind::HalfNarrow | LineKind::Half => {
                    self.put::<4, GENERAL>(line, block, chain, remainder)
                }
            };
            if inserted.is_some() {
                return inserted;
            }
        }
        self.block_mut(block).insert(chain, remainder)
    }

    /// [`Line::insert`] on this processor, for blocks of `N` words.
    #[inline(always)]
    fn put<const N: usize, const KIND: u8>(
        &mut self,
        line: &Line,
        block: usize,
        chain: u32,
        remainder: u64,
    ) -> Option<Insertion> {
        let words = &mut self.words.as_chunks_mut::<N>().0[block];
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is one that this processor runs.
            Isa::Avx2 | Isa::Avx512 => unsafe { x86::insert::<N, KIND>(line, words, chain, remainder) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Isa::Neon => line.insert::<Neon, N, KIND>(Neon, words, chain, remainder),
            _ => line.insert::<Portable, N, KIND>(Portable, words, chain, remainder),
        }
    }

    /// Removes an item; `false` if none matches. Only for geometries with removal.
    pub(crate) fn remove(&mut self, place: Place) -> bool {
        let Some(fallen) = self.block_mut(place.block).remove(place.chain, place.remainder) else {
            return false;
        };
        self.len -= 1;
        self.logical -= fallen;
        true
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        (self.len, self.logical) = (0, 0);
    }

    fn block_mut(&mut self, block: usize) -> BlockMut<'_> {
        let (words, base) = self.geometry.locate(block);
        BlockMut::new(self.geometry, &mut self.words[words], base)
    }

    /// The same table worked on with another instruction set, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// The same table without the versions for lines, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn without_line(mut self) -> Self {
        self.line = None;
        self
    }

    /// The bits of one block, for tests that watch its neighbours.
    #[cfg(test)]
    pub(crate) fn block_words(&self, block: usize) -> Vec<u64> {
        let ((words, base), bits) = (self.geometry.locate(block), self.geometry.bits as usize);
        let mut copy = vec![0; bits.div_ceil(64)];
        bits::string::copy(&self.words[words], base, &mut copy, 0, bits);
        copy
    }

    /// Walks all blocks and checks them and the sums.
    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        let (mut len, mut logical) = (0, 0);
        for number in 0..self.blocks {
            let (words, base) = self.geometry.locate(number);
            let block = Block::new(self.geometry, &self.words[words], base, bits::select);
            let count = block
                .verify()
                .map_err(|error| InvariantError::new(format!("block {number}: {}", error.0)))?;
            len += count.actual;
            logical += count.logical;
        }
        ensure!(len == self.len, "the blocks hold {len} items, {} are counted", self.len);
        ensure!(logical == self.logical, "the blocks are cut for {logical} items, not {}", self.logical);
        let end = self.blocks * self.geometry.bits as usize;
        let stray = bits::string::count_ones(&self.words, end, self.bits() - end);
        ensure!(stray == 0, "{stray} bits set after the last block");
        Ok(())
    }
}
