//! The rows for other programs: one object per filter and size.

use besom::FilterStats;
use serde::Serialize;

use crate::measure::{Case, Row, Spread};

/// The rows as a JSON list.
pub(crate) fn render(rows: &[Row]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&rows.iter().map(Object::from).collect::<Vec<_>>())
}

/// A row as it is written. Values that a filter does not have are `null`; speeds are medians. Insertion into an
/// adaptive filter is `insert_mops` with a remote that stores nothing, `insert_with_remote_mops` with one in memory.
#[derive(Serialize)]
struct Object<'a> {
    filter: &'a str,
    /// The instruction set that besom's filters used.
    isa: String,
    log2_slots: Option<u32>,
    load: f64,
    insert_mops: Option<f64>,
    positive_mops: Option<f64>,
    negative_mops: Option<f64>,
    batch_negative_mops: Option<f64>,
    fpr: Option<f64>,
    bits_per_key: Option<f64>,
    insert_with_remote_mops: Option<f64>,
    adapting_fpr: Option<f64>,
    /// Repairs with a remote in memory, in thousands a second.
    repair_kops: Option<f64>,
    /// How many keys were stored when queries were measured.
    items: usize,
    fill: f64,
    rate: f64,
    insert_mops_range: Option<[f64; 2]>,
    positive_mops_range: Option<[f64; 2]>,
    negative_mops_range: Option<[f64; 2]>,
    batch_negative_mops_range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> From<&'a Row> for Object<'a> {
    fn from(row: &'a Row) -> Self {
        let Case { log2_slots, shape, fill, to: items, .. } = row.case;
        let figures = row.figures.as_ref();
        let insert = figures.and_then(|figures| figures.insert);
        let positive = figures.map(|figures| figures.positive);
        let negative = figures.map(|figures| figures.negative);
        let batch_negative = figures.and_then(|figures| figures.batch_negative);
        Self {
            filter: row.filter,
            isa: besom::isa::Isa::active().to_string(),
            log2_slots,
            load: shape.load,
            insert_mops: median(insert),
            positive_mops: median(positive),
            negative_mops: median(negative),
            batch_negative_mops: median(batch_negative),
            fpr: figures.and_then(|figures| figures.fpr),
            bits_per_key: figures.map(|figures| figures.bits_per_key),
            insert_with_remote_mops: median(figures.and_then(|figures| figures.insert_with_remote)),
            adapting_fpr: figures.and_then(|figures| figures.adapting_fpr),
            repair_kops: median(figures.and_then(|figures| figures.repair)).map(|mops| 1_000.0 * mops),
            items,
            fill,
            rate: shape.rate,
            insert_mops_range: range(insert),
            positive_mops_range: range(positive),
            negative_mops_range: range(negative),
            batch_negative_mops_range: range(batch_negative),
            stats: figures.and_then(|figures| figures.stats.as_ref()).map(Stats::from),
            error: row.error.as_deref(),
        }
    }
}

/// What a filter of this project said of itself in the last repeat.
#[derive(Serialize)]
struct Stats {
    slots: usize,
    load: f64,
    bits: usize,
    working_bits: usize,
    adaptations: u64,
    resets: u64,
    spills: usize,
    adapted_slots: usize,
    adaptivity_bits: usize,
    rebuilds: u64,
}

impl From<&FilterStats> for Stats {
    fn from(stats: &FilterStats) -> Self {
        let &FilterStats {
            slots,
            load,
            bits,
            working_bits,
            adaptations,
            resets,
            spills,
            adapted_slots,
            adaptivity_bits,
            rebuilds,
            ..
        } = stats;
        Self {
            slots,
            load,
            bits,
            working_bits,
            adaptations,
            resets,
            spills,
            adapted_slots,
            adaptivity_bits,
            rebuilds,
        }
    }
}

fn median(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.median)
}

fn range(spread: Option<Spread>) -> Option<[f64; 2]> {
    spread.map(|spread| [spread.min, spread.max])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::render;
    use crate::report::table::tests::rows;

    #[test]
    fn every_row_is_an_object_with_the_promised_fields() {
        let parsed: Value = serde_json::from_str(&render(&rows()).unwrap()).unwrap();
        let list = parsed.as_array().unwrap();
        assert_eq!(list.len(), rows().len());
        for object in list {
            assert!(object["filter"].is_string() && object["load"].is_number(), "{object}");
            let speeds = ["insert_mops", "positive_mops", "negative_mops", "batch_negative_mops"];
            for field in speeds.into_iter().chain(["log2_slots", "fpr", "bits_per_key"]) {
                assert!(object.as_object().unwrap().contains_key(field), "{field} is missing: {object}");
            }
        }
        assert_eq!(list[0]["insert_mops"], 20.0);
        assert!(list[0]["batch_negative_mops"].is_null());
        assert!(list[0].get("error").is_none() && list[0].get("stats").is_none());
        assert_eq!(list[1]["stats"]["rebuilds"], 0);
        assert_eq!(list[1]["stats"]["working_bits"], 0);
        assert_eq!(list[2]["error"], "no \"room\"\n");
        assert!(list[2]["insert_mops"].is_null());
    }
}
