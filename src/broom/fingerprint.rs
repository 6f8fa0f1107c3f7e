//! Fingerprints: quotient, remainder, adaptivity bits (section 4.1 of the paper).

use crate::bits::BitString;
use crate::{Digest, KeyHasher};

use super::columns::STRATUM_BITS;
use super::functions::{Step, Which};
use super::local::Local;
use super::table::BroomTable;

/// The longest adaptivity bits. Keys that agree beyond are not told apart; there are none unless all 128 bits of
/// their digests agree.
pub(super) const TAIL_BITS: u32 = 96;

/// How a remainder is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remainders {
    /// Bits that stand in the table: all of a small remainder (on bins: the tag), the signature of a large one.
    pub(super) table_bits: u32,
    /// Bits of a large remainder beside the table.
    pub(super) rest_bits: u32,
}

/// Where a fingerprint belongs: what is compared before the adaptivity bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Baseline {
    pub(super) quotient: u64,
    /// What stands in the table: the remainder, or the signature of a long one.
    pub(super) remainder: u64,
    /// The rest of a long remainder.
    pub(super) rest: u64,
}

/// All that the filter may use of a key under one hash function: its fingerprint is a prefix of this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fingerprint {
    /// The digest of the key, whatever the function.
    pub(super) digest: Digest,
    /// The number of the function.
    pub(super) function: u64,
    /// Quotient and remainder.
    pub(super) baseline: Baseline,
    /// Which of the frontier's visits to the quotient is the key's.
    pub(super) stratum: u64,
    /// The bits behind all that, from which adaptivity bits are taken.
    pub(super) tail: BitString,
}

impl Fingerprint {
    pub(super) fn quotient(&self) -> u64 {
        self.baseline.quotient
    }

    /// What is stored of a key that nobody knows.
    pub(super) fn of_item(baseline: Baseline, tail: BitString) -> Self {
        Self { digest: Digest { hi: 0, lo: 0 }, function: 0, baseline, stratum: 0, tail }
    }

    /// The step in which the frontier passes the key.
    pub(super) fn step(&self) -> Step {
        Step { stratum: self.stratum, quotient: self.baseline.quotient }
    }
}

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// What a key is on its side of the frontier.
    pub(super) fn fingerprint(&self, digest: Digest) -> Fingerprint {
        self.fingerprint_under(digest, self.functions.side(digest))
    }

    /// What a key is under one of the functions.
    fn fingerprint_under(&self, digest: Digest, which: Which) -> Fingerprint {
        let (quotient, string) = self.functions.string(digest, which);
        let Remainders { table_bits, rest_bits } = self.remainders;
        let remainder = string.bits(0, table_bits);
        let stratum = string.bits(table_bits.into(), STRATUM_BITS);
        let before_rest = table_bits + STRATUM_BITS;
        let rest = string.bits(before_rest.into(), rest_bits);
        let half = |start: u32| {
            let bits = string.bits(u64::from(before_rest + rest_bits + start), TAIL_BITS / 2);
            u128::from(bits.reverse_bits() >> (64 - TAIL_BITS / 2))
        };
        let tail = BitString::new(half(0) | half(TAIL_BITS / 2) << (TAIL_BITS / 2), TAIL_BITS);
        let baseline = Baseline { quotient, remainder, rest };
        Fingerprint { digest, function: self.functions.number(which), baseline, stratum, tail }
    }
}
