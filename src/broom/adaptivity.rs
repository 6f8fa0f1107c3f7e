//! The adaptivity bits of all slots of a table, and the ghosts of its quotients (section 5.1 of the paper).
//!
//! They are stored apart from the rest of the fingerprints: a query comes here only after quotient and remainder have
//! matched, in a block that has any. Each block has them in a few [bytes](super::entries), and those of 64 blocks, a
//! *group*, lie together:
//!
//! ```text
//! in_use   | 0 | 0…0100100 | 0 | …            one bit for each block
//! groups   | · |     ●     | · | …            one pointer for 64 blocks
//!                    └▶ | 2 bytes each: the sizes of the blocks in use | bytes of block 2 | bytes of block 5 |
//! ```

use crate::bits::{BitString, low_mask};
use crate::quotient::{MARKED, Shift, Table};
use crate::{BuildError, InvariantError, error::ensure};

use super::columns::{STRATA, STRATUM_BITS};
use super::entries::{self, Entries};

/// Blocks of a group.
const GROUP: usize = 64;

/// Bytes of a size in a group.
const SIZE: usize = 2;

/// The bytes of a block beyond which it takes no more ghosts, so that there is always room for its strings. No stream
/// of operations comes near it: while ghosts gather in one block, the frontier passes it.
const MAX_WITH_GHOSTS: usize = 60_000;

/// The number of a ghost in its block: of which of its quotients or classes it is, which stratum of that, and whether
/// its function is an odd one.
pub(super) fn ghost_number(home: u32, stratum: u64, function: u64) -> u32 {
    (home << STRATUM_BITS | stratum as u32) << 1 | (function & 1) as u32
}

/// What [`ghost_number`] has made a number of.
pub(super) fn ghost_of(number: u32) -> (u32, u64, u64) {
    (home_of(number), u64::from(number >> 1) % STRATA, u64::from(number & 1))
}

/// The quotient or class of a ghost.
pub(super) fn home_of(number: u32) -> u32 {
    number >> (STRATUM_BITS + 1)
}

type Group = Option<Box<[u8]>>;

/// A string for every slot of a table, and ghosts; see the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Adaptivity {
    /// For each group which of its blocks have anything.
    in_use: Vec<u64>,
    groups: Vec<Group>,
    slots_per_block: u32,
    /// Strings that are not empty, their bits, ghosts, and theirs.
    counts: [usize; 4],
}

