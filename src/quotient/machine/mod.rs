//! What different processors do differently with a block, behind one small interface.
//!
//! The algorithms of the table are written once, over a [`Machine`] and a [`Shape`]. Whole operations are then
//! compiled per machine, behind run-time detection, so that everything below them is inlined with the right
//! instructions.

#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

use crate::bits;

use super::block::{self, Meta};
use super::geometry::{Shape, Window};

/// The operations that have instructions of their own on some processors.
///
/// The provided versions are plain Rust; the others must do the same.
pub(super) trait Machine: Copy {
    /// The proof that the processor has this machine's instructions.
    ///
    /// # Safety
    ///
    /// It must have them.
    unsafe fn new() -> Self;

    /// The position of the set bit of `word` that has `k` (63 at most) set bits below it; 64 if there is none.
    fn select(self, word: u64, k: u32) -> u32;

    /// The set bit of `word` that has `k` (63 at most) set bits below it, and the next one above; 0 for each that is not
    /// there, and for both unless `wanted`, which is 1 or 0.
    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> (u64, u64) {
        let position = self.select(word, k);
        let first = (wanted & u64::from(position < 64)).wrapping_shl(position);
        let above = word & first.wrapping_neg() << 1;
        (first, above & above.wrapping_neg())
    }

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
    fn matches<S: Shape>(self, shape: S, block: &[u64], remainder: u64, mut slots: u64) -> u64 {
        let mut matches = 0;
        while slots != 0 {
            let slot = slots.trailing_zeros();
            matches |= u64::from(block::remainder(shape, block, slot) == remainder) << slot;
            slots &= slots - 1;
        }
        matches
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

    /// Whether one of `slots`, which stand side by side, holds one of the first `N` remainders that `fraction` is cut
    /// into, from the most significant bits on.
    ///
    /// Without a branch on how many slots there are, unless they are very many: half of the queries find none, and the
    /// others one or two.
    #[inline(always)]
    fn holds<S: Shape, const N: u32>(self, shape: S, block: &[u64], fraction: u64, slots: u64) -> bool {
        let (first, count) = ends(slots);
        let found = holds_from::<S, N>(shape, block, fraction, first, count);
        if count > shape.window().slots && !found {
            return holds_later::<S, N>(shape, block, fraction, first, count);
        }
        found
    }

    /// Moves the remainders of `at..end` one slot up, puts `remainder` in `at`, and writes the metadata.
    #[inline(always)]
    fn open<S: Shape>(self, shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
        open_by_words(shape, block, meta, at, end, remainder);
    }
}

/// [`Machine::open`] for blocks of any size.
#[inline(always)]
fn open_by_words<S: Shape>(shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
    block::set_meta(shape, block, meta);
    block::shift_up(shape, block, at, end);
    block::set_remainder(shape, block, at, remainder);
}

/// Whether one of `count` slots from `first` on, or of those among them that a window holds, has one of the remainders.
#[inline(always)]
fn holds_from<S: Shape, const N: u32>(
    shape: S,
    block: &[u64],
    fraction: u64,
    first: u32,
    count: u32,
) -> bool {
    let (width, window) = (shape.remainder_bits(), shape.window());
    let stored = block::remainders_from(shape, block, first);
    // At most 57 bits.
    let wanted = (1_u64.wrapping_shl(count.min(window.slots) * width) - 1) & window.highest;
    let (mut found, mut chunk) = (0, 0);
    while chunk < N {
        let remainder = fraction << (chunk * width) >> (64 - width);
        found |= zero_fields(stored ^ remainder.wrapping_mul(window.lowest), window);
        chunk += 1;
    }
    found & wanted != 0
}

/// The first of `slots`, which stand side by side, and how many they are; a first one that no block has if there are
/// none.
#[inline(always)]
fn ends(slots: u64) -> (u32, u32) {
    // No block has a slot 63, and a processor need not ask whether there is a bit at all.
    let first = (slots | 1 << 63).trailing_zeros();
    (first, ((slots >> first) + 1).trailing_zeros())
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

/// [`Machine::holds`] for the slots behind the first window.
#[cold]
#[inline(never)]
fn holds_later<S: Shape, const N: u32>(
    shape: S,
    block: &[u64],
    fraction: u64,
    first: u32,
    count: u32,
) -> bool {
    let step = shape.window().slots;
    let (mut first, mut count) = (first + step, count - step);
    loop {
        if holds_from::<S, N>(shape, block, fraction, first, count) {
            return true;
        }
        if count <= step {
            return false;
        }
        (first, count) = (first + step, count - step);
    }
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
    // SAFETY: nothing to prove.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        bits::select(word, k)
    }
}
