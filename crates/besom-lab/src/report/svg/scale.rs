//! From numbers to places on the paper, and the ticks between.

use super::super::plot::{Axis, Scale};

/// An axis with its ends fixed.
pub(super) struct Mapping {
    scale: Scale,
    /// The numbers at the two ends, the smaller first.
    ends: (f64, f64),
    /// Their places on the paper.
    places: (f64, f64),
}

impl Mapping {
    /// The axis that shows all of `values`, between two places on the paper.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let usable = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let (low, high) = values
            .chain(axis.include)
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let ends = match (axis.scale, low <= high) {
            (_, false) => (1.0, 10.0),
            (Scale::Linear, true) => linear_ends(low, high),
            (Scale::Log, true) => log_ends(low, high),
        };
        Self { scale: axis.scale, ends, places: (from, to) }
    }

    /// Where a number is drawn: at the end of the axis if it is beyond.
    pub(super) fn place(&self, value: f64) -> f64 {
        let of = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).ln(),
        };
        let (low, high) = (of(self.ends.0), of(self.ends.1));
        let share = ((of(value) - low) / (high - low)).clamp(0.0, 1.0);
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// Whether a number has no place on this axis: zero on a logarithmic one.
    pub(super) fn is_off(&self, value: f64) -> bool {
        self.scale == Scale::Log && value <= 0.0
    }

    /// Numbers worth a tick, with their names.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => linear_ticks(self.ends),
            Scale::Log => log_ticks(self.ends),
        }
    }
}

impl Mapping {
    /// The names of ticks that have room side by side, each with the place of its middle, none beyond the paper's
    /// `edge`. Where not all have room, powers of ten go first.
    pub(super) fn names<'t>(
        &self,
        ticks: &'t [(f64, String)],
        letter: f64,
        edge: f64,
    ) -> Vec<(f64, &'t str)> {
        let power = |value: f64| value > 0.0 && (value.log10() - value.log10().round()).abs() < 1e-9;
        let mut wanted: Vec<&(f64, String)> = ticks.iter().collect();
        wanted.sort_by_key(|(value, _)| self.scale == Scale::Log && !power(*value));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut names = Vec::new();
        for (value, name) in wanted {
            let half = letter * name.chars().count() as f64 / 2.0;
            let middle = self.place(*value).min(edge - half);
            let (from, to) = (middle - half - 3.0, middle + half + 3.0);
            if taken.iter().all(|(start, end)| to <= *start || from >= *end) {
                taken.push((from, to));
                names.push((middle, name.as_str()));
            }
        }
        names
    }
}

fn linear_ends(low: f64, high: f64) -> (f64, f64) {
    let span = if high > low { high - low } else { high.abs().max(1.0) };
    // Zero belongs to the picture if the data comes near it.
    let low = if low >= 0.0 && low < 0.35 * high { 0.0 } else { low };
    let room = 0.04 * span;
    (if low == 0.0 { 0.0 } else { low - room }, high + room)
}

fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let room = (high / low).powf(0.04).max(1.15);
    (low / room, high * room)
}

fn linear_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let rough = (high - low) / 6.0;
    let unit = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|s| s * unit >= rough).unwrap_or(10.0) * unit;
    let decimals = (-step.log10().floor()).max(0.0) as usize + usize::from((step / unit - 2.5).abs() < 1e-9);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|value| (value, linear_name(value, decimals)))
        .collect()
}

fn linear_name(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn log_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let span = (high / low).log10();
    let factors: &[f64] = if span < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (span / 8.0).ceil().max(1.0) as i32;
    let shown: Vec<(f64, f64, i32)> = decades
        .filter(|decade| decade % every == 0)
        .flat_map(|decade| factors.iter().map(move |factor| (factor * 10_f64.powi(decade), *factor, decade)))
        .filter(|(value, ..)| *value >= low * 0.999 && *value <= high * 1.001)
        .collect();
    // One style for a whole axis.
    let everyday = shown.iter().all(|(.., decade)| (-4..7).contains(decade));
    let name = |value, factor, decade| {
        if everyday { everyday_name(value, decade) } else { power_name(factor, decade) }
    };
    shown.iter().map(|&(value, factor, decade)| (value, name(value, factor, decade))).collect()
}

/// A number as it is, its thousands apart.
fn everyday_name(value: f64, decade: i32) -> String {
    let text = linear_name(value, (-decade).max(0) as usize);
    if value < 1000.0 {
        return text;
    }
    let place = |(place, digit): (usize, char)| {
        let apart = place > 0 && (text.len() - place).is_multiple_of(3);
        if apart { format!(",{digit}") } else { digit.to_string() }
    };
    text.chars().enumerate().map(place).collect()
}

/// A number as a power of ten.
fn power_name(factor: f64, decade: i32) -> String {
    let exponent: String = decade.to_string().chars().map(superscript).collect();
    if factor == 1.0 { format!("10{exponent}") } else { format!("{factor}·10{exponent}") }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => other.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis, values: &[f64]) -> Vec<String> {
        Mapping::new(axis, values.iter().copied(), 0.0, 100.0)
            .ticks()
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(names(&Axis::linear(""), &[0.0, 100.0]), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(names(&Axis::linear(""), &[0.0, 0.003]), ["0", "0.001", "0.002", "0.003"]);
        assert_eq!(names(&Axis::log(""), &[1e-5, 1.0]), ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(names(&Axis::log(""), &[1e-3, 0.9]), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(names(&Axis::log(""), &[900.0, 2e5]), ["1,000", "10,000", "100,000"]);
        assert_eq!(names(&Axis::log(""), &[1.0, 100.0]), ["1", "2", "5", "10", "20", "50", "100"]);
    }

    /// On a narrow paper no name runs into another or over the edge.
    #[test]
    fn names_have_room() {
        let axis = |to| Mapping::new(&Axis::log(""), [430.0, 83_000.0].into_iter(), 120.0, to);
        let named = |to: f64, edge: f64| {
            let axis = axis(to);
            let ticks = axis.ticks();
            let names = axis.names(&ticks, 6.6, edge);
            names.into_iter().map(|(place, name)| (place, name.to_owned())).collect::<Vec<_>>()
        };
        let mut narrow = named(358.0, 377.0);
        narrow.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = |name: &str| 3.3 * name.len() as f64;
        assert!(
            narrow.windows(2).all(|two| two[0].0 + half(&two[0].1) < two[1].0 - half(&two[1].1)),
            "{narrow:?}"
        );
        assert!(narrow.iter().all(|(place, name)| place + half(name) <= 377.0), "{narrow:?}");
        assert!(
            narrow.iter().any(|(_, name)| name == "1,000") && narrow.iter().any(|(_, name)| name == "10,000")
        );
        assert_eq!(named(3000.0, 3020.0).len(), axis(3000.0).ticks().len(), "room for all");
    }

    #[test]
    fn places_stay_between_the_ends() {
        let axis = Mapping::new(&Axis::log(""), [0.0, 0.1, 10.0].into_iter(), 300.0, 0.0);
        assert_eq!(axis.place(0.0), 300.0);
        assert!((axis.place(1.0) - 150.0).abs() < 1e-6);
        assert_eq!(axis.place(1e9), 0.0);
        assert!(axis.is_off(0.0) && !axis.is_off(0.1));
    }

    #[test]
    fn a_single_value_has_a_place() {
        for axis in [Axis::linear(""), Axis::log("")] {
            let place = Mapping::new(&axis, [5.0].into_iter(), 0.0, 100.0).place(5.0);
            assert!(place > 0.0 && place < 100.0, "{place}");
        }
    }
}
