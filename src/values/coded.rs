//! Values in the codes of their blocks, and in a side store where they do not fit.
//!
//! The code field of a block has them as [pairs](crate::coding::field) where few are repaired, else as an arithmetic
//! code if that fits, else as flags for the side store. It is 0 if all values are initial.

use std::ops::RangeInclusive;

use crate::InvariantError;
use crate::bits::low_mask;
use crate::coding::field::{Field, Form};
use crate::coding::{BlockCode, Letters};
use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError};
use crate::quotient::{Run, Table};

use super::side::{Entry, Layout, Record, SideStore};
use super::{Overflow, ValueStore};

/// Values that are kept in the codes of the blocks.
#[derive(Debug, Clone)]
pub(crate) struct CodedValues<L: Letters> {
    code: BlockCode<L>,
    pub(super) field: Field,
    overflow: Overflow,
    pub(super) side: SideStore,
    pub(super) adapted: usize,
    /// At least the [rank](Letters::rank) of every value.
    pub(super) highest: u32,
}

/// Where the values of one block are to be read.
enum Place<'a> {
    Few(u64),
    Code(u64),
    Side(Record<'a>),
}

impl<L: Letters> CodedValues<L> {
    /// Initial values for all slots of `table`, which has codes.
    pub(crate) fn new(overflow: Overflow, table: &Table) -> Self {
        let (r, slots, field) = (table.remainder_bits(), table.slots_per_block(), table.field());
        let layout = Layout { slots, flags: field.flags(), strings: L::STRINGS };
        let letters = L::for_code(r, field.bits, slots);
        Self {
            code: BlockCode::new(letters, field.code_bits(), L::highest_coded(r)),
            field,
            overflow,
            side: SideStore::new(layout),
            adapted: 0,
            highest: 0,
        }
    }

    /// No value has a higher [rank](Letters::rank). 0 while all values are initial.
    #[inline(always)]
    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    /// No value in a code has a higher [rank](Letters::rank).
    pub(crate) fn highest_coded(&self) -> u32 {
        self.code.highest()
    }

    #[inline]
    fn place(&self, table: &Table, block: usize) -> Place<'_> {
        match self.field.form(table.code(block)) {
            Form::Few(few) => Place::Few(few),
            Form::Code(code) => Place::Code(code),
            Form::Elsewhere(flags) => Place::Side(self.side.get(block, flags)),
        }
    }

    /// The code field of these values; `None` if they do not fit.
    fn encode_field(&self, values: &[L::Letter]) -> Option<u64> {
        let coded = |&value: &L::Letter| L::rank(value) <= self.code.highest();
        let few = if values.iter().all(coded) { self.field.of_few::<L>(values) } else { None };
        few.or_else(|| self.code.encode(values).map(|code| self.field.of_code(code)))
    }

    /// Whether one of the block's slots, given as bits, and its value satisfy `accept`.
    #[inline]
    pub(crate) fn any_in_block(
        &self,
        table: &Table,
        block: usize,
        slots: u64,
        mut accept: impl FnMut(u32, L::Letter) -> bool,
    ) -> bool {
        let (place, mut rest) = (self.place(table, block), slots);
        let mut decode = match place {
            Place::Code(code) => self.code.decode(code),
            Place::Few(_) | Place::Side(_) => self.code.decode(0),
        };
        let mut at = 0;
        while rest != 0 {
            let slot = rest.trailing_zeros();
            rest &= rest - 1;
            let value = match &place {
                Place::Few(few) => self.field.letter::<L>(*few, slot),
                Place::Code(_) => decode.nth((slot - at) as usize).unwrap_or_default(),
                Place::Side(record) => value_in::<L>(record, slot),
            };
            at = slot + 1;
            if accept(slot, value) {
                return true;
            }
        }
        false
    }

    /// Whether a block with this field is in the side store.
    fn is_spilled(&self, field: u64) -> bool {
        matches!(self.field.form(field), Form::Elsewhere(_))
    }

    fn count(&self, table: &Table, block: usize) -> usize {
        let initial = L::Letter::default();
        match self.place(table, block) {
            Place::Few(few) => self.field.few::<L>(few).count(),
            Place::Side(record) => record.slots().count_ones() as usize,
            Place::Code(code) => {
                let values = self.code.decode(code).take(table.slots_per_block() as usize);
                values.filter(|&value| value != initial).count()
            }
        }
    }

    /// Gives a block to the side store. Whether it was not there before.
    fn spill(&mut self, table: &mut Table, block: usize, values: &[L::Letter]) -> bool {
        let entries: Vec<Entry> = (0..)
            .zip(values)
            .map(|(slot, &value)| Entry { slot, number: L::rank(value), bits: L::bits(value) })
            .filter(|entry| entry.number > 0)
            .collect();
        let slots = entries.iter().fold(0_u64, |slots, entry| slots | 1 << entry.slot);
        let fresh = !self.is_spilled(table.code(block));
        self.side.set(block, table.blocks(), Some(&entries));
        table.set_code(block, self.field.of_slots(slots));
        fresh
    }
}

