//! The attack on filters whose stored keys have few states, all of them (003, Theorem 12).

use besom::game::{Adversary, Answers, FreshKeys, Rules};

/// Looks for a *mutually unfixable set*: queries that together collide with a stored key in each of its k states,
/// so that whichever state it is in, one of them is a false positive.
///
/// It asks |Q| = (1 + 1/k) · n^(1 − 1/k)/ε random queries in k preliminary rounds, after which only unfixable sets
/// still cause false positives, and in k testing rounds, which tell their members `Q_d`. Then it tries orders: k
/// members of `Q_d`, one after the other, twice. An order in which every look-up gets through follows the states of
/// the stored key around, and the first of it is next. (The paper writes |Q| with the N slots of one table and
/// the ε of one fingerprint; N/ε is then n/ε with the ε of the whole filter.)
///
/// Where the states do not follow each other in a fixed order (the swapping filter), no order may be found; the
/// guess is then a member of `Q_d` other than the last that got through, which is right once in k − 1 times.
#[derive(Debug, Clone)]
pub struct UnfixableSet {
    seed: u64,
    states: u32,
}

/// Look-ups in permutation rounds before it gives up.
const PERMUTATION_LOOKUPS: u64 = 200_000;
/// The paper's constant c: with more than c·k suspects, the attack fails; here it goes on with that many.
const SUSPECTS_PER_STATE: usize = 6;

impl UnfixableSet {
    /// Plays with the keys of this seed against a filter whose stored keys have that many states.
    #[must_use]
    pub fn new(seed: u64, states: u32) -> Self {
        Self { seed, states: states.max(2) }
    }

    /// How many queries it starts with.
    #[must_use]
    pub fn queries(rules: Rules, states: u32) -> usize {
        let (n, k) = (rules.capacity as f64, f64::from(states.max(2)));
        ((1.0 + 1.0 / k) * n.powf(1.0 - 1.0 / k) / rules.rate).ceil().min(1e9) as usize
    }

    /// Preliminary and testing rounds: the queries that got through in the latter, with how often.
    fn suspects(&self, rules: Rules, keys: &mut FreshKeys, oracle: &mut dyn Answers) -> Vec<Suspect> {
        let mut queries: Vec<[u8; 8]> = keys.by_ref().take(Self::queries(rules, self.states)).collect();
        for _ in 0..self.states {
            keys.shuffle(&mut queries);
            for key in &queries {
                oracle.lookup(key);
            }
        }
        let mut suspects: Vec<Suspect> = Vec::new();
        for _ in 0..self.states {
            keys.shuffle(&mut queries);
            for &key in queries.iter().filter(|key| oracle.lookup(*key)) {
                match suspects.iter_mut().find(|suspect| suspect.key == key) {
                    Some(suspect) => suspect.hits += 1,
                    None => suspects.push(Suspect { key, hits: 1 }),
                }
            }
        }
        // The most suspicious, if there are too many.
        suspects.sort_by_key(|suspect| std::cmp::Reverse(suspect.hits));
        suspects.truncate(SUSPECTS_PER_STATE * self.states as usize);
        suspects
    }

    /// Permutation rounds: the first of an order that got through all along, else the best guess.
    fn order(
        &self,
        suspects: &mut [Suspect],
        keys: &mut FreshKeys,
        oracle: &mut dyn Answers,
    ) -> Option<[u8; 8]> {
        let k = (self.states as usize).min(suspects.len());
        let (mut lookups, mut last) = (0, None);
        let rounds = permutations(suspects.len(), k);
        for _ in 0..rounds {
            if lookups >= PERMUTATION_LOOKUPS {
                break;
            }
            keys.shuffle(suspects);
            let mut through = true;
            for pass in 0..2 {
                for suspect in &mut suspects[..k] {
                    lookups += 1;
                    let hit = oracle.lookup(&suspect.key);
                    suspect.hits += u64::from(hit);
                    last = if hit { Some(suspect.key) } else { last };
                    through &= hit || pass == 0;
                }
            }
            if through {
                return Some(suspects[0].key);
            }
        }
        suspects
            .iter()
            .filter(|suspect| Some(suspect.key) != last)
            .max_by_key(|suspect| suspect.hits)
            .map(|suspect| suspect.key)
    }
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    key: [u8; 8],
    hits: u64,
}

/// The number of ways to choose k of n in order, capped.
fn permutations(n: usize, k: usize) -> u64 {
    (n + 1 - k.min(n)..=n).fold(1_u64, |product, factor| product.saturating_mul(factor as u64))
}

impl Adversary for UnfixableSet {
    fn name(&self) -> &'static str {
        "unfixable-set"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        let mut suspects = self.suspects(rules, &mut keys, oracle);
        let guess = if suspects.len() > 1 {
            self.order(&mut suspects, &mut keys, oracle)
        } else {
            // A single suspect collides in every state by itself.
            suspects.first().map(|suspect| suspect.key)
        };
        guess.or_else(|| keys.next()).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Model, Moves};
    use super::*;

    const RULES: Rules = Rules { capacity: 512, rate: 1.0 / 32.0 };

    fn wins(moves: Moves) -> usize {
        (0..40)
            .filter(|&seed| Model::new(seed, RULES, 3, moves).play(&mut UnfixableSet::new(seed, 3)))
            .count()
    }

    #[test]
    fn it_beats_every_filter_with_few_states() {
        assert!(wins(Moves::InTurn) > 12, "{}", wins(Moves::InTurn));
        assert!(wins(Moves::AtRandom) > 6, "{}", wins(Moves::AtRandom));
    }

    #[test]
    fn it_does_not_beat_a_filter_with_endless_states() {
        assert!(wins(Moves::Endlessly) < 5, "{}", wins(Moves::Endlessly));
    }

    #[test]
    fn orders_are_counted() {
        assert_eq!(permutations(5, 2), 20);
        assert_eq!(permutations(3, 3), 6);
        assert_eq!(permutations(2, 3), 2);
        assert_eq!(permutations(1000, 30), u64::MAX);
    }
}