impl Adaptivity {
    /// Empty strings for all slots of a table of so many blocks, and no ghosts.
    pub(super) fn new(blocks: usize, slots_per_block: u32) -> Result<Self, BuildError> {
        let mut empty = Self { in_use: Vec::new(), groups: Vec::new(), slots_per_block, counts: [0; 4] };
        let groups = blocks.div_ceil(GROUP);
        let bytes = Self::size_in_bits(blocks) / 8;
        empty.in_use.try_reserve_exact(groups).map_err(|_| BuildError::OutOfMemory { bytes })?;
        empty.groups.try_reserve_exact(groups).map_err(|_| BuildError::OutOfMemory { bytes })?;
        empty.resize(groups);
        Ok(empty)
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(blocks: usize) -> usize {
        blocks.div_ceil(GROUP) * (size_of::<Group>() + size_of::<u64>()) * 8
    }

    fn resize(&mut self, groups: usize) {
        self.in_use.resize(groups, 0);
        self.groups.resize_with(groups, || None);
    }

    /// Every block in use, and its code.
    pub(super) fn codes(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let blocks = (0..self.in_use.len() * GROUP).filter(|&block| !self.is_plain(block));
        blocks.map(|block| (block, self.code(block)))
    }

    /// Gives a plain block a code that comes from a file, unless no such block has it: it is not what would be
    /// written for its entries, or these are of slots and quotients beyond the block.
    pub(super) fn take_code(&mut self, block: usize, code: &[u8]) -> bool {
        let entries = Entries::decode(code);
        let slots = self.slots_per_block;
        let in_block = entries.strings.iter().all(|entry| entry.0 < slots)
            && entries.strings.is_sorted_by(|one, other| one.0 < other.0)
            && entries.ghosts.iter().all(|ghost| home_of(ghost.0) < slots);
        if !in_block || code.is_empty() || entries.encode() != code {
            return false;
        }
        for (count, more) in self.counts.iter_mut().zip(entries.counts()) {
            *count += more;
        }
        self.set_code(block, code);
        true
    }

    /// How many strings are not empty.
    pub(super) fn strings(&self) -> usize {
        self.counts[0]
    }

    /// The length of all strings together.
    pub(super) fn bits(&self) -> usize {
        self.counts[1]
    }

    /// How many ghosts there are.
    pub(super) fn ghosts(&self) -> usize {
        self.counts[2]
    }

    /// The adaptivity bits of all ghosts.
    pub(super) fn ghost_bits(&self) -> usize {
        self.counts[3]
    }

    /// Whether no slot has a string, and no quotient a ghost.
    pub(super) fn is_empty(&self) -> bool {
        self.counts == [0; 4]
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        let heap: usize = self.groups.iter().flatten().map(|group| group.len()).sum();
        let pointers = self.groups.capacity() * size_of::<Group>();
        (heap + pointers + self.in_use.capacity() * size_of::<u64>()) * 8
    }

    /// Whether a block has neither adaptivity bits nor ghosts.
    #[inline]
    pub(super) fn is_plain(&self, block: usize) -> bool {
        self.in_use.get(block / GROUP).is_none_or(|in_use| in_use >> (block % GROUP) & 1 == 0)
    }

    /// A bit for each [`MARKED`] slots of a block: whether one of them has a string. The first one is set for ghosts
    /// too.
    pub(super) fn marks(&self, block: usize) -> u64 {
        let Entries { strings, ghosts } = Entries::decode(self.code(block));
        strings.iter().fold(u64::from(!ghosts.is_empty()), |marks, string| marks | 1 << (string.0 / MARKED))
    }

    /// Where the bytes of a block lie in its group, or would lie; and which of the blocks in use it is.
    fn range(&self, block: usize) -> (std::ops::Range<usize>, usize) {
        let in_use = self.in_use[block / GROUP];
        let rank = (in_use & low_mask((block % GROUP) as u32)).count_ones() as usize;
        let Some(group) = &self.groups[block / GROUP] else { return (0..0, 0) };
        let size = |bytes: &[u8; SIZE]| usize::from(u16::from_le_bytes(*bytes));
        let (sizes, _) = group.as_chunks::<SIZE>();
        let start = SIZE * in_use.count_ones() as usize + sizes[..rank].iter().map(size).sum::<usize>();
        let len = if self.is_plain(block) { 0 } else { size(&sizes[rank]) };
        (start..start + len, rank)
    }

    /// What a block has, encoded; nothing if it is plain.
    fn code(&self, block: usize) -> &[u8] {
        if self.is_plain(block) {
            return &[];
        }
        let range = self.range(block).0;
        self.groups[block / GROUP].as_ref().map_or(&[], |group| &group[range])
    }

    /// Gives a block another code.
    fn set_code(&mut self, block: usize, code: &[u8]) {
        if block / GROUP >= self.groups.len() {
            // The tail of the table has grown.
            self.resize(block / GROUP + 1);
        }
        let (range, rank) = self.range(block);
        let (group, in_use) = (&mut self.groups[block / GROUP], &mut self.in_use[block / GROUP]);
        let sizes = SIZE * in_use.count_ones() as usize;
        let was_in_use = SIZE * (*in_use >> (block % GROUP) & 1) as usize;
        let old = group.take().unwrap_or_default();
        let size = (code.len() as u16).to_le_bytes();
        let size: &[u8] = if code.is_empty() { &[] } else { &size };
        let parts = [
            &old[..rank * SIZE],
            size,
            &old[(rank * SIZE + was_in_use).min(sizes)..sizes],
            old.get(sizes..range.start).unwrap_or_default(),
            code,
            &old[range.end..],
        ];
        *in_use = *in_use & !(1 << (block % GROUP)) | u64::from(!code.is_empty()) << (block % GROUP);
        *group = (*in_use != 0).then(|| parts.concat().into_boxed_slice());
    }

    /// Changes what a block has.
    fn edit<T>(&mut self, block: usize, edit: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = Entries::decode(self.code(block));
        let before = entries.counts();
        let result = edit(&mut entries);
        for (count, (old, new)) in self.counts.iter_mut().zip(before.into_iter().zip(entries.counts())) {
            *count = *count - old + new;
        }
        self.set_code(block, &entries.encode());
        result
    }

    /// The string of a slot.
    #[inline]
    pub(super) fn get(&self, block: usize, slot: u32) -> BitString {
        if self.is_plain(block) { BitString::EMPTY } else { entries::string_of(self.code(block), slot) }
    }

    /// Changes the string of a slot.
    pub(super) fn set(&mut self, block: usize, slot: u32, string: BitString) {
        self.edit(block, |entries| {
            entries.take(slot);
            entries.put(slot, string);
        });
    }

    /// Follows an insertion into the table; the new slot gets `string`.
    pub(super) fn insert(&mut self, table: &Table, shift: Shift, string: BitString) {
        let ((first, at), (last, end)) = (table.block_of(shift.at), table.block_of(shift.end));
        let mut carried = string;
        for block in first..=last {
            let from = if block == first { at } else { 0 };
            let to = if block == last { end } else { self.slots_per_block - 1 };
            if carried.is_empty() && self.is_plain(block) {
                continue;
            }
            carried = self.edit(block, |entries| {
                let out = entries.take(to);
                let moving = entries.strings.iter_mut().filter(|(slot, _)| (from..to).contains(slot));
                moving.for_each(|(slot, _)| *slot += 1);
                entries.put(from, carried);
                out
            });
        }
        debug_assert!(carried.is_empty(), "the slot that was free had no string");
    }

    /// Follows a removal from the table; returns the string of the slot that is gone.
    pub(super) fn remove(&mut self, table: &Table, shift: Shift) -> BitString {
        let ((first, at), (last, end)) = (table.block_of(shift.at), table.block_of(shift.end));
        let mut carried = BitString::EMPTY;
        for block in (first..=last).rev() {
            let from = if block == first { at } else { 0 };
            let to = if block == last { end } else { self.slots_per_block - 1 };
            if carried.is_empty() && self.is_plain(block) {
                continue;
            }
            carried = self.edit(block, |entries| {
                let out = entries.take(from);
                let moving = entries.strings.iter_mut().filter(|(slot, _)| (from + 1..=to).contains(slot));
                moving.for_each(|(slot, _)| *slot -= 1);
                entries.put(to, carried);
                out
            });
        }
        carried
    }

    /// How many of its adaptivity bits a newcomer must take: those of every ghost of its home that agrees with it,
    /// whatever the stratum and the function, and what tells it from the others.
    pub(super) fn ghost_length(&self, block: usize, home: u32, bits: BitString) -> u32 {
        let ghosts = entries::ghosts(self.code(block)).filter(|ghost| home_of(ghost.0) == home);
        ghosts.map(|(_, ghost)| (ghost.common(bits) + 1).min(ghost.len())).max().unwrap_or(0)
    }

    /// Remembers a ghost. Without bits there is nothing to remember, and equal ghosts are one.
    pub(super) fn add_ghost(&mut self, block: usize, number: u32, bits: BitString) {
        let known = || entries::ghosts(self.code(block)).any(|ghost| ghost == (number, bits));
        if bits.is_empty() || known() || self.code(block).len() > MAX_WITH_GHOSTS {
            return;
        }
        self.edit(block, |entries| {
            let rank = entries.ghosts.partition_point(|ghost| ghost.0 <= number);
            entries.ghosts.insert(rank, (number, bits));
        });
    }

    /// Lets the ghosts of a number die, and returns their adaptivity bits.
    pub(super) fn kill_ghosts(&mut self, block: usize, number: u32) -> Vec<BitString> {
        let dead = entries::ghosts(self.code(block)).filter(|ghost| ghost.0 == number).map(|ghost| ghost.1);
        let dead: Vec<BitString> = dead.collect();
        if !dead.is_empty() {
            self.edit(block, |entries| entries.ghosts.retain(|ghost| ghost.0 != number));
        }
        dead
    }

    /// The ghosts of a block: their numbers and their bits.
    pub(super) fn ghosts_of(&self, block: usize) -> impl Iterator<Item = (u32, BitString)> {
        entries::ghosts(self.code(block))
    }

    /// Every ghost: its block, its number there and its bits.
    pub(super) fn all_ghosts(&self) -> impl Iterator<Item = (usize, u32, BitString)> {
        let blocks = self.in_use.len() * GROUP;
        (0..blocks).flat_map(move |block| {
            entries::ghosts(self.code(block)).map(move |(number, bits)| (block, number, bits))
        })
    }

    /// Whether both have the same ghosts. Their order means nothing.
    pub(super) fn same_ghosts(&self, other: &Self) -> bool {
        let sorted = |strings: &Self| {
            let mut ghosts: Vec<_> = strings.all_ghosts().collect();
            ghosts.sort_unstable_by_key(|&(block, number, bits)| (block, number, bits.bits(), bits.len()));
            ghosts
        };
        self.ghosts() == other.ghosts() && sorted(self) == sorted(other)
    }

    /// All strings belong to items, ghosts are in order and differ, and the counts are right.
    pub(super) fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let mut at_items = [0, 0];
        for item in table.iter() {
            let (block, slot) = table.block_of(item.slot);
            let string = self.get(block, slot);
            at_items = [at_items[0] + usize::from(!string.is_empty()), at_items[1] + string.len() as usize];
        }
        ensure!(
            at_items == self.counts[..2],
            "{at_items:?} strings and bits at the items, of {:?}",
            self.counts
        );
        self.verify_codes()
    }

