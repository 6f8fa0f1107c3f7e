//! What `compare` tells when nobody gives it data: a package registry and the clients that ask it for what it has not,
//! or keys that are numbers and queries by a law.

use std::collections::HashMap;
use std::str::FromStr;

use besom_lab::random::{Random, mix};
use besom_lab::workload::Zipf;

use super::queries::{Recorder, STRANGER};
use super::source::Source;
use crate::error::{Failure, Outcome};
use crate::input::Passed;
use crate::interrupt;
use crate::keys::KeySet;
use crate::output::thousands;

/// Packages in the registry.
pub(super) const PACKAGES: usize = 1_000_000;
/// Names that are asked for and are not there: misspelt ones, and private ones of companies.
const STRANGERS: u64 = 400_000;
/// How unevenly they are asked for.
const EXPONENT: f64 = 1.0;
/// One query in this many is for a package that is there: a cache in front answers the others.
const KNOWN_IN: u64 = 200;

const FIRST: [&str; 32] = [
    "fast", "tiny", "async", "json", "http", "graph", "micro", "super", "react", "vue", "node", "rust", "py",
    "data", "image", "text", "date", "color", "crypto", "event", "stream", "cache", "file", "path", "url",
    "web", "auth", "test", "mock", "log", "cli", "core",
];
const SECOND: [&str; 32] = [
    "parser", "client", "server", "router", "loader", "builder", "format", "query", "utils", "tools", "kit",
    "helper", "engine", "adapter", "bridge", "wrapper", "plugin", "theme", "widget", "schema", "proxy",
    "queue", "store", "table", "tree", "list", "chart", "form", "grid", "hooks", "state", "sync",
];
const COMPANIES: [&str; 16] = [
    "acme", "globex", "initech", "umbra", "hooli", "stark", "wayne", "tyrell", "cyber", "aperture",
    "vandelay", "pied", "wonka", "oscorp", "soylent", "massive",
];
const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";

/// The name of a package, by any number.
fn package(number: u64) -> String {
    let mut random = Random::new(number);
    let mut pick = |words: &[&'static str]| words[random.below(words.len() as u64) as usize];
    let (first, second, third) = (pick(&FIRST), pick(&SECOND), pick(&FIRST));
    match random.below(4) {
        0 => format!("{first}-{second}-{}", random.below(3000)),
        1 => format!("{first}-{third}-{second}-{}", random.below(300)),
        2 => format!("@{first}{}/{third}-{second}", random.below(3000)),
        _ => format!("{first}{second}{}", random.below(9000)),
    }
}

/// A name that is asked for and is not there, by any number.
fn stranger(number: u64, packages: &KeySet) -> Vec<u8> {
    let mut random = Random::new(number);
    if random.below(2) == 0 {
        let company = COMPANIES[random.below(COMPANIES.len() as u64) as usize];
        return format!("@{company}-internal/{}", package(random.next_u64())).into_bytes();
    }
    let mut name = packages.get(random.below(packages.len() as u64) as u32).to_vec();
    loop {
        misspell(&mut name, &mut random);
        if packages.number(&name).is_none() {
            return name;
        }
    }
}

/// What fingers do: a letter is left out, doubled, changed for another, or two are swapped.
fn misspell(name: &mut Vec<u8>, random: &mut Random) {
    let place = random.below(name.len() as u64) as usize;
    match random.below(4) {
        0 if name.len() > 2 => drop(name.remove(place)),
        1 => name.insert(place, name[place]),
        2 if place > 0 && name[place] != name[place - 1] => name.swap(place - 1, place),
        _ => name[place] = LETTERS[random.below(26) as usize],
    }
}

/// Which story is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Story {
    /// A package registry behind a cache.
    Registry,
    /// A million numbers are stored, and absent ones are asked for: this many, by Zipf's law with this exponent. 0 is
    /// uniform.
    Law { universe: u64, exponent: f64 },
}

impl FromStr for Story {
    type Err = String;

    /// `registry`, `zipf:N`, `uniform:N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let law = |count: &str, exponent| {
            let universe = count.replace('_', "").parse().ok().filter(|&universe| universe > 0);
            universe.map(|universe| Self::Law { universe, exponent })
        };
        let story = match text.split_once(':') {
            None if text == "registry" => Some(Self::Registry),
            Some(("zipf", count)) => law(count, EXPONENT),
            Some(("uniform", count)) => law(count, 0.0),
            _ => None,
        };
        story.ok_or_else(|| "not one of registry, zipf:N, uniform:N (N absent keys)".into())
    }
}

