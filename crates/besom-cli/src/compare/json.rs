//! What `compare` says to machines.

use serde::Serialize;

use super::Report;
use super::contender::Space;
use super::product::Product;
use super::replay::Row;
use super::store::StoreKind;
use super::verdict::{Verdict, in_contest};

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
    seconds: f64,
    /// The filter with the fewest store reads among those of its size; `null` if there is none.
    recommended: Option<&'static str>,
    reason: Option<&'a str>,
    code: Option<&'a str>,
    filters: Vec<Filter<'a>>,
    /// The best filter with a reverse map in `besom_store::RedbStore`; `null` without a disk behind the filters.
    redb_store: Option<&'a Product>,
}

/// What came of one filter.
#[derive(Serialize)]
struct Filter<'a> {
    filter: &'static str,
    adaptive: bool,
    /// Whether it stayed within the space that all were given.
    in_contest: bool,
    rate: f64,
    bits_per_key: f64,
    /// Memory that operations work in, whatever the size of the filter.
    working_bits: usize,
    queries: u64,
    false_positives: u64,
    repeated_false_positives: u64,
    /// Look-ups and reads of the reverse map together.
    store_reads: u64,
    lookups: u64,
    remote_reads: u64,
    adaptations: u64,
    queries_per_second: f64,
    /// Of the filter alone.
    filter_queries_per_second: f64,
    insertions_per_second: f64,
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
        seconds: report.seconds,
        recommended: verdict.map(|verdict| verdict.recommended),
        reason: verdict.map(|verdict| verdict.sentence.as_str()),
        code: verdict.map(|verdict| verdict.code.as_str()),
        filters: report.rows.iter().map(|row| filter(row, report)).collect(),
        redb_store: report.product,
    }
}

fn filter<'a>(row: &'a Row, report: &Report<'_>) -> Filter<'a> {
    let inserted = report.plan.keys as f64 / row.insert_time.as_secs_f64().max(1e-9);
    Filter {
        filter: row.entry_name,
        adaptive: row.adaptive,
        in_contest: in_contest(row, report.plan),
        rate: row.rate,
        bits_per_key: row.bits_per_key,
        working_bits: row.working_bits,
        queries: row.queries,
        false_positives: row.false_positives,
        repeated_false_positives: row.repeated,
        store_reads: row.store_reads(),
        lookups: row.lookups,
        remote_reads: row.remote_reads,
        adaptations: row.adaptations,
        queries_per_second: row.queries_per_second(),
        filter_queries_per_second: row.filter_speed,
        insertions_per_second: inserted,
        attack_queries: row.attack.queries,
        attacked_false_positives: row.attack.false_positives,
        useless_lookups: &row.useless,
    }
}
