//! `besom compare`: every filter, at equal space, in front of a real store.
//!
//! ```text
//! source ──▶ keys, queries ──▶ replay (a contender at a time, in front of the store) ──▶ rows
//!                                                                                          │
//!                text, JSON, page ◀── verdict ◀── product (the best of ours in RedbStore) ◀┘
//! ```

mod contender;
mod foreign;
mod json;
mod page;
mod product;
mod queries;
mod replay;
mod source;
mod store;
mod story;
mod text;
mod verdict;

use std::path::PathBuf;
use std::time::Instant;

use besom_lab::workload::Format;
use clap::Args;

use self::contender::{ENTRIES, Entry, Plan, Space};
use self::product::Product;
use self::replay::{Arena, Row};
use self::source::Source;
use self::store::{Store, StoreKind};
use crate::error::{Ending, Failure, Outcome};
use crate::interrupt;
use crate::output::{self, Paint, thousands};
use crate::progress::Progress;

/// Which data, which filters, which space.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom compare
  besom compare --keys names.txt --queries requests.txt --report report.html
  besom compare --trace OLTP.lis.zst --bits-per-key 10 --filters telescoping,bloom,fastbloom --json

Exit codes: 0 fine, 2 usage or input error, 130 interrupted (what was measured so far is shown).")]
pub(crate) struct Compare {
    /// The keys that are stored, one a line; - is standard input. Plain, gzip or zstd
    #[arg(long, value_name = "FILE", requires = "queries")]
    keys: Option<PathBuf>,
    /// What is asked for, one key a line; - is standard input
    #[arg(long, value_name = "FILE", requires = "keys")]
    queries: Option<PathBuf>,
    /// A stream of requests instead of keys and queries: the first keys to appear are stored, the rest is asked
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keys", "queries"])]
    trace: Option<PathBuf>,
    /// The share of the trace's distinct keys that is stored
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share, requires = "trace")]
    stored: f64,
    /// What the files look like inside: lines, arc, capture or csv:COLUMN [default: found out from name and first bytes]
    #[arg(long, value_name = "FORMAT")]
    keys_format: Option<Format>,
    /// The same for the queries, where they differ from the keys
    #[arg(long, value_name = "FORMAT", requires = "queries")]
    queries_format: Option<Format>,
    /// The space that every filter gets, in bits a key
    #[arg(long, value_name = "BITS", default_value_t = 12.0, value_parser = bits_per_key)]
    bits_per_key: f64,
    /// The false-positive rate that every filter gets, instead of space
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "bits_per_key")]
    rate: Option<f64>,
    /// The filters, by name, or `all` [default: those that are likely to be of interest]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = filter)]
    filters: Vec<Chosen>,
    /// What they stand in front of
    #[arg(long, value_enum, default_value_t = StoreKind::Redb)]
    store: StoreKind,
    /// How many queries the attacker has
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    attack: u64,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Queries of the story that is told without data
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["keys", "trace"])]
    story_queries: u64,
    /// Write a page with plots
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A filter on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    All,
    One(&'static str),
}

fn filter(text: &str) -> Result<Chosen, String> {
    if text == "all" { Ok(Chosen::All) } else { contender::find(text).map(|entry| Chosen::One(entry.name)) }
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "not a share: more than 0, less than 1".into())
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| "not a rate: more than 0, less than 1".into())
}

fn bits_per_key(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|bits| (1.0..=64.0).contains(bits))
        .ok_or_else(|| "not a number of bits from 1 to 64".into())
}

impl Compare {
    pub(crate) fn run(&self) -> Outcome {
        if let Some(report) = &self.report {
            output::check_target(report)?;
        }
        interrupt::install();
        let entries = self.entries();
        let start = Instant::now();
        let source = self.source()?;
        let space = self.rate.map_or(Space::BitsPerKey(self.bits_per_key), Space::Rate);
        let plan = Plan { keys: source.stored as usize, space, seed: self.seed };
        if !self.json {
            output::print(&self.headline(&source, &plan))?;
        }
        let Measured { rows, product, complete } = self.measure(&source, &plan, &entries)?;
        let report = Report {
            source: &source,
            plan: &plan,
            rows: &rows,
            product: product.as_ref(),
            store: self.store,
            seconds: start.elapsed().as_secs_f64(),
        };
        self.show(&report)?;
        Ok(if complete { Ending::Fine } else { Ending::Interrupted })
    }