    /// Ghosts are in order and differ, and the counts are right.
    pub(super) fn verify_codes(&self) -> Result<(), InvariantError> {
        let mut all = [0; 4];
        for block in 0..self.in_use.len() * GROUP {
            let entries = Entries::decode(self.code(block));
            for (sum, count) in all.iter_mut().zip(entries.counts()) {
                *sum += count;
            }
            ensure!(self.is_plain(block) == (entries == Entries::default()), "block {block} is in use?");
            ensure!(entries.encode() == self.code(block), "the code of block {block} is not its own");
            let mut ghosts = entries.ghosts;
            ensure!(ghosts.is_sorted_by_key(|ghost| ghost.0), "ghosts of block {block} are out of order");
            ghosts.sort_unstable_by_key(|&(number, bits)| (number, bits.bits(), bits.len()));
            ensure!(ghosts.windows(2).all(|pair| pair[0] != pair[1]), "two equal ghosts in block {block}");
        }
        ensure!(all == self.counts, "{all:?} strings, bits, ghosts and theirs; {:?} counted", self.counts);
        for (group, &in_use) in self.groups.iter().zip(&self.in_use) {
            ensure!(
                group.is_some() == (in_use != 0),
                "a group without blocks in use, or the other way round"
            );
        }
        Ok(())
    }
}
