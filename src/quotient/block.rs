//! The bits of one block: reading and writing its fields.

use crate::bits::{low_mask, rank};

use super::geometry::{MARKED, OCCUPIEDS_AT, OFFSET_BITS, Shape};

/// The offset that stands for itself and everything above it. No block has so many slots, so that a saturated
/// offset says at least that none of the block's slots belongs to its own runs.
pub(crate) const OFFSET_SATURATED: u32 = low_mask(OFFSET_BITS) as u32;

/// What a block says about its slots and its quotients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// How many slots, counted from the block's first, belong to runs of quotients before the block;
    /// [`OFFSET_SATURATED`] if it is that many or more.
    pub(crate) offset: u32,
    /// Bit i: a key with the block's i-th quotient is stored.
    pub(crate) occupieds: u64,
    /// Bit i: the block's i-th slot is the last of a run.
    pub(crate) runends: u64,
}

impl Meta {
    /// How many runs belong to quotients of this block below its `quotient`-th.
    #[inline(always)]
    pub(crate) fn runs_below(&self, quotient: u32) -> u32 {
        rank(self.occupieds, quotient)
    }

    /// Whether the block's `quotient`-th quotient has a run.
    #[inline(always)]
    pub(crate) fn is_occupied(&self, quotient: u32) -> bool {
        self.occupieds >> quotient & 1 == 1
    }

    /// Whether no item is in a slot of the block that has one and is at or behind the offset: all runs that begin at or
    /// before it have ended.
    #[inline(always)]
    pub(crate) fn is_free(&self, slot: u32) -> bool {
        // There is one border more than there are runs that have ended.
        rank(self.borders(), slot + 1) > self.runs_below(slot + 1)
    }

    /// Where this block's own runs may begin: bit i says that slot i is the block's first own one, or stands
    /// behind a runend. So the block's j-th own run lies between the j-th set bit and the next; where there is
    /// a gap, it begins at its home. If the block has no slots of its own there are no borders but perhaps that
    /// behind its last slot.
    #[inline(always)]
    pub(crate) fn borders(&self) -> u64 {
        (self.runends << 1 | 1) & u64::MAX << self.offset
    }
}

/// Reads the block's offset, occupieds and runends.
#[inline(always)]
pub(crate) fn meta<S: Shape>(shape: S, block: &[u64]) -> Meta {
    Meta {
        offset: offset(block),
        occupieds: read(block, OCCUPIEDS_AT, shape.slots()),
        runends: runends_and_below(shape, block) >> 1,
    }
}

/// The runends, and in bit 0 whatever is below them.
#[inline(always)]
pub(crate) fn runends_and_below<S: Shape>(shape: S, block: &[u64]) -> u64 {
    let (byte, above) = shape.runends_load();
    // One load and two shifts (one, if `above` is known to be 0), wherever in the block they are.
    read_bytes(block, byte) << above >> (63 - shape.slots())
}

/// The occupieds, with whatever else above them.
#[inline(always)]
pub(crate) fn occupieds_and_above<S: Shape>(shape: S, block: &[u64]) -> u64 {
    let low = block[0] >> OCCUPIEDS_AT;
    if OCCUPIEDS_AT + shape.slots() <= 64 { low } else { low | block[1] << (64 - OCCUPIEDS_AT) }
}

/// Writes the block's offset, occupieds and runends.
#[inline(always)]
pub(crate) fn set_meta<S: Shape>(shape: S, block: &mut [u64], meta: Meta) {
    let slots = shape.slots();
    let head = meta.occupieds << OCCUPIEDS_AT | u64::from(meta.offset);
    block[0] = block[0] & !low_mask(OCCUPIEDS_AT + slots) | head;
    if OCCUPIEDS_AT + slots > 64 {
        let up = 64 - OCCUPIEDS_AT;
        block[1] = block[1] & !low_mask(slots - up) | meta.occupieds >> up;
    }
    if cfg!(target_endian = "little") {
        // One load and one store, wherever in the block they are.
        let (byte, above) = shape.runends_load();
        let (mask, shift) = (low_mask(slots), 64 - above - slots);
        let word = read_bytes(block, byte) & !(mask << shift) | meta.runends << shift;
        write_bytes(block, byte, word);
    } else {
        write(block, shape.runends_at(), slots, meta.runends);
    }
}

