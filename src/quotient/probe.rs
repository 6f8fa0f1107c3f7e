//! Queries of filters that keep a value per slot: remainders first, values only where those leave a doubt.
//!
//! A stored remainder that equals none of the chunks that the query's key has cannot be the key's, whatever the
//! slot's value. So nearly all queries are settled by comparing bytes, and where a block's code is 0 (all its
//! values are initial) they are settled by the first chunk alone.

use std::fmt;

use crate::bits::Isa;

use super::block;
use super::geometry::{ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::machine::{Machine, Portable};
use super::table::Table;
use super::view::View;

/// What the remainders of a run say of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Answer {
    /// It is not there.
    No,
    /// It is there, as far as the filter can tell.
    Yes,
    /// The values have to be looked at.
    Ask,
}

/// How many chunks of a byte are ever looked for. No code for remainders of a byte holds a selector beyond.
pub(crate) const CHUNKS: u32 = 7;

/// The numbers of chunks that [`Table::answer_chunks`] can look for.
pub(crate) const CHUNK_LEVELS: [u32; 4] = [2, 3, 4, CHUNKS];

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// Looks for a remainder in the run, but asks where a code is not 0; `None` if the run reaches into later
    /// blocks, and [`answer_beyond`](Self::answer_beyond) knows more.
    #[inline(always)]
    fn answer_unless_coded(self, quotient: u64, remainder: u64) -> Option<Answer> {
        let (index, run) = self.local_run(quotient)?;
        let matches = self.machine.matches(self.shape, self.block(index), remainder, run);
        if self.code(index) != 0 {
            return Some(if run == 0 { Answer::No } else { Answer::Ask });
        }
        Some(if matches == 0 { Answer::No } else { Answer::Yes })
    }

    /// Looks for the first `N` of the bytes that begin at the top of `chunks`: asks where one is found and a code is
    /// not 0; where it is 0, only the first byte counts. `None` if the run reaches into later blocks, and
    /// [`answer_chunks_beyond`](Self::answer_chunks_beyond) knows more.
    ///
    /// For a key that is not there, nearly always no byte is found, and nothing has branched on the code.
    #[inline(always)]
    fn answer_chunks<const N: u32>(self, quotient: u64, chunks: u64) -> Option<Answer> {
        let (index, run) = self.local_run(quotient)?;
        Some(self.answer_part::<N>(index, run, chunks))
    }

    /// [`answer_chunks`](Self::answer_chunks) for a run wherever it lies.
    #[inline(always)]
    fn answer_chunks_beyond<const N: u32>(self, quotient: u64, chunks: u64) -> Answer {
        let mut answer = Answer::No;
        self.any_part(quotient, |index, slots| {
            answer = self.answer_part::<N>(index, slots, chunks);
            answer != Answer::No
        });
        answer
    }

    #[inline(always)]
    fn answer_part<const N: u32>(self, index: usize, slots: u64, chunks: u64) -> Answer {
        let block = self.block(index);
        if self.machine.matches_any::<S, N>(self.shape, block, chunks, slots) == 0 {
            return Answer::No;
        }
        // A table without codes keeps its values elsewhere.
        if self.shape.code_bits() == 0 || self.code(index) != 0 {
            return Answer::Ask;
        }
        let first = self.machine.matches(self.shape, block, chunks >> 56, slots);
        if first == 0 { Answer::No } else { Answer::Yes }
    }

    /// Looks for a remainder in the run, and asks where it is found and a code is not 0; `None` if the run reaches
    /// into later blocks, and [`answer_beyond`](Self::answer_beyond) knows more.
    #[inline(always)]
    fn answer_matching(self, quotient: u64, remainder: u64) -> Option<Answer> {
        let (index, run) = self.local_run(quotient)?;
        if self.machine.matches(self.shape, self.block(index), remainder, run) == 0 {
            return Some(Answer::No);
        }
        Some(if self.code(index) == 0 { Answer::Yes } else { Answer::Ask })
    }

    /// Looks for a remainder in a run wherever it lies, but asks where a code is not 0.
    #[inline(always)]
    fn answer_beyond(self, quotient: u64, remainder: u64) -> Answer {
        let mut answer = Answer::No;
        self.any_part(quotient, |index, slots| {
            if self.code(index) != 0 {
                answer = Answer::Ask;
            } else if self.machine.matches(self.shape, self.block(index), remainder, slots) != 0 {
                answer = Answer::Yes;
            }
            answer != Answer::No
        });
        answer
    }

    /// The code of a block.
    #[inline(always)]
    fn code(self, index: usize) -> u64 {
        block::read(self.block(index), self.shape.code_at(), self.shape.code_bits())
    }

    /// Which of `slots` of a block hold one of the bytes that begin at the top of `chunks`.
    #[inline(always)]
    fn narrow(self, index: usize, slots: u64, chunks: u64) -> u64 {
        self.machine.matches_any::<S, CHUNKS>(self.shape, self.block(index), chunks, slots)
    }
}

