//! What a file holds: which filter, and with which hash function.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $name:literal;)*) => {
        /// Which filter a file holds. Names and numbers never change; new ones may be added.
        ///
        /// ```
        /// use besom::format::Kind;
        ///
        /// assert_eq!(Kind::BlockedBloom.to_string(), "blocked-bloom");
        /// assert_eq!("blocked-bloom".parse(), Ok(Kind::BlockedBloom));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $kind = $code,)*
        }

        impl Kind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name, as on command lines and in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The kind that is written as this number.
            pub(crate) const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// [`QuotientFilter`](crate::QuotientFilter).
    Quotient = 1, "quotient";
    /// [`TelescopingFilter`](crate::TelescopingFilter).
    Telescoping = 2, "telescoping";
    /// [`UncompressedTelescopingFilter`](crate::UncompressedTelescopingFilter).
    TelescopingUncompressed = 3, "telescoping-uncompressed";
    /// [`ExtensionFilter`](crate::ExtensionFilter).
    Extension = 4, "extension";
    /// [`BroomFilter`](crate::BroomFilter).
    Broom = 5, "broom";
    /// [`BinFilter`](crate::BinFilter).
    Bins = 6, "bins";
    /// [`CuckooFilter`](crate::CuckooFilter).
    Cuckoo = 16, "cuckoo";
    /// [`PartialKeyCuckooFilter`](crate::PartialKeyCuckooFilter).
    CuckooPartial = 17, "cuckoo-partial";
    /// [`CuckooingFilter`](crate::CuckooingFilter).
    Cuckooing = 18, "cuckooing";
    /// [`SwappingFilter`](crate::SwappingFilter).
    Swapping = 19, "swapping";
    /// [`CyclicFilter<1>`](crate::CyclicFilter).
    Cyclic1 = 20, "cyclic-1";
    /// [`CyclicFilter<2>`](crate::CyclicFilter).
    Cyclic2 = 21, "cyclic-2";
    /// [`CyclicFilter<3>`](crate::CyclicFilter).
    Cyclic3 = 22, "cyclic-3";
    /// [`BloomFilter`](crate::BloomFilter).
    Bloom = 32, "bloom";
    /// [`BlockedBloomFilter`](crate::BlockedBloomFilter).
    BlockedBloom = 33, "blocked-bloom";
    /// [`AdaptiveBloomFilter`](crate::AdaptiveBloomFilter).
    AdaptiveBloom = 34, "adaptive-bloom";
    /// [`Cascade`](crate::Cascade).
    Cascade = 35, "cascade";
    /// [`WhitelistFilter`](crate::WhitelistFilter).
    Whitelist = 36, "whitelist";
    /// [`TinySet`](crate::TinySet).
    TinySet = 48, "tinyset";
    /// [`ExactList`](crate::exact::ExactList).
    Exact = 52, "exact";
    /// [`Sharded`](crate::Sharded): which filter is in it, its parameters say.
    Sharded = 64, "sharded";
}

impl Kind {
    /// The number in the file.
    pub(crate) const fn code(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No kind has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no filter called {0:?}; Kind::ALL has the names")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let kind = Self::ALL.iter().find(|kind| kind.name() == name);
        kind.copied().ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: two kinds of one name or number, a number that is read as another kind.
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for &kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
        }
        assert!(Kind::ALL.is_sorted_by_key(|kind| kind.code()));
        assert_eq!(Kind::from_code(0), None);
        assert!("blooom".parse::<Kind>().unwrap_err().to_string().contains("blooom"));
    }
}
