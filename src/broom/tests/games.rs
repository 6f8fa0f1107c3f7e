//! The adaptivity game, with the figures that the filter promises: ε = 2^-6, 2^12 to 2^14 keys, 200 games each.
//!
//! Catches: anything that lets an adversary learn where a false positive is going to be. That the timing attack
//! wins without ghosts shows that the games can be lost.
use crate::game::{
    Adversary, DeletionTiming, LowerBoundRounds, Oracle, RepeatFalsePositives, Rules, SingleQuery,
};
use crate::{BroomFilter, MemoryRemote, Xxh3};

const RATE: f64 = 1.0 / 64.0;
const GAMES: u64 = 200;

fn filter(capacity: usize, seed: u64) -> BroomFilter<Xxh3> {
    BroomFilter::builder().capacity(capacity).false_positive_rate(RATE).seed(seed).build().unwrap()
}

/// Wins, and false positives per negative look-up.
fn play(capacity: usize, ghosts: bool, adversary: impl Fn(u64) -> Box<dyn Adversary>) -> (u64, f64) {
    let rules = Rules { capacity, rate: RATE };
    let (mut wins, mut positives, mut negatives) = (0, 0, 0);
    for seed in 0..GAMES {
        let mut filter = filter(capacity, seed * 2 + 1);
        filter.local.switches.ghosts = ghosts;
        let mut oracle = Oracle::new(filter, MemoryRemote::new(), rules);
        let outcome = oracle.play(adversary(seed ^ 0xa5a5_0000).as_mut()).unwrap();
        assert_eq!(outcome.false_negatives, 0);
        wins += u64::from(outcome.won);
        positives += outcome.false_positives;
        negatives += outcome.negative_lookups;
    }
    (wins, positives as f64 / f64::max(negatives as f64, 1.0))
}

/// The chance of more than `wins` wins in all games if each is won with probability `p`.
fn tail(wins: u64, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(GAMES as i32);
    let mut below = term;
    for win in 1..=wins {
        term *= (GAMES - win + 1) as f64 / win as f64 * p / (1.0 - p);
        below += term;
    }
    1.0 - below
}

/// The bounds of the 99% confidence interval (Clopper and Pearson) for the chance to win one game.
fn interval(wins: u64) -> (f64, f64) {
    let bisect = |too_small: &dyn Fn(f64) -> bool| {
        (0..60).fold((0.0, 1.0), |(low, high), _| {
            let middle = (low + high) / 2.0;
            if too_small(middle) { (middle, high) } else { (low, middle) }
        })
    };
    let upper = bisect(&|p| 1.0 - tail(wins, p) > 0.005).0;
    let lower = if wins == 0 { 0.0 } else { bisect(&|p| tail(wins - 1, p) < 0.005).0 };
    (lower, upper)
}

/// Fails if so many wins would come about once in 1000 times or less at ε.
fn no_more_than_the_rate(name: &str, sizes: &[u32], adversary: impl Fn(usize, u64) -> Box<dyn Adversary>) {
    for log2 in sizes {
        let capacity = 1 << log2;
        let (wins, rate) = play(capacity, true, |seed| adversary(capacity, seed));
        let (lower, upper) = interval(wins);
        println!(
            "{name}, n = 2^{log2}: {wins} of {GAMES} games won, 99% interval {lower:.4}..{upper:.4}, ε = {RATE:.4}, \
             {rate:.5} false positives per negative look-up"
        );
        assert!(wins == 0 || tail(wins - 1, RATE) > 0.001, "{name}: {wins} wins are more than ε allows");
        assert!(rate <= RATE * 1.05, "{name}: {rate} false positives per negative look-up");
    }
}

#[test]
fn a_blind_guess_wins_no_more_than_epsilon() {
    no_more_than_the_rate("single-query", &[12, 13, 14], |_, seed| Box::new(SingleQuery::new(seed)));
}

#[test]
fn repeating_false_positives_wins_no_more_than_epsilon() {
    no_more_than_the_rate("repeat", &[12, 13, 14], |n, seed| {
        Box::new(RepeatFalsePositives::new(seed, 4 * n))
    });
}

#[test]
fn the_attack_of_the_lower_bound_wins_no_more_than_epsilon() {
    no_more_than_the_rate("lower-bound", &[12, 13, 14], |_, seed| Box::new(LowerBoundRounds::new(seed, 4)));
}

/// The larger sizes take half a minute more: `BESOM_FULL=1` includes them.
#[test]
fn the_timing_attack_wins_no_more_than_epsilon() {
    let sizes: &[u32] = if std::env::var_os("BESOM_FULL").is_some() { &[12, 13, 14] } else { &[12] };
    no_more_than_the_rate("timing", sizes, |_, seed| Box::new(DeletionTiming::new(seed, 8)));
}

#[test]
fn the_timing_attack_wins_without_ghosts() {
    let (wins, _) = play(1 << 12, false, |seed| Box::new(DeletionTiming::new(seed, 8)));
    println!("timing without ghosts, n = 2^12: {wins} of {GAMES} games won");
    assert!(wins > GAMES * 9 / 10, "{wins} of {GAMES} games won");
}
