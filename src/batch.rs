//! Many queries at once: hash and prefetch some keys ahead of the one that is being answered.

/// How many keys are under way at once. A few dozen, on tables beyond the cache: enough to
/// cover the latency of a miss, few enough for the processor's fill buffers.
const RING: usize = 32;

/// Answers all `keys` in order. `prepare` hashes a key and prefetches what `answer` is going to read; the less it hands
/// on, the better.
#[inline]
pub(crate) fn contains_many<K, P: Copy>(
    keys: &[K],
    answers: &mut Vec<bool>,
    prepare: impl Fn(&K) -> P,
    answer: impl Fn(&K, P) -> bool,
) {
    answers.clear();
    answers.reserve(keys.len());
    extend_many(keys, answers, prepare, answer);
}

/// The same, behind the answers that are there.
#[inline]
pub(crate) fn extend_many<K, P: Copy>(
    keys: &[K],
    answers: &mut Vec<bool>,
    prepare: impl Fn(&K) -> P,
    answer: impl Fn(&K, P) -> bool,
) {
    let Some(first) = keys.first() else { return };
    let mut ring = [prepare(first); RING];
    let ahead = keys.len().min(RING);
    for (place, key) in ring.iter_mut().zip(keys).skip(1) {
        *place = prepare(key);
    }
    let mut place = 0;
    let (answered_here, last) = keys.split_at(keys.len() - ahead);
    for (key, next) in answered_here.iter().zip(&keys[ahead..]) {
        let prepared = std::mem::replace(&mut ring[place], prepare(next));
        answers.push(answer(key, prepared));
        place = if place + 1 == RING { 0 } else { place + 1 };
    }
    // With fewer keys than places, `place` is 0 and the ring is filled as far as there are keys.
    answers.extend(last.iter().zip(place..).map(|(key, place)| answer(key, ring[place % RING])));
}

#[cfg(test)]
mod tests {
    use super::{RING, contains_many};

    #[test]
    fn every_batch_size_answers_every_key_once_and_in_order() {
        for len in (0..4 * RING).chain([1_000, 1_001]) {
            let keys: Vec<usize> = (0..len).collect();
            let mut answers = vec![true; 3];
            contains_many(&keys, &mut answers, |&key| key, |&key, prepared| key == prepared && key % 3 == 0);
            assert_eq!(answers, keys.iter().map(|key| key % 3 == 0).collect::<Vec<_>>(), "{len} keys");
        }
    }
}
