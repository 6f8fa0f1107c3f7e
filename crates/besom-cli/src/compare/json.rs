//! What `compare` says to machines.

use besom_lab::stats::Spread;
use serde::Serialize;

use super::Report;
use super::contender::Space;
use super::product::Product;
use super::replay::{Row, Run};
use super::store::StoreKind;
use super::verdict::{Finding, Verdict, in_contest};

/// The whole comparison.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    /// What keys and queries are.
    data: &'a str,
    keys: u32,
    queries: u64,
    store: &'static str,
    /// The space that every filter was given; `null` if a rate was.
    bits_per_key: Option<f64>,
    /// The rate that every filter was given; `null` if space was.
    rate: Option<f64>,
    /// The first seed, and how many there were.
    seed: u64,
    seeds: usize,
    /// Queries before these, which stacked filters were trained on.
    sampled_queries: u64,
    /// The bytes of the cache of `bloom+cache`, chosen in hindsight.
    cache_bytes: usize,
    seconds: f64,
    /// Whether everything was measured. If not, there is no verdict.
    complete: bool,
    verdict: Option<Judged<'a>>,
    /// The fewest useless reads first.
    filters: Vec<Filter<'a>>,
    /// The best filter with a hash index in `besom_store::RedbStore`; `null` without a disk behind the filters.
    redb_store: Option<&'a Product>,
}

/// What the figures bear out.
#[derive(Serialize)]
struct Judged<'a> {
    finding: Finding,
    /// Those that share the first place, the best first; empty where nothing can be said.
    recommended: &'a [&'static str],
    headline: String,
    details: &'a [String],
    /// What the first of the recommended does not withstand.
    threat: Option<&'a str>,
    code: Option<&'a str>,
}

/// What came of one filter.
#[derive(Serialize)]
struct Filter<'a> {
    filter: &'static str,
    /// `plain`, `feedback`, `trained` or `adaptive`: what it needs.
    kind: &'static str,
    /// Whether it stayed within the space that all were given.
    in_contest: bool,
    bits_per_key: f64,
    /// Look-ups of keys that are not there, and what repairs read beyond their first read: median and range over the
    /// seeds.
    useless_reads: Spread,
    /// Reads of the hash index by repairs.
    repair_reads: Spread,
    /// The share of the attacker's queries that got through; `null` if nobody attacked.
    attacked: Option<Spread>,
    /// Memory that operations work in, whatever the size of the filter.
    working_bits: usize,
    queries_per_second: f64,
    /// Of the filter alone.
    filter_queries_per_second: f64,
    insertions_per_second: f64,
    runs: Vec<One<'a>>,
}

/// What came of one filter with one seed.
#[derive(Serialize)]
struct One<'a> {
    seed: u64,
    rate: f64,
    bits_per_key: f64,
    queries: u64,
    absent_queries: u64,
    false_positives: u64,
    repeated_false_positives: u64,
    /// Look-ups and reads of the hash index together.
    store_reads: u64,
    lookups: u64,
    remote_reads: u64,
    adaptations: u64,
    attack_queries: u64,
    attacked_false_positives: u64,
    /// Pairs of queries so far and useless look-ups so far.
    useless_lookups: &'a [(u64, u64)],
}

pub(super) fn summary<'a>(report: &'a Report<'_>, verdict: Option<&'a Verdict>) -> Summary<'a> {
    let (bits_per_key, rate) = match report.plan.space {
        Space::BitsPerKey(bits) => (Some(bits), None),
        Space::Rate(rate) => (None, Some(rate)),
    };
    Summary {
        data: &report.source.title,
        keys: report.source.stored,
        queries: report.source.queries.len(),
        store: match report.store {
            StoreKind::Redb => "redb",
            StoreKind::Memory => "memory",
        },
        bits_per_key,
        rate,
        seed: report.plan.seed,
        seeds: report.seeds(),
        sampled_queries: report.plan.training.sampled,
        cache_bytes: report.plan.training.cache_bytes,
        seconds: report.seconds,
        complete: report.complete,
        verdict: verdict.map(judged),
        filters: report.sorted().into_iter().map(|row| filter(row, report)).collect(),
        redb_store: report.product,
    }
}

fn judged(verdict: &Verdict) -> Judged<'_> {
    Judged {
        finding: verdict.finding,
        recommended: &verdict.recommended,
        headline: verdict.plain_headline(),
        details: &verdict.details,
        threat: verdict.threat,
        code: verdict.code.as_deref(),
    }
}

fn filter<'a>(row: &'a Row, report: &Report<'_>) -> Filter<'a> {
    let first = row.first();
    Filter {
        filter: row.entry_name,
        kind: row.needs.name(),
        in_contest: in_contest(row, report.plan),
        bits_per_key: row.bits_per_key(),
        useless_reads: row.useless(),
        repair_reads: row.repair_reads(),
        attacked: row.attacked(),
        working_bits: first.working_bits,
        queries_per_second: first.queries_per_second(),
        filter_queries_per_second: first.filter_speed,
        insertions_per_second: report.plan.keys as f64 / first.insert_time.as_secs_f64().max(1e-9),
        runs: row.runs.iter().map(one).collect(),
    }
}

fn one(run: &Run) -> One<'_> {
    One {
        seed: run.seed,
        rate: run.rate,
        bits_per_key: run.bits_per_key,
        queries: run.queries,
        absent_queries: run.absent,
        false_positives: run.false_positives,
        repeated_false_positives: run.repeated,
        store_reads: run.store_reads(),
        lookups: run.lookups,
        remote_reads: run.remote_reads,
        adaptations: run.adaptations,
        attack_queries: run.attack.queries,
        attacked_false_positives: run.attack.false_positives,
        useless_lookups: &run.useless,
    }
}
