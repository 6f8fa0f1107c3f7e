//! Plots as data: what is drawn, not how.

use serde::{Serialize, Serializer};

use crate::stats::Summary;

/// How an axis maps numbers to places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// In proportion.
    Linear,
    /// By the logarithm. What is not positive is drawn, hollow, at the lower end.
    Log,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What is shown, with the unit.
    pub label: String,
    /// How.
    pub scale: Scale,
    /// A number that must be visible whatever the data, such as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<f64>,
}

impl Axis {
    /// An axis in proportion.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, include: None }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, include: None }
    }

    /// The same axis, reaching at least to `value`.
    #[must_use]
    pub fn including(self, value: f64) -> Self {
        Self { include: Some(value), ..self }
    }
}

/// A line with markers and, where there were several runs, intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name in the legend. The same name has the same colour and marker in every plot.
    pub name: String,
    /// Its points, x ascending.
    #[serde(serialize_with = "as_numbers")]
    pub points: Vec<(f64, Summary)>,
}

impl Line {
    /// A line through points with intervals.
    pub fn new(name: impl Into<String>, points: Vec<(f64, Summary)>) -> Self {
        Self { name: name.into(), points }
    }

    /// A line through points that are known exactly: a theorem, a paper's numbers.
    pub fn exact(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let exactly = |(x, y)| (x, Summary { mean: y, low: y, high: y, runs: 1 });
        Self { name: name.into(), points: points.into_iter().map(exactly).collect() }
    }
}

/// A mark in a plot of categories.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dot {
    /// The category (a row of the plot).
    pub row: String,
    /// Its name in the legend.
    pub series: String,
    /// Where on the x axis, with its interval.
    #[serde(serialize_with = "as_triple")]
    pub value: Summary,
}

/// One plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// A file name without its ending, unique in the experiment.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; of no use in a plot of dots.
    pub y: Axis,
    /// Lines over x. Empty in a plot of dots.
    pub lines: Vec<Line>,
    /// Dots in rows. Empty in a plot of lines.
    pub dots: Vec<Dot>,
    /// Thin reference lines at values of the measured axis (y of lines, x of dots), with their names.
    pub references: Vec<(String, f64)>,
}

impl Plot {
    /// A plot of lines, to be added with [`line`](Self::line).
    pub fn lines(id: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (lines, dots, references) = (Vec::new(), Vec::new(), Vec::new());
        Self { id: id.into(), title: title.into(), x, y, lines, dots, references }
    }

    /// A plot of dots in rows, to be added with [`dot`](Self::dot).
    pub fn dots(id: impl Into<String>, title: impl Into<String>, x: Axis) -> Self {
        Self::lines(id, title, x, Axis::linear(""))
    }

    /// Adds a line, unless it has no points.
    pub fn line(&mut self, line: Line) {
        if !line.points.is_empty() {
            self.lines.push(line);
        }
    }

    /// Adds a dot.
    pub fn dot(&mut self, row: impl Into<String>, series: impl Into<String>, value: Summary) {
        self.dots.push(Dot { row: row.into(), series: series.into(), value });
    }

    /// Adds a reference line.
    pub fn reference(&mut self, name: impl Into<String>, value: f64) {
        self.references.push((name.into(), value));
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dots.is_empty()
    }
}

/// `[x, mean, low, high]` for each point.
fn as_numbers<S: Serializer>(points: &[(f64, Summary)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(points.iter().map(|(x, y)| [*x, y.mean, y.low, y.high]))
}

/// `[mean, low, high]`.
fn as_triple<S: Serializer>(value: &Summary, serializer: S) -> Result<S::Ok, S::Error> {
    [value.mean, value.low, value.high].serialize(serializer)
}
