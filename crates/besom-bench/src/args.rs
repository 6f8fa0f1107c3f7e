//! The command line, and the plan that it amounts to.

use std::time::Duration;

use besom::isa::{Isa, IsaError};
use clap::Parser;

use crate::measure::{Case, Effort, Plan};
use crate::scale::Scale;
use crate::subject::{Entry, Shape};
use crate::subjects;

/// Measures the speed and space of membership filters, all in one run.
///
/// Every filter gets the same random 64-bit keys. Each repeat goes through all filters, so that a disturbance of
/// the machine hits all alike; the medians over the repeats are reported, in million operations a second.
#[derive(Debug, Parser)]
#[command(name = "besom-bench", version)]
pub struct Args {
    /// Sizes, as binary logarithms of the number of slots [default: 20, with --quick 14]; all filters of a size
    /// are in memory together
    #[arg(long, value_name = "N,…", value_delimiter = ',', conflicts_with = "items", value_parser = log2_slots)]
    log2_slots: Vec<u32>,

    /// Sizes, as numbers of keys instead of slots
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = items)]
    items: Vec<usize>,

    /// The share of the slots that the keys fill
    #[arg(long, value_name = "F", default_value = "0.9", value_parser = share)]
    load: f64,

    /// The false-positive rate asked for, where a filter lets itself be asked
    #[arg(long, value_name = "F", default_value = "0.00390625", value_parser = rate)]
    rate: f64,

    /// Measure at these shares of the planned keys; insertion is timed from one to the next
    #[arg(long, value_name = "F,…", value_delimiter = ',', default_value = "1", value_parser = share)]
    fill: Vec<f64>,

    /// The filters to measure, by name (see --list) [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = filter)]
    filters: Vec<String>,

    /// The filter that the ratios in the table refer to
    #[arg(long, value_name = "NAME", default_value = "qfilter", value_parser = filter)]
    baseline: String,

    /// How often everything is measured [default: 5, with --quick 1]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,

    /// Before the queries are measured, make N queries for non-members, Zipf(1.0) over ten times as many as there
    /// are keys, and let adaptive filters repair their false positives
    #[arg(long, value_name = "N", default_value = "0")]
    adapt_queries: u64,

    /// The seed of keys and filters
    #[arg(long, value_name = "S", default_value = "1")]
    seed: u64,

    /// The instruction set that besom's filters use: portable, neon, avx2 or avx512 [default: the processor's best, or
    /// what the environment asks for with `BESOM_ISA`]
    #[arg(long, value_name = "NAME", value_parser = isa)]
    isa: Option<Isa>,

    /// Write JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Measure small tables briefly: a smoke test of seconds, not a measurement
    #[arg(long)]
    quick: bool,

    /// Measure what many keys at once, several threads and mapped files are worth, instead of the filters beside each
    /// other
    #[arg(long, conflicts_with_all = ["filters", "json", "fill"])]
    pub(crate) scale: bool,

    /// List the filters and how they are configured
    #[arg(long)]
    pub(crate) list: bool,
}

/// The keys of more slots alone would fill the memory of most machines.
const MAX_LOG2_SLOTS: u32 = 32;

impl Args {
    /// What is to be done. Every value was checked by its parser.
    pub(crate) fn plan(&self) -> Plan {
        let chosen =
            |entry: &Entry| self.filters.is_empty() || self.filters.iter().any(|name| name == entry.name);
        let effort = if self.quick { Effort::QUICK } else { Effort::FULL };
        Plan {
            entries: subjects::all().into_iter().filter(chosen).collect(),
            cases: self.cases(),
            repeat: self.repeat.unwrap_or(if self.quick { 1 } else { 5 }),
            adapt_queries: self.adapt_queries,
            baseline: self.baseline.clone(),
            seed: self.seed,
            effort,
        }
    }

    /// The same for `--scale`.
    pub(crate) fn scales(&self) -> Vec<Scale> {
        let repeat = self.repeat.unwrap_or(if self.quick { 1 } else { 5 });
        let scale = |case: Case| Scale::new(case.shape.items, case.shape.load, repeat, self.seed);
        self.cases().into_iter().map(scale).collect()
    }

    fn cases(&self) -> Vec<Case> {
        let default = if self.quick { 14 } else { 20 };
        let sizes: Vec<(Option<u32>, usize)> = if !self.items.is_empty() {
            self.items.iter().map(|&items| (None, items)).collect()
        } else {
            let logs = if self.log2_slots.is_empty() { &[default][..] } else { &self.log2_slots };
            // Rounded down, so that the keys never ask for one slot more than there are.
            logs.iter().map(|&log2| (Some(log2), ((1_u64 << log2) as f64 * self.load) as usize)).collect()
        };
        let mut fills = self.fill.clone();
        fills.sort_by(f64::total_cmp);
        fills.dedup();
        let mut cases = Vec::new();
        for (log2_slots, items) in sizes {
            let shape = Shape { items: items.max(1), load: self.load, rate: self.rate, seed: self.seed };
            let mut from = 0;
            for &fill in &fills {
                let to = ((shape.items as f64 * fill).round() as usize).max(from + 1).min(shape.items);
                cases.push(Case { log2_slots, shape, fill, from: from.min(to - 1), to });
                from = to;
            }
        }
        cases
    }
}

