//! How the false-positive rates fall from level to level.

/// The false-positive rates ε₀, ε₁, … of the levels of a [`Cascade`](super::Cascade).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Schedule {
    /// εᵢ₊₁ = εᵢ². Few bits per level, and O(log log n) levels.
    #[default]
    Squaring,
    /// ε₁ = ε^(1/√ε) and εᵢ₊₁ = ε^(1/εᵢ). Larger levels, but only O(log* n) of them: for filters whose query
    /// time does not depend on the rate.
    LogStar,
}

impl Schedule {
    /// The lowest rate of a level. Below it more bits change nothing: a billion queries that got so far find
    /// fewer than one false positive, and the next level catches that one.
    pub(super) const LOWEST: f64 = 1.0 / (1_u64 << 32) as f64;

    /// The rates of this many levels.
    pub(super) fn rates(self, rate: f64, levels: usize) -> Vec<f64> {
        let next = |&(level, last): &(usize, f64)| {
            let next = match self {
                Self::Squaring => last * last,
                Self::LogStar if level == 0 => rate.powf(1.0 / rate.sqrt()),
                Self::LogStar => rate.powf(1.0 / last),
            };
            Some((level + 1, next.max(Self::LOWEST.min(last))))
        };
        let rates = std::iter::successors(Some((0, rate)), next);
        rates.map(|(_, rate)| rate).take(levels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_as_in_the_paper_until_they_are_low_enough() {
        let low = Schedule::LOWEST;
        assert_eq!(Schedule::Squaring.rates(0.25, 5), [0.25, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 65536.0, low]);
        assert_eq!(Schedule::LogStar.rates(0.25, 4), [0.25, 1.0 / 16.0, low, low]);
        assert_eq!(Schedule::LogStar.rates(1.0 / 256.0, 2), [1.0 / 256.0, low]);
        // A rate below the lowest is kept as it is.
        assert_eq!(Schedule::Squaring.rates(1e-12, 2), [1e-12, 1e-12]);
    }
}