/// The probes for one machine and one shape; unsafe to call on a processor that is not the machine.
pub(super) struct Probes {
    answer_unless_coded: unsafe fn(&Table, u64, u64) -> Answer,
    answer_chunks: [unsafe fn(&Table, u64, u64) -> Answer; CHUNK_LEVELS.len()],
    answer_matching: unsafe fn(&Table, u64, u64) -> Answer,
    local_run: unsafe fn(&Table, u64) -> Option<(usize, u64)>,
    narrow: unsafe fn(&Table, usize, u64, u64) -> u64,
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

impl Probes {
    /// The best ones for `shape` among those that `isa` allows, which must be at most what the processor has.
    pub(super) fn choose(isa: Isa, shape: Geometry) -> &'static Self {
        let byte_line = shape.remainder_bits() == 8 && shape.words() == 8;
        let slots = if byte_line { shape.slots() } else { 0 };
        match (isa, slots) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, PLAIN_SLOTS) => &x86::AVX512_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, CODED_SLOTS) => &x86::AVX512_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, PLAIN_SLOTS) => &x86::AVX2_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, CODED_SLOTS) => &x86::AVX2_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2 | Isa::Avx512, _) => &x86::BMI2_GENERAL,
            _ => &PORTABLE,
        }
    }
}

impl Table {
    /// Whether a key is there whose slot has this remainder if its value is initial, and another if it is not.
    #[inline(always)]
    pub(crate) fn answer_unless_coded(&self, quotient: u64, remainder: u64) -> Answer {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.answer_unless_coded)(self, quotient, remainder) }
    }

    /// Whether a key with these chunks of a byte (the first at the top) is there, in a table of such remainders where
    /// no slot holds a later chunk of its key than the first `CHUNK_LEVELS[level]`.
    #[inline(always)]
    pub(crate) fn answer_chunks(&self, level: usize, quotient: u64, chunks: u64) -> Answer {
        debug_assert_eq!(self.remainder_bits(), 8);
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.answer_chunks[level])(self, quotient, chunks) }
    }

    /// Whether a key is there whose slot has this remainder whatever its value.
    #[inline(always)]
    pub(crate) fn answer_matching(&self, quotient: u64, remainder: u64) -> Answer {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.answer_matching)(self, quotient, remainder) }
    }

    /// The block of a quotient, and the slots of its run as bits of the block, none if it has none; `None` if the
    /// run reaches into later blocks.
    #[inline(always)]
    pub(crate) fn local_run(&self, quotient: u64) -> Option<(usize, u64)> {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.local_run)(self, quotient) }
    }

    /// Which of these slots of a block hold one of the [`CHUNKS`] bytes that begin at the top of `chunks`. Only for
    /// remainders of a byte.
    #[inline(always)]
    pub(crate) fn narrow(&self, block: usize, slots: u64, chunks: u64) -> u64 {
        debug_assert_eq!(self.remainder_bits(), 8);
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.narrow)(self, block, slots, chunks) }
    }
}

/// Any shape on any processor.
static PORTABLE: Probes = Probes {
    answer_unless_coded: |table, quotient, remainder| {
        let view = table.view(table.shape, Portable);
        let answer = view.answer_unless_coded(quotient, remainder);
        answer.unwrap_or_else(|| view.answer_beyond(quotient, remainder))
    },
    answer_chunks: [
        portable_chunks::<{ CHUNK_LEVELS[0] }>,
        portable_chunks::<{ CHUNK_LEVELS[1] }>,
        portable_chunks::<{ CHUNK_LEVELS[2] }>,
        portable_chunks::<{ CHUNK_LEVELS[3] }>,
    ],
    answer_matching: |table, quotient, remainder| {
        let view = table.view(table.shape, Portable);
        let answer = view.answer_matching(quotient, remainder);
        answer.unwrap_or_else(|| view.answer_beyond(quotient, remainder))
    },
    local_run: |table, quotient| table.view(table.shape, Portable).local_run(quotient),
    narrow: |table, block, slots, chunks| table.view(table.shape, Portable).narrow(block, slots, chunks),
};

