//! One table of fingerprints with their adaptivity bits: what both levels are made of.
//!
//! ```text
//! table       quotient (by position), remainder or signature       one cache line per query
//! rest        the rest of a long remainder, slot by slot            read after the signature matched
//! adaptivity  the adaptivity bits, block by block                   read after all of that matched
//! ```

use crate::bits::{BitString, PackedSlots};
use crate::quotient::{Agreed, Probe, Run, Shift, Table, TableSize};
use crate::{BuildError, InvariantError, error::ensure};

use super::adaptivity::Adaptivity;
use super::fingerprint::Baseline;

/// Blocks of a section.
pub(super) const SECTION: usize = 16;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) table: Table,
    rest: Option<PackedSlots>,
    pub(super) strings: Adaptivity,
    /// The most slots that one insertion or removal has moved or written.
    pub(super) longest_shift: u64,
}

impl Level {
    /// An empty level. Long remainders have `rest_bits` bits outside the table. The primary level has a
    /// [flag](super::hints) for each quotient.
    pub(super) fn new(
        slots: u64,
        remainder_bits: u32,
        rest_bits: u32,
        flags: bool,
    ) -> Result<Self, BuildError> {
        let mut table = Table::new(slots, remainder_bits, flags)?;
        if flags {
            table.set_probe(Probe::Flagged);
        }
        let physical = table.physical_slots() as usize;
        let bytes = PackedSlots::bytes(physical, rest_bits).unwrap_or(usize::MAX);
        let rest = match rest_bits {
            0 => None,
            _ => Some(PackedSlots::new(physical, rest_bits).ok_or(BuildError::OutOfMemory { bytes })?),
        };
        let strings = Adaptivity::new(table.blocks(), table.slots_per_block())?;
        Ok(Self { table, rest, strings, longest_shift: 0 })
    }

    /// A level that was there before.
    pub(super) fn from_parts(
        table: Table,
        rest: Option<PackedSlots>,
        strings: Adaptivity,
        longest_shift: u64,
    ) -> Self {
        Self { table, rest, strings, longest_shift }
    }

    /// The remainders beside the table, if there are any.
    pub(super) fn rest(&self) -> Option<&PackedSlots> {
        self.rest.as_ref()
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(slots: u64, remainder_bits: u32, rest_bits: u32, flags: bool) -> usize {
        let TableSize { blocks, slots_per_block: per_block, bits: table } =
            Table::size(slots, remainder_bits, flags);
        let rest = match rest_bits {
            0 => 0,
            _ => PackedSlots::bytes(blocks * per_block, rest_bits).unwrap_or(usize::MAX).saturating_mul(8),
        };
        table.saturating_add(rest).saturating_add(Adaptivity::size_in_bits(blocks))
    }

    /// Behind the last slot of the section of a quotient: nothing of this section is ever beyond (section 5.3).
    pub(super) fn section_end(&self, quotient: u64) -> u64 {
        let section = self.table.block_of(quotient).0 / SECTION;
        let end = ((section + 1) * SECTION) as u64 * u64::from(self.table.slots_per_block());
        end.min(self.table.physical_slots())
    }

    /// The most slots that an insertion or removal can touch while nothing leaves its section.
    pub(super) fn bound(&self) -> u64 {
        SECTION as u64 * u64::from(self.table.slots_per_block())
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.memory() * 8);
        self.table.memory_bits() + rest + self.strings.memory_bits()
    }

    /// Whether remainders go on outside the table.
    pub(super) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// The slots whose remainders agree with the baseline: the hard collisions.
    fn collisions(&self, baseline: Baseline) -> impl Iterator<Item = u64> {
        let slots = self.table.run(baseline.quotient).into_iter().flat_map(|run| run.slots());
        slots.filter(move |&slot| {
            self.table.remainder(slot) == baseline.remainder
                && self.rest.as_ref().is_none_or(|rest| rest.get(slot as usize) == baseline.rest)
        })
    }

    /// The fingerprints of a quotient: slot, remainder, its rest and adaptivity bits.
    pub(super) fn items_of(&self, quotient: u64) -> Vec<(u64, u64, u64, BitString)> {
        let slots = self.table.run(quotient).into_iter().flat_map(|run| run.slots());
        let item = |slot| {
            let (remainder, rest, string) = self.stored(slot);
            (slot, remainder, rest, string)
        };
        slots.map(item).collect()
    }

