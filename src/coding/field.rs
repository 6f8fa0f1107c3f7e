//! The code field of a block, of C bits: the letters of its slots in one of three forms, which its last bits tell
//! apart.
//!
//! ```text
//! | (gap) | 63 − slot: 3 bytes | numbers: 3 times 5 bits | 0 … 0 | 0 | 0 |     few letters that are not initial
//! | arithmetic code: C − 2 bits                                  | 1 | 0 |     more of them
//! | flags: C − 1 bits                                                | 1 |     which of the first slots have such letters
//! ```
//!
//! A query that has found its remainder wants to know one thing: whether a slot has any letter but the initial one. The
//! first form, which nearly all blocks of a filter in service have, [says so](Field::is_initial) in ten instructions
//! and without a branch; an arithmetic code would have to be decoded. A slot has a whole byte of the block for that, so
//! the gap is as long as it takes to the next byte; 0 is no slot. Narrow fields have fewer pairs of slot and number.

use crate::bits::low_mask;

use super::Letters;

/// Bits of a slot in a pair.
const SLOT_BITS: u32 = 8;

/// Bits of the number of a letter in a pair.
const NUMBER_BITS: u32 = 5;

/// The most pairs of a field.
const MAX_PAIRS: u32 = 3;

/// The byte of slot 0; that of the next is one less.
const FIRST: u32 = 63;

/// Bits that tell the form.
const FORM_BITS: u32 = 2;

/// The narrowest field: a gap, one bit, and the form.
pub(crate) const MIN_FIELD_BITS: u32 = 7 + 1 + FORM_BITS;

/// How a field is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    /// C, its width.
    pub(crate) bits: u32,
    /// How many bits there are to the next byte of the block.
    gap: u32,
}

/// A field as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Pairs, in the order of their slots.
    Few(u64),
    /// The arithmetic code of all letters.
    Code(u64),
    /// Flags of the first slots. The letters are kept elsewhere.
    Elsewhere(u64),
}

impl Field {
    /// A field of this many bits from this bit of the block on.
    #[inline(always)]
    pub(crate) fn new(at: u32, bits: u32) -> Self {
        Self { bits, gap: at.wrapping_neg() % 8 }
    }

    /// How many pairs it has.
    #[inline(always)]
    fn pairs(self) -> u32 {
        (self.bits.saturating_sub(self.gap + FORM_BITS) / (SLOT_BITS + NUMBER_BITS)).min(MAX_PAIRS)
    }

    /// How many bits before the bytes of the slots begin: in a [word](Self::is_initial) that begins there or before.
    #[inline(always)]
    pub(crate) fn gap(self) -> u32 {
        self.gap
    }

    /// Whether the last of `slots` has the initial letter. `from_gap` is the field from the end of the gap on, with
    /// anything behind it. `false` is no answer: [`adapted`](Self::adapted) has it.
    #[inline(always)]
    pub(crate) fn is_initial(self, from_gap: u64, slots: u64) -> bool {
        let pairs = low_mask(SLOT_BITS * self.pairs());
        let (ones, tops) = (0x0001_0101 & pairs, 0x0080_8080 & pairs);
        // A byte of 0 where the slots agree: it borrows, and has no top bit itself. (A borrow goes on to the next byte,
        // which may look like an agreement then, after there was one.)
        let differing = from_gap ^ (u64::from(slots.leading_zeros()) * ones);
        let agreeing = differing.wrapping_sub(ones) & !differing & tops;
        let form = from_gap >> (self.bits - FORM_BITS - self.gap) & low_mask(FORM_BITS);
        (agreeing == 0) & (form == 0)
    }

    /// The slots that may have another letter than the initial one.
    #[inline]
    pub(crate) fn adapted(self, field: u64) -> u64 {
        match self.form(field) {
            Form::Few(_) => {
                let slots = (0..self.pairs()).map(|pair| self.slot(field, pair));
                slots.fold(0, |adapted, slot| adapted | slot.map_or(0, |slot| 1 << slot))
            }
            Form::Code(_) => u64::MAX,
            // Of slots that have no flag nothing is known.
            Form::Elsewhere(flags) => flags | u64::MAX << (self.bits - 1),
        }
    }

    /// What a field is.
    #[inline]
    pub(crate) fn form(self, field: u64) -> Form {
        match field >> (self.bits - FORM_BITS) {
            0 => Form::Few(field),
            1 => Form::Code(field & low_mask(self.bits - FORM_BITS)),
            _ => Form::Elsewhere(field & low_mask(self.bits - 1)),
        }
    }

    /// The width of an arithmetic code.
    pub(crate) fn code_bits(self) -> u32 {
        self.bits - FORM_BITS
    }

    /// The field of an arithmetic code.
    pub(crate) fn of_code(self, code: u64) -> u64 {
        1 << (self.bits - FORM_BITS) | code
    }

    /// How many slots have flags.
    pub(crate) fn flags(self) -> u32 {
        self.bits - 1
    }

    /// The field of these slots, which have letters elsewhere.
    pub(crate) fn of_slots(self, slots: u64) -> u64 {
        1 << (self.bits - 1) | slots & low_mask(self.flags())
    }

    /// The field of these letters in pairs; `None` if there are too many, or their numbers are too large.
    pub(crate) fn of_few<L: Letters>(self, letters: &[L::Letter]) -> Option<u64> {
        let (mut field, mut pair) = (0, 0);
        for (slot, &letter) in (0..).zip(letters).filter(|(_, letter)| **letter != L::Letter::default()) {
            let number = L::number(letter);
            if pair == self.pairs() || number >> NUMBER_BITS != 0 {
                return None;
            }
            field |= u64::from(FIRST - slot) << self.slot_at(pair) | number << self.number_at(pair);
            pair += 1;
        }
        Some(field)
    }

