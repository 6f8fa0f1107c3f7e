//! The adversarial stream of the telescoping paper (001, section 6.1).

use besom::game::{Adversary, Answers, FreshKeys, Rules};

/// Starts with a set Q of random queries. A round asks all of Q ten times over; afterwards those that were never
/// a false positive in it leave Q. It stops when Q is down to a hundredth of the stored keys, or after a bounded
/// number of rounds, and guesses a member of what is left.
///
/// What the paper plots is the false-positive rate of the [last round](Self::last_round).
#[derive(Debug, Clone)]
pub struct WhittlingRounds {
    seed: u64,
    queries: usize,
    rounds: u32,
    last: LastRound,
}

/// What happened in the last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastRound {
    /// How many rounds there were.
    pub rounds: u32,
    /// Queries in Q at its beginning.
    pub queries: usize,
    /// Look-ups in it.
    pub lookups: u64,
    /// Look-ups in it that got through.
    pub false_positives: u64,
}

impl LastRound {
    /// The share of its look-ups that got through.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.false_positives as f64 / self.lookups.max(1) as f64
    }
}

/// How often a round asks all of Q.
const SUBROUNDS: usize = 10;
/// Q may shrink to this share of the stored keys.
const SMALLEST: f64 = 0.01;

impl WhittlingRounds {
    /// Plays with the keys of this seed, starts with that many queries and stops after that many rounds.
    #[must_use]
    pub fn new(seed: u64, queries: usize, rounds: u32) -> Self {
        Self { seed, queries, rounds, last: LastRound::default() }
    }

    /// What happened in the last round of the last game.
    #[must_use]
    pub fn last_round(&self) -> LastRound {
        self.last
    }
}

impl Adversary for WhittlingRounds {
    fn name(&self) -> &'static str {
        "whittling-rounds"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        keys.by_ref().take(rules.capacity).for_each(|key| oracle.insert(&key));
        let mut queries: Vec<([u8; 8], u32)> = keys.by_ref().take(self.queries).map(|key| (key, 0)).collect();
        let smallest = SMALLEST * rules.capacity as f64;
        self.last = LastRound::default();
        for round in 1..=self.rounds {
            let mut last = LastRound { rounds: round, queries: queries.len(), ..LastRound::default() };
            queries.iter_mut().for_each(|(_, hits)| *hits = 0);
            for _ in 0..SUBROUNDS {
                for (key, hits) in &mut queries {
                    *hits += u32::from(oracle.lookup(key));
                }
            }
            last.lookups = (SUBROUNDS * queries.len()) as u64;
            last.false_positives = queries.iter().map(|(_, hits)| u64::from(*hits)).sum();
            self.last = last;
            queries.retain(|(_, hits)| *hits > 0);
            if queries.len() as f64 <= smallest {
                break;
            }
        }
        let best = queries.iter().max_by_key(|(_, hits)| *hits).map(|(key, _)| *key);
        best.or_else(|| keys.next()).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Model, Moves};
    use super::*;

    const RULES: Rules = Rules { capacity: 400, rate: 1.0 / 16.0 };

    #[test]
    fn it_whittles_down_what_is_repaired() {
        let mut adversary = WhittlingRounds::new(1, 4000, 50);
        Model::new(1, RULES, 2, Moves::Endlessly).play(&mut adversary);
        let last = adversary.last_round();
        assert!(last.rounds < 20 && last.rate() < 0.2, "{last:?}");
    }

    #[test]
    fn it_keeps_what_cannot_be_repaired() {
        let mut adversary = WhittlingRounds::new(1, 4000, 50);
        Model::new(1, RULES, 2, Moves::InTurn).play(&mut adversary);
        let last = adversary.last_round();
        assert!(last.rate() > 0.3, "{last:?}");
    }

    #[test]
    fn no_queries_are_no_round_to_speak_of() {
        let mut adversary = WhittlingRounds::new(1, 0, 50);
        Model::new(1, RULES, 2, Moves::InTurn).play(&mut adversary);
        assert_eq!((adversary.last_round().rounds, adversary.last_round().rate()), (1, 0.0));
    }
}
