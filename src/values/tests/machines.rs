//! Catches: an instruction set, or a short cut for few selectors, that answers otherwise than the plain walk over
//! run and values.

use super::*;
use crate::bits::Isa;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};

/// Adapts more and more; in between compares the answers of all machines with those of the plain walk.
fn machines_agree<S: Scheme>(mut core: Core<S, Xxh3>) {
    let (n, mut remote) = (core.capacity() as u64, MemoryRemote::new());
    for number in 0..n {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let mut next = n;
    for adaptations in [0, 1, 10, 100, 1_000, 4_000] {
        while core.stats().adaptations < adaptations {
            core.adapt(&next.to_le_bytes(), &mut remote).unwrap();
            next += 1;
        }
        for isa in Isa::available() {
            let mut other = core.clone();
            other.table = other.table.with_isa(isa);
            for number in (0..n).chain(next..next + 20_000) {
                let digest = core.hasher.digest(&number.to_le_bytes());
                let (quotient, key) = core.locate(digest);
                let expected = core.contains_anywhere(quotient, &key);
                assert_eq!(other.contains_digest(digest), expected, "{isa:?} after {adaptations}");
            }
        }
    }
}

#[test]
fn every_machine_answers_like_the_plain_walk() {
    for bits in [8, 5] {
        let of = || parameters(1_000, bits, 0.95, Overflow::Spill, 4);
        machines_agree(telescoping_core(of()));
        machines_agree(extension_core(of()));
        machines_agree(explicit_core(of()));
    }
}
