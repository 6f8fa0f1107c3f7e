//! Which key explains which slot: a matching in a small bipartite graph.

/// For every slot of a run the key that explains it, each key for one slot at most, so that as many slots as possible have
/// one. Slots and keys stay in each other's order wherever that is possible: most often nothing has moved.
pub(crate) fn match_slots(
    slots: usize,
    keys: usize,
    explains: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let (mut key_of, mut slot_of) = (vec![None; slots], vec![None; keys]);
    let mut next = 0;
    for (slot, key_of) in key_of.iter_mut().enumerate() {
        if let Some(key) = (next..keys).find(|&key| explains(slot, key)) {
            (*key_of, slot_of[key], next) = (Some(key), Some(slot), key + 1);
        }
    }
    for slot in 0..slots {
        if key_of[slot].is_none() {
            augment(slot, &mut key_of, &mut slot_of, &explains);
        }
    }
    key_of
}

/// Finds a key for a slot, if others have to take other keys for that: breadth first along alternating paths.
fn augment(
    start: usize,
    key_of: &mut [Option<usize>],
    slot_of: &mut [Option<usize>],
    explains: &impl Fn(usize, usize) -> bool,
) {
    // By key: the slot from which it was reached.
    let mut reached_from = vec![None; slot_of.len()];
    let mut queue = vec![start];
    let mut head = 0;
    while let Some(&slot) = queue.get(head) {
        head += 1;
        for key in 0..slot_of.len() {
            if reached_from[key].is_some() || !explains(slot, key) {
                continue;
            }
            reached_from[key] = Some(slot);
            match slot_of[key] {
                Some(taken) => queue.push(taken),
                None => return rewire(key, &reached_from, key_of, slot_of),
            }
        }
    }
}

/// Gives a free key to the slot that reached it, the key of that slot to the one that reached that, and so on.
fn rewire(
    free: usize,
    reached_from: &[Option<usize>],
    key_of: &mut [Option<usize>],
    slot_of: &mut [Option<usize>],
) {
    let mut free = Some(free);
    while let Some(key) = free {
        let Some(slot) = reached_from[key] else { return };
        free = key_of[slot].replace(key);
        slot_of[key] = Some(slot);
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a slot without a key although there is one for every slot, a key that is given twice, order given up
    //! without need.
    use super::*;
    use crate::testing::Random;

    /// The size of the largest matching, by trying everything.
    fn largest(slots: usize, keys: usize, explains: &dyn Fn(usize, usize) -> bool, taken: u64) -> usize {
        let Some(slot) = slots.checked_sub(1) else { return 0 };
        let free = (0..keys).filter(|&key| taken >> key & 1 == 0 && explains(slot, key));
        let with = free.map(|key| 1 + largest(slot, keys, explains, taken | 1 << key));
        with.max().unwrap_or(0).max(largest(slot, keys, explains, taken))
    }

    #[test]
    fn as_many_slots_as_possible_get_a_key_of_their_own() {
        let mut random = Random::new(91);
        for _ in 0..4_000 {
            let (slots, keys) = (random.below(6) as usize, random.below(7) as usize);
            let (graph, density) = (random.next(), random.next());
            let explains = |slot: usize, key: usize| (graph | density) >> (8 * slot + key) & 1 == 1;
            let matched = match_slots(slots, keys, explains);
            let mut given: Vec<usize> = matched.iter().flatten().copied().collect();
            assert_eq!(given.len(), largest(slots, keys, &explains, 0));
            assert!(matched.iter().enumerate().all(|(slot, key)| key.is_none_or(|key| explains(slot, key))));
            given.sort_unstable();
            assert!(given.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }

    #[test]
    fn what_has_not_moved_stays_in_order() {
        assert_eq!(match_slots(3, 3, |_, _| true), [Some(0), Some(1), Some(2)]);
        assert_eq!(match_slots(2, 4, |slot, key| key == slot + 2 || key == 3), [Some(2), Some(3)]);
        assert_eq!(match_slots(2, 2, |slot, key| slot == 0 || key == 0), [Some(1), Some(0)]);
    }
}
