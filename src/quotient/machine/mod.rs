//! What different processors do differently with a block, behind one small interface.
//!
//! The algorithms of the table are written once, over a [`Machine`] and a [`Shape`]. Whole operations are then
//! compiled per machine, behind run-time detection, so that everything below them is inlined with the right
//! instructions.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(super) mod neon;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

use crate::bits::{
    self, low_mask,
    word::{byte_counts, find_by_counts},
};

use super::block::{self, Meta};
use super::geometry::{Shape, Window};

/// The operations that have instructions of their own on some processors.
///
/// The provided versions are plain Rust; the others must do the same.
pub(super) trait Machine: Copy {
    /// Whether finding a run takes so long that it is worth a branch, mispredicted or not, to do without where there is
    /// none.
    const SKIPS_ABSENT_RUNS: bool = false;

    /// The proof that the processor has this machine's instructions.
    ///
    /// # Safety
    ///
    /// It must have them.
    unsafe fn new() -> Self;

    /// The same block, of which the compiler does not know that it has read it. Where remainders have been compared in
    /// a vector, it would rather take other fields out of that, which takes several times as long as to load them.
    #[inline(always)]
    fn afresh(self, block: &[u64]) -> &[u64] {
        block
    }

    /// Keeps the compiler from computing what follows before it knows that it is needed.
    #[inline(always)]
    fn apart(self) {}

    /// The position of the set bit of `word` that has `k` (63 at most) set bits below it; 64 if there is none.
    fn select(self, word: u64, k: u32) -> u32;

    /// The set bit of `word` that has `k` (63 at most) set bits below it, and the next one above; neither unless
    /// `wanted`, which is 1 or 0.
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair;

    /// The first free slot of a block at or behind `from`; `None` if there is none.
    ///
    /// The remainder of a free slot is 0, and few others are. So the first such slot is nearly always the one, and
    /// nothing branches on how many runs stand before it.
    #[inline(always)]
    fn first_free<S: Shape>(self, shape: S, block: &[u64], meta: Meta, from: u32) -> Option<u32> {
        let mut slot = from.max(meta.offset);
        loop {
            slot = self.first_zero(shape, block, meta, slot);
            if slot >= shape.slots() {
                return None;
            }
            if meta.is_free(slot) {
                return Some(slot);
            }
            // Behind all runs that begin at or before it.
            slot = self.select(meta.borders(), meta.runs_below(slot + 1));
        }
    }

    /// The first slot at or behind `from` that has no runend and the remainder 0, or one before it that has the
    /// remainder 0; the number of slots or more if there is none.
    #[inline(always)]
    fn first_zero<S: Shape>(self, shape: S, block: &[u64], _: Meta, from: u32) -> u32 {
        first_zero_by_windows(shape, block, from)
    }

    /// Which of `slots` (bits of the block) hold this remainder.
    #[inline(always)]
    fn matches<S: Shape>(self, shape: S, block: &[u64], remainder: u64, slots: u64) -> u64 {
        // Without slots anything will do.
        let first = slots.trailing_zeros() % 64;
        if slots >> first >> shape.window().slots != 0 {
            return matches_one_by_one(shape, block, remainder, slots);
        }
        matches_in_window(shape, block, remainder, slots, first)
    }

    /// Which of `slots` hold one of the first `N` bytes (7 at most) of `chunks`, from the most significant on. For
    /// remainders of a byte.
    #[inline(always)]
    fn matches_any<S: Shape, const N: u32>(self, shape: S, block: &[u64], chunks: u64, slots: u64) -> u64 {
        // No closures: one that is not inlined would lose the machine's instructions.
        let (mut any, mut chunk) = (0, 0);
        while chunk < N {
            any |= self.matches(shape, block, chunks << (8 * chunk) >> 56, slots);
            chunk += 1;
        }
        any
    }

    /// Whether one of `slots` holds one of the first `N` remainders that `fraction` is cut into, from the most
    /// significant bits on, and then from there on again.
    ///
    /// Without a branch on how many slots there are, unless they are very many: half of the queries find none, and the
    /// others one or two.
    #[inline(always)]
    fn holds<S: Shape, const N: u32>(self, shape: S, block: &[u64], fraction: u64, slots: Slots) -> bool {
        if S::BYTE_LINE {
            holds_before::<S, N>(shape, block, fraction, slots)
        } else {
            let (first, count) = self.bounds(slots);
            holds_behind::<S, N>(shape, block, fraction, first, count)
        }
    }

