//! The adaptivity game, with the figures that the filter promises: ε = 2^-6 or 1/93, 2^9 to 2^14 keys, 200 games each.
//!
//! Catches: anything that lets an adversary learn where a false positive is going to be. That the timing attack
//! wins without ghosts shows that the games can be lost.
use crate::game::{
    Adversary, Answers, DeletionTiming, FreshKeys, LowerBoundRounds, Oracle, RepeatFalsePositives, Rules,
    SingleQuery,
};
use crate::{MemoryRemote, Xxh3};

use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::{Tested, filter};

const GAMES: u64 = 200;

/// Games of those that are played while the frontier walks.
const WALKING_GAMES: u64 = 400;

/// Wins, and false positives per negative look-up.
fn play<G: Tested>(
    capacity: usize,
    ghosts: bool,
    adversary: impl Fn(u64) -> Box<dyn Adversary>,
) -> (u64, f64) {
    let prepare = |filter: &mut Core<G, Xxh3>| filter.local.switches.ghosts = ghosts;
    play_with(GAMES, capacity, prepare, |_| {}, adversary)
}

/// The same with filters that are made ready before the games and looked at after them.
fn play_with<G: Tested>(
    games: u64,
    capacity: usize,
    prepare: impl Fn(&mut Core<G, Xxh3>),
    mut look: impl FnMut(&Core<G, Xxh3>),
    adversary: impl Fn(u64) -> Box<dyn Adversary>,
) -> (u64, f64) {
    let rules = Rules { capacity, rate: G::RATE };
    let (mut wins, mut positives, mut negatives) = (0, 0, 0);
    for seed in 0..games {
        let mut filter = filter::<G>(G::for_games(), capacity, seed * 2 + 1);
        prepare(&mut filter);
        let mut oracle = Oracle::new(filter, MemoryRemote::new(), rules);
        let outcome = oracle.play(adversary(seed ^ 0xa5a5_0000).as_mut()).unwrap();
        assert_eq!(outcome.false_negatives, 0);
        look(oracle.filter());
        wins += u64::from(outcome.won);
        positives += outcome.false_positives;
        negatives += outcome.negative_lookups;
    }
    (wins, positives as f64 / f64::max(negatives as f64, 1.0))
}

/// The chance of more than `wins` wins in so many games if each is won with probability `p`.
fn tail_of(games: u64, wins: u64, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(games as i32);
    let mut below = term;
    for win in 1..=wins {
        term *= (games - win + 1) as f64 / win as f64 * p / (1.0 - p);
        below += term;
    }
    1.0 - below
}

fn tail(wins: u64, p: f64) -> f64 {
    tail_of(GAMES, wins, p)
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
    no_more_on::<BroomQuotients>(name, sizes, &adversary);
    // What is the same on both tables need not be played so often.
    no_more_on::<BroomBins>(name, &sizes[..1], &adversary);
}

fn no_more_on<G: Tested>(name: &str, sizes: &[u32], adversary: &impl Fn(usize, u64) -> Box<dyn Adversary>) {
    let epsilon = G::RATE;
    for log2 in sizes {
        let capacity = 1 << log2;
        let (wins, rate) = play::<G>(capacity, true, |seed| adversary(capacity, seed));
        let (lower, upper) = interval(wins);
        println!(
            "{name}, n = 2^{log2}: {wins} of {GAMES} games won, 99% interval {lower:.4}..{upper:.4}, ε = {epsilon:.4}, \
             {rate:.5} false positives per negative look-up"
        );
        assert!(wins == 0 || tail(wins - 1, epsilon) > 0.001, "{name}: {wins} wins are more than ε allows");
        assert!(rate <= G::RATE * 1.05, "{name}: {rate} false positives per negative look-up");
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
    let attack = |seed| -> Box<dyn Adversary> { Box::new(DeletionTiming::new(seed, 8)) };
    for wins in
        [play::<BroomQuotients>(1 << 12, false, attack).0, play::<BroomBins>(1 << 12, false, attack).0]
    {
        println!("timing without ghosts, n = 2^12: {wins} of {GAMES} games won");
        assert!(wins > GAMES * 9 / 10, "{wins} of {GAMES} games won");
    }
}

/// Collects false positives, and knows from their number how far the frontier has come: every one of them carries ten
/// keys. When it should be at the chosen share of a phase, counted over all phases, the adversary asks again about all
/// that it has collected, and guesses the one that came back most often; so it looks for repairs that are forgotten too
/// early.
struct FrontierTiming {
    seed: u64,
    /// Where in a phase it strikes.
    share: f64,
    phases: f64,
    /// Whether it replaces stored keys in between, as many as it finds false positives.
    churn: bool,
}

impl Adversary for FrontierTiming {
    fn name(&self) -> &'static str {
        "frontier-timing"
    }

    fn attack(&mut self, rules: Rules, oracle: &mut dyn Answers) -> Vec<u8> {
        let mut keys = FreshKeys::new(self.seed);
        let mut stored: Vec<[u8; 8]> = keys.by_ref().take(rules.capacity).collect();
        stored.iter().for_each(|key| oracle.insert(key));
        let mut found: Vec<([u8; 8], u32)> = Vec::new();
        let (mut positives, mut strike) = (0.0, self.share);
        loop {
            let key = keys.next().unwrap_or_default();
            if oracle.lookup(&key) {
                positives += 1.0;
                found.push((key, 0));
                if self.churn {
                    let slot = keys.below(stored.len());
                    oracle.remove(&stored[slot]);
                    stored[slot] = keys.next().unwrap_or_default();
                    oracle.insert(&stored[slot]);
                }
            }
            // Four keys are carried with every false positive.
            let phase = 10.0 * positives / rules.capacity as f64;
            if phase < strike {
                continue;
            }
            if strike + 1.0 > self.phases {
                break;
            }
            for (key, hits) in &mut found {
                if oracle.lookup(key) {
                    *hits += 1;
                    positives += 1.0;
                }
            }
            strike = phase.max(strike) + 1.0;
        }
        found.iter().max_by_key(|(_, hits)| hits).map_or_else(Vec::new, |(key, _)| key.to_vec())
    }
}

