//! The game, played against a subject of the lab.

use besom::game::{Adversary, Answers, Outcome, Rules};

use crate::subject::{Answer, SubjectError, Trial};

/// Lets an adversary play one game against a trial, the guess included.
///
/// # Errors
///
/// The first error of the filter, a false negative among them.
pub fn play(trial: &mut Trial, rules: Rules, adversary: &mut dyn Adversary) -> Result<Outcome, SubjectError> {
    let mut game = Game { trial, rules, outcome: Outcome::default(), error: None };
    let guess = adversary.attack(rules, &mut game);
    let Game { trial, mut outcome, error, .. } = game;
    if let Some(error) = error {
        return Err(error);
    }
    outcome.won = trial.lookup(&guess)?.is_false_positive();
    Ok(outcome)
}

struct Game<'t> {
    trial: &'t mut Trial,
    rules: Rules,
    outcome: Outcome,
    /// The first error; nothing is done after it.
    error: Option<SubjectError>,
}

impl Game<'_> {
    fn note<T>(&mut self, result: Result<T, SubjectError>) -> Option<T> {
        result.map_err(|error| self.error = Some(error)).ok()
    }
}

impl Answers for Game<'_> {
    fn lookup(&mut self, key: &[u8]) -> bool {
        if self.error.is_some() {
            return false;
        }
        let result = self.trial.lookup(key);
        let Some(answer) = self.note(result) else { return false };
        self.outcome.lookups += 1;
        self.outcome.negative_lookups += u64::from(answer != Answer::Positive);
        self.outcome.false_positives += u64::from(answer.is_false_positive());
        answer != Answer::Negative
    }

    fn insert(&mut self, key: &[u8]) {
        if self.error.is_some() || self.trial.len() >= self.rules.capacity {
            return;
        }
        let result = self.trial.insert(key);
        self.outcome.insertions += u64::from(self.note(result) == Some(true));
    }

    fn remove(&mut self, key: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let result = self.trial.remove(key);
        self.outcome.removals += u64::from(self.note(result) == Some(true));
    }
}
