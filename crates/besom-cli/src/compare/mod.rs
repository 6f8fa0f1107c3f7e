//! `besom compare`: every filter, at equal space, in front of a real store.
//!
//! ```text
//! source ──▶ keys, queries, a sample ──▶ contest (filters × seeds on all cores: replay) ──▶ rows
//!                                                                                           │
//!                 text, JSON, page ◀── verdict ◀── product (the best of ours in RedbStore) ◀┘
//! ```

mod contender;
mod contest;
mod foreign;
mod json;
mod page;
mod product;
mod queries;
mod replay;
mod rivals;
mod source;
mod store;
mod story;
mod text;
mod threats;
mod training;
mod verdict;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use besom_lab::workload::Format;
use clap::Args;

use self::contender::{ENTRIES, Entry, Needs, Plan, Space};
use self::contest::{Contest, Limits};
use self::product::Product;
use self::replay::{Arena, Row};
use self::source::Source;
use self::store::{Store, StoreKind};
use self::story::Story;
use self::training::Training;
use crate::error::{Ending, Outcome};
use crate::input::with_formats;
use crate::interrupt;
use crate::output::{self, Paint, counted};
use crate::progress::Progress;

/// Which data, which filters, which space.
#[derive(Debug, Args)]
#[command(after_help = with_formats("\
Examples:
  besom compare
  besom compare --keys names.txt --queries requests.txt --report report.html
  besom compare --trace OLTP.lis.zst --bits-per-key 10 --filters telescoping,bloom,fastbloom --json
  besom compare --story zipf:10000000 --seeds 5 --store memory

Exit codes: 0 fine, 2 usage or input error, 130 interrupted (what was measured so far is shown)."))]
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
    /// What the files look like inside: lines, csv:COLUMN, tsv:COLUMN, jsonl:FIELD and others, see below [default:
    /// found out from name and first bytes]
    #[arg(long, value_name = "FORMAT")]
    keys_format: Option<Format>,
    /// The same for the queries, where they differ from the keys
    #[arg(long, value_name = "FORMAT", requires = "queries")]
    queries_format: Option<Format>,
    /// The space that every filter gets, in bits a key
    #[arg(long, value_name = "BITS", default_value_t = 12.0, value_parser = bits_per_key)]
    bits_per_key: f64,
    /// The false-positive rate that every filter gets, instead of space: 1/1000, 0.1%, 2^-10 or 0.001
    #[arg(long, value_name = "RATE", value_parser = crate::rate::rate, conflicts_with = "bits_per_key")]
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
    /// The first seed; everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds every filter is tried with [default: from 3 to 9, as many as --budget allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    seeds: Option<u16>,
    /// How long it should take, in seconds, if the number of seeds is open
    #[arg(long, value_name = "SECONDS", default_value_t = 30, conflicts_with = "seeds")]
    budget: u64,
    /// Queries of another day, which stacked filters are trained on [default: the first tenth of the queries, which are
    /// not measured then]
    #[arg(long, value_name = "FILE", requires = "queries")]
    sample: Option<PathBuf>,
    /// The story that is told without data: registry, or zipf:N or uniform:N, a million keys and queries for N absent
    /// ones
    #[arg(long, value_name = "STORY", default_value = "registry", conflicts_with_all = ["keys", "trace"])]
    story: Story,
    /// Queries of the story that is told without data
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["keys", "trace"])]
    story_queries: u64,
    /// Write a page with plots; - is standard output
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

/// The most space that a filter can be given, in bits a key.
const MOST_BITS: f64 = 64.0;