    /// Some of `slots` that hold the first remainder of `fraction`; none if none do.
    ///
    /// For shapes that are compared in windows one comparison says whether and where. Where bytes are compared, finding
    /// nothing is branched on first, as [`holds`](Self::holds) does.
    #[inline(always)]
    fn found<S: Shape>(self, shape: S, block: &[u64], fraction: u64, slots: Slots) -> u64 {
        let remainder = shape.remainder_of(fraction);
        if S::BYTE_LINE {
            let found = self.holds::<S, 1>(shape, block, fraction, slots);
            return if found { self.matches(shape, block, remainder, slots.mask) } else { 0 };
        }
        let (first, count) = self.bounds(slots);
        let found = found_from::<S, 1>(shape, block, fraction, first, count);
        if found != 0 {
            return 1_u64.wrapping_shl(first.wrapping_add(fields_below(shape.window(), found)));
        }
        if count > shape.window().slots {
            return found_later(shape, block, remainder, slots.mask);
        }
        0
    }

    /// The first of `slots`, which is anything if there are none, and their number.
    #[inline(always)]
    fn bounds(self, slots: Slots) -> (u32, u32) {
        (slots.end.wrapping_sub(slots.count), slots.count)
    }

    /// Moves the remainders of `at..end` one slot up, puts `remainder` in `at`, and writes the metadata.
    #[inline(always)]
    fn open<S: Shape>(self, shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
        if S::BYTE_LINE && cfg!(target_endian = "little") {
            open_by_bytes(shape, block, meta, at, end, remainder);
        } else {
            open_by_words(shape, block, meta, at, end, remainder);
        }
    }
}

/// [`Machine::matches`] for slots that all lie in the window from `first` on. Loops over those that match: nearly
/// always there is one.
#[inline(always)]
fn matches_in_window<S: Shape>(shape: S, block: &[u64], remainder: u64, slots: u64, first: u32) -> u64 {
    let window = shape.window();
    let stored = block::remainders_from(shape, block, first);
    let mut found = zero_fields(stored ^ remainder.wrapping_mul(window.lowest), window) & window.highest;
    let mut matches = 0;
    while found != 0 {
        matches |= 1_u64.wrapping_shl(first + fields_below(window, found));
        found &= found - 1;
    }
    matches & slots
}

/// How many fields lie below the one whose highest bit is the lowest of `found`: as many as end below it.
#[inline(always)]
fn fields_below(window: Window, found: u64) -> u32 {
    (window.highest & (found - 1) & !found).count_ones()
}

/// [`Machine::found`] for more slots than a window has.
#[cold]
#[inline(never)]
fn found_later<S: Shape>(shape: S, block: &[u64], remainder: u64, slots: u64) -> u64 {
    matches_one_by_one(shape, block, remainder, slots)
}

/// [`Machine::matches`] for remainders of any width.
#[inline(always)]
fn matches_one_by_one<S: Shape>(shape: S, block: &[u64], remainder: u64, mut slots: u64) -> u64 {
    let mut matches = 0;
    while slots != 0 {
        let slot = slots.trailing_zeros();
        matches |= u64::from(block::remainder(shape, block, slot) == remainder) << slot;
        slots &= slots - 1;
    }
    matches
}

/// [`Machine::open`] for remainders of a byte, 8 of them at a time: from the last ones down, for there are always 8
/// bytes before the end of those that move.
#[inline(always)]
fn open_by_bytes<S: Shape>(shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
    block::set_meta(shape, block, meta);
    let mut end = end;
    while end - at >= 8 {
        let moved = block::remainders_before(shape, block, end);
        block::set_remainders_before(shape, block, end + 1, moved);
        end -= 8;
    }
    // The first `stay` bytes of this word stay, the next is for the new remainder, the others move up.
    let (word, stay) = (block::remainders_before(shape, block, end + 1), 8 * (7 - (end - at)));
    let below = low_mask(stay);
    let word = word & below | remainder << stay | (word & !below) << 8 & !(0xff << stay);
    block::set_remainders_before(shape, block, end + 1, word);
}

/// [`Machine::open`] for blocks of any size.
#[inline(always)]
fn open_by_words<S: Shape>(shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
    block::set_meta(shape, block, meta);
    block::shift_up(shape, block, at, end);
    block::set_remainder(shape, block, at, remainder);
}

/// Two neighbours among the set bits of a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// The first one; 0 if there is none.
    pub(super) first: u64,
    /// The next one, and perhaps others above it; 0 if there is none.
    pub(super) next: u64,
    /// All bits from the first one on that are below the next; anything unless there are both, but 0 without any.
    pub(super) span: u64,
    /// The position of the first one; anything if there is none.
    pub(super) position: u32,
}

