//! All blocks of a filter: the core of [`TinySet`](super::TinySet), which knows digests and no keys.

use super::block::{Block, BlockMut};
use super::geometry::{Geometry, Place};
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::batch::prefetch;
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
    /// Which version of the operations this processor runs on blocks of this geometry.
    isa: Isa,
}

impl Table {
    /// Empty blocks; `None` if the memory is not to be had.
    pub(crate) fn new(geometry: Geometry, blocks: usize) -> Option<Self> {
        let words = AlignedWords::zeroed(geometry.words(blocks)?)?;
        #[cfg(target_arch = "x86_64")]
        let isa = x86::supported(&geometry);
        #[cfg(not(target_arch = "x86_64"))]
        let isa = Isa::Portable;
        Some(Self { geometry, words, blocks, len: 0, logical: 0, isa })
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
    pub(crate) fn contains(&self, place: Place) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.isa >= Isa::Avx2 {
            return self.contains_x86(place);
        }
        self.contains_portable(place)
    }

    #[inline]
    fn contains_portable(&self, Place { block, chain, remainder }: Place) -> bool {
        let (words, base) = self.geometry.locate(block);
        Block::new(self.geometry, &self.words[words], base, bits::select).contains(chain, remainder)
    }

    /// [`contains`](Self::contains) where the processor has AVX2 or AVX-512 and blocks are whole lines.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn contains_x86(&self, place: Place) -> bool {
        let Place { block, chain, remainder } = place;
        let words = &self.words[self.geometry.locate(block).0];
        // SAFETY: `isa` was detected on this processor, and each version calls for no more than its features.
        let answer = unsafe {
            match (self.isa, words.as_array::<8>(), words.as_array::<4>()) {
                (Isa::Avx512, Some(words), _) => {
                    x86::contains_avx512(&self.geometry, words, chain, remainder)
                }
                (Isa::Avx512, _, Some(words)) => {
                    x86::contains_avx512(&self.geometry, words, chain, remainder)
                }
                _ => Some(x86::contains_bmi2(&self.geometry, words, chain, remainder)),
            }
        };
        answer.unwrap_or_else(|| self.contains_overloaded(place))
    }

    /// Apart, so that it is not in the way of the usual case.
    #[cold]
    fn contains_overloaded(&self, place: Place) -> bool {
        self.contains_portable(place)
    }

    /// Inserts an item; `false`, and nothing changes, if its block has no bit left for it.
    pub(crate) fn insert(&mut self, place: Place) -> bool {
        let Some(grown) = self.insert_into_block(place) else {
            return false;
        };
        self.len += 1;
        self.logical += grown;
        true
    }

    /// Says by how much the logical count of the block grew.
    #[inline]
    fn insert_into_block(&mut self, Place { block, chain, remainder }: Place) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if self.isa >= Isa::Avx2 {
            let words = &mut self.words[self.geometry.locate(block).0];
            // SAFETY: `isa` was detected on this processor; the function needs BMI2, which AVX2 includes here.
            let grown = unsafe {
                if let Some(words) = words.as_mut_array::<8>() {
                    x86::insert_bmi2(&self.geometry, words, chain, remainder)
                } else {
                    words
                        .as_mut_array::<4>()
                        .and_then(|words| x86::insert_bmi2(&self.geometry, words, chain, remainder))
                }
            };
            if grown.is_some() {
                return grown;
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

    /// The same table with another version of the operations, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = self.isa.min(isa);
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
