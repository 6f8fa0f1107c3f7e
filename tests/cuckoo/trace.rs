//! A packet trace in small: flows of Zipf sizes, the packets of a flow close together.

use besom::testing::Random;

/// The packets of a trace, each as the number of its flow.
///
/// The flow of rank r has `flows`/r^1.04 packets, at least 1, which makes half of the flows single packets and
/// about ten packets a flow. A flow begins at a random time and lasts for a random, mostly short part of the trace.
pub(crate) fn packets(flows: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut packets: Vec<(f64, u64)> = Vec::new();
    for rank in 1..=flows {
        let size = (0.5 * flows as f64 / (rank as f64).powf(1.04)).ceil() as u64;
        let start = fraction(&mut random);
        let duration = fraction(&mut random).powi(4);
        let flow = random.next();
        packets.extend((0..size).map(|_| (start + duration * fraction(&mut random), flow)));
    }
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    packets.into_iter().map(|(_, flow)| flow).collect()
}

/// A number from 0 up to 1, exclusively.
fn fraction(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn the_trace_looks_like_one() {
    let packets = packets(20_000, 1);
    let mut counts = std::collections::HashMap::new();
    packets.iter().for_each(|flow| *counts.entry(flow).or_insert(0_usize) += 1);
    let mut sizes: Vec<usize> = counts.into_values().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let top: usize = sizes[..sizes.len() / 100].iter().sum();
    let (mean, share) = (packets.len() as f64 / 20_000.0, top as f64 / packets.len() as f64);
    let singles = sizes.iter().filter(|&&size| size == 1).count();
    println!("{mean:.1} packets a flow, {singles} of one packet, the top 1% carry {share:.2}");
    assert!((4.0..30.0).contains(&mean) && (0.45..0.85).contains(&share));
    assert!((0.4..0.7).contains(&(singles as f64 / 20_000.0)));
}
