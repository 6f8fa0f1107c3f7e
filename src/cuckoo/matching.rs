//! Who explains what: a different explanation for each thing, if there is such a choice.

use std::collections::VecDeque;

/// Things and what may explain them, both by number.
#[derive(Debug)]
pub(super) struct Matching {
    /// The explanation of each thing.
    chosen: Vec<Option<usize>>,
    /// The thing that each explanation was chosen for.
    used_for: Vec<Option<usize>>,
}

impl Matching {
    /// Explains as many things as can be. `candidates` has the possible explanations of each thing, all of them below
    /// `explanations`; the first ones are preferred where that leaves no thing without one.
    pub(super) fn new(candidates: &[Vec<usize>], explanations: usize) -> Self {
        let mut matching = Self { chosen: vec![None; candidates.len()], used_for: vec![None; explanations] };
        // First choices first, so that what fits where it lies is not moved without need.
        for (thing, candidates) in candidates.iter().enumerate() {
            if let Some(&first) = candidates.first().filter(|&&first| matching.used_for[first].is_none()) {
                matching.choose(thing, first);
            }
        }
        for thing in 0..candidates.len() {
            if matching.chosen[thing].is_none() {
                matching.explain(thing, candidates);
            }
        }
        matching
    }

    /// What explains this thing.
    pub(super) fn of(&self, thing: usize) -> Option<usize> {
        self.chosen[thing]
    }

    /// How many things nothing was left for.
    pub(super) fn unexplained(&self) -> usize {
        self.chosen.iter().filter(|chosen| chosen.is_none()).count()
    }

    fn choose(&mut self, thing: usize, explanation: usize) -> Option<usize> {
        self.used_for[explanation] = Some(thing);
        self.chosen[thing].replace(explanation)
    }

    /// Finds an explanation for one thing more, breadth first: one that is free, or whose thing can take another.
    fn explain(&mut self, thing: usize, candidates: &[Vec<usize>]) {
        let mut reached_from = vec![None; self.used_for.len()];
        let mut queue = VecDeque::from([thing]);
        while let Some(thing) = queue.pop_front() {
            for &explanation in &candidates[thing] {
                if reached_from[explanation].is_some() {
                    continue;
                }
                reached_from[explanation] = Some(thing);
                match self.used_for[explanation] {
                    Some(next) => queue.push_back(next),
                    None => return self.hand_on(explanation, &reached_from),
                }
            }
        }
    }

    /// The thing that `last` was reached from takes it, and leaves its own to the one before.
    fn hand_on(&mut self, last: usize, reached_from: &[Option<usize>]) {
        let mut next = Some(last);
        while let Some((explanation, thing)) = next.and_then(|number| Some((number, reached_from[number]?))) {
            next = self.choose(thing, explanation);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a thing left unexplained although there was a choice, and one explanation for two things.
    use super::*;
    use crate::testing::Random;

    /// The most things that can be explained, by trying everything.
    fn most(candidates: &[Vec<usize>], used: u32) -> usize {
        let Some((first, rest)) = candidates.split_first() else { return 0 };
        let free = first.iter().filter(|&&explanation| used & 1 << explanation == 0);
        let with = free.map(|explanation| 1 + most(rest, used | 1 << explanation)).max().unwrap_or(0);
        with.max(most(rest, used))
    }

    #[test]
    fn as_many_things_are_explained_as_can_be() {
        let mut random = Random::new(4);
        let (mut incomplete, mut without_first) = (0, 0);
        for _ in 0..3000 {
            let (things, explanations) = (1 + random.below(6) as usize, 1 + random.below(6) as usize);
            let candidates: Vec<Vec<usize>> = (0..things)
                .map(|_| (0..explanations).filter(|_| random.one_in(3)).collect::<Vec<_>>())
                .collect();
            let matching = Matching::new(&candidates, explanations);
            assert_eq!(things - matching.unexplained(), most(&candidates, 0));
            for explanation in 0..explanations {
                let for_it = (0..things).filter(|&thing| matching.of(thing) == Some(explanation));
                assert!(for_it.count() <= 1);
            }
            for (thing, candidates) in candidates.iter().enumerate() {
                assert!(matching.of(thing).is_none_or(|explanation| candidates.contains(&explanation)));
                without_first += usize::from(matching.of(thing) != candidates.first().copied());
            }
            incomplete += usize::from(matching.unexplained() > 0);
        }
        assert!(incomplete > 500 && without_first > 1000, "{incomplete} {without_first}");
    }
}
