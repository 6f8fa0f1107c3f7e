//! Values in the codes of their blocks, and in a side table where they do not fit.

use std::ops::RangeInclusive;

use crate::InvariantError;
use crate::bits::NumberMap;
use crate::coding::{BlockCode, Letters};
use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError};
use crate::quotient::{Run, Table};

use super::{Overflow, ValueStore};

/// Values that are kept in the codes of the blocks.
#[derive(Debug, Clone)]
pub(crate) struct CodedValues<L: Letters> {
    code: BlockCode<L>,
    overflow: Overflow,
    /// Blocks whose values do not fit into their code, which is the mark instead: the slots (by their number in
    /// the block, ascending) whose values are not initial.
    pub(super) spilled: NumberMap<Box<[SideEntry<L>]>>,
    pub(super) adapted: usize,
    /// At least the [rank](Letters::rank) of every value.
    pub(super) highest: u32,
}

/// A slot of a spilled block by its number in the block, and its value.
pub(super) type SideEntry<L> = (u8, <L as Letters>::Letter);

/// Where the values of one block are to be read.
enum Place<'a, L: Letters> {
    Initial,
    Code(u64),
    Side(&'a [SideEntry<L>]),
}

impl<L: Letters> CodedValues<L> {
    /// Initial values for all slots of `table`, which has codes.
    pub(crate) fn new(letters: L, overflow: Overflow, table: &Table) -> Self {
        let code = BlockCode::new(letters, table.code_bits());
        Self { code, overflow, spilled: NumberMap::default(), adapted: 0, highest: 0 }
    }

    /// The code of blocks whose values are in the side table.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        self.code.mark()
    }

    /// No value has a higher [rank](Letters::rank). 0 while all values are initial.
    #[inline(always)]
    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    #[inline]
    fn place(&self, table: &Table, block: usize) -> Place<'_, L> {
        match table.code(block) {
            0 => Place::Initial,
            code if code == self.code.mark() => {
                Place::Side(self.spilled.get(&(block as u64)).map_or(&[][..], |entries| entries))
            }
            code => Place::Code(code),
        }
    }

    /// Whether one of the block's slots, given as bits, and its value satisfy `accept`. `code` is the block's.
    #[inline]
    pub(crate) fn any_in_block(
        &self,
        block: usize,
        code: u64,
        slots: u64,
        mut accept: impl FnMut(u32, L::Letter) -> bool,
    ) -> bool {
        if code == self.code.mark() {
            return self.any_spilled(block, slots, accept);
        }
        let (mut decode, mut at) = (self.code.decode(code), 0);
        let mut rest = slots;
        while rest != 0 {
            let slot = rest.trailing_zeros();
            rest &= rest - 1;
            let value = decode.nth((slot - at) as usize).unwrap_or_default();
            at = slot + 1;
            if accept(slot, value) {
                return true;
            }
        }
        false
    }

    #[cold]
    fn any_spilled(&self, block: usize, slots: u64, mut accept: impl FnMut(u32, L::Letter) -> bool) -> bool {
        let entries = self.spilled.get(&(block as u64)).map_or(&[][..], |entries| entries);
        (0..64).filter(|slot| slots >> slot & 1 == 1).any(|slot| accept(slot, value_in(entries, slot)))
    }

    fn count(&self, table: &Table, block: usize) -> usize {
        let initial = L::Letter::default();
        match self.place(table, block) {
            Place::Initial => 0,
            Place::Side(entries) => entries.len(),
            Place::Code(code) => {
                let values = self.code.decode(code).take(table.slots_per_block() as usize);
                values.filter(|&value| value != initial).count()
            }
        }
    }
}

/// The value of a slot in the side table.
fn value_in<V: Copy + Default>(entries: &[(u8, V)], slot: u32) -> V {
    entries.iter().find(|entry| u32::from(entry.0) == slot).map_or(V::default(), |entry| entry.1)
}

impl<L: Letters> ValueStore for CodedValues<L> {
    type Value = L::Letter;

    const CODED: bool = true;

    #[inline]
    fn all_initial(&self, table: &Table, mut blocks: RangeInclusive<usize>) -> bool {
        self.adapted == 0 || blocks.all(|block| table.code(block) == 0)
    }

    #[inline(always)]
    fn are_initial_where_code_is_0(&self) -> bool {
        true
    }

