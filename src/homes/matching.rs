//! Which item is whose: a matching in a small bipartite graph.

/// For every key an item of its own that accepts it, for as many keys as possible; of two keys that cannot both have
/// one, the first gets it.
pub(crate) fn pair(keys: usize, items: usize, accepts: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut pairs = Pairs::default();
    pairs.find(keys, items, accepts);
    pairs.item_of
}

/// Who has which item, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    item_of: Vec<Option<usize>>,
    key_of: Vec<Option<usize>>,
}

impl Pairs {
    /// The same as [`pair`].
    pub(crate) fn find(
        &mut self,
        keys: usize,
        items: usize,
        accepts: impl Fn(usize, usize) -> bool,
    ) -> &[Option<usize>] {
        let Self { item_of, key_of } = self;
        for (all, len) in [(&mut *item_of, keys), (&mut *key_of, items)] {
            all.clear();
            all.resize(len, None);
        }
        for key in 0..keys {
            // Nearly always the first item that accepts is free.
            match (0..items).find(|&item| key_of[item].is_none() && accepts(key, item)) {
                Some(item) => (item_of[key], key_of[item]) = (Some(item), Some(key)),
                None => augment(key, item_of, key_of, &accepts),
            }
        }
        item_of
    }
}

/// Finds an item for a key if others have to take other items for that: breadth first along alternating paths. Anyone
/// who had one before has one then.
fn augment(
    start: usize,
    item_of: &mut [Option<usize>],
    key_of: &mut [Option<usize>],
    accepts: &impl Fn(usize, usize) -> bool,
) {
    // By item: the key from which it was reached.
    let mut reached_from = vec![None; key_of.len()];
    let mut queue = vec![start];
    let mut head = 0;
    while let Some(&key) = queue.get(head) {
        head += 1;
        for item in 0..key_of.len() {
            if reached_from[item].is_some() || !accepts(key, item) {
                continue;
            }
            reached_from[item] = Some(key);
            match key_of[item] {
                Some(taken) => queue.push(taken),
                None => return rewire(item, &reached_from, item_of, key_of),
            }
        }
    }
}

/// Gives a free item to the key that reached it, the item of that key to the one that reached that, and so on.
fn rewire(
    free: usize,
    reached_from: &[Option<usize>],
    item_of: &mut [Option<usize>],
    key_of: &mut [Option<usize>],
) {
    let mut free = Some(free);
    while let Some(item) = free {
        let Some(key) = reached_from[item] else { return };
        free = item_of[key].replace(item);
        key_of[item] = Some(key);
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a key without an item although there is one for every key, an item that two keys share, an item that
    //! its key does not fit, a key that goes without for the sake of a later one.
    use super::*;
    use crate::testing::Random;

    /// The size of the largest matching of the first keys, by trying everything.
    fn largest(keys: usize, items: usize, accepts: &dyn Fn(usize, usize) -> bool, taken: u64) -> usize {
        let Some(key) = keys.checked_sub(1) else { return 0 };
        let free = (0..items).filter(|&item| taken >> item & 1 == 0 && accepts(key, item));
        let with = free.map(|item| 1 + largest(key, items, accepts, taken | 1 << item));
        with.max().unwrap_or(0).max(largest(key, items, accepts, taken))
    }

    #[test]
    fn as_many_keys_as_possible_get_an_item_of_their_own_the_first_before_the_others() {
        let mut random = Random::new(91);
        for _ in 0..4_000 {
            let (keys, items) = (random.below(6) as usize, random.below(7) as usize);
            let (graph, density) = (random.next(), random.next());
            let accepts = |key: usize, item: usize| (graph | density) >> (8 * key + item) & 1 == 1;
            let paired = pair(keys, items, accepts);
            for first in 0..=keys {
                let matched = paired[..first].iter().flatten().count();
                assert_eq!(matched, largest(first, items, &accepts, 0));
            }
            assert!(paired.iter().enumerate().all(|(key, item)| item.is_none_or(|item| accepts(key, item))));
            let mut given: Vec<usize> = paired.into_iter().flatten().collect();
            given.sort_unstable();
            assert!(given.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
