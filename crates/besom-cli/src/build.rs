//! `besom build`: a filter file from a file of keys; with known negatives, an exact list.

use std::path::PathBuf;
use std::time::Instant;

use besom::any::{AnyFilter, AnyHasher, Config};
use besom::exact::{self, ExactList, ExactListBuilder, Exclusion};
use besom::format::{Kind, Persist, WriteOptions};
use besom::{Adaptive, Digest, MemoryRemote, Seed, SipHash, Table, Xxh3};
use besom_lab::workload::Format;
use clap::Args;
use serde::Serialize;

use crate::digests::Digests;
use crate::error::{Ending, Failure, Outcome};
use crate::filters::{self, Opened};
use crate::input::{Input, Passed, with_formats};
use crate::interrupt;
use crate::keys::KeySet;
use crate::output::{self, thousands};
use crate::progress::Progress;

/// What is built, from what.
#[derive(Debug, Args)]
#[command(after_help = with_formats("\
Examples:
  besom build revoked.txt -o revoked.besom
  besom build revoked.txt --no valid.txt -o revoked.besom
  besom build revoked.txt --no valid.txt --rate 0.004 --updatable -o revoked.besom
  zcat names.gz | besom build - --filter blocked-bloom --json -o names.besom

With --no, the filter accepts every key of KEYS and rejects every key of the other list. It also accepts a share of
all other keys, which --rate limits. The file is as small as possible and cannot change. With --updatable it is an
adaptive filter instead, which can still learn and forget keys.

Exit codes: 0 success, 2 usage or input error. An error leaves no partial file."))]
pub(crate) struct Build {
    /// The keys, one a line; - is standard input. Plain, gzip or zstd
    #[arg(value_name = "KEYS")]
    keys: PathBuf,
    /// The file to write or replace; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The kind of filter [default: bins; with --no exact, with --updatable extension]. Names such as extension-bins
    /// also choose the table
    #[arg(long, value_name = "KIND", value_parser = filter)]
    filter: Option<Wanted>,
    /// The false-positive rate: 1/1000, 0.1%, 2^-10 or 0.001 [default: 1/256, for exact lists and --updatable the one
    /// with the smallest file]
    #[arg(long, value_name = "RATE", value_parser = crate::rate::rate)]
    rate: Option<f64>,
    /// Keys that must be rejected, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    no: Option<PathBuf>,
    /// With --no: build a filter that can change later, several times as large
    #[arg(long, requires = "no", conflicts_with = "filter")]
    updatable: bool,
    /// The format of the files: lines, csv:COLUMN, tsv:COLUMN, jsonl:FIELD and others, see below [default: by name
    /// and first bytes]
    #[arg(long, value_name = "FORMAT")]
    keys_format: Option<Format>,
    /// Make room for this many keys, for a later merge
    #[arg(long, value_name = "N")]
    capacity: Option<usize>,
    /// The seed of the hash function, decimal or hexadecimal (0x...) [default: random]
    #[arg(long, value_name = "SEED", value_parser = filters::seed)]
    seed: Option<u128>,
    /// Hash keys with SipHash: slower, but an attacker who sees digests cannot aim at the filter
    #[arg(long)]
    siphash: bool,
    /// Leave the seed out of the file; every later command then needs --seed
    #[arg(long, requires = "seed")]
    without_seed: bool,
    /// A number of your choice that says which state of the data this is
    #[arg(long, value_name = "N", default_value_t = 0)]
    generation: u64,
    /// Write JSON instead of a sentence
    #[arg(long)]
    json: bool,
}

/// A filter by its name, with the options that the name stands for.
#[derive(Debug, Clone)]
struct Wanted {
    name: &'static str,
    config: Config,
}

impl From<Kind> for Wanted {
    fn from(kind: Kind) -> Self {
        Self { name: kind.name(), config: Config::new(kind) }
    }
}

fn filter(text: &str) -> Result<Wanted, String> {
    let config = text.parse().map_err(|error: besom::any::ConfigError| error.to_string())?;
    let name = Config::names().find(|name| *name == text);
    name.map(|name| Wanted { name, config }).ok_or_else(|| "give the name alone, without options".into())
}

