//! Digests in order: taken in as they come, cut by their first byte, and sorted part by part on all cores.

use crate::{Digest, parallel};

/// Parts by the first byte of the digest.
const PARTS: usize = 256;

/// Digests in no order yet. 16 bytes each, and at most as much again while they come in.
#[derive(Debug)]
pub(super) struct Digests {
    parts: Vec<Vec<Digest>>,
}

impl Digests {
    /// None, with room for about this many.
    pub(super) fn with_capacity(digests: usize) -> Self {
        // Parts differ by a few standard deviations.
        let mean = digests / PARTS;
        let room = if digests < PARTS { 0 } else { mean + 4 * mean.isqrt() };
        Self { parts: (0..PARTS).map(|_| Vec::with_capacity(room)).collect() }
    }

    #[inline]
    pub(super) fn push(&mut self, digest: Digest) {
        self.parts[(digest.hi >> 56) as usize].push(digest);
    }

    /// The same in order, each once.
    pub(super) fn sorted(self) -> Sorted {
        let parts = parallel::map(self.parts, |mut part| {
            part.sort_unstable_by_key(|digest| digest.to_u128());
            part.dedup();
            part
        });
        Sorted { len: parts.iter().map(Vec::len).sum(), parts }
    }
}

/// Different digests in ascending order.
#[derive(Debug)]
pub(super) struct Sorted {
    parts: Vec<Vec<Digest>>,
    len: usize,
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Those whose upper halves are at least `from` and below `to`, if there is such a bound.
    pub(super) fn range(&self, from: u64, to: Option<u64>) -> impl Iterator<Item = &Digest> {
        let behind = to.map_or(PARTS, |to| (to >> 56) as usize + 1);
        let parts = self.parts.iter().take(behind).skip((from >> 56) as usize);
        parts.flat_map(move |part| {
            let below = |bound: u64| part.partition_point(|digest| digest.hi < bound);
            let (first, end) = (below(from), to.map_or(part.len(), below));
            // The range is empty if the bounds are.
            part.get(first..end).unwrap_or(&[])
        })
    }

    /// A digest that is in both, if there is one.
    pub(super) fn common(&self, other: &Self) -> Option<Digest> {
        let pairs = self.parts.iter().zip(&other.parts).collect();
        parallel::map(pairs, |(part, other)| first_common(part, other)).into_iter().flatten().next()
    }
}

fn first_common(mut left: &[Digest], mut right: &[Digest]) -> Option<Digest> {
    while let (Some(&a), Some(&b)) = (left.first(), right.first()) {
        match a.to_u128().cmp(&b.to_u128()) {
            std::cmp::Ordering::Less => left = &left[1..],
            std::cmp::Ordering::Greater => right = &right[1..],
            std::cmp::Ordering::Equal => return Some(a),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    //! Catches: digests that are lost at the borders of parts or ranges, duplicates, common digests that are
    //! overlooked.
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::Random;

    fn digests(count: u64, random: &mut Random) -> (Digests, BTreeSet<u128>) {
        let (mut digests, mut model) = (Digests::with_capacity(count as usize), BTreeSet::new());
        for _ in 0..count {
            // Few different ones, at the borders of parts too.
            let hi = random.below(8) << 61 | (random.below(3).wrapping_sub(1) & 0xff_ffff_ffff_ffff);
            let digest = Digest { hi, lo: random.below(4) };
            digests.push(digest);
            model.insert(digest.to_u128());
        }
        (digests, model)
    }

    #[test]
    fn digests_come_back_sorted_and_once() {
        let mut random = Random::new(1);
        for count in [0, 1, 2, 10, 1000] {
            let (digests, model) = digests(count, &mut random);
            let sorted = digests.sorted();
            assert_eq!(sorted.len(), model.len());
            assert!(sorted.range(0, None).map(|digest| digest.to_u128()).eq(model.iter().copied()));
            for _ in 0..100 {
                let [from, to] = [(); 2].map(|()| random.next());
                let range = sorted.range(from, Some(to)).count();
                let expected =
                    model.iter().filter(|digest| (from..to).contains(&((**digest >> 64) as u64))).count();
                assert_eq!(range, expected, "{from:x} to {to:x}");
            }
        }
    }

    #[test]
    fn common_digests_are_found() {
        let mut random = Random::new(2);
        for _ in 0..300 {
            let [(left, left_model), (right, right_model)] = [(); 2].map(|()| digests(6, &mut random));
            let common = left.sorted().common(&right.sorted());
            let expected = left_model.intersection(&right_model).next().copied();
            assert_eq!(common.map(Digest::to_u128), expected);
        }
    }
}