    fn slot_at(self, pair: u32) -> u32 {
        self.gap + SLOT_BITS * pair
    }

    fn number_at(self, pair: u32) -> u32 {
        self.gap + SLOT_BITS * self.pairs() + NUMBER_BITS * pair
    }

    /// The slot of a pair, if there is one.
    #[inline]
    fn slot(self, field: u64, pair: u32) -> Option<u32> {
        let byte = (field >> self.slot_at(pair) & low_mask(SLOT_BITS)) as u32;
        (1..=FIRST).contains(&byte).then(|| FIRST - byte)
    }

    /// The slots and letters of a field of few, one after the other. Numbers that are no letter's, which only bytes
    /// from elsewhere have, stand for the initial one.
    #[inline]
    pub(crate) fn few<L: Letters>(self, field: u64) -> impl Iterator<Item = (u32, L::Letter)> {
        (0..self.pairs()).filter_map(move |pair| {
            let number = field >> self.number_at(pair) & low_mask(NUMBER_BITS);
            Some((self.slot(field, pair)?, L::letter(number).unwrap_or_default()))
        })
    }

    /// The letter of a slot in a field of few.
    #[inline]
    pub(crate) fn letter<L: Letters>(self, field: u64, slot: u32) -> L::Letter {
        self.few::<L>(field).find(|pair| pair.0 == slot).map_or(L::Letter::default(), |pair| pair.1)
    }
}

#[cfg(test)]
mod tests {
    //! Catches: pairs that run into each other or into the form, slots that are not told, forms that are taken for
    //! others.
    use super::*;
    use crate::coding::{Extension, Extensions, Selector, Selectors};
    use crate::testing::Random;

    fn sparse(random: &mut Random, slots: usize) -> Vec<u64> {
        let rate = 2 + random.below(60);
        (0..slots).map(|_| if random.one_in(rate) { 1 + random.below(34) } else { 0 }).collect()
    }

    /// Whether the letters are few.
    fn comes_back<L: Letters>(letters: &[L::Letter], field: Field, noise: u64) -> bool {
        let adapted_slots = letters.iter().enumerate().filter(|(_, letter)| **letter != L::Letter::default());
        let expected = adapted_slots.fold(0_u64, |slots, (slot, _)| slots | 1 << slot);
        let Some(few) = field.of_few::<L>(letters) else {
            let large = letters.iter().any(|&letter| L::number(letter) > 31);
            assert!(large || expected.count_ones() > field.pairs(), "{letters:?}");
            return false;
        };
        assert_eq!((field.adapted(few), field.form(few)), (expected, Form::Few(few)));
        assert!(field.few::<L>(few).map(|pair| pair.0).is_sorted());
        let from_gap = few >> field.gap | noise.checked_shl(field.bits - field.gap).unwrap_or(0);
        for (slot, &letter) in (0..).zip(letters) {
            assert_eq!(field.letter::<L>(few, slot), letter);
            let initial = letter == L::Letter::default();
            assert_eq!(
                field.is_initial(from_gap, 1 << slot),
                initial,
                "{letters:?}, slot {slot} of {few:#x}"
            );
            // Of several slots the last one is looked at.
            assert_eq!(field.is_initial(from_gap, (1 << slot) | (1 << slot >> 1)), initial);
        }
        true
    }

    #[test]
    fn few_letters_come_back_and_their_slots_are_told() {
        let mut random = Random::new(71);
        let shapes =
            [(46, 52, 46), (63, 69, 64), (63, 64, 56), (50, 56, 47), (32, 39, 28), (7, 13, 20), (4, 10, 10)];
        for (slots, at, bits) in shapes {
            let (field, mut few) = (Field::new(at, bits), 0);
            for _ in 0..5_000 {
                let (numbers, noise) = (sparse(&mut random, slots), random.next());
                let selectors: Vec<Selector> = numbers.iter().map(|&number| number as Selector).collect();
                few += u32::from(comes_back::<Selectors>(&selectors, field, noise));
                let letters = numbers.iter().map(|&number| Extensions::letter(number).unwrap());
                comes_back::<Extensions>(&letters.collect::<Vec<Extension>>(), field, noise);
            }
            assert!(few > 50, "{few} of {slots} slots in {bits} bits");
        }
        assert_eq!(Field::new(52, 46).pairs(), 3);
    }

    #[test]
    fn every_field_has_one_form() {
        let mut random = Random::new(72);
        for bits in MIN_FIELD_BITS..=64 {
            for at in 50..58 {
                let field = Field::new(at, bits);
                for _ in 0..50 {
                    let slot = 1 << random.below(63);
                    let code = random.next() & low_mask(bits - 2);
                    assert_eq!(field.form(field.of_code(code)), Form::Code(code));
                    assert_eq!(field.adapted(field.of_code(code)), u64::MAX);
                    assert!(!field.is_initial(field.of_code(code) >> field.gap, slot));
                    let flags = random.next() & low_mask(bits - 1);
                    assert_eq!(field.form(field.of_slots(flags)), Form::Elsewhere(flags));
                    assert_eq!(field.adapted(field.of_slots(flags)), flags | !low_mask(bits - 1));
                    assert!(!field.is_initial(field.of_slots(flags) >> field.gap, slot));
                    // Whatever the bytes, nothing panics.
                    field.few::<Extensions>(random.next()).for_each(drop);
                }
            }
        }
        assert_eq!(Field::new(52, 46).adapted(0), 0);
    }
}
