//! The hot operations of the table, compiled for every machine.
//!
//! Queries and insertions are pairs: a function that settles the matter in one block, and a cold one that goes on to
//! others. They are kept apart so that the hot one needs few registers and, to query, no stack.

use crate::FullError;

use super::dispatch::Operations;
#[cfg(target_arch = "x86_64")]
use super::fixed_line::{CodedCenti, CodedMilli, FixedLine, PlainCenti, PlainMilli};
use super::geometry::{BlocksOf, ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::insert::Agreed;
use super::machine::Machine;
use super::questions::{Answer, CHUNKS, Chunks, Flagged, Matching, Occupied, Plain, Question, UnlessSpilled};
use super::runs::View;
use super::table::{Run, Shift, Table};

/// A shape that is the same for all tables, or is known to the table.
trait ShapeOf: Shape {
    /// The shape of a table, which must have one of this type.
    fn of(table: &Table) -> Self;
}

impl<const SLOTS: u32> ShapeOf for ByteLine<SLOTS> {
    #[inline(always)]
    fn of(_: &Table) -> Self {
        Self
    }
}

#[cfg(target_arch = "x86_64")]
impl<const R: u32, const SLOTS: u32, const CODE_BITS: u32> ShapeOf for FixedLine<R, SLOTS, CODE_BITS> {
    #[inline(always)]
    fn of(_: &Table) -> Self {
        Self
    }
}

impl ShapeOf for Geometry {
    #[inline(always)]
    fn of(table: &Table) -> Self {
        table.shape
    }
}

impl<const WORDS: usize> ShapeOf for BlocksOf<WORDS> {
    #[inline(always)]
    fn of(table: &Table) -> Self {
        Self(table.shape)
    }
}

/// Compiles all operations for one machine, in a module with a function that lists those for a type of shapes.
macro_rules! compile {
    ($module:ident, $machine:path $(, #[$features:meta])?) => {
        mod $module {
            use super::{
                Agreed, Answer, CHUNKS, Chunks, Flagged, FullError, Machine, Matching, Occupied, Operations, Plain,
                Question, Run, ShapeOf, Shift, Table, UnlessSpilled, View,
            };
            use $machine as This;

            pub(super) const fn operations<S: ShapeOf>() -> Operations {
                Operations {
                    contains: contains::<S>,
                    matching: query::<S, Matching>,
                    chunks: [
                        query::<S, Chunks<2>>,
                        query::<S, Chunks<3>>,
                        query::<S, Chunks<4>>,
                        query::<S, Chunks<5>>,
                    ],
                    unless_spilled: query::<S, UnlessSpilled>,
                    occupied: query::<S, Occupied>,
                    flagged: query::<S, Flagged>,
                    narrow: narrow::<S>,
                    run: run::<S>,
                    insert: insert::<S>,
                    insert_here: insert_here::<S>,
                    gap: gap::<S>,
                    insert_at: insert_at::<S>,
                    insert_fresh: insert_fresh::<S>,
                    insert_unflagged: insert_unflagged::<S>,
                }
            }

            #[inline]
            $(#[$features])?
            fn machine() -> This {
                // SAFETY: this function's features are the machine's.
                unsafe { This::new() }
            }

            #[inline]
            $(#[$features])?
            fn view<S: ShapeOf>(table: &Table) -> View<'_, S, This> {
                table.view(S::of(table), machine())
            }

            $(#[$features])?
            fn query<S: ShapeOf, Q: Question>(table: &Table, quotient: u64, fraction: u64) -> Answer {
                match Q::local(view::<S>(table), quotient, fraction) {
                    Some(answer) => answer,
                    None => query_anywhere::<S, Q>(table, quotient, fraction),
                }
            }

            // Not a query, whose answer would have to be compared: this one's is added or branched on as it is.
            $(#[$features])?
            fn contains<S: ShapeOf>(table: &Table, quotient: u64, fraction: u64) -> bool {
                match Plain::local(view::<S>(table), quotient, fraction) {
                    Some(answer) => answer == Answer::YES,
                    None => contains_anywhere::<S>(table, quotient, fraction),
                }
            }

            #[cold]
            #[inline(never)]
            $(#[$features])?
            fn contains_anywhere<S: ShapeOf>(table: &Table, quotient: u64, fraction: u64) -> bool {
                Plain::anywhere(view::<S>(table), quotient, fraction) == Answer::YES
            }

            #[cold]
            #[inline(never)]
            $(#[$features])?
            fn query_anywhere<S: ShapeOf, Q: Question>(table: &Table, quotient: u64, fraction: u64) -> Answer {
                Q::anywhere(view::<S>(table), quotient, fraction)
            }

            $(#[$features])?
            fn narrow<S: ShapeOf>(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
                let view = view::<S>(table);
                view.machine.matches_any::<S, CHUNKS>(view.shape, view.block(block), chunks, slots)
            }

            $(#[$features])?
            fn run<S: ShapeOf>(table: &Table, quotient: u64) -> Option<Run> {
                view::<S>(table).run(quotient)
            }

            $(#[$features])?
            fn insert<S: ShapeOf>(table: &mut Table, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
                match table.insert_in_block::<S, This, false>(S::of(table), machine(), quotient, remainder) {
                    Some((shift, _)) => Ok(shift),
                    None => insert_beyond::<S>(table, quotient, remainder),
                }
            }

            #[cold]
            #[inline(never)]
            $(#[$features])?
            fn insert_beyond<S: ShapeOf>(
                table: &mut Table,
                quotient: u64,
                remainder: u64,
            ) -> Result<Shift, FullError> {
                table.insert_beyond(S::of(table), machine(), quotient, remainder)
            }

            $(#[$features])?
            fn insert_here<S: ShapeOf>(table: &mut Table, quotient: u64, remainder: u64) -> Option<bool> {
                let inserted =
                    table.insert_in_block::<S, This, true>(S::of(table), machine(), quotient, remainder)?;
                Some(inserted.1)
            }

            $(#[$features])?
            fn gap<S: ShapeOf>(table: &Table, quotient: u64) -> Shift {
                view::<S>(table).gap(quotient)
            }

            $(#[$features])?
            fn insert_at<S: ShapeOf>(table: &mut Table, quotient: u64, remainder: u64, gap: Shift) {
                table.open_beyond(S::of(table), machine(), quotient, remainder, gap);
            }

            $(#[$features])?
            fn insert_fresh<S: ShapeOf>(
                table: &mut Table,
                quotient: u64,
                remainder: u64,
                agree: &mut dyn FnMut() -> bool,
            ) -> bool {
                let (shape, machine) = (S::of(table), machine());
                table.insert_fresh_in_block::<S, This, false>(shape, machine, quotient, remainder, agree).is_some()
            }

            $(#[$features])?
            fn insert_unflagged<S: ShapeOf>(
                table: &mut Table,
                quotient: u64,
                remainder: u64,
                agree: &mut dyn FnMut() -> bool,
            ) -> Option<Agreed> {
                let (shape, machine) = (S::of(table), machine());
                table.insert_fresh_in_block::<S, This, true>(shape, machine, quotient, remainder, agree)
            }
        }
    };
}

compile!(portable, crate::quotient::machine::Portable);

/// Any shape on any processor.
pub(super) static PORTABLE: Operations = portable::operations::<Geometry>();
pub(super) static PORTABLE_OF_4: Operations = portable::operations::<BlocksOf<4>>();
pub(super) static PORTABLE_OF_8: Operations = portable::operations::<BlocksOf<8>>();
pub(super) static PORTABLE_OF_16: Operations = portable::operations::<BlocksOf<16>>();
pub(super) static PORTABLE_PLAIN: Operations = portable::operations::<ByteLine<PLAIN_SLOTS>>();
pub(super) static PORTABLE_CODED: Operations = portable::operations::<ByteLine<CODED_SLOTS>>();

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(super) mod arm {
    use super::*;

    compile!(neon, crate::quotient::machine::neon::Neon);

    pub(in super::super) static NEON: Operations = neon::operations::<Geometry>();
    pub(in super::super) static NEON_OF_4: Operations = neon::operations::<BlocksOf<4>>();
    pub(in super::super) static NEON_OF_8: Operations = neon::operations::<BlocksOf<8>>();
    pub(in super::super) static NEON_OF_16: Operations = neon::operations::<BlocksOf<16>>();
    pub(in super::super) static NEON_PLAIN: Operations = neon::operations::<ByteLine<PLAIN_SLOTS>>();
    pub(in super::super) static NEON_CODED: Operations = neon::operations::<ByteLine<CODED_SLOTS>>();
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::*;

    compile!(
        bmi2,
        crate::quotient::machine::x86::Bmi2,
        #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    );
    compile!(
        avx2,
        crate::quotient::machine::x86::Avx2,
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    );
    compile!(
        avx512_any,
        crate::quotient::machine::x86::Avx512Any,
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    );
    compile!(
        avx512,
        crate::quotient::machine::x86::Avx512,
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    );

    pub(in super::super) static BMI2_OF_4: Operations = bmi2::operations::<BlocksOf<4>>();
    pub(in super::super) static BMI2_OF_8: Operations = bmi2::operations::<BlocksOf<8>>();
    pub(in super::super) static BMI2_OF_16: Operations = bmi2::operations::<BlocksOf<16>>();
    pub(in super::super) static BMI2: Operations = bmi2::operations::<Geometry>();
    pub(in super::super) static BMI2_PLAIN_CENTI: Operations = bmi2::operations::<PlainCenti>();
    pub(in super::super) static BMI2_CODED_CENTI: Operations = bmi2::operations::<CodedCenti>();
    pub(in super::super) static BMI2_PLAIN_MILLI: Operations = bmi2::operations::<PlainMilli>();
    pub(in super::super) static BMI2_CODED_MILLI: Operations = bmi2::operations::<CodedMilli>();
    pub(in super::super) static AVX512_PLAIN_CENTI: Operations = avx512_any::operations::<PlainCenti>();
    pub(in super::super) static AVX512_CODED_CENTI: Operations = avx512_any::operations::<CodedCenti>();
    pub(in super::super) static AVX512_PLAIN_MILLI: Operations = avx512_any::operations::<PlainMilli>();
    pub(in super::super) static AVX512_CODED_MILLI: Operations = avx512_any::operations::<CodedMilli>();
    pub(in super::super) static AVX512_OF_4: Operations = avx512_any::operations::<BlocksOf<4>>();
    pub(in super::super) static AVX512_OF_8: Operations = avx512_any::operations::<BlocksOf<8>>();
    pub(in super::super) static AVX512_OF_16: Operations = avx512_any::operations::<BlocksOf<16>>();
    pub(in super::super) static AVX2_PLAIN: Operations = avx2::operations::<ByteLine<PLAIN_SLOTS>>();
    pub(in super::super) static AVX2_CODED: Operations = avx2::operations::<ByteLine<CODED_SLOTS>>();
    pub(in super::super) static AVX512_PLAIN: Operations = avx512::operations::<ByteLine<PLAIN_SLOTS>>();
    pub(in super::super) static AVX512_CODED: Operations = avx512::operations::<ByteLine<CODED_SLOTS>>();
}