impl Pair {
    /// The pair whose first bit is at a position, if there is one.
    #[inline(always)]
    fn at(word: u64, position: u32, exists: bool) -> Self {
        let first = u64::from(exists) << position;
        let next = word & first.wrapping_neg() << 1;
        Self { first, next, span: (next & next.wrapping_neg()).wrapping_sub(first), position }
    }
}

/// Some slots of a block that stand side by side, as a mask and in numbers: each machine takes what it can use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slots {
    pub(super) mask: u64,
    /// Behind the last one. Anything if there are none.
    pub(super) end: u32,
    pub(super) count: u32,
}

impl Slots {
    /// The slots of a mask without gaps.
    #[inline(always)]
    pub(super) fn of(mask: u64) -> Self {
        Self { mask, end: 64 - mask.leading_zeros(), count: mask.count_ones() }
    }
}

/// [`Machine::holds`] for remainders of a byte, in the 8 bytes that end with the last slot: there is so much before the
/// first one, and nothing has to be cut off at the end of the block.
#[inline(always)]
fn holds_before<S: Shape, const N: u32>(shape: S, block: &[u64], fraction: u64, slots: Slots) -> bool {
    let Slots { end, count, .. } = slots;
    if count > 8 {
        return holds_later::<S, N>(shape, block, fraction, end, count);
    }
    let stored = block::remainders_before(shape, block, end);
    let window = Window { slots: 8, lowest: ONES, highest: TOPS };
    let (mut found, mut chunk) = (0, 0);
    while chunk < N {
        let remainder = fraction << (chunk * 8) >> 56;
        found |= zero_fields(stored ^ (remainder * ONES), window) & TOPS;
        chunk += 1;
    }
    // The slots are the uppermost bytes. With 8 of them and nothing found, 64 is not below 64.
    found.leading_zeros() < 8 * count
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// [`Machine::holds`] for remainders of any width, in as many windows as it takes. `first` is anything if there are no
/// slots.
#[inline(always)]
fn holds_behind<S: Shape, const N: u32>(
    shape: S,
    block: &[u64],
    fraction: u64,
    first: u32,
    count: u32,
) -> bool {
    let found = found_from::<S, N>(shape, block, fraction, first, count) != 0;
    if count > shape.window().slots && !found {
        return holds_later::<S, N>(shape, block, fraction, first.wrapping_add(count), count);
    }
    found
}

/// Which of `count` slots from `first` on, or of those among them that a window holds, have one of the remainders: the
/// highest bits of their fields in the window.
#[inline(always)]
fn found_from<S: Shape, const N: u32>(shape: S, block: &[u64], fraction: u64, first: u32, count: u32) -> u64 {
    let (width, window) = (shape.remainder_bits(), shape.window());
    let stored = block::remainders_from(shape, block, first);
    // At most 57 bits.
    let wanted = (1_u64.wrapping_shl(count.min(window.slots) * width) - 1) & window.highest;
    let (mut found, mut chunk) = (0, 0);
    while chunk < N {
        let remainder = fraction.wrapping_shl(chunk * width) >> (64 - width);
        found |= zero_fields(stored ^ remainder.wrapping_mul(window.lowest), window);
        chunk += 1;
    }
    found & wanted
}

/// [`Machine::holds`] for more slots than a window has.
#[cold]
#[inline(never)]
fn holds_later<S: Shape, const N: u32>(shape: S, block: &[u64], fraction: u64, end: u32, count: u32) -> bool {
    let mut first = end - count;
    while first < end {
        if found_from::<S, N>(shape, block, fraction, first, end - first) != 0 {
            return true;
        }
        first += shape.window().slots;
    }
    false
}

/// The first slot at or behind `from` that has the remainder 0; the number of slots or more if there is none.
#[inline(always)]
fn first_zero_by_windows<S: Shape>(shape: S, block: &[u64], mut from: u32) -> u32 {
    let (width, window) = (shape.remainder_bits(), shape.window());
    while from < shape.slots() {
        let zeros = zero_fields(block::remainders_from(shape, block, from), window) & window.highest;
        if zeros != 0 {
            return from + zeros.trailing_zeros() / width;
        }
        from += window.slots;
    }
    from
}

/// The highest bits of the fields that are zero, and other bits that mean nothing.
#[inline(always)]
fn zero_fields(fields: u64, window: Window) -> u64 {
    // All bits of a field but the highest; added to such bits they carry into the highest unless those are zero.
    let others = window.highest.wrapping_sub(window.lowest);
    !((fields & others).wrapping_add(others) | fields)
}

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl Machine for Portable {
    const SKIPS_ABSENT_RUNS: bool = true;

    // SAFETY: nothing to prove.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        bits::select(word, k)
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        let (position, exists) = find_by_counts(word, byte_counts(word), k);
        Pair::at(word, position, exists & (wanted == 1))
    }
}