    /// The slots of the fingerprints with this baseline.
    pub(super) fn slots_of(&self, baseline: Baseline) -> Vec<u64> {
        self.collisions(baseline).collect()
    }

    /// The slot whose fingerprint is a prefix of the query. There is at most one.
    pub(super) fn find(&self, baseline: Baseline, query: BitString) -> Option<u64> {
        self.collisions(baseline).find(|&slot| self.string(slot).is_prefix_of(query))
    }

    /// Whether one of these slots of a quotient's block, given as bits, has no adaptivity bits.
    pub(super) fn any_bare(&self, quotient: u64, mut slots: u64) -> bool {
        let (block, _) = self.table.block_of(quotient);
        while slots != 0 {
            if self.strings.get(block, slots.trailing_zeros()).is_empty() {
                return true;
            }
            slots &= slots - 1;
        }
        false
    }

    /// How many fingerprints are prefixes of the query: at most one, unless keys have the same digest.
    pub(super) fn count_matches(&self, baseline: Baseline, query: BitString) -> usize {
        self.collisions(baseline).filter(|&slot| self.string(slot).is_prefix_of(query)).count()
    }

    /// How many fingerprints have this baseline.
    pub(super) fn count(&self, baseline: Baseline) -> usize {
        self.collisions(baseline).count()
    }

    /// How many bits the adaptivity bits of a hard collision have in common with the query, at most; `None`
    /// without a hard collision.
    pub(super) fn closest(&self, baseline: Baseline, query: BitString) -> Option<u32> {
        self.collisions(baseline).map(|slot| self.string(slot).common(query)).max()
    }

    /// Whether a key of the run has the same remainder in the table, whatever follows it.
    pub(super) fn has_partial_collision(&self, baseline: Baseline) -> bool {
        self.table.contains(baseline.quotient, baseline.remainder)
    }

    /// The adaptivity bits of a slot.
    pub(super) fn string(&self, slot: u64) -> BitString {
        let (block, slot) = self.table.block_of(slot);
        self.strings.get(block, slot)
    }

    /// Changes the adaptivity bits of a slot.
    pub(super) fn set_string(&mut self, slot: u64, string: BitString) {
        let (block, slot) = self.table.block_of(slot);
        self.strings.set(block, slot, string);
        self.mark(block..=block);
    }

    /// Remembers a ghost of a block.
    pub(super) fn add_ghost(&mut self, block: usize, number: u32, bits: BitString) {
        self.strings.add_ghost(block, number, bits);
        self.mark(block..=block);
    }

    /// Lets the ghosts of a number in a block die.
    pub(super) fn kill_ghosts(&mut self, block: usize, number: u32) -> Vec<BitString> {
        let dead = self.strings.kill_ghosts(block, number);
        self.mark(block..=block);
        dead
    }

    /// Marks what has strings or ghosts in these blocks, so that whoever reads a block knows it.
    fn mark(&mut self, blocks: std::ops::RangeInclusive<usize>) {
        if self.table.code_bits() > 0 {
            blocks.for_each(|block| self.table.set_marks(block, self.strings.marks(block)));
        }
    }

    /// The blocks that an insertion or removal has changed.
    fn shifted(&self, shift: Shift) -> std::ops::RangeInclusive<usize> {
        self.table.block_of(shift.at).0..=self.table.block_of(shift.end).0
    }

    /// Where a fingerprint of this quotient can be inserted without a slot at or beyond `end`, if it can. Then the
    /// memory for it is there.
    pub(super) fn make_room(&mut self, quotient: u64, end: u64) -> Option<Shift> {
        let gap = self.table.gap(quotient);
        (gap.end < end && self.table.extend_tail(gap.end).is_ok()).then_some(gap)
    }

    /// Inserts a fingerprint without adaptivity bits if its block alone can tell that this is all there is to do: it
    /// has room, but no strings and no ghosts, the quotient has no flag and no such remainder. `agree` is asked first.
    /// Whether it was asked.
    #[inline(always)]
    pub(super) fn insert_fresh(&mut self, baseline: Baseline, agree: &mut dyn FnMut() -> bool) -> bool {
        match self.table.insert_unflagged(baseline.quotient, baseline.remainder, agree) {
            None => return false,
            Some(Agreed::No) => {}
            Some(Agreed::Inserted(shift)) => {
                self.note(shift);
                self.shift_rest(shift, baseline.rest);
            }
        }
        true
    }

