//! The filters that take part: ours and those of other crates, all behind one interface, at equal space.

use std::sync::LazyLock;

use besom::any::Config;
use besom::{BuildError, MemoryRemote};
use besom_lab::subject::{self, Spec, Subject, SubjectError};

use super::training::Training;
use super::{foreign, rivals};
use crate::error::{Failure, Outcome};

/// A filter under comparison, by the bytes of keys.
pub(crate) trait Contender {
    /// Stores a key that was not stored before.
    fn insert(&mut self, key: &[u8]) -> Result<(), String>;

    /// After an insertion that failed: becomes an empty filter with more room, if it can.
    fn grow(&mut self) -> bool {
        false
    }

    /// All keys were handed in.
    fn seal(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Whether the key may be stored.
    fn contains(&self, key: &[u8]) -> bool;

    /// Tells the filter of a false positive. Whether it was repaired.
    fn adapt(&mut self, _key: &[u8]) -> Result<bool, String> {
        Ok(false)
    }

    /// The memory of the filter, in bits, without the remote.
    fn bits(&self) -> usize;

    /// Memory that operations work in, in bits, whatever the size of the filter.
    fn working_bits(&self) -> usize {
        0
    }

    /// How often the hash index was read so far.
    fn remote_reads(&self) -> u64 {
        0
    }
}

/// How much space every filter gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Space {
    /// At most this many bits a key.
    BitsPerKey(f64),
    /// As much as it needs for this false-positive rate.
    Rate(f64),
}

impl Space {
    /// The space, in a sentence without an end.
    pub(super) fn describe(self) -> String {
        match self {
            Self::BitsPerKey(bits) => format!("{} a key in all for every filter", bits_text(bits)),
            Self::Rate(rate) => format!("A false-positive rate of {rate} for every filter"),
        }
    }
}

/// A number of bits, in words.
pub(super) fn bits_text(bits: f64) -> String {
    if bits == 1.0 { "1 bit".into() } else { format!("{bits} bits") }
}

/// What every filter is built for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) keys: usize,
    pub(crate) space: Space,
    pub(crate) seed: u64,
    /// What rivals know of the queries beforehand.
    pub(crate) training: &'a Training,
}

/// What a filter needs beside its memory, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// To be told of keys that turned out to be absent.
    Feedback,
    /// A sample of the queries to come, when it is built.
    Sample,
    /// Feedback, and a hash index of the stored keys.
    HashIndex,
}

impl Needs {
    /// What filters of this kind are called in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "plain",
            Self::Feedback => "feedback",
            Self::Sample => "trained",
            Self::HashIndex => "adaptive",
        }
    }
}

/// A filter that can take part.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    /// Whether it takes part if nobody says who does.
    pub(crate) usual: bool,
    /// Its type, in the code that is recommended.
    pub(crate) type_name: &'static str,
    /// The rate that it has, if it cannot have another.
    only_rate: Option<f64>,
    build: Build,
}

/// By its name, the plan and the rate.
type Build = fn(&str, &Plan<'_>, f64) -> Result<Built, Refused>;

/// A filter of some rate, without keys.
type Built = Box<dyn Contender>;

/// Why a filter of this rate cannot be had.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The filter cannot be so imprecise: any space is enough.
    TooLarge,
    /// The filter cannot be so precise.
    TooSmall,
    /// Something else.
    Other(String),
}

impl Refused {
    fn said_by(self, name: &str) -> Failure {
        Failure::contender(
            name,
            match self {
                Self::TooLarge | Self::TooSmall => "it cannot be built for these keys".into(),
                Self::Other(problem) => problem,
            },
        )
    }
}

/// The load that filters with slots are filled to: the papers' choice.
pub(super) const LOAD: f64 = 0.95;

/// A filter of besom; `None` for what is not built from parameters.
fn ours(name: &'static str) -> Option<Entry> {
    let kind = name.parse::<Config>().ok()?.kind();
    let needs = match (kind.repairs(), kind.has_remote()) {
        (true, true) => Needs::HashIndex,
        (true, false) => Needs::Feedback,
        (false, _) => Needs::Nothing,
    };
    let usual = USUAL.contains(&name);
    let entry = Entry { name, needs, usual, type_name: kind.type_name(), only_rate: None, build: build_ours };
    subject::find(name).is_ok().then_some(entry)
}

const fn theirs(name: &'static str, type_name: &'static str, only_rate: Option<f64>, build: Build) -> Entry {
    Entry { name, needs: Needs::Nothing, usual: true, type_name, only_rate, build }
}

/// Filters of besom that take part if nobody says who does.
const USUAL: [&str; 9] = [
    "telescoping",
    "extension",
    "broom",
    "cuckooing",
    "swapping",
    "adaptive-bloom",
    "whitelist",
    "bins",
    "bloom",
];

/// The filters of others, and what people build by hand.
const THEIRS: [Entry; 6] = [
    Entry { needs: Needs::Feedback, ..theirs("bloom+cache", "", None, rivals::bloom_with_cache) },
    Entry { needs: Needs::Sample, ..theirs("stacked", "", None, rivals::stacked) },
    theirs("fastbloom", "fastbloom::BloomFilter", None, foreign::fastbloom),
    theirs("qfilter", "qfilter::Filter", None, foreign::qfilter),
    theirs("cuckoofilter", "cuckoofilter::CuckooFilter", Some(8.0 / 256.0), foreign::cuckoofilter),
    theirs("xorf", "xorf::BinaryFuse8", Some(1.0 / 256.0), foreign::xorf),
];

