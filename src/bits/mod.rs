//! Bits in words: rank and select, packed slots, bit strings, and which instruction set to use for them.

mod aligned;
mod bit_string;
mod isa;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(crate) mod neon;
mod packed;
mod prefetch;
mod region;
mod span;
pub(crate) mod string;
pub(crate) mod word;

pub(crate) use aligned::{AlignedWords, LINE};
pub(crate) use bit_string::BitString;
pub use isa::{Isa, IsaError};
pub(crate) use packed::PackedSlots;
pub(crate) use prefetch::prefetch;
pub use region::Region;
pub(crate) use span::{copy_bits, read_bits, write_bits};
pub(crate) use word::{low_mask, rank, select};
