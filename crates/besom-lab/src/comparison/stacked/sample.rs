//! What a stacked filter is told of the queries to come.

use std::collections::HashMap;

/// Absent keys by how often they were asked for in a sample of queries, and how far such a ranking can be relied on.
///
/// ```
/// use besom_lab::comparison::Sample;
///
/// let queries = ["a", "b", "a", "a", "c", "a", "b", "b"];
/// let sample = Sample::of(queries.iter().map(|key| key.as_bytes()));
/// assert_eq!(sample.ranked(2).collect::<Vec<_>>(), [b"a", b"b"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The most frequent first.
    ranked: Vec<Box<[u8]>>,
    shares: Vec<(usize, f64)>,
}

impl Sample {
    /// Ranks the absent keys of a sample of queries.
    pub fn of<'k>(queries: impl IntoIterator<Item = &'k [u8]>) -> Self {
        // How often in either half: one half ranks, the other says what the ranking is worth.
        let mut counts: HashMap<&[u8], [u32; 2]> = HashMap::new();
        let mut half = 0;
        for key in queries {
            counts.entry(key).or_default()[half] += 1;
            half = 1 - half;
        }
        let mut keys: Vec<(&[u8], [u32; 2])> = counts.into_iter().collect();
        keys.sort_unstable_by(|a, b| b.1[0].cmp(&a.1[0]).then(a.0.cmp(b.0)));
        let shares = shares(&keys);
        keys.sort_unstable_by(|a, b| {
            (b.1.iter().sum::<u32>()).cmp(&a.1.iter().sum::<u32>()).then(a.0.cmp(b.0))
        });
        Self { ranked: keys.into_iter().map(|(key, _)| key.into()).collect(), shares }
    }

    /// The most frequent keys, as many as there are of `count`.
    pub fn ranked(&self, count: usize) -> impl Iterator<Item = &[u8]> {
        self.ranked.iter().take(count).map(AsRef::as_ref)
    }

    /// Which share of the queries to come the most frequent k keys make up, for several k.
    #[must_use]
    pub fn shares(&self) -> &[(usize, f64)] {
        &self.shares
    }
}

/// Shares of the second half that the most frequent keys of the first half make up, at sizes that grow by a half.
fn shares(keys: &[(&[u8], [u32; 2])]) -> Vec<(usize, f64)> {
    let total: u64 = keys.iter().map(|(_, counts)| u64::from(counts[1])).sum();
    let (mut shares, mut met, mut next) = (Vec::new(), 0, 16);
    // A key that the first half never saw cannot be ranked.
    let seen = keys.iter().take_while(|(_, counts)| counts[0] > 0).count();
    for (place, (_, counts)) in keys.iter().take(seen).enumerate() {
        met += u64::from(counts[1]);
        if place + 1 == next || place + 1 == seen {
            shares.push((place + 1, met as f64 / total.max(1) as f64));
            next += next / 2;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Uniform, Zipf};

    fn sample(stream: impl Iterator<Item = u64>) -> Sample {
        let keys: Vec<[u8; 8]> = stream.map(u64::to_le_bytes).collect();
        Sample::of(keys.iter().map(<[u8; 8]>::as_slice))
    }

    #[test]
    fn shares_are_those_of_the_queries_to_come() {
        let sample = sample(Zipf::new(10_000, 1.0, 3).unwrap().take(50_000));
        let (known, share) = sample.shares()[12];
        let known: std::collections::HashSet<Vec<u8>> = sample.ranked(known).map(<[u8]>::to_vec).collect();
        // The same law, other draws: the keys of ranks follow from the seed, the draws from how many there were before.
        let later = Zipf::new(10_000, 1.0, 3).unwrap().skip(50_000).take(50_000);
        let met = later.filter(|key| known.contains(&key.to_le_bytes()[..])).count() as f64 / 50_000.0;
        assert!((met - share).abs() < 0.03, "{met} where {share} was expected");
    }

    #[test]
    fn what_never_comes_again_is_worth_nothing() {
        let sample = sample(Uniform::new(1).take(10_000));
        assert!(sample.shares().iter().all(|&(_, share)| share == 0.0));
        assert!(Sample::of([]).shares().is_empty());
    }
}