/// Whether the bits that no field has are 0, as they are from the beginning.
pub(crate) fn gaps_are_empty<S: Shape>(shape: S, block: &[u64]) -> bool {
    let gaps = [
        shape.code_at() + shape.code_bits()..shape.runends_at(),
        shape.runends_at() + shape.slots()..shape.remainders_at(),
    ];
    let is_empty = |gap: std::ops::Range<u32>| {
        gap.clone().step_by(64).all(|at| read(block, at, (gap.end - at).min(64)) == 0)
    };
    gaps.into_iter().all(is_empty)
}

/// Reads the block's offset alone.
#[inline(always)]
pub(crate) fn offset(block: &[u64]) -> u32 {
    block[0] as u32 & OFFSET_SATURATED
}

/// Writes the block's offset alone, or the saturated one if it is too large.
#[inline(always)]
pub(crate) fn set_offset(block: &mut [u64], offset: u32) {
    write(block, 0, OFFSET_BITS, u64::from(offset.min(OFFSET_SATURATED)));
}

/// The remainder in a slot of the block.
#[inline(always)]
pub(crate) fn remainder<S: Shape>(shape: S, block: &[u64], slot: u32) -> u64 {
    read(block, shape.remainders_at() + slot * shape.remainder_bits(), shape.remainder_bits())
}

/// The remainders from a slot on, the first in the lowest bits: as many as a [`Window`](super::geometry::Window) has,
/// with anything above them, and 0 behind the end of the block. Anything for a slot that the block does not have.
#[inline(always)]
pub(crate) fn remainders_from<S: Shape>(shape: S, block: &[u64], slot: u32) -> u64 {
    let bit = shape.remainders_at() + slot * shape.remainder_bits();
    // A window at the end of the block begins earlier, and is shifted by more.
    let byte = (bit / 8).min((8 * block.len() as u32).saturating_sub(8));
    read_bytes(block, byte as usize).wrapping_shr(bit - 8 * byte)
}

/// The 8 remainders of a byte before a slot, the last in the highest byte. Anything for a slot beyond the end of the
/// block.
#[inline(always)]
pub(crate) fn remainders_before<S: Shape>(shape: S, block: &[u64], slot: u32) -> u64 {
    read_bytes(block, (shape.remainders_at() / 8 + slot - 8) as usize)
}

/// Sets the 8 remainders of a byte before a slot, the last from the highest byte. On little-endian machines only.
#[inline(always)]
pub(crate) fn set_remainders_before<S: Shape>(shape: S, block: &mut [u64], slot: u32, remainders: u64) {
    write_bytes(block, (shape.remainders_at() / 8 + slot - 8) as usize, remainders);
}

/// Sets the remainder in a slot of the block.
#[inline(always)]
pub(crate) fn set_remainder<S: Shape>(shape: S, block: &mut [u64], slot: u32, remainder: u64) {
    write(block, shape.remainders_at() + slot * shape.remainder_bits(), shape.remainder_bits(), remainder);
}

/// Moves the remainders of the slots `from..to` of the block one slot up; the one in `to` is lost, the one in
/// `from` stays.
#[inline(always)]
pub(crate) fn shift_up<S: Shape>(shape: S, block: &mut [u64], from: u32, to: u32) {
    let (r, start) = (shape.remainder_bits(), shape.remainders_at());
    let (low, high) = (start + from * r, start + (to + 1) * r);
    // Bits low+r..high become bits low..high−r. From the top word down, each word takes what is r below it.
    let (first, last) = ((low + r) / 64, (high - 1) / 64);
    let mut word = last;
    while word >= first {
        let below = if word == 0 { 0 } else { block[word as usize - 1] };
        let shifted = block[word as usize] << r | below >> (64 - r);
        let mask = word_mask(word, low + r, high);
        block[word as usize] = block[word as usize] & !mask | shifted & mask;
        if word == 0 {
            break;
        }
        word -= 1;
    }
}

