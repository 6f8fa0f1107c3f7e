//! A filter's kind and parameters, as a program sets them or a configuration file has them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::format::Kind;
use crate::{BuildError, HashKind, Overflow, Seed, Table};

/// Names for a kind with some of its options.
const PRESETS: &[(&str, &str)] = &[
    ("telescoping-reset", "telescoping:overflow=reset"),
    ("extension-bins", "extension:table=bins"),
    ("extension-quotient", "extension:table=quotient"),
    ("extension-reset", "extension:overflow=reset"),
    ("broom-bins", "broom:table=bins"),
    ("broom-quotient", "broom:table=quotient"),
    ("cuckoo-remote-4x1", "cuckoo-remote:shape=4x1"),
];

macro_rules! config {
    ($($(#[$doc:meta])* $option:ident: $type:ty, $parse:expr, $show:expr;)*) => {
        /// What filter to build: its kind and its parameters. Whatever is left out is as the builder of that kind has
        /// it.
        ///
        /// As text it is the name of a kind, a colon, and options by the names of the builders' methods; `rate` is
        /// short for `false_positive_rate`. Some names stand for a kind with an option: `extension-bins` is
        /// `extension:table=bins`.
        ///
        /// ```
        /// use besom::any::Config;
        /// use besom::format::Kind;
        ///
        /// let config: Config = "extension:capacity=1e6, rate=1/1000, growable=yes".parse()?;
        /// assert_eq!((config.kind(), config.capacity), (Kind::Extension, 1_000_000));
        /// assert_eq!(config, Config::new(Kind::Extension).capacity(1_000_000).false_positive_rate(0.001).growable(true));
        /// assert_eq!(config.to_string().parse(), Ok(config));
        /// assert!("extension:colour=red".parse::<Config>().is_err());
        /// # Ok::<(), besom::any::ConfigError>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct Config {
            kind: Kind,
            /// Sets how many keys the filter holds. Must be given.
            pub capacity: usize,
            /// The hash function, for those who choose a type by it: [`HashKind::Xxh3`] unless given.
            pub hash: HashKind,
            $($(#[$doc])* pub $option: Option<$type>,)*
        }

        impl Config {
            /// Returns the configuration of a filter of this kind, without a capacity.
            #[must_use]
            pub fn new(kind: Kind) -> Self {
                Self { kind, capacity: 0, hash: HashKind::Xxh3, $($option: None,)* }
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub fn $option(mut self, value: impl Into<$type>) -> Self {
                    self.$option = Some(value.into());
                    self
                }
            )*

            /// Sets an option by its name.
            fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
                let bad = |expected: &'static str| ConfigError::Value {
                    option: name.to_owned(),
                    value: value.to_owned(),
                    expected,
                };
                match name {
                    "capacity" => self.capacity = count(value).ok_or_else(|| bad(COUNT))?,
                    "hash" => self.hash = hash(value).ok_or_else(|| bad("xxh3 or siphash"))?,
                    "rate" => self.false_positive_rate = Some(rate(value).ok_or_else(|| bad(RATE))?),
                    $(stringify!($option) => {
                        let (parse, expected): (fn(&str) -> Option<$type>, &'static str) = $parse;
                        self.$option = Some(parse(value).ok_or_else(|| bad(expected))?);
                    })*
                    _ => return Err(ConfigError::Option { option: name.to_owned() }),
                }
                Ok(())
            }

            /// All options that are set, by name.
            fn options(&self) -> Vec<(&'static str, String)> {
                let mut options = Vec::new();
                $(if let Some(value) = self.$option {
                    let show: fn($type) -> String = $show;
                    options.push((stringify!($option), show(value)));
                })*
                options
            }
        }
    };
}

const COUNT: &str = "a whole number such as 1000000 or 1e6";
const RATE: &str = "a rate such as 1/1000, 0.1%, 2^-10 or 0.001";
const NUMBER: &str = "a number";
const FLAG: &str = "yes or no";

config! {
    /// The largest share of other keys that the full filter may accept.
    false_positive_rate: f64, (rate, RATE), |rate| rate.to_string();
    /// The secret of the hash function.
    seed: Seed, (seed, "a number, decimal or after 0x hexadecimal"), |seed| format!("{:#x}", seed.to_u128());
    /// The share of slots that the keys of a full filter take.
    max_load: f64, (number, NUMBER), |load| load.to_string();
    /// Whether a full filter doubles, as often as it takes. For adaptive filters: others have no remote to ask for more
    /// of a key's hash, and take [`growable_to`](Self::growable_to).
    growable: bool, (flag, FLAG), |flag| if flag { "yes".into() } else { "no".into() };
    /// How many keys a plain filter (`bins`, `quotient`) may grow to; it keeps the bits for that from the beginning.
    /// Adaptive filters need no limit: see [`growable`](Self::growable).
    growable_to: usize, (count, COUNT), |keys| keys.to_string();
    /// What happens to a block whose repairs outgrow their space.
    overflow: Overflow, (overflow, "spill or reset"), |overflow| format!("{overflow:?}").to_lowercase();
    /// Which table the filter is built on.
    table: Table, (table, "bins or quotient"), |table| format!("{table:?}").to_lowercase();
    /// How many false positives are going to be repaired for every key.
    repairs_per_key: f64, (number, NUMBER), |repairs| repairs.to_string();
    /// How many adaptivity bits a broom filter keeps for every key.
    adaptivity_budget: f64, (number, NUMBER), |bits| bits.to_string();
    /// Tables and slots of a bin, in a cuckoo filter.
    shape: (usize, usize), (shape, "tables and slots of a bin, such as 2x4"), |(tables, slots)| format!("{tables}x{slots}");
    /// The bits of a slot, in a cuckoo filter, in the place of a rate.
    slot_bits: u32, (bits, COUNT), |bits| bits.to_string();
    /// How many levels a cascade has.
    levels: usize, (count, COUNT), |levels| levels.to_string();
    /// How many false positives a whitelist filter may remember.
    whitelist_bound: usize, (count, COUNT), |bound| bound.to_string();
    /// Whether a `TinySet` can remove keys.
    removal: bool, (flag, FLAG), |flag| if flag { "yes".into() } else { "no".into() };
    /// The size of a `TinySet`'s block.
    block_bits: u32, (bits, COUNT), |bits| bits.to_string();
    /// The average number of keys in a `TinySet`'s block, in the place of a rate.
    items_per_block: f64, (number, NUMBER), |items| items.to_string();
}

/// Options that every builder has.
const COMMON: [&str; 2] = ["false_positive_rate", "seed"];

impl Config {
    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether filters of this kind have an option, by its name.
    #[must_use]
    pub fn accepts(&self, option: &str) -> bool {
        COMMON.contains(&option) || self.kind.options().contains(&option)
    }

    /// Returns the names that a configuration can begin with: of all kinds, and of kinds with an option.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let presets = PRESETS.iter().map(|&(name, _)| name);
        Kind::ALL.iter().map(|kind| kind.name()).chain(presets)
    }

    /// Sets how many keys the filter holds.
    #[must_use]
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Refuses options that filters of this kind do not have.
    pub(super) fn check(&self, kind: Kind) -> Result<(), BuildError> {
        let stray = self
            .options()
            .into_iter()
            .find(|(option, _)| !COMMON.contains(option) && !kind.options().contains(option));
        stray.map_or(Ok(()), |(option, _)| Err(BuildError::Unsupported { filter: kind.name(), option }))
    }
}

/// A text is no configuration of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No filter has this name.
    #[error("no filter is called {name:?}; there are {}", Config::names().collect::<Vec<_>>().join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// No filter has this option.
    #[error("there is no option {option:?}; options have the names of the builders' methods")]
    Option {
        /// What stands before the equals sign.
        option: String,
    },
    /// The value is not one that the option can have.
    #[error("{option} cannot be {value:?}; it must be {expected}")]
    Value {
        /// The option.
        option: String,
        /// What stands behind the equals sign.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
}

impl FromStr for Config {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let preset = PRESETS.iter().find(|(preset, _)| *preset == name);
        let mut config = match (preset, name.parse()) {
            (Some((_, text)), _) => text.parse()?,
            (None, Ok(kind)) => Self::new(kind),
            (None, Err(_)) => return Err(ConfigError::Name { name: name.to_owned() }),
        };
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            // A flag may stand alone.
            let (name, value) = option.split_once('=').unwrap_or((option, "yes"));
            config.set(name.trim(), value.trim())?;
        }
        Ok(config)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:capacity={}", self.kind, self.capacity)?;
        if self.hash == HashKind::SipHash {
            f.write_str(",hash=siphash")?;
        }
        self.options().iter().try_for_each(|(option, value)| write!(f, ",{option}={value}"))
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number that counts something.
fn count(text: &str) -> Option<usize> {
    const MOST: f64 = (1_u64 << 53) as f64;
    let plain: String = text.chars().filter(|&letter| letter != '_').collect();
    let whole = || number(&plain).filter(|number| number.fract() == 0.0 && (0.0..=MOST).contains(number));
    plain.parse().ok().or_else(|| whole().map(|number| number as usize))
}

fn bits(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// A rate between 0 and 1: `1/1000`, `0.1%`, `2^-8` or `0.001`.
pub(super) fn rate(text: &str) -> Option<f64> {
    let part = |text: &str| number(text.trim());
    let value = if let Some((above, below)) = text.split_once('/') {
        part(above)? / part(below)?
    } else if let Some((base, exponent)) = text.split_once('^') {
        part(base)?.powf(part(exponent)?)
    } else if let Some(percent) = text.strip_suffix('%') {
        part(percent)? / 100.0
    } else {
        part(text)?
    };
    (value > 0.0 && value < 1.0).then_some(value)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

fn seed(text: &str) -> Option<Seed> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().map(Seed::from)
}

fn hash(text: &str) -> Option<HashKind> {
    match text {
        "xxh3" => Some(HashKind::Xxh3),
        "siphash" => Some(HashKind::SipHash),
        _ => None,
    }
}

fn overflow(text: &str) -> Option<Overflow> {
    match text {
        "spill" => Some(Overflow::Spill),
        "reset" => Some(Overflow::Reset),
        _ => None,
    }
}

fn table(text: &str) -> Option<Table> {
    match text {
        "bins" => Some(Table::Bins),
        "quotient" => Some(Table::Quotient),
        _ => None,
    }
}

fn shape(text: &str) -> Option<(usize, usize)> {
    let (tables, slots) = text.split_once('x')?;
    Some((tables.parse().ok()?, slots.parse().ok()?))
}