fn portable_chunks<const N: u32>(table: &Table, quotient: u64, chunks: u64) -> Answer {
    table.view(table.shape, Portable).answer_chunks_beyond::<N>(quotient, chunks)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::geometry::Shape;
    use super::super::machine::x86::{Avx2, Avx512, Bmi2};
    use super::{Answer, ByteLine, CHUNK_LEVELS, CODED_SLOTS, PLAIN_SLOTS, PORTABLE, Probes, Table};

    /// The probes of a line of `SLOTS` remainders of a byte on one machine.
    macro_rules! probes_of_lines {
        ($machine:ident, $module:ident, $features:literal) => {
            mod $module {
                use super::{
                    Answer, ByteLine, CHUNK_LEVELS, Probes, Table, answer_beyond, answer_chunks_beyond,
                    $machine,
                };

                pub(super) const fn probes<const SLOTS: u32>() -> Probes {
                    Probes {
                        answer_unless_coded: answer_unless_coded::<SLOTS>,
                        answer_chunks: [
                            answer_chunks::<SLOTS, { CHUNK_LEVELS[0] }>,
                            answer_chunks::<SLOTS, { CHUNK_LEVELS[1] }>,
                            answer_chunks::<SLOTS, { CHUNK_LEVELS[2] }>,
                            answer_chunks::<SLOTS, { CHUNK_LEVELS[3] }>,
                        ],
                        answer_matching: answer_matching::<SLOTS>,
                        local_run: local_run::<SLOTS>,
                        narrow: narrow::<SLOTS>,
                    }
                }

                #[inline]
                #[target_feature(enable = $features)]
                fn machine() -> $machine {
                    // SAFETY: this function's features are the machine's.
                    unsafe { $machine::new() }
                }

                #[target_feature(enable = $features)]
                fn answer_unless_coded<const SLOTS: u32>(
                    table: &Table,
                    quotient: u64,
                    remainder: u64,
                ) -> Answer {
                    let shape = ByteLine::<SLOTS>;
                    match table.view(shape, machine()).answer_unless_coded(quotient, remainder) {
                        Some(answer) => answer,
                        None => answer_beyond(table, shape, quotient, remainder),
                    }
                }

                #[target_feature(enable = $features)]
                fn answer_chunks<const SLOTS: u32, const N: u32>(
                    table: &Table,
                    quotient: u64,
                    chunks: u64,
                ) -> Answer {
                    let shape = ByteLine::<SLOTS>;
                    match table.view(shape, machine()).answer_chunks::<N>(quotient, chunks) {
                        Some(answer) => answer,
                        None => answer_chunks_beyond::<_, N>(table, shape, quotient, chunks),
                    }
                }

                #[target_feature(enable = $features)]
                fn answer_matching<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Answer {
                    let shape = ByteLine::<SLOTS>;
                    match table.view(shape, machine()).answer_matching(quotient, remainder) {
                        Some(answer) => answer,
                        None => answer_beyond(table, shape, quotient, remainder),
                    }
                }

                #[target_feature(enable = $features)]
                fn local_run<const SLOTS: u32>(table: &Table, quotient: u64) -> Option<(usize, u64)> {
                    table.view(ByteLine::<SLOTS>, machine()).local_run(quotient)
                }

                #[target_feature(enable = $features)]
                fn narrow<const SLOTS: u32>(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
                    table.view(ByteLine::<SLOTS>, machine()).narrow(block, slots, chunks)
                }
            }
        };
    }

    probes_of_lines!(Avx512, avx512, "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt");
    probes_of_lines!(Avx2, avx2, "avx2,bmi1,bmi2,popcnt,lzcnt");

    pub(super) static AVX512_PLAIN: Probes = avx512::probes::<PLAIN_SLOTS>();
    pub(super) static AVX512_CODED: Probes = avx512::probes::<CODED_SLOTS>();
    pub(super) static AVX2_PLAIN: Probes = avx2::probes::<PLAIN_SLOTS>();
    pub(super) static AVX2_CODED: Probes = avx2::probes::<CODED_SLOTS>();
    pub(super) static BMI2_GENERAL: Probes = Probes {
        answer_unless_coded,
        // Only lines have remainders of a byte.
        answer_chunks: PORTABLE.answer_chunks,
        answer_matching,
        local_run,
        narrow,
    };

    #[inline]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn bmi2() -> Bmi2 {
        // SAFETY: this function's features are the machine's.
        unsafe { Bmi2::new() }
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn answer_unless_coded(table: &Table, quotient: u64, remainder: u64) -> Answer {
        match table.view(table.shape, bmi2()).answer_unless_coded(quotient, remainder) {
            Some(answer) => answer,
            None => answer_beyond(table, table.shape, quotient, remainder),
        }
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn answer_matching(table: &Table, quotient: u64, remainder: u64) -> Answer {
        match table.view(table.shape, bmi2()).answer_matching(quotient, remainder) {
            Some(answer) => answer,
            None => answer_beyond(table, table.shape, quotient, remainder),
        }
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn answer_beyond<S: Shape>(table: &Table, shape: S, quotient: u64, remainder: u64) -> Answer {
        table.view(shape, bmi2()).answer_beyond(quotient, remainder)
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn answer_chunks_beyond<S: Shape, const N: u32>(
        table: &Table,
        shape: S,
        quotient: u64,
        chunks: u64,
    ) -> Answer {
        table.view(shape, bmi2()).answer_chunks_beyond::<N>(quotient, chunks)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn local_run(table: &Table, quotient: u64) -> Option<(usize, u64)> {
        table.view(table.shape, bmi2()).local_run(quotient)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn narrow(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
        table.view(table.shape, bmi2()).narrow(block, slots, chunks)
    }
}