/// Moves the remainders of the slots `from + 1..=to` of the block one slot down; the one in `from` is lost, the
/// one in `to` stays.
#[inline(always)]
pub(crate) fn shift_down<S: Shape>(shape: S, block: &mut [u64], from: u32, to: u32) {
    let (r, start) = (shape.remainder_bits(), shape.remainders_at());
    let (low, high) = (start + from * r, start + to * r);
    if low == high {
        return;
    }
    for word in low / 64..=(high - 1) / 64 {
        let above = block.get(word as usize + 1).copied().unwrap_or(0);
        let shifted = block[word as usize] >> r | above << (64 - r);
        let mask = word_mask(word, low, high);
        block[word as usize] = block[word as usize] & !mask | shifted & mask;
    }
}

/// The bits of the word number `word` that lie in `low..high`. They overlap.
#[inline(always)]
fn word_mask(word: u32, low: u32, high: u32) -> u64 {
    let base = word * 64;
    let from = low.saturating_sub(base);
    low_mask(high - base) & !low_mask(from)
}

/// Reads bit `index` of the field of `len` bits that begins at `at`.
#[inline(always)]
pub(crate) fn bit(block: &[u64], at: u32, len: u32, index: u32) -> bool {
    debug_assert!(index < len);
    let (byte, shift) = ((at / 8) as usize, at % 8);
    if cfg!(target_endian = "little") && shift + len <= 64 && byte + 8 <= block.len() * 8 {
        // SAFETY: the 8 bytes from `byte` on are within the block.
        let bytes = unsafe { block.as_ptr().cast::<u8>().add(byte).cast::<u64>().read_unaligned() };
        return bytes >> index & 1 << shift != 0;
    }
    let at = at + index;
    block[(at / 64) as usize] >> (at % 64) & 1 == 1
}

/// The flag of a block's `quotient`-th quotient.
#[inline(always)]
pub(crate) fn flag<S: Shape>(shape: S, block: &[u64], quotient: u32) -> bool {
    let flags = shape.flags();
    debug_assert!(flags > 0, "a table without codes has no flags");
    bit(block, shape.code_at(), flags, quotient.min(flags - 1))
}

/// The mark of a slot and those around it.
#[inline(always)]
pub(crate) fn mark<S: Shape>(shape: S, block: &[u64], slot: u32) -> bool {
    bit(block, shape.code_at(), shape.flags() + shape.marks(), shape.flags() + slot / MARKED)
}

/// All marks of a block.
#[inline(always)]
pub(crate) fn marks<S: Shape>(shape: S, block: &[u64]) -> u64 {
    read(block, shape.code_at() + shape.flags(), shape.marks())
}

/// Reads up to 64 bits.
#[inline(always)]
pub(crate) fn read(words: &[u64], at: u32, len: u32) -> u64 {
    let (word, shift) = ((at / 64) as usize, at % 64);
    if cfg!(target_endian = "little") && shift + len > 64 && at % 8 + len <= 64 && word + 1 < words.len() {
        // Across two words, but not across 8 bytes: one unaligned load is cheaper than two and their shifts.
        // SAFETY: the 8 bytes begin in `word` and end in the one behind it, which exists.
        let bytes =
            unsafe { words.as_ptr().cast::<u8>().add((at / 8) as usize).cast::<u64>().read_unaligned() };
        return bytes >> (at % 8) & low_mask(len);
    }
    let mut value = words[word] >> shift;
    if shift + len > 64 {
        value |= words[word + 1] << (64 - shift);
    }
    value & low_mask(len)
}

/// At least `len` bits, up to 64, from one that a byte begins with, with anything above them.
#[inline(always)]
pub(crate) fn word_at(words: &[u64], at: u32, len: u32) -> u64 {
    debug_assert!(at.is_multiple_of(8) && len <= 64);
    let byte = (at / 8) as usize;
    if cfg!(target_endian = "little") && byte + 8 <= 8 * words.len() {
        // SAFETY: the 8 bytes from `byte` on are within the words.
        return unsafe { words.as_ptr().cast::<u8>().add(byte).cast::<u64>().read_unaligned() };
    }
    read(words, at, len)
}