fn bits_per_key(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|bits| (1.0..=MOST_BITS).contains(bits))
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
        let source = self.source(&entries)?;
        let space = self.rate.map_or(Space::BitsPerKey(self.bits_per_key), Space::Rate);
        let keys = source.stored as usize;
        let cache = entries.iter().any(|entry| entry.name == "bloom+cache");
        let training = Training::new(source.sample.as_ref(), &source.queries, cache, keys, space)?;
        let plan = Plan { keys, space, seed: self.seed, training: &training };
        if !self.json && !self.report.as_deref().is_some_and(output::is_stdout) {
            output::print(&self.headline(&source, &plan))?;
        }
        let limits = Limits {
            seeds: self.seeds.map(usize::from),
            // The product runs beside the contest, and takes about as long as one of its rounds.
            end: start + Duration::from_secs(self.budget).mul_f64(0.75),
            product: self.store == StoreKind::Redb,
        };
        let Contest { rows, product, complete } = self.measure(&source, &plan, &entries, limits)?;
        let report = Report {
            source: &source,
            plan: &plan,
            rows: &rows,
            product: product.as_ref(),
            store: self.store,
            complete,
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

    fn source(&self, entries: &[Entry]) -> Outcome<Source> {
        let mut progress = Progress::new(self.story_queries as f64);
        let mut told = |what: &str, done: u64| {
            progress.begin_quietly(what.to_owned());
            progress.advance(done as f64);
        };
        let format = self.keys_format.as_ref();
        let queries_format = self.queries_format.as_ref().or(format);
        // A sample is taken away only if somebody wants it.
        let trained = entries.iter().any(|entry| entry.needs == Needs::Sample);
        let sampled = |source: Source| match &self.sample {
            Some(sample) => source.sampled_from(sample, queries_format),
            None if trained => source.hold_out(),
            None => Ok(source),
        };
        match (&self.keys, &self.queries, &self.trace) {
            (Some(keys), Some(queries), _) => {
                sampled(source::from_files((keys, format), (queries, queries_format), &mut told)?)
            }
            (_, _, Some(trace)) => sampled(source::from_trace(trace, format, self.stored, &mut told)?),
            _ => {
                // Of the same habits, before the queries that are measured.
                let sample = if trained { self.story_queries / (source::SAMPLED_IN - 1) } else { 0 };
                let story = story::tell(self.story, sample + self.story_queries, self.seed, &mut told)?;
                if trained { story.hold_out() } else { Ok(story) }
            }
        }
    }

    fn headline(&self, source: &Source, plan: &Plan<'_>) -> String {
        let what = format!(
            "{}{}, {}: {}.",
            counted(u64::from(source.stored), "key"),
            source.passed.describe(),
            counted(source.queries.len(), "query"),
            source.title
        );
        let how = format!(
            "Behind the filters: {}. {}.{}",
            self.store.describe(),
            plan.space.describe(),
            plan.training.describe()
        );
        format!("{}\n{}\n\n", text::wrap(&what), text::wrap(&how))
    }

    /// Fills the store and holds the contest in front of it.
    fn measure(
        &self,
        source: &Source,
        plan: &Plan<'_>,
        entries: &[Entry],
        limits: Limits,
    ) -> Outcome<Contest> {
        let (keys, queries) = (f64::from(source.stored), source.queries.len() as f64);
        let in_product = usize::from(self.store == StoreKind::Redb);
        let replays = entries.len() * contest::expected_rounds(limits) + in_product;
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
        contest::hold(&arena, plan, entries, limits, &mut progress)
    }

    fn show(&self, report: &Report<'_>) -> Outcome<()> {
        // Anyone who was interrupted has not seen everything, and concludes nothing.
        let verdict =
            verdict::judge(report.rows, report.plan, report.plan.training.stream).filter(|_| report.complete);
        if let Some(path) = &self.report {
            output::write_file(path, &page::render(report, verdict.as_ref()))?;
            if output::is_stdout(path) {
                return Ok(());
            }
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

/// What was measured, on what.
pub(crate) struct Report<'a> {
    source: &'a Source,
    plan: &'a Plan<'a>,
    rows: &'a [Row],
    product: Option<&'a Product>,
    store: StoreKind,
    /// Whether nobody interrupted.
    complete: bool,
    seconds: f64,
}

impl Report<'_> {
    /// The rows, the fewest useless reads first.
    fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| verdict::order(a, b));
        rows
    }

    /// How many seeds every filter was tried with, or the most of them.
    fn seeds(&self) -> usize {
        self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0)
    }

    /// What is said at the top where somebody interrupted.
    fn interruption(&self) -> Option<String> {
        (!self.complete).then(|| {
            format!(
                "Interrupted: {} filters were tried, some of them with fewer seeds than others. No conclusion is drawn.",
                self.rows.len()
            )
        })
    }
}