    fn any(&self, table: &Table, run: Run, mut visit: impl FnMut(u64, L::Letter) -> bool) -> bool {
        let per_block = u64::from(table.slots_per_block());
        let mut first = run.first;
        while first <= run.last {
            let (block, in_block) = table.block_of(first);
            let last = run.last.min((block as u64 + 1) * per_block - 1);
            let mut slots = (first..=last).zip(in_block..);
            let found = match self.place(table, block) {
                Place::Initial => slots.any(|(slot, _)| visit(slot, L::Letter::default())),
                Place::Side(entries) => {
                    slots.any(|(slot, in_block)| visit(slot, value_in(entries, in_block)))
                }
                Place::Code(code) => {
                    let values = self.code.decode(code).skip(in_block as usize);
                    slots.zip(values).any(|((slot, _), value)| visit(slot, value))
                }
            };
            if found {
                return true;
            }
            first = last + 1;
        }
        false
    }

    fn load(&self, table: &Table, block: usize, values: &mut Vec<L::Letter>) {
        let per_block = table.slots_per_block();
        match self.place(table, block) {
            Place::Initial => values.extend((0..per_block).map(|_| L::Letter::default())),
            Place::Side(entries) => values.extend((0..per_block).map(|slot| value_in(entries, slot))),
            Place::Code(code) => values.extend(self.code.decode(code).take(per_block as usize)),
        }
    }

    fn fits(&self, values: &[L::Letter]) -> bool {
        self.overflow == Overflow::Spill || self.code.encode(values).is_some()
    }

    fn store(&mut self, table: &mut Table, block: usize, values: &[L::Letter]) -> bool {
        let initial = L::Letter::default();
        let adapted = (0_u8..).zip(values.iter().copied()).filter(|&(_, value)| value != initial);
        self.adapted = self.adapted + adapted.clone().count() - self.count(table, block);
        self.highest = values.iter().map(|&value| L::rank(value)).fold(self.highest, u32::max);
        let number = block as u64;
        if let Some(code) = self.code.encode(values) {
            self.spilled.remove(&number);
            table.set_code(block, code);
            return false;
        }
        debug_assert_eq!(self.overflow, Overflow::Spill, "values that do not fit are reset before");
        table.set_code(block, self.code.mark());
        self.spilled.insert(number, adapted.collect()).is_none()
    }

    fn emptied(&self, _: &Table) -> Option<Self> {
        Some(Self {
            code: self.code,
            overflow: self.overflow,
            spilled: NumberMap::default(),
            adapted: 0,
            highest: 0,
        })
    }

    fn overflow(&self) -> Overflow {
        self.overflow
    }

    fn adapted(&self) -> usize {
        self.adapted
    }

    fn spills(&self) -> usize {
        self.spilled.len()
    }

    fn memory_bits(&self) -> usize {
        // A place of the map is a number, a pointer with a length, and a byte of the map's own.
        let map = self.spilled.capacity() * (size_of::<(u64, Box<[SideEntry<L>]>)>() + 1);
        let entries = self.spilled.values().map(|entries| size_of_val(&**entries)).sum::<usize>();
        8 * (map + entries)
    }

    fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let (mut adapted, mut spilled, mut highest) = (0, 0, 0);
        let mut values = Vec::new();
        for block in 0..table.blocks() {
            let code = table.code(block);
            values.clear();
            self.load(table, block, &mut values);
            adapted += self.count(table, block);
            highest = values.iter().map(|&value| L::rank(value)).fold(highest, u32::max);
            let encoded = self.code.encode(&values);
            if code == self.code.mark() {
                spilled += 1;
                ensure!(self.spilled.contains_key(&(block as u64)), "block {block} is in no side table");
                ensure!(encoded.is_none(), "block {block} is in the side table, but fits into its code");
            } else {
                ensure!(encoded == Some(code), "block {block} has the code {code:#x}, which is nobody's");
            }
        }
        ensure!(
            spilled == self.spilled.len(),
            "{} blocks in the side table, {spilled} marked",
            self.spilled.len()
        );
        ensure!(highest <= self.highest, "a value of rank {highest} beyond the highest, {}", self.highest);
        ensure!(adapted == self.adapted, "{adapted} adapted slots, {} counted", self.adapted);
        Ok(())
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.encode_values(encoder)
    }

    fn decode(table: &Table, overflow: Overflow, decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        Self::decode_values(table, overflow, decoder)
    }
}