/// The word that begins at a byte, or the last one of the block if that begins before it.
#[inline(always)]
fn read_bytes(words: &[u64], byte: usize) -> u64 {
    let Some(last) = words.len().checked_sub(1) else { return 0 };
    let byte = byte.min(8 * last);
    if cfg!(target_endian = "little") {
        // SAFETY: the 8 bytes begin at or before the last word.
        return unsafe { words.as_ptr().cast::<u8>().add(byte).cast::<u64>().read_unaligned() };
    }
    let (word, shift) = (byte / 8, 8 * (byte % 8) as u32);
    let above = words.get(word + 1).map_or(0, |next| next.checked_shl(64 - shift).unwrap_or(0));
    words[word] >> shift | above
}

/// Writes the word that begins at a byte, or the last one of the block if that begins before it. On little-endian
/// machines only.
#[inline(always)]
#[expect(clippy::assertions_on_constants, reason = "it is constant on each machine, but not on all")]
fn write_bytes(words: &mut [u64], byte: usize, value: u64) {
    debug_assert!(cfg!(target_endian = "little"));
    let Some(last) = words.len().checked_sub(1) else { return };
    let byte = byte.min(8 * last);
    // SAFETY: the 8 bytes begin at or before the last word.
    unsafe { words.as_mut_ptr().cast::<u8>().add(byte).cast::<u64>().write_unaligned(value) }
}

/// Writes up to 64 bits. `value` has no bit above them.
#[inline(always)]
pub(crate) fn write(words: &mut [u64], at: u32, len: u32, value: u64) {
    debug_assert_eq!(value & !low_mask(len), 0, "a field of {len} bits cannot hold {value:#x}");
    let (word, shift, mask) = ((at / 64) as usize, at % 64, low_mask(len));
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + len > 64 {
        let up = 64 - shift;
        words[word + 1] = words[word + 1] & !(mask >> up) | value >> up;
    }
}

#[cfg(test)]
mod tests {
    //! Catches: fields that overlap, shifts that touch a neighbour.
    use super::super::geometry::{ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS};
    use super::*;
    use crate::testing::Random;

    fn fields_keep_apart<S: Shape>(shape: S) {
        let mut random = Random::new(5);
        let mut block = vec![0; shape.words()];
        let slots = shape.slots();
        let mut remainders = vec![0; slots as usize];
        for _ in 0..500 {
            let bits = low_mask(slots);
            let written = Meta {
                offset: random.below(64) as u32,
                occupieds: random.next() & bits,
                runends: random.next() & bits,
            };
            set_meta(shape, &mut block, written);
            let a = random.below(slots.into()) as usize;
            let b = random.below(slots.into()) as usize;
            let (from, to) = (a.min(b), a.max(b));
            match random.below(3) {
                0 => {
                    let value = random.next() & low_mask(shape.remainder_bits());
                    set_remainder(shape, &mut block, a as u32, value);
                    remainders[a] = value;
                }
                1 => {
                    shift_up(shape, &mut block, from as u32, to as u32);
                    remainders.copy_within(from..to, from + 1);
                }
                _ => {
                    shift_down(shape, &mut block, from as u32, to as u32);
                    remainders.copy_within(from + 1..=to, from);
                }
            }
            assert_eq!(meta(shape, &block), written);
            let read: Vec<u64> = (0..slots).map(|slot| remainder(shape, &block, slot)).collect();
            assert_eq!(read, remainders);
        }
    }

    #[test]
    fn fields_keep_apart_in_every_shape() {
        fields_keep_apart(ByteLine::<PLAIN_SLOTS>);
        fields_keep_apart(ByteLine::<CODED_SLOTS>);
        for remainder_bits in Geometry::REMAINDER_BITS {
            fields_keep_apart(Geometry::plain(remainder_bits));
            fields_keep_apart(Geometry::coded(remainder_bits));
        }
    }
}
