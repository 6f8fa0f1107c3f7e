//! All adversaries, ready to play.

use besom::game::{
    Adversary, DeletionTiming, Gathering, LowerBoundRounds, QueryMates, RepeatFalsePositives, Rules,
    SideInference, SingleQuery,
};

use super::{PersistentQuery, UnfixableSet, WhittlingRounds};

/// An adversary by name, and whether it removes keys.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name in reports.
    pub name: &'static str,
    /// Whether the filter must offer removal.
    pub removes: bool,
    build: fn(Rules, u32, u64) -> Box<dyn Adversary>,
}

impl Attack {
    /// The adversary for a game by these rules, against a filter whose stored keys have that many states, with
    /// the keys of this seed.
    #[must_use]
    pub fn against(&self, rules: Rules, states: u32, seed: u64) -> Box<dyn Adversary> {
        (self.build)(rules, states, seed)
    }
}

/// An eighth of the capacity, and as many false positives of those keys, with three times the look-ups that these
/// should take.
fn mates(rules: Rules, seed: u64) -> QueryMates {
    let few = rules.capacity / 8 + 2;
    QueryMates::new(seed, few, few, (24.0 * few as f64 / rules.rate).min(1e9) as u64)
}

/// All adversaries, in the order of reports.
#[must_use]
pub fn gallery() -> [Attack; 11] {
    let attack = |name, removes, build| Attack { name, removes, build };
    [
        attack("single-query", false, |_, _, seed| Box::new(SingleQuery::new(seed))),
        attack("repeat-false-positives", false, |rules, _, seed| {
            Box::new(RepeatFalsePositives::new(seed, 4 * rules.capacity))
        }),
        attack("whittling-rounds", false, |rules, _, seed| {
            Box::new(WhittlingRounds::new(seed, 4 * rules.capacity, 20))
        }),
        attack("lower-bound-rounds", false, |_, _, seed| Box::new(LowerBoundRounds::new(seed, 4))),
        attack("persistent-query", false, |rules, states, seed| {
            // As long as the others, whether or not that is enough for this ε and these states.
            Box::new(PersistentQuery::new(seed, states, 16 * rules.capacity as u64))
        }),
        attack("unfixable-set", false, |_, states, seed| Box::new(UnfixableSet::new(seed, states))),
        attack("deletion-timing", true, |_, _, seed| Box::new(DeletionTiming::new(seed, 16))),
        attack("query-mates", true, |rules, _, seed| Box::new(mates(rules, seed))),
        attack("reversed-mates", true, |rules, _, seed| Box::new(mates(rules, seed).reversed())),
        attack("gathering", true, |rules, _, seed| {
            let lookups = 4.0 * rules.capacity as f64 / rules.rate;
            Box::new(Gathering::new(seed, lookups.min(1e9) as u64, 1))
        }),
        attack("side-inference", true, |rules, _, seed| {
            Box::new(SideInference::new(seed, 2, rules.capacity / 8 + 1))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_called_what_their_adversaries_are() {
        let rules = Rules { capacity: 16, rate: 0.1 };
        for attack in gallery() {
            assert_eq!(attack.against(rules, 2, 1).name(), attack.name);
        }
    }
}