#[test]
fn whoever_times_queries_by_the_frontier_wins_no_more_than_epsilon() {
    timed_by_the_frontier::<BroomQuotients>();
    timed_by_the_frontier::<BroomBins>();
}

fn timed_by_the_frontier<G: Tested>() {
    let games = WALKING_GAMES;
    let sizes: &[u32] = if std::env::var_os("BESOM_FULL").is_some() { &[9, 11, 12] } else { &[9] };
    for &log2 in sizes {
        for (share, churn) in [(0.5, false), (0.5, true), (0.98, false), (1.02, true)] {
            let mut phases = 0.0_f64;
            let look = |filter: &Core<G, Xxh3>| {
                let levels = filter.levels();
                phases = phases.max(levels.phase as f64 + levels.frontier);
            };
            // The frontier moves with every repair.
            let prepare = |filter: &mut Core<G, Xxh3>| filter.local.budget = 0;
            let (wins, rate) = play_with(games, 1 << log2, prepare, look, |seed| {
                Box::new(FrontierTiming { seed, share, phases: 3.0, churn })
            });
            println!(
                "frontier timing, n = 2^{log2}, strikes at {share}, churn {churn}: {wins} of {games} games won, up to \
                 {phases:.2} phases, {rate:.5} false positives per negative look-up, ε = {:.4}",
                G::RATE
            );
            assert!(phases > 2.0, "{phases}");
            assert!(
                wins == 0 || tail_of(games, wins - 1, G::RATE) > 0.001,
                "{wins} wins are more than ε allows"
            );
            assert!(rate <= G::RATE * 1.05, "{rate} false positives per negative look-up");
        }
    }
}

#[test]
fn the_attacks_win_no_more_than_epsilon_in_mid_phase() {
    attacked_in_mid_phase::<BroomQuotients>();
    attacked_in_mid_phase::<BroomBins>();
}

fn attacked_in_mid_phase<G: Tested>() {
    type Attack = fn(usize, u64) -> Box<dyn Adversary>;
    let attacks: [(&str, Attack); 3] = [
        ("repeat", |n, seed| Box::new(RepeatFalsePositives::new(seed, 4 * n))),
        ("lower-bound", |_, seed| Box::new(LowerBoundRounds::new(seed, 4))),
        ("timing", |_, seed| Box::new(DeletionTiming::new(seed, 8))),
    ];
    for (name, attack) in attacks {
        let capacity = 1 << 10;
        let prepare = |filter: &mut Core<G, Xxh3>| {
            filter.local.budget = 0;
            // In the middle of a class, and of the phase.
            let walk = filter.local.functions.walk();
            filter.local.functions.set_position((3, walk / 2 + walk / 128));
        };
        let (wins, rate) = play_with(WALKING_GAMES, capacity, prepare, |_| {}, |seed| attack(capacity, seed));
        println!(
            "{name} in mid-phase: {wins} of {WALKING_GAMES} games won, {rate:.5} false positives per look-up"
        );
        assert!(wins == 0 || tail_of(WALKING_GAMES, wins - 1, G::RATE) > 0.001, "{name}: {wins} wins");
        assert!(rate <= G::RATE * 1.05, "{name}: {rate} false positives per negative look-up");
    }
}