impl Effort {
    /// Long enough for figures that repeat.
    const FULL: Self = Self { queries: 1 << 20, at_least: Duration::from_millis(20), visits: 3 };
    /// Long enough to see that everything works.
    const QUICK: Self = Self { queries: 1 << 16, at_least: Duration::from_millis(1), visits: 1 };
}

/// Unlike the library, the benchmark stops where a wish cannot be met: a figure under the wrong name is worse than
/// none.
impl Args {
    /// Makes besom use the instruction set that was asked for, here or in the environment.
    pub(crate) fn choose_isa(&self) -> Result<(), IsaError> {
        match self.isa {
            Some(isa) => isa.force(),
            None => Isa::requested().map(|_| ()),
        }
    }
}

fn isa(text: &str) -> Result<Isa, String> {
    text.parse().map_err(|error: IsaError| error.to_string())
}

fn log2_slots(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(log2) if (1..=MAX_LOG2_SLOTS).contains(&log2) => Ok(log2),
        _ => Err(format!("not a whole number from 1 to {MAX_LOG2_SLOTS}")),
    }
}

fn items(text: &str) -> Result<usize, String> {
    match text.trim().replace('_', "").parse() {
        Ok(items) if (1..=1 << MAX_LOG2_SLOTS).contains(&items) => Ok(items),
        _ => Err(format!("not a whole number from 1 to 2^{MAX_LOG2_SLOTS}")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("not a share: more than 0 and at most 1".into()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("not a rate: more than 0 and less than 1".into()),
    }
}

fn filter(text: &str) -> Result<String, String> {
    let names: Vec<&str> = subjects::all().iter().map(|entry| entry.name).collect();
    let name = text.trim();
    if names.contains(&name) {
        Ok(name.into())
    } else {
        Err(format!("no filter has this name; there are {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once("besom-bench").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn bad_values_are_refused_with_exit_code_2() {
        for line in [
            "--log2-slots 0",
            "--log2-slots 64",
            "--log2-slots 20,x",
            "--log2-slots=-1",
            "--load 0",
            "--load 1.01",
            "--load NaN",
            "--load=-0.5",
            "--rate 0",
            "--rate 1",
            "--rate nan",
            "--rate inf",
            "--repeat 0",
            "--repeat 4294967296",
            "--items 0",
            "--items 99999999999999999999",
            "--items 10 --log2-slots 20",
            "--fill 0.5,2",
            "--filters nonesuch",
            "--filters qfilter,,xorf",
            "--baseline nonesuch",
            "--seed x",
            "--adapt-queries -1",
            "--no-such-option",
            "stray",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}: {error}");
        }
    }

    #[test]
    fn an_unknown_filter_is_answered_with_the_known_ones() {
        let error = parse("--filters nonesuch").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
        for entry in subjects::all() {
            assert!(error.to_string().contains(entry.name), "{error}");
        }
    }

    #[test]
    fn sizes_come_from_slots_and_load_or_from_items() {
        let cases = parse("--log2-slots 20,24 --load 0.5").unwrap().plan().cases;
        let items: Vec<usize> = cases.iter().map(|case| case.shape.items).collect();
        assert_eq!(items, [1 << 19, 1 << 23]);
        let cases = parse("--items 1_000,7").unwrap().plan().cases;
        assert_eq!(cases.iter().map(|case| case.shape.items).collect::<Vec<_>>(), [1000, 7]);
        for log2 in 1..=30 {
            let case = &parse(&format!("--log2-slots {log2}")).unwrap().plan().cases[0];
            assert!(case.shape.slots() <= 1 << log2 || log2 < 3, "{case:?}");
        }
    }

    #[test]
    fn fills_are_steps_that_leave_out_nothing() {
        let cases = parse("--items 100 --fill 1,0.25,0.5").unwrap().plan().cases;
        let steps: Vec<(usize, usize)> = cases.iter().map(|case| (case.from, case.to)).collect();
        assert_eq!(steps, [(0, 25), (25, 50), (50, 100)]);
        let tiny = parse("--items 1 --fill 0.1,0.2,1").unwrap().plan().cases;
        assert!(tiny.iter().all(|case| case.from < case.to && case.to <= 1));
    }

    #[test]
    fn filters_are_measured_in_the_order_of_the_registry() {
        let plan = parse("--filters xorf,qfilter").unwrap().plan();
        assert_eq!(plan.entries.iter().map(|entry| entry.name).collect::<Vec<_>>(), ["qfilter", "xorf"]);
    }

    #[test]
    fn quick_gives_way_to_what_is_asked_for() {
        let plan = parse("--quick --repeat 3 --log2-slots 10").unwrap().plan();
        assert_eq!((plan.repeat, plan.cases[0].log2_slots), (3, Some(10)));
    }
}