/// The value of a slot in the side store.
#[inline]
fn value_in<L: Letters>(record: &Record<'_>, slot: u32) -> L::Letter {
    record.get(slot).map_or(L::Letter::default(), |(number, bits)| L::from_rank(number, bits))
}

impl<L: Letters> ValueStore for CodedValues<L> {
    type Value = L::Letter;

    const CODED: bool = true;

    fn number(value: L::Letter) -> u64 {
        L::number(value)
    }

    fn value(number: u64) -> Option<L::Letter> {
        L::letter(number)
    }

    fn highest_ever(&self) -> u64 {
        self.highest.into()
    }

    fn raise(&mut self, highest: u64) -> bool {
        let highest = u16::try_from(highest).map(u32::from);
        self.highest = self.highest.max(highest.unwrap_or(0));
        highest == Ok(self.highest)
    }

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
                Place::Few(few) => {
                    slots.any(|(slot, in_block)| visit(slot, self.field.letter::<L>(few, in_block)))
                }
                Place::Side(record) => {
                    slots.any(|(slot, in_block)| visit(slot, value_in::<L>(&record, in_block)))
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
        let per_block = table.slots_per_block() as usize;
        let first = values.len();
        match self.place(table, block) {
            Place::Few(few) => {
                values.resize(first + per_block, L::Letter::default());
                let pairs = self.field.few::<L>(few).filter(|pair| (pair.0 as usize) < per_block);
                pairs.for_each(|(slot, letter)| values[first + slot as usize] = letter);
            }
            Place::Code(code) => values.extend(self.code.decode(code).take(per_block)),
            Place::Side(record) => {
                for entry in record.entries() {
                    values.resize(first + entry.slot as usize, L::Letter::default());
                    values.push(L::from_rank(entry.number, entry.bits));
                }
            }
        }
        values.resize(first + per_block, L::Letter::default());
    }

    fn fits(&self, values: &[L::Letter]) -> bool {
        self.overflow == Overflow::Spill || self.encode_field(values).is_some()
    }

    fn store(&mut self, table: &mut Table, block: usize, values: &[L::Letter]) -> bool {
        let initial = L::Letter::default();
        let adapted = values.iter().filter(|&&value| value != initial).count();
        self.adapted = self.adapted + adapted - self.count(table, block);
        self.highest = values.iter().map(|&value| L::rank(value)).fold(self.highest, u32::max);
        match self.encode_field(values) {
            Some(field) => {
                self.side.set(block, table.blocks(), None);
                table.set_code(block, field);
                false
            }
            None => self.spill(table, block, values),
        }
    }

    fn emptied(&self, _: &Table) -> Option<Self> {
        Some(Self { side: self.side.emptied(), adapted: 0, highest: 0, ..*self })
    }

    fn overflow(&self) -> Overflow {
        self.overflow
    }

    fn adapted(&self) -> usize {
        self.adapted
    }

    fn spills(&self) -> usize {
        self.side.len()
    }

    fn memory_bits(&self) -> usize {
        self.side.memory_bits()
    }

    fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let (mut adapted, mut spilled, mut highest) = (0, 0, 0);
        let mut values = Vec::new();
        for block in 0..table.blocks() {
            let code = table.code(block);
            values.clear();
            let is_spilled = self.is_spilled(code);
            ensure!(
                self.side.has(block) == is_spilled,
                "block {block} has the code {code:#x}, its values not"
            );
            self.load(table, block, &mut values);
            adapted += self.count(table, block);
            highest = values.iter().map(|&value| L::rank(value)).fold(highest, u32::max);
            let encoded = self.encode_field(&values);
            if is_spilled {
                spilled += 1;
                ensure!(encoded.is_none(), "block {block} is in the side store, but fits into its code");
                let Place::Side(record) = self.place(table, block) else { continue };
                let repaired = record.slots();
                ensure!(
                    repaired & low_mask(table.slots_per_block()) == repaired,
                    "block {block} is too long"
                );
            } else {
                ensure!(encoded == Some(code), "block {block} has the code {code:#x}, which is nobody's");
            }
        }
        ensure!(spilled == self.side.len(), "{} blocks in the side store, {spilled} marked", self.side.len());
        ensure!(highest <= self.highest, "a value of rank {highest} beyond the highest, {}", self.highest);
        ensure!(adapted == self.adapted, "{adapted} adapted slots, {} counted", self.adapted);
        Ok(())
    }

    fn encode(&self, table: &Table, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.encode_values(table, encoder)
    }

    fn decode(table: &Table, overflow: Overflow, decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        Self::decode_values(table, overflow, decoder)
    }
}
