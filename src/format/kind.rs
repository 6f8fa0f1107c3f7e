//! What a file holds: which filter, and with which hash function.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::roster::roster;

/// The type parameters of a filter but for its hash function, as a call has them.
macro_rules! parameters {
    ($first:tt, H) => {
        concat!("::<", stringify!($first), ">")
    };
    ($($hasher:tt)?) => {
        ""
    };
}

/// Makes the kinds of the rows of the roster.
macro_rules! kinds {
    ($($kind:ident = $code:literal, $name:literal, $use:ident [$($ability:ident)*] [$($module:ident)?] $filter:ident $(<$($argument:tt),*>)?
        { $($option:ident)* };)*) => {
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
            $(
                #[doc = concat!("`", stringify!($filter), "`, called ", $name, ".")]
                $kind = $code,
            )*
        }

        impl Kind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the name, as on command lines and in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Returns the path of the type in this crate, as a program calls its functions:
            /// `cuckoo::CyclicFilter::<1>`.
            #[must_use]
            pub const fn type_name(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!($(stringify!($module), "::",)? stringify!($filter), parameters!($($($argument),*)?)),)*
                }
            }

            /// How filters of this kind are used, and what else they can do, in the words of the roster.
            const fn row(self) -> (&'static str, &'static [&'static str]) {
                match self {
                    $(Self::$kind => (stringify!($use), &[$(stringify!($ability)),*]),)*
                }
            }

            /// Returns the options that its builder has beyond capacity, rate, seed and hash function.
            #[must_use]
            pub const fn options(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$(stringify!($option)),*],)*
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
roster!(kinds);

impl Kind {
    /// Returns whether filters of this kind have a [remote](crate::Remote).
    #[must_use]
    pub fn has_remote(self) -> bool {
        self.row().0 == "adaptive"
    }

    /// Returns whether filters of this kind repair false positives, with or without a remote.
    #[must_use]
    pub fn repairs(self) -> bool {
        self.can("adapt") || self.has_remote() && !self.can("inert")
    }

    /// Returns whether keys can be removed; from a [`TinySet`](crate::TinySet), if it was built for that.
    #[must_use]
    pub fn removes(self) -> bool {
        self.has_remote() || self.can("remove")
    }

    /// Returns whether filters of this kind are built from parameters, and not from lists or other filters.
    #[must_use]
    pub fn is_configured(self) -> bool {
        matches!(self.row().0, "plain" | "adaptive")
    }

    fn can(self, ability: &str) -> bool {
        self.row().1.contains(&ability)
    }

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
