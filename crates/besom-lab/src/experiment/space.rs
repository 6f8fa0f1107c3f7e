//! What a filter takes: bits for its keys and repairs, and apart from them what its operations work in.
//!
//! The cuckoo family keeps some kilobits to search in, however large the filter. In a filter of a few thousand keys
//! they would look like dozens of bits a key, which nobody pays twice: every table with bits a key has a column for
//! them of its own.

use besom::FilterStats;

use super::{Point, Points};
use crate::report::{Column, compact};

/// The heading of what operations work in.
const WORKING: &str = "working memory, kbit";

impl Point {
    /// The same point with what the filter takes now.
    #[must_use]
    pub(super) fn with_space(self, stats: &FilterStats) -> Self {
        self.with("bits", stats.bits_per_key()).with_working(stats.working_bits)
    }

    /// The same point with what operations work in.
    #[must_use]
    pub(super) fn with_working(self, bits: usize) -> Self {
        self.with("working", bits as f64)
    }
}

/// The two columns that stand beside a filter's name.
pub(super) fn space_columns() -> [Column; 2] {
    [Column::number("bits a key"), working_column()]
}

/// Their cells.
pub(super) fn space_cells(points: &Points, panel: &str, series: &str) -> [String; 2] {
    [bits_range(points, panel, series), working_cell(points, panel, series)]
}

/// The column of working memory alone, for tables that have bits a key in many columns.
pub(super) fn working_column() -> Column {
    Column::number(WORKING)
}

/// Its cell: the most that any point had; empty if none says.
pub(super) fn working_cell(points: &Points, panel: &str, series: &str) -> String {
    let most = values(points, panel, series, "working").reduce(f64::max);
    most.map(working_text).unwrap_or_default()
}

/// Bits as they stand in the column of working memory.
pub(super) fn working_text(bits: f64) -> String {
    compact(bits / 1000.0)
}

/// The bits a key of a filter: one number, or the smallest and the largest if they differ visibly.
pub(super) fn bits_range(points: &Points, panel: &str, series: &str) -> String {
    let bits = values(points, panel, series, "bits");
    let (low, high) = bits.fold((f64::INFINITY, 0_f64), |(low, high), bits| (low.min(bits), high.max(bits)));
    match (compact(low), compact(high)) {
        _ if low > high => String::new(),
        (low, high) if low == high => low,
        (low, high) => format!("{low} to {high}"),
    }
}

fn values<'a>(
    points: &'a Points,
    panel: &'a str,
    series: &'a str,
    value: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    let here = move |point: &&Point| point.panel == panel && point.series == series;
    points.all().iter().filter(here).filter_map(move |point| point.values.get(value).copied())
}

#[cfg(test)]
mod tests {
    //! Catches: working memory counted among the bits a key, or not shown.
    use super::*;
    use crate::subject::{Spec, build};
    use crate::workload::Uniform;

    /// A small filter of the cuckoo family: its bits a key are those of its slots, its working memory stands apart.
    #[test]
    fn working_memory_is_no_part_of_the_bits_a_key() {
        let mut points = Vec::new();
        for name in ["cuckooing", "telescoping"] {
            let mut subject = build(name, &Spec::new(500, 1)).unwrap();
            for key in Uniform::new(1).take(500) {
                subject.insert(&key.to_le_bytes()).unwrap();
            }
            points.push(Point::new(name, 0.0, 0).with_space(&subject.stats()));
        }
        let points: Points = points.into_iter().collect();
        let [bits, working] =
            space_cells(&points, "", "cuckooing").map(|cell| cell.parse::<f64>().expect("a number"));
        assert!((11.0..13.0).contains(&bits), "{bits}");
        assert!(1000.0 * working > 500.0, "{working} kbit are less than a bit a key");
        assert_eq!(working_cell(&points, "", "telescoping"), "0");
    }

    #[test]
    fn what_nobody_measured_is_left_empty() {
        let points: Points = [Point::new("a", 0.0, 0).with("bits", 3.0)].into_iter().collect();
        assert_eq!(space_cells(&points, "", "a"), ["3", ""]);
        assert_eq!(space_cells(&points, "", "b"), ["", ""]);
    }
}
