//! 002, Figure 15: places that removed items hold on to while items are replaced.

use std::collections::VecDeque;

use besom::tinyset::TinySet;
use besom::{Filter, Insert, Remove};

use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::random::Random;
use crate::report::{Axis, Claim, Line, Plot, Section, compact};
use crate::workload::Uniform;

/// The figure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement;

/// Items of a block. The paper does not say how many; its percentages fit 38 to 48. The fewer, the more their number
/// varies, and the more places are held: with 40, a sliding window ends at 37.6%.
const ITEMS_PER_BLOCK: f64 = 44.0;

/// Where the places are counted: removals per stored item.
const STOPS: [f64; 8] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 7.0, 10.0];

/// What the paper says: after this many removals per item, this many held places per item.
const PAPER: [(f64, f64); 3] = [(0.5, 0.11), (1.0, 0.16), (10.0, 0.35)];

/// Which item goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// The oldest one.
    SlidingWindow,
    /// Any.
    Random,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Self::SlidingWindow => "sliding window",
            Self::Random => "random",
        }
    }
}

fn keys(setting: &Setting) -> usize {
    setting.pick(40_000, 400_000)
}

/// Fills a filter, then inserts and removes one item at a time.
fn replace(pattern: Pattern, keys: usize, seed: u64, run: u32) -> Result<Vec<Point>, TaskError> {
    let builder = TinySet::builder().capacity(keys).chains(64).items_per_block(ITEMS_PER_BLOCK).removal(true);
    let mut filter = builder.seed(seed).build()?;
    let (mut fresh, mut random) = (Uniform::new(seed), Random::new(seed));
    let mut stored: VecDeque<u64> = fresh.by_ref().take(keys).collect();
    stored.iter().try_for_each(|key| filter.insert(key).map(drop))?;
    let (mut points, mut removed) = (Vec::new(), 0_usize);
    for stop in STOPS {
        while (removed as f64) < stop * keys as f64 {
            let Some(new) = fresh.next() else { break };
            filter.insert(&new)?;
            stored.push_back(new);
            let victim = match pattern {
                Pattern::SlidingWindow => stored.pop_front(),
                Pattern::Random => stored.swap_remove_back(random.below(keys as u64) as usize),
            };
            if !filter.remove(&victim.unwrap_or(new))? {
                return Err("TinySet lost a stored key".into());
            }
            removed += 1;
        }
        let held = filter.held_places() as f64 / filter.len() as f64;
        points.push(Point::new(pattern.name(), stop, run).with("held", held));
    }
    Ok(points)
}

impl Experiment for Replacement {
    fn name(&self) -> &'static str {
        "002-figure-15-replacement"
    }

    fn title(&self) -> &'static str {
        "TinySet: places of removed items"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let (keys, mut tasks) = (keys(setting), Vec::new());
        for pattern in [Pattern::SlidingWindow, Pattern::Random] {
            for run in 0..setting.repetitions(2, 10) {
                let seed = setting.seed("replacement", run);
                let id = format!("{}, run {run}", pattern.name());
                tasks.push(Task::new(id, 25.0 * keys as f64, move || replace(pattern, keys, seed, run)));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let mut plot = Plot::lines(
            "held",
            "Places of removed items over replaced items",
            Axis::linear("removals per stored item"),
            Axis::linear("held places per stored item").including(0.0),
        );
        for series in points.series("") {
            plot.line(Line::new(series, points.curve("", series, "held")));
        }
        plot.line(Line::exact("paper", PAPER));
        let note = format!("{} keys, {ITEMS_PER_BLOCK} in a block of 64 bytes and 64 chains.", keys(setting));
        let section = Section::new().note(note).plot(plot);
        [Pattern::SlidingWindow, Pattern::Random]
            .into_iter()
            .fold(section, |section, pattern| section.claim(claim(points, pattern)))
    }
}

fn claim(points: &Points, pattern: Pattern) -> Claim {
    let claim = Claim::new(format!(
        "{}: removed items hold 11%, 16% and 35% as many places as there are items after 50%, 100% and 1000% were replaced \
         (± 2 points)",
        pattern.name()
    ));
    let held: Option<Vec<f64>> =
        PAPER.iter().map(|(stop, _)| points.mean("", pattern.name(), *stop, "held")).collect();
    let Some(held) = held else { return claim };
    let text = held.iter().map(|held| format!("{}%", compact(100.0 * held))).collect::<Vec<_>>().join(", ");
    claim.measured(text, held.iter().zip(PAPER).all(|(held, (_, paper))| (held - paper).abs() <= 0.02))
}

#[cfg(test)]
mod tests {
    //! Catches: removed places that are not taken over again, or are taken over where they must not be.
    use super::*;

    #[test]
    fn removed_items_hold_as_many_places_as_the_paper_says() {
        for pattern in [Pattern::SlidingWindow, Pattern::Random] {
            let points: Points = replace(pattern, 50_000, 3, 0).unwrap().into_iter().collect();
            for (stop, paper) in PAPER {
                let held = points.mean("", pattern.name(), stop, "held").unwrap();
                assert!((held - paper).abs() <= 0.02, "{}, {stop}: {held}, not {paper}", pattern.name());
            }
        }
    }
}