/// What came of it.
#[derive(Serialize)]
struct Summary {
    file: String,
    filter: &'static str,
    keys: usize,
    repeated_keys: u64,
    blank_lines: u64,
    negatives: u64,
    adaptations: u64,
    bytes: u64,
    bits_per_key: f64,
    /// What no list of these keys can go below on average, if keys are to be rejected.
    limit_bits_per_key: Option<f64>,
    rate: f64,
    seconds: f64,
}

impl Build {
    pub(crate) fn run(&self) -> Outcome {
        output::check_target(&self.output)?;
        interrupt::install();
        let start = Instant::now();
        let keys = Input::open(&self.keys, self.keys_format.as_ref())?;
        let made = if self.siphash { self.make::<SipHash>(keys) } else { self.make::<Xxh3>(keys) }?;
        if interrupt::stopped() {
            return Err(Failure::Interrupted);
        }
        let options = WriteOptions::new().generation(self.generation).include_seed(!self.without_seed);
        let bytes = filters::save(made.filter.as_ref(), &self.output, &options)?;
        self.show(&Summary {
            file: self.output.display().to_string(),
            filter: self.wanted().name,
            keys: made.keys,
            repeated_keys: made.passed.repeated,
            blank_lines: made.passed.blank,
            negatives: made.exclusion.negatives,
            adaptations: made.exclusion.adaptations,
            bytes,
            bits_per_key: 8.0 * bytes as f64 / made.keys as f64,
            limit_bits_per_key: made.limit,
            rate: made.rate,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn wanted(&self) -> Wanted {
        let default = || match (&self.no, self.updatable) {
            (None, _) => Kind::Bins.into(),
            (Some(_), false) => Kind::Exact.into(),
            (Some(_), true) => {
                // In the codes of a quotient table few repairs take nothing.
                let Wanted { name, config } = Kind::Extension.into();
                Wanted { name, config: config.table(Table::Quotient) }
            }
        };
        self.filter.clone().unwrap_or_else(default)
    }

    fn kind(&self) -> Kind {
        self.wanted().config.kind()
    }

    /// The rate that was asked for, or a good one: of filters that never take back a repair, the one that makes the
    /// file smallest.
    fn rate(&self, keys: usize, negatives: &KeySet) -> f64 {
        let smallest = || match self.kind() {
            Kind::Extension => smallest_rate(keys as f64, negatives.len() as f64),
            _ => 1.0 / 256.0,
        };
        self.rate.unwrap_or_else(smallest)
    }

    fn show(&self, summary: &Summary) -> Outcome {
        if self.json {
            output::say_json(summary, &self.output)?;
            return Ok(Ending::Fine);
        }
        let Summary { file, filter, keys, bytes, bits_per_key, rate, seconds, .. } = summary;
        let passed = Passed { repeated: summary.repeated_keys, blank: summary.blank_lines }.describe();
        let excluded = match summary.negatives {
            0 => String::new(),
            negatives if summary.adaptations == 0 => format!(", {} negatives excluded", thousands(negatives)),
            negatives => format!(
                ", {} negatives excluded ({} of them repaired)",
                thousands(negatives),
                thousands(summary.adaptations)
            ),
        };
        let limit = summary.limit_bits_per_key.map_or_else(String::new, |limit| {
            format!(" (limit of any list: {limit:.2}), {:.3}% of other keys accepted", 100.0 * rate)
        });
        let text = format!(
            "{file}: {filter}, {} keys{passed}{excluded}, {} bytes, {bits_per_key:.2} bits a key{limit}, {seconds:.1} s\n",
            thousands(*keys as u64),
            thousands(*bytes)
        );
        output::say(&text, &self.output)?;
        Ok(Ending::Fine)
    }

    /// Builds the filter from keys as they come. Those without a hash index want their digests only, which all cores
    /// work out.
    fn make<H: AnyHasher>(&self, keys: Input) -> Outcome<Made> {
        let (seed, name) = (self.seed.map_or_else(Seed::random, Seed::from), self.wanted().name);
        if is_plain(self.kind()) && self.no.is_none() {
            let digests = Digests::read(keys, &H::with_seed(seed))?;
            let negatives = &KeySet::new();
            let rate = self.rate(digests.len(), negatives);
            let work = Work { keys: Keys::Digests(&digests), negatives, name, rate };
            let built = self.build::<H>(&work, digests.len(), seed)?;
            return Ok(Made::new(built, digests.len(), negatives, digests.passed));
        }
        let (keys, passed) = keys.into_set()?;
        let negatives = match &self.no {
            Some(no) => Input::open(no, self.keys_format.as_ref())?.into_set()?.0,
            None => KeySet::new(),
        };
        refuse_both(&keys, &negatives)?;
        let rate = self.rate(keys.len(), &negatives);
        let work = Work { keys: Keys::Set(&keys), negatives: &negatives, name, rate };
        let built = self.build::<H>(&work, keys.len(), seed)?;
        Ok(Made::new(built, keys.len(), &negatives, passed))
    }

    fn build<H: AnyHasher>(&self, work: &Work<'_>, keys: usize, seed: Seed) -> Outcome<Built> {
        if self.kind() == Kind::Exact {
            let builder = ExactList::builder().seed(seed).hasher::<H>();
            return work.exact(match self.rate {
                Some(rate) => builder.unknown_rate(rate),
                None => builder,
            });
        }
        if self.kind() == Kind::Sharded {
            let advice =
                "the command builds filters of one part; a program makes shards, with besom::Sharded";
            return Err(work.failed(advice));
        }
        let capacity = self.capacity.unwrap_or(0).max(keys);
        let (negatives, rate) = (work.negatives.len(), work.rate);
        let mut config = self.wanted().config.capacity(capacity).false_positive_rate(rate).seed(seed);
        if negatives > 0 {
            // Room for the repairs of all negatives: a broom filter that is short of bits forgets some, and the list of
            // a whitelist filter takes memory only as it grows.
            let repairs = negatives as f64 * rate / capacity.max(1) as f64;
            let budget = (repairs * 4.0 * -rate.log2()).max(0.5);
            config.adaptivity_budget = config.accepts("adaptivity_budget").then_some(budget);
            config.whitelist_bound = config.accepts("whitelist_bound").then_some(negatives);
        }
        work.filled(AnyFilter::<H>::build(&config).map_err(|error| work.failed(error))?)
    }
}

/// What was built, from what.
struct Made {
    filter: Box<dyn Opened>,
    exclusion: Exclusion,
    keys: usize,
    passed: Passed,
    rate: f64,
    limit: Option<f64>,
}

impl Made {
    fn new(built: Built, keys: usize, negatives: &KeySet, passed: Passed) -> Self {
        let Built { filter, exclusion, rate } = built;
        let limit = || exact::limit_bits(keys as u64, negatives.len() as u64) / keys as f64;
        Self { filter, exclusion, keys, passed, rate, limit: (negatives.len() > 0).then(limit) }
    }
}

/// Whether a filter needs no keys, only their digests.
fn is_plain(kind: Kind) -> bool {
    kind.is_configured() && !kind.repairs() && !kind.has_remote()
}

/// A key in both lists cannot be accepted and rejected.
fn refuse_both(keys: &KeySet, negatives: &KeySet) -> Outcome<()> {
    let Some(key) = negatives.iter().find(|key| keys.number(key).is_some()) else { return Ok(()) };
    let count = negatives.iter().filter(|key| keys.number(key).is_some()).count();
    let text: String = String::from_utf8_lossy(key).chars().take(80).collect();
    Err(Failure::Usage(format!(
        "{count} keys are in both lists, {text:?} among them; a key is to be accepted or rejected, not both"
    )))
}

/// The rate of an extension filter that makes its file smallest. Each halving takes a bit of every key and saves half
/// of the repairs, which are the dearer the fewer there are of a key: 2.2 to 2.5 bits a key for half a repair each, 4.2
/// to 4.5 for one, 7.4 to 7.7 for two. So the file is smallest with about half a repair for every key.
fn smallest_rate(keys: f64, negatives: f64) -> f64 {
    const REPAIRS: f64 = 0.6;
    if negatives == 0.0 {
        return 1.0 / 256.0;
    }
    (REPAIRS * keys / negatives).clamp(1.0 / 65536.0, 0.125)
}

/// Keys, as far as a filter needs them.
#[derive(Clone, Copy)]
enum Keys<'a> {
    Set(&'a KeySet),
    Digests(&'a Digests),
}

/// What goes into a filter.
struct Work<'a> {
    keys: Keys<'a>,
    negatives: &'a KeySet,
    name: &'static str,
    rate: f64,
}

/// A filter that was built.
struct Built {
    filter: Box<dyn Opened>,
    exclusion: Exclusion,
    /// The share of other keys that it accepts.
    rate: f64,
}

impl Work<'_> {
    fn failed(&self, problem: impl ToString) -> Failure {
        Failure::contender(self.name, problem)
    }

    fn built<F: Persist + 'static>(&self, filter: F, exclusion: Exclusion) -> Built {
        Built { filter: Box::new(filter), exclusion, rate: self.rate }
    }

    /// The static list.
    fn exact<H: AnyHasher>(&self, builder: ExactListBuilder<H>) -> Outcome<Built> {
        let mut progress = Progress::new(1.0);
        progress.begin("solving");
        let Keys::Set(keys) = self.keys else {
            return Err(self.failed("it is built from keys, not from digests"));
        };
        let list = builder.build(keys.iter(), self.negatives.iter());
        let list = list.map_err(|error| self.failed(error))?;
        let mut done = Exclusion::default();
        (done.negatives, done.passes) = (self.negatives.len() as u64, 1);
        let rate = list.unknown_rate();
        Ok(Built { rate, ..self.built(list, done) })
    }

    /// Hands all keys to `insert`.
    fn fill(&self, mut insert: impl FnMut(&[u8]) -> Result<(), String>) -> Outcome<()> {
        let Keys::Set(keys) = self.keys else { return Ok(()) };
        let mut progress = Progress::new(keys.len() as f64);
        progress.begin("inserting keys");
        for (number, key) in keys.iter().enumerate() {
            insert(key).map_err(|problem| self.failed(problem))?;
            if number % 4096 == 4095 {
                progress.advance(4096.0);
                if interrupt::stopped() {
                    return Err(Failure::Interrupted);
                }
            }
        }
        Ok(())
    }

    /// Hands all digests to `insert`.
    fn fill_digests(&self, mut insert: impl FnMut(&[Digest]) -> Result<(), String>) -> Outcome<()> {
        let Keys::Digests(digests) = self.keys else { return Ok(()) };
        let mut progress = Progress::new(digests.len() as f64);
        progress.begin("inserting keys");
        for group in digests.groups() {
            insert(group).map_err(|problem| self.failed(problem))?;
            progress.advance(group.len() as f64);
            if interrupt::stopped() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    }

    /// The filter with all keys, and without the negatives; its remote is in memory while it is built.
    fn filled<H: AnyHasher>(&self, mut filter: AnyFilter<H>) -> Outcome<Built> {
        if self.negatives.len() > 0 && !filter.kind().repairs() {
            return Err(self.failed(
                "it does not adapt, so known negatives cannot be excluded; choose --filter extension or telescoping",
            ));
        }
        let mut remote = MemoryRemote::new();
        self.fill_digests(|group| match filter.insert_digests(group) {
            Some(inserted) => inserted.map(drop).map_err(|error| error.to_string()),
            None => Err("it is built from keys, not from digests".into()),
        })?;
        self.fill(|key| filter.insert(key, &mut remote).map(drop).map_err(|error| error.to_string()))?;
        if self.negatives.len() == 0 {
            return Ok(self.built(filter, Exclusion::default()));
        }
        let progress = &mut Progress::new(1.0);
        progress.begin("excluding negatives");
        let done = exact::exclude(&mut filter, self.negatives.iter(), &mut remote);
        let done = done.map_err(|error| self.failed(error))?;
        Ok(self.built(filter, done))
    }
}
