//! A network trace in the likeness of those the papers use, which may not be passed on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::{Random, mix};

/// Packets of network flows, one key per flow.
///
/// The flow of rank i has ⌊(F/i)^α⌋ packets, F the number of flows: half of the flows have a single packet, the
/// first hundredth carries two thirds of all packets. Packets of a flow come in bursts and close to each other;
/// flows of many packets last long and are mostly under way when the trace begins, as in a real one.
///
/// Memory: the flows under way, and 4 bytes for every flow.
///
/// ```
/// use besom_lab::workload::{FlowShape, FlowTrace};
///
/// let packets: Vec<u64> = FlowTrace::new(FlowShape { flows: 1000, alpha: 1.0 }, 7).collect();
/// let flows: std::collections::HashSet<u64> = packets.iter().copied().collect();
/// assert_eq!(flows.len(), 1000);
/// ```
#[derive(Debug)]
pub struct FlowTrace {
    shape: FlowShape,
    random: Random,
    salt: u64,
    /// The ranks of the flows in the order of their beginnings, the next one last.
    to_come: Vec<(u32, u32)>,
    /// Flows under way by the time of their next packet.
    under_way: BinaryHeap<Reverse<Flow>>,
}

/// Sizes of a [`FlowTrace`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowShape {
    /// How many flows.
    pub flows: u32,
    /// The exponent of their sizes; real traces have 1.00 to 1.08.
    pub alpha: f64,
}

/// Ordered by the time of the next packet, then by rank, so that equal times cause no doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    time: u64,
    rank: u32,
    left: u64,
    /// The mean gap between packets.
    gap: u64,
}

/// The trace lasts that many units of time.
const DURATION: u64 = 1 << 32;
/// The mean gap between the packets of a flow that is not large.
const USUAL_GAP: u64 = DURATION / 400;
/// The share of gaps inside a burst, which are this much shorter.
const BURST: f64 = 0.5;
const BURST_FACTOR: f64 = 50.0;

impl FlowShape {
    /// The packets of the flow of a rank, counted from 1.
    #[must_use]
    pub fn packets(&self, rank: u32) -> u64 {
        (f64::from(self.flows) / f64::from(rank.max(1))).powf(self.alpha).floor().max(1.0) as u64
    }

    /// The packets of the whole trace.
    #[must_use]
    pub fn total(&self) -> u64 {
        (1..=self.flows).map(|rank| self.packets(rank)).sum()
    }
}

impl FlowTrace {
    /// The trace of this seed.
    #[must_use]
    pub fn new(shape: FlowShape, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut to_come: Vec<(u32, u32)> =
            (1..=shape.flows).map(|rank| (start(&shape, rank, &mut random), rank)).collect();
        to_come.sort_unstable_by(|a, b| b.cmp(a));
        let salt = mix(seed ^ 0xbb67_ae85_84ca_a73b);
        Self { shape, random, salt, to_come, under_way: BinaryHeap::new() }
    }

    /// Lets the flows begin that begin before the next packet of those under way.
    fn begin_due(&mut self) {
        while let Some(&(time, rank)) = self.to_come.last() {
            let time = u64::from(time);
            if self.under_way.peek().is_some_and(|Reverse(next)| next.time < time) {
                return;
            }
            self.to_come.pop();
            let left = self.shape.packets(rank);
            // What is left of the trace is enough for all packets.
            let gap = USUAL_GAP.min((DURATION - time) / left).max(1);
            self.under_way.push(Reverse(Flow { time, rank, left, gap }));
        }
    }

    /// Exponential gaps, half of them inside a burst; the mean is `gap`.
    fn gap(&mut self, gap: u64) -> u64 {
        let exponential = -(1.0 - self.random.unit()).ln();
        let factor = if self.random.unit() < BURST {
            1.0 / BURST_FACTOR
        } else {
            (1.0 - BURST / BURST_FACTOR) / (1.0 - BURST)
        };
        (gap as f64 * exponential * factor) as u64
    }
}

/// When a flow begins: uniformly, but a flow that lasts long may have begun before the trace, and then is there
/// from the beginning.
fn start(shape: &FlowShape, rank: u32, random: &mut Random) -> u32 {
    let life = (shape.packets(rank) * USUAL_GAP).min(DURATION);
    random.below(DURATION + life).saturating_sub(life).min(u64::from(u32::MAX)) as u32
}

impl Iterator for FlowTrace {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.begin_due();
        let Reverse(mut flow) = self.under_way.pop()?;
        let key = mix(self.salt ^ u64::from(flow.rank));
        flow.left -= 1;
        if flow.left > 0 {
            flow.time += self.gap(flow.gap);
            self.under_way.push(Reverse(flow));
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn sizes_are_those_of_real_traces() {
        for (alpha, mean) in [(1.0, 11.0..15.0), (1.05, 16.0..22.0)] {
            let shape = FlowShape { flows: 300_000, alpha };
            let mut sizes: HashMap<u64, u64> = HashMap::new();
            FlowTrace::new(shape, 1).for_each(|key| *sizes.entry(key).or_default() += 1);
            assert_eq!(sizes.len(), 300_000);
            let mut sizes: Vec<u64> = sizes.into_values().collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let total: u64 = sizes.iter().sum();
            assert_eq!(total, shape.total());
            assert!(mean.contains(&(total as f64 / 300_000.0)), "{total}");
            let ones = sizes.iter().filter(|&&size| size == 1).count() as f64 / 300_000.0;
            assert!((0.45..0.55).contains(&ones), "{ones}");
            let top = sizes[..3000].iter().sum::<u64>() as f64 / total as f64;
            assert!((0.6..0.8).contains(&top), "{top}");
        }
    }

    #[test]
    fn packets_of_a_flow_are_close_together() {
        let packets: Vec<u64> = FlowTrace::new(FlowShape { flows: 100_000, alpha: 1.0 }, 2).collect();
        let mut last: HashMap<u64, usize> = HashMap::new();
        let mut gaps: Vec<usize> = Vec::new();
        for (index, key) in packets.iter().enumerate() {
            if let Some(before) = last.insert(*key, index) {
                gaps.push(index - before);
            }
        }
        gaps.sort_unstable();
        // Shuffled, the median gap of this trace would be far larger than one in 1000 packets.
        assert!(gaps[gaps.len() / 2] < packets.len() / 1000, "{}", gaps[gaps.len() / 2]);
    }
}