/// The story, with this many queries.
pub(super) fn tell(
    story: Story,
    queries: u64,
    seed: u64,
    progress: &mut dyn FnMut(&str, u64),
) -> Outcome<Source> {
    match story {
        Story::Registry => registry(queries, seed, progress),
        Story::Law { universe, exponent } => law(universe, exponent, queries, seed, progress),
    }
}

fn zipf(universe: u64, exponent: f64, seed: u64) -> Outcome<Zipf> {
    Zipf::new(universe, exponent, seed).map_err(|source| Failure::Keys { name: "the story".into(), source })
}

/// Every 65,536 queries: whether to go on.
fn told(query: u64, progress: &mut dyn FnMut(&str, u64)) -> Outcome<()> {
    if query % 65_536 == 65_535 {
        progress("inventing queries", 65_536);
        if interrupt::stopped() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(())
}

/// Numbers, and queries for absent ones by a law.
fn law(
    universe: u64,
    exponent: f64,
    queries: u64,
    seed: u64,
    progress: &mut dyn FnMut(&str, u64),
) -> Outcome<Source> {
    let mut keys = KeySet::new();
    for number in 0..PACKAGES as u64 {
        keys.insert(format!("k{:016x}", mix(number ^ mix(seed))).as_bytes());
    }
    let mut recorder = Recorder::new()?;
    for (query, number) in (0..queries).zip(zipf(universe, exponent, seed)?) {
        recorder.push(STRANGER, format!("q{number:016x}").as_bytes())?;
        told(query, progress)?;
    }
    let stored = keys.len() as u32;
    let queries = recorder.finish(0, 0, stored)?;
    let how = if exponent == 0.0 {
        "uniformly".into()
    } else {
        format!("by Zipf's law with exponent {exponent:.1}")
    };
    let title = format!("all of them for absent keys, drawn {how} from {}", thousands(universe));
    Ok(Source { keys, stored, queries, sample: None, passed: Passed::default(), title })
}

/// The registry and what is asked of it.
fn registry(queries: u64, seed: u64, progress: &mut dyn FnMut(&str, u64)) -> Outcome<Source> {
    let mut packages = KeySet::new();
    let mut number = seed << 32;
    while packages.len() < PACKAGES {
        packages.insert(package(number).as_bytes());
        number += 1;
    }
    let mut recorder = Recorder::new()?;
    let mut zipf = zipf(STRANGERS, EXPONENT, seed)?;
    let mut random = Random::new(seed ^ 0x5eed);
    let mut names: HashMap<u64, Box<[u8]>> = HashMap::new();
    for query in 0..queries {
        if random.below(KNOWN_IN) == 0 {
            let number = random.below(PACKAGES as u64) as u32;
            recorder.push(number, packages.get(number))?;
        } else if let Some(number) = zipf.next() {
            let name = names.entry(number).or_insert_with(|| stranger(number, &packages).into());
            recorder.push(STRANGER, name)?;
        }
        told(query, progress)?;
    }
    let stored = packages.len() as u32;
    let queries = recorder.finish(0, 0, stored)?;
    let title = format!(
        "a package registry behind a cache. Requests for packages that are there rarely get past the cache (one in {KNOWN_IN} of \
         these); the others are for {} misspelt and private names, asked for over and over (Zipf {EXPONENT:.1})",
        thousands(STRANGERS)
    );
    Ok(Source { keys: packages, stored, queries, sample: None, passed: Passed::default(), title })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stories_have_names() {
        assert_eq!("registry".parse(), Ok(Story::Registry));
        assert_eq!("zipf:400_000".parse(), Ok(Story::Law { universe: 400_000, exponent: 1.0 }));
        assert_eq!("uniform:7".parse(), Ok(Story::Law { universe: 7, exponent: 0.0 }));
        for wrong in ["", "zipf", "zipf:0", "zipf:x", "uniform:-1", "registry:1"] {
            assert!(wrong.parse::<Story>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_many_and_strangers_are_strangers() {
        let mut packages = KeySet::new();
        for number in 0..20_000 {
            packages.insert(package(number).as_bytes());
        }
        assert!(packages.len() > 19_000, "{}", packages.len());
        for number in 0..5000 {
            let name = stranger(number, &packages);
            assert_eq!(packages.number(&name), None);
            assert_eq!(name, stranger(number, &packages), "the same number, the same name");
        }
    }
}
