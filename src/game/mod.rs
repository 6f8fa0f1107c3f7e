//! The adaptivity game: a filter against an adversary who sees nothing but answers.
//!
//! A filter is *adaptive* if no adversary can name a false positive with a probability above ε, whatever it asked
//! before. The game that says so has three parts:
//!
//! ```text
//!   Adversary ── lookup, insert, remove ──▶ Oracle = filter + remote + the exact set S
//!       ▲                                     │   a look-up that was a false positive is followed by `adapt`
//!       └────────── present / absent ─────────┘
//!   at last: one key, the guess. It wins if the filter accepts it and S does not hold it.
//! ```
//!
//! [`Oracle`] plays for any [`Adaptive`](crate::Adaptive) filter, any [`Adversary`] plays against it, and an
//! [`Outcome`] says how it ended. The adversaries here are those of the papers:
//!
//! | adversary | what it tries | who falls to it |
//! |---|---|---|
//! | [`SingleQuery`] | a key never asked before | nobody beyond the filter's own ε |
//! | [`RepeatFalsePositives`] | the false positives it has found, again and again | every filter that does not adapt |
//! | [`LowerBoundRounds`] | rounds that ask again what the round before got through | filters that forget repairs |
//! | [`DeletionTiming`] | removes and inserts the stored key that a false positive collided with | filters that forget the repairs of a removed key |
//!
//! Everything is seeded: the same filter, seed and adversary play the same game.
//!
//! The game is that of Bender, Farach-Colton, Goswami, Johnson and others, *Bloom Filters, Adaptivity,
//! and the Dictionary Problem* (2018), Figure 1; [`LowerBoundRounds`] is their section 6.1 and [`DeletionTiming`]
//! their section 4.3.

mod keys;
mod oracle;
mod repeat;
mod rounds;
mod single;
mod timing;

pub use keys::FreshKeys;
pub use oracle::Oracle;
pub use repeat::RepeatFalsePositives;
pub use rounds::LowerBoundRounds;
pub use single::SingleQuery;
pub use timing::DeletionTiming;

/// What an adversary is told before the game: what anybody knows of the filter from its documentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// How many keys may be stored at a time. Insertions beyond it are ignored.
    pub capacity: usize,
    /// The false-positive rate ε that the filter promises.
    pub rate: f64,
}

/// All that an adversary can do to a filter, and all that it learns.
///
/// Keys are bytes, as everywhere in this crate.
pub trait Answers {
    /// Whether the filter accepts the key. If it should not have, the filter has adapted before this returns.
    fn lookup(&mut self, key: &[u8]) -> bool;

    /// Stores a key. Ignored if it is stored already or the capacity is reached.
    fn insert(&mut self, key: &[u8]);

    /// Removes a key. Ignored if it is not stored.
    fn remove(&mut self, key: &[u8]);
}

/// A player that tries to name a false positive.
pub trait Adversary {
    /// A short name for reports, in kebab case.
    fn name(&self) -> &'static str;

    /// Plays against the oracle and returns the guess: a key that it believes to be a false positive now.
    ///
    /// The guess is looked up after this returns, and only then is it known whether the adversary won.
    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8>;
}

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the guess was a false positive.
    pub won: bool,
    /// Look-ups before the guess.
    pub lookups: u64,
    /// Those among them whose key was not stored.
    pub negative_lookups: u64,
    /// Those among them that the filter accepted nevertheless.
    pub false_positives: u64,
    /// Look-ups of stored keys that the filter rejected. A filter of this crate never does that.
    pub false_negatives: u64,
    /// Keys inserted.
    pub insertions: u64,
    /// Keys removed.
    pub removals: u64,
}

impl Outcome {
    /// The share of negative look-ups that the filter accepted; 0 if there were none.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        if self.negative_lookups == 0 {
            0.0
        } else {
            self.false_positives as f64 / self.negative_lookups as f64
        }
    }
}

#[cfg(any())]
mod tests;
