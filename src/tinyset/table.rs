//! All blocks of a filter: the core of [`TinySet`](super::TinySet), which knows digests and no keys.

use super::block::{Block, BlockMut, Insertion};
use super::geometry::{Geometry, Place};
#[cfg(target_arch = "x86_64")]
use super::x86::{GENERAL, Line, LineKind, NARROW, WIDE};
use crate::bits::prefetch;
use crate::bits::{AlignedWords, LINE};
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
    /// Faster versions of the operations, if the processor and the geometry are fit for them.
    #[cfg(target_arch = "x86_64")]
    line: Option<&'static Line>,
}

impl Table {
    /// Empty blocks; `None` if the memory is not to be had.
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
        Self {
            geometry,
            words,
            blocks,
            len,
            logical,
            #[cfg(target_arch = "x86_64")]
            line: Line::get(&geometry),
        }
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
        #[cfg(target_arch = "x86_64")]
        if let Some(line) = self.line {
            let answer = match line.kind() {
                // SAFETY: a `Line` exists only on processors that have the features of its methods.
                LineKind::Narrow => unsafe {
                    line.contains::<8, NARROW>(&self.words.as_chunks().0[block], chain, remainder)
                },
                kind => self.contains_line(line, kind, block, chain, remainder),
            };
            return answer.unwrap_or_else(|| self.contains_portable(block, chain, remainder));
        }
        self.contains_portable(block, chain, remainder)
    }

    #[inline(never)]
    fn contains_portable(&self, block: usize, chain: u32, remainder: u64) -> bool {
        let (words, base) = self.geometry.locate(block);
        Block::new(self.geometry, &self.words[words], base, bits::select).contains(chain, remainder)
    }

    /// All the other versions.
    #[cfg(target_arch = "x86_64")]
    fn contains_line(
        &self,
        line: &Line,
        kind: LineKind,
        block: usize,
        chain: u32,
        remainder: u64,
    ) -> Option<bool> {
        // SAFETY: a `Line` exists only on processors that have the features of its methods.
        unsafe {
            match kind {
                LineKind::Narrow => None,
                LineKind::Wide => {
                    line.contains::<8, WIDE>(&self.words.as_chunks().0[block], chain, remainder)
                }
                LineKind::General => {
                    line.contains::<8, GENERAL>(&self.words.as_chunks().0[block], chain, remainder)
                }
                LineKind::HalfNarrow => {
                    line.contains::<4, NARROW>(&self.words.as_chunks().0[block], chain, remainder)
                }
                LineKind::Half => {
                    line.contains::<4, GENERAL>(&self.words.as_chunks().0[block], chain, remainder)
                }
            }
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
        #[cfg(target_arch = "x86_64")]
        if let Some(line) = self.line {
            // SAFETY: a `Line` exists only on processors that have the features of its methods.
            let inserted = unsafe {
                match line.kind() {
                    LineKind::Narrow => {
                        line.insert::<8, NARROW>(&mut self.words.as_chunks_mut().0[block], chain, remainder)
                    }
                    LineKind::Wide | LineKind::General => {
                        line.insert::<8, GENERAL>(&mut self.words.as_chunks_mut().0[block], chain, remainder)
                    }
                    LineKind::HalfNarrow | LineKind::Half => {
                        line.insert::<4, GENERAL>(&mut self.words.as_chunks_mut().0[block], chain, remainder)
                    }
                }
            };
            if inserted.is_some() {
                return inserted;
            }
        }
        self.block_mut(block).insert(chain, remainder)
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

    /// The same table with the versions that every processor has, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn portable(mut self) -> Self {
        #[cfg(target_arch = "x86_64")]
        let _ = self.line.take();
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