    fn entries(&self) -> Vec<Entry> {
        let chosen = |entry: &&Entry| match &self.filters[..] {
            [] => entry.usual,
            names => names.contains(&Chosen::All) || names.contains(&Chosen::One(entry.name)),
        };
        ENTRIES.iter().filter(chosen).copied().collect()
    }

    fn source(&self) -> Outcome<Source> {
        let mut progress = Progress::new(self.story_queries as f64);
        let mut told = |what: &str, done: u64| {
            progress.begin_quietly(what.to_owned());
            progress.advance(done as f64);
        };
        let format = self.keys_format.as_ref();
        match (&self.keys, &self.queries, &self.trace) {
            (Some(keys), Some(queries), _) => source::from_files(
                (keys, format),
                (queries, self.queries_format.as_ref().or(format)),
                &mut told,
            ),
            (_, _, Some(trace)) => source::from_trace(trace, format, self.stored, &mut told),
            _ => story::tell(self.story_queries, self.seed, &mut told),
        }
    }

    fn headline(&self, source: &Source, plan: &Plan) -> String {
        let space = match plan.space {
            Space::BitsPerKey(bits) => format!("{bits} bits a key for every filter"),
            Space::Rate(rate) => format!("a false-positive rate of {rate} for every filter"),
        };
        let store = match self.store {
            StoreKind::Redb => "redb, a database on disk",
            StoreKind::Memory => "a table in memory",
        };
        let repeated = match source.repeated_keys {
            0 => String::new(),
            lines => format!(" ({} lines repeated a key)", thousands(lines)),
        };
        format!(
            "{} keys{repeated}, {} queries: {}.\nBehind the filters: {store}. {space}.\n\n",
            thousands(u64::from(source.stored)),
            thousands(source.queries.len()),
            source.title
        )
    }

    /// Tries the filters, one after the other, and the best of them in the product; fewer than all if it was interrupted.
    fn measure(&self, source: &Source, plan: &Plan, entries: &[Entry]) -> Outcome<Measured> {
        let (keys, queries) = (f64::from(source.stored), source.queries.len() as f64);
        let replays = entries.len() + usize::from(self.store == StoreKind::Redb);
        let mut progress = Progress::new(keys + (keys + queries) * replays as f64);
        progress.begin("filling the store");
        let store =
            Store::new(self.store, &source.keys, source.stored, &mut |done| progress.advance(done as f64))?;
        let arena = Arena {
            keys: &source.keys,
            stored: source.stored,
            queries: &source.queries,
            store: &store,
            attack_queries: self.attack,
        };
        let rows = contest(&arena, plan, entries, &mut progress)?;
        if rows.len() < entries.len() {
            return Ok(Measured { rows, product: None, complete: false });
        }
        let small_enough = rows.iter().filter(|row| verdict::in_contest(row, plan));
        let Some(best) = product::choose(small_enough).filter(|_| self.store == StoreKind::Redb) else {
            return Ok(Measured { rows, product: None, complete: true });
        };
        let product =
            arena.in_product(best, plan, &mut |what, done| progress.step(what, best.entry_name, done))?;
        Ok(Measured { complete: product.is_some(), product, rows })
    }

    fn show(&self, report: &Report<'_>) -> Outcome<()> {
        let verdict = verdict::judge(report.rows, report.plan);
        if let Some(path) = &self.report {
            output::write_file(path, &page::render(report, verdict.as_ref()))?;
        }
        if self.json {
            return output::print_json(&json::summary(report, verdict.as_ref()));
        }
        let mut text = text::render(report, verdict.as_ref(), Paint::stdout());
        if let Some(path) = &self.report {
            text += &format!("\n{}\n", path.display());
        }
        output::print(&text)
    }
}

/// Tries the filters, one after the other; fewer than all if it was interrupted.
fn contest(arena: &Arena<'_>, plan: &Plan, entries: &[Entry], progress: &mut Progress) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in entries {
        match arena.run(entry, plan, &mut |what, done| progress.step(what, entry.name, done)) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) | Err(Failure::Interrupted) => break,
            Err(failure) => return Err(failure),
        }
        if interrupt::stopped() {
            break;
        }
    }
    Ok(rows)
}

/// What came of all filters.
struct Measured {
    rows: Vec<Row>,
    /// What the product made of the best one, where there is a disk behind the filters.
    product: Option<Product>,
    /// Whether nobody interrupted.
    complete: bool,
}

/// What was measured, on what.
pub(crate) struct Report<'a> {
    source: &'a Source,
    plan: &'a Plan,
    rows: &'a [Row],
    product: Option<&'a Product>,
    store: StoreKind,
    seconds: f64,
}