/// All filters, in the order of reports: first those that adapt with an index, last those that do not adapt.
pub(crate) static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries: Vec<Entry> = Config::names().filter_map(ours).chain(THEIRS).collect();
    entries.sort_by_key(|entry| match entry.needs {
        Needs::HashIndex => 0,
        Needs::Feedback => 1,
        Needs::Sample => 2,
        Needs::Nothing => 3,
    });
    entries
});

/// The filter of this name.
pub(crate) fn find(name: &str) -> Result<Entry, String> {
    ENTRIES.iter().find(|entry| entry.name == name).copied().ok_or_else(|| {
        let names: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
        format!("no filter is called {name}; there are {}", names.join(", "))
    })
}

/// Rates are tried in steps of a sixteenth of a bit, up to this many: no filter leaves a hundredth of its memory unused
/// for lack of a rate in between.
const FINEST: u32 = 16 * 40;

impl Entry {
    /// The calls that set what is not the builder's default, in the code that is recommended.
    pub(crate) fn calls(&self) -> String {
        let Ok(config) = subject::config(self.name, &spec(1, 0, 0.5)) else { return String::new() };
        let load = config.max_load.map_or_else(String::new, |load| format!(".max_load({load})"));
        let shape =
            config.shape.map_or_else(String::new, |(tables, slots)| format!(".shape({tables}, {slots})"));
        let overflow = config
            .overflow
            .map_or_else(String::new, |overflow| format!(".overflow(besom::Overflow::{overflow:?})"));
        let table = config.table.map_or_else(String::new, |table| format!(".table(besom::Table::{table:?})"));
        format!("{load}{shape}{overflow}{table}")
    }

    /// Builds the filter in the space of the plan. The rate that it was built for comes with it.
    pub(crate) fn build(&self, plan: &Plan<'_>) -> Outcome<(Built, f64)> {
        match plan.space {
            // One that has no other rate takes part with the one it has.
            Space::Rate(rate) => match (self.build)(self.name, plan, rate) {
                Ok(built) => Ok((built, self.only_rate.unwrap_or(rate))),
                Err(Refused::Other(problem)) => Err(Failure::contender(self.name, problem)),
                Err(refused) => {
                    let (large, other) = match refused {
                        Refused::TooLarge => ("large", "smaller"),
                        _ => ("small", "larger"),
                    };
                    let text = format!(
                        "it cannot have so {large} a rate as {rate}; choose a {other} --rate, or other --filters"
                    );
                    Err(Failure::contender(self.name, text))
                }
            },
            Space::BitsPerKey(bits) => self.in_space(plan, bits),
        }
    }

    /// The most precise filter of at most this many bits a key, or the coarsest one if all are larger: found by
    /// halving, since the smaller the rate, the larger the filter.
    fn in_space(&self, plan: &Plan<'_>, bits: f64) -> Outcome<(Built, f64)> {
        if let Some(rate) = self.only_rate {
            return self.build(&Plan { space: Space::Rate(rate), ..*plan });
        }
        if self.needs == Needs::Sample {
            // It divides the space among its layers by itself; this is the rate of a filter without any.
            let rate = rivals::rate_of_bits(bits);
            let built = (self.build)(self.name, plan, rate);
            return built.map(|built| (built, rate)).map_err(|refused| refused.said_by(self.name));
        }
        let at = |step: u32| (self.build)(self.name, plan, rate_of(step));
        let (mut fits, mut beyond, mut best) = (0, FINEST, None);
        while fits + 1 < beyond {
            let step = u32::midpoint(fits, beyond);
            match at(step) {
                Ok(built) if built.bits() as f64 <= bits * plan.keys as f64 => {
                    (fits, best) = (step, Some((built, rate_of(step))));
                }
                Ok(_) | Err(Refused::TooSmall) => beyond = step,
                Err(Refused::TooLarge) => fits = step,
                Err(Refused::Other(problem)) => return Err(Failure::contender(self.name, problem)),
            }
        }
        let coarsest = || (1..FINEST).find_map(|step| Some((at(step).ok()?, rate_of(step))));
        best.or_else(coarsest)
            .ok_or_else(|| Failure::contender(self.name, "it cannot be built for these keys"))
    }
}

fn rate_of(step: u32) -> f64 {
    0.5_f64.powf(f64::from(step) / 16.0)
}

/// What a filter of besom is built from.
fn spec(keys: usize, seed: u64, rate: f64) -> Spec {
    Spec::new(keys, seed).rate(rate).load(LOAD)
}

fn build_ours(name: &str, plan: &Plan<'_>, rate: f64) -> Result<Built, Refused> {
    let entry = subject::find(name).map_err(|error| Refused::Other(error.to_string()))?;
    match entry.build(&spec(plan.keys, plan.seed, rate)) {
        Ok(subject) => Ok(Box::new(Ours(subject))),
        Err(SubjectError::Build { source: BuildError::RateOutOfRange { min, .. }, .. }) => {
            Err(if rate < min { Refused::TooSmall } else { Refused::TooLarge })
        }
        Err(error) => Err(Refused::Other(error.to_string())),
    }
}

/// A filter of besom, with its hash index in memory.
pub(super) struct Ours(pub(super) Subject<MemoryRemote>);

impl Contender for Ours {
    fn insert(&mut self, key: &[u8]) -> Result<(), String> {
        self.0.insert(key).map(drop).map_err(|error| error.to_string())
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(key)
    }

    fn adapt(&mut self, key: &[u8]) -> Result<bool, String> {
        self.0.adapt(key).map(besom::Adaptation::is_fixed).map_err(|error| error.to_string())
    }

    fn bits(&self) -> usize {
        self.0.stats().bits
    }

    fn working_bits(&self) -> usize {
        self.0.stats().working_bits
    }

    fn remote_reads(&self) -> u64 {
        self.0.accesses().reads
    }
}
