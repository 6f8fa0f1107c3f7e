//! Homes: which range of addresses the keys have that a table cannot tell apart by their places.
//!
//! The upper half of a digest times the number of *units* of a table (its slots or bins) is a fixed-point number. Its
//! integer part is the unit; with some digits behind it, the first of them in any base, it is the *home*. So homes,
//! units and addresses ascend together, and the keys of a home are those whose address lies in one range, whatever the
//! size of the table:
//!
//! ```text
//! home h of M = units · parts · 2^digits     ⌈h · 2^64 / M⌉ ..= ⌈(h + 1) · 2^64 / M⌉ − 1
//! ```

use std::ops::RangeInclusive;

/// How addresses are cut into homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Homes {
    /// How many slots or bins there are.
    pub(crate) units: u64,
    /// The base of the first digit behind a unit; 1 if there is none but the binary ones.
    pub(crate) parts: u64,
    /// The binary digits of a home behind that. All homes together are 2^64 at most.
    pub(crate) digits: u32,
}

impl Homes {
    /// The home of an address.
    #[inline]
    pub(crate) fn of(self, address: u64) -> u64 {
        // Units and parts are so few that their product has 64 bits.
        ((u128::from(address) * u128::from(self.units * self.parts)) >> (64 - self.digits)) as u64
    }

    /// The unit of an address.
    #[inline]
    pub(crate) fn unit_of(self, address: u64) -> u64 {
        ((u128::from(address) * u128::from(self.units)) >> 64) as u64
    }

    /// The unit of a home.
    #[inline]
    pub(crate) fn unit(self, home: u64) -> u64 {
        if self.digits < 64 { (home >> self.digits) / self.parts } else { 0 }
    }

    /// The addresses of a home.
    pub(crate) fn addresses(self, home: u64) -> RangeInclusive<u64> {
        self.first(home.into())..=self.last(home.into(), self.digits)
    }

    /// The addresses of some neighbouring units.
    pub(crate) fn of_units(self, units: RangeInclusive<u64>) -> RangeInclusive<u64> {
        let units_alone = Self { parts: 1, digits: 0, ..self };
        units_alone.first((*units.start()).into())..=units_alone.last((*units.end()).into(), 0)
    }

    /// Units times parts.
    fn whole(self) -> u128 {
        u128::from(self.units) * u128::from(self.parts)
    }

    /// The first address of a home.
    fn first(self, home: u128) -> u64 {
        (home << 64).div_ceil(self.whole() << self.digits) as u64
    }

    /// The last address of a home: the one before the next home, or the last of all.
    fn last(self, home: u128, digits: u32) -> u64 {
        let next = home + 1;
        if next == self.whole() << digits { u64::MAX } else { self.first(next) - 1 }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a range that is off by one at either end, homes that overlap or leave addresses out.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn ranges_have_exactly_the_addresses_of_their_homes() {
        let mut random = Random::new(1);
        let units = [1, 2, 3, 5, 1_000, 1 << 20, (1 << 20) + 1, (1 << 40) - 1, 1 << 40];
        let parts = [(1, 0), (1, 1), (1, 8), (1, 22), (1, 24), (50, 8), (41, 10), (25, 8)];
        for (units, (parts, digits)) in units.into_iter().flat_map(|units| parts.map(|parts| (units, parts)))
        {
            let homes = Homes { units, parts, digits };
            let last = homes.of(u64::MAX);
            assert_eq!(u128::from(last) + 1, u128::from(units * parts) << digits);
            let some = [0, 1, last / 2, last].into_iter().chain((0..500).map(|_| homes.of(random.next())));
            for home in some.filter(|&home| home <= last) {
                let (start, end) = homes.addresses(home).into_inner();
                assert!(start <= end, "{homes:?}: home {home} has no address");
                assert_eq!((homes.of(start), homes.of(end)), (home, home), "{homes:?}");
                assert!(start == 0 || homes.of(start - 1) + 1 == home, "{homes:?}");
                assert!(end == u64::MAX || homes.of(end + 1) - 1 == home, "{homes:?}");
                let unit = homes.unit(home);
                assert_eq!((homes.unit_of(start), homes.unit_of(end)), (unit, unit), "{homes:?}");
                let of_unit = homes.of_units(unit..=unit);
                assert!(*of_unit.start() <= start && end <= *of_unit.end());
                let alone = Homes { units, parts: 1, digits: 0 };
                assert_eq!((alone.of(*of_unit.start()), alone.of(*of_unit.end())), (unit, unit));
            }
        }
    }
}