    /// Inserts a fingerprint that there is memory for.
    pub(super) fn insert(&mut self, baseline: Baseline, string: BitString) {
        self.insert_at(baseline, string, self.table.gap(baseline.quotient));
    }

    /// Inserts a fingerprint where [room](Self::make_room) was made for it.
    pub(super) fn insert_at(&mut self, baseline: Baseline, string: BitString, shift: Shift) {
        self.table.insert_at(baseline.quotient, baseline.remainder, shift);
        self.note(shift);
        self.shift_rest(shift, baseline.rest);
        if !string.is_empty() || !self.strings.is_empty() {
            self.strings.insert(&self.table, shift, string);
            self.mark(self.shifted(shift));
        }
    }

    /// Follows an insertion with the rests of long remainders.
    #[inline]
    fn shift_rest(&mut self, shift: Shift, new: u64) {
        if let Some(rest) = &mut self.rest {
            for slot in (shift.at as usize..shift.end as usize).rev() {
                rest.set(slot + 1, rest.get(slot));
            }
            rest.set(shift.at as usize, new);
        }
    }

    /// Removes the fingerprint in a slot of the run of a quotient and returns its adaptivity bits.
    pub(super) fn remove(&mut self, quotient: u64, slot: u64) -> BitString {
        let first = self.table.run(quotient).map_or(slot, |run| run.first);
        let shift = self.table.remove(quotient, (slot - first) as usize);
        self.note(shift);
        if let Some(rest) = &mut self.rest {
            for slot in shift.at as usize..shift.end as usize {
                rest.set(slot, rest.get(slot + 1));
            }
            rest.set(shift.end as usize, 0);
        }
        if self.strings.is_empty() {
            return BitString::EMPTY;
        }
        let string = self.strings.remove(&self.table, shift);
        self.mark(self.shifted(shift));
        string
    }

    fn note(&mut self, shift: Shift) {
        self.longest_shift = self.longest_shift.max(shift.end - shift.at + 1);
    }

    /// All that is stored in a slot.
    fn stored(&self, slot: u64) -> (u64, u64, BitString) {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.get(slot as usize));
        (self.table.remainder(slot), rest, self.string(slot))
    }

    /// The fingerprints of a run, in an order of their own.
    fn sorted(&self, run: Run) -> Vec<(u64, u64, BitString)> {
        let mut stored: Vec<_> = run.slots().map(|slot| self.stored(slot)).collect();
        stored.sort_unstable_by_key(|&(remainder, rest, string)| {
            (remainder, rest, string.bits(), string.len())
        });
        stored
    }

    /// Table and strings agree, runs are free of prefixes, and nothing is beyond its section if `sections` says so.
    pub(super) fn verify(&self, sections: bool) -> Result<(), InvariantError> {
        self.table.verify()?;
        self.strings.verify(&self.table)?;
        self.rest.as_ref().map_or(Ok(()), PackedSlots::verify)?;
        for block in 0..self.table.blocks() {
            if self.table.code_bits() > 0 {
                let (marks, expected) = (self.table.marks(block), self.strings.marks(block));
                ensure!(marks == expected, "block {block} has the marks {marks:#b}, it needs {expected:#b}");
            }
        }
        for (quotient, run) in self.table.runs() {
            ensure!(
                !sections || run.last < self.section_end(quotient),
                "the run of quotient {quotient} leaves its section: {run:?}"
            );
            // In the order of a dictionary, whatever has a prefix among the others has one right before it.
            let mut stored: Vec<_> = run.slots().map(|slot| self.stored(slot)).collect();
            stored.sort_unstable_by_key(|&(remainder, rest, string)| {
                (remainder, rest, string.bits().reverse_bits(), string.len())
            });
            for pair in stored.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                // Only keys of one digest, which nothing can tell apart, may have the same fingerprint.
                let twins = a.2.len() == super::fingerprint::TAIL_BITS;
                ensure!(
                    (a.0, a.1) != (b.0, b.1) || twins || !a.2.is_prefix_of(b.2),
                    "fingerprint {a:?} of quotient {quotient} is a prefix of {b:?}"
                );
            }
        }
        Ok(())
    }
}

/// The same fingerprints. Their order in a run means nothing.
impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        let sizes = |level: &Self| (level.table.slots(), level.table.remainder_bits(), level.table.len());
        let mut runs = self.table.runs().zip(other.table.runs());
        sizes(self) == sizes(other) && runs.all(|(a, b)| a.0 == b.0 && self.sorted(a.1) == other.sorted(b.1))
    }
}
