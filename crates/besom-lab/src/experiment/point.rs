//! Measured points, and how they are looked at.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::Summary;

/// What one task measured at one place: some named values.
///
/// ```
/// use besom_lab::experiment::Point;
///
/// let point = Point::new("telescoping", 20.0, 0).in_panel("f = 8").with("rate", 0.001).with("bits", 11.6);
/// assert_eq!(point.values["rate"], 0.001);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which of several plots or tables of the experiment; empty where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// Which line of the plot or row of the table; mostly the name of a filter.
    pub series: String,
    /// Where on the x axis.
    pub x: f64,
    /// Which repetition.
    pub run: u32,
    /// What was measured. Finite numbers only, since JSON has no others.
    pub values: BTreeMap<String, f64>,
}

impl Point {
    /// A point without values.
    pub fn new(series: impl Into<String>, x: f64, run: u32) -> Self {
        Self { panel: String::new(), series: series.into(), x, run, values: BTreeMap::new() }
    }

    /// The same point in the named panel.
    #[must_use]
    pub fn in_panel(self, panel: impl Into<String>) -> Self {
        Self { panel: panel.into(), ..self }
    }

    /// The same point with one more value. One that is not finite is left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        if value.is_finite() {
            self.values.insert(name.to_owned(), value);
        }
        self
    }
}

/// All points of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Points(Vec<Point>);

impl Points {
    /// All of them, in no particular order.
    #[must_use]
    pub fn all(&self) -> &[Point] {
        &self.0
    }

    /// The panels, in order of appearance.
    #[must_use]
    pub fn panels(&self) -> Vec<&str> {
        distinct(self.0.iter().map(|point| point.panel.as_str()))
    }

    /// The series of a panel, in order of appearance.
    #[must_use]
    pub fn series(&self, panel: &str) -> Vec<&str> {
        distinct(self.0.iter().filter(|point| point.panel == panel).map(|point| point.series.as_str()))
    }

    /// The places on the x axis of a panel, ascending.
    #[must_use]
    pub fn xs(&self, panel: &str) -> Vec<f64> {
        let mut xs: Vec<f64> =
            self.0.iter().filter(|point| point.panel == panel).map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// The values of all repetitions at one place.
    #[must_use]
    pub fn values(&self, panel: &str, series: &str, x: f64, value: &str) -> Vec<f64> {
        let here = |point: &&Point| point.panel == panel && point.series == series && point.x == x;
        self.0.iter().filter(here).filter_map(|point| point.values.get(value).copied()).collect()
    }

    /// Their mean and interval, if there are any.
    #[must_use]
    pub fn summary(&self, panel: &str, series: &str, x: f64, value: &str) -> Option<Summary> {
        Summary::of(&self.values(panel, series, x, value))
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self, panel: &str, series: &str, x: f64, value: &str) -> Option<f64> {
        self.summary(panel, series, x, value).map(|summary| summary.mean)
    }

    /// A series as a line: x ascending, with means and intervals over the repetitions.
    #[must_use]
    pub fn curve(&self, panel: &str, series: &str, value: &str) -> Vec<(f64, Summary)> {
        let xs = self.xs(panel);
        xs.into_iter().filter_map(|x| Some((x, self.summary(panel, series, x, value)?))).collect()
    }

    /// The mean of a value over everything that a series measured, whatever x and run.
    #[must_use]
    pub fn overall(&self, panel: &str, series: &str, value: &str) -> Option<f64> {
        let here = |point: &&Point| point.panel == panel && point.series == series;
        let values: Vec<f64> =
            self.0.iter().filter(here).filter_map(|point| point.values.get(value).copied()).collect();
        Summary::of(&values).map(|summary| summary.mean)
    }
}

impl FromIterator<Point> for Points {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        Self(points.into_iter().collect())
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Points {
        [(1.0, 0, 2.0), (1.0, 1, 4.0), (0.5, 0, 1.0)]
            .into_iter()
            .map(|(x, run, y)| Point::new("a", x, run).with("y", y).with("nan", f64::NAN))
            .chain([Point::new("b", 1.0, 0).in_panel("other").with("y", 9.0)])
            .collect()
    }

    #[test]
    fn curves_ascend_and_average_over_runs() {
        let points = points();
        let curve: Vec<(f64, f64)> = points.curve("", "a", "y").iter().map(|(x, y)| (*x, y.mean)).collect();
        assert_eq!(curve, [(0.5, 1.0), (1.0, 3.0)]);
        assert_eq!(points.panels(), ["", "other"]);
        assert_eq!(points.series("other"), ["b"]);
        assert_eq!(points.mean("", "b", 1.0, "y"), None);
    }

    #[test]
    fn points_survive_json() {
        for point in points().all() {
            let json = serde_json::to_string(point).unwrap();
            assert_eq!(&serde_json::from_str::<Point>(&json).unwrap(), point);
            assert!(!point.values.contains_key("nan"));
        }
    }
}
