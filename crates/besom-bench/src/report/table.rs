//! The rows for people.

use std::fmt::Write;

use crate::measure::{Case, Effort, Figures, Plan, Row, Spread};
use crate::subject::{BATCH, Entry};

/// One column: its head, and the cell of a row.
struct Column<'a> {
    head: &'static str,
    cell: Box<dyn Fn(&Figures) -> String + 'a>,
}

/// One table per size, with ratios to the baseline beside the figures, and the footnotes.
pub(crate) fn render(plan: &Plan, rows: &[Row]) -> String {
    let mut text = machine();
    for rows in rows.chunks(plan.entries.len().max(1)) {
        text.push('\n');
        text.push_str(&section(plan, rows));
    }
    text.push('\n');
    text.push_str(&legend(plan));
    text.push('\n');
    text.push_str(&footnotes(&plan.entries));
    text
}

/// Names and notes of the filters.
pub(crate) fn footnotes(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    entries.iter().map(|Entry { name, note, .. }| format!("{name:width$}  {note}\n")).collect()
}

/// The table of one size.
fn section(plan: &Plan, rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return "nothing to measure\n".into() };
    let baseline = rows.iter().find(|row| row.filter == plan.baseline).and_then(|row| row.figures.as_ref());
    let columns = columns(rows, baseline);
    let width = rows.iter().map(|row| row.filter.chars().count()).max().unwrap_or(0).max("filter".len());
    let mut text = title(&first.case);
    if baseline.is_some() {
        let _ = writeln!(text, "× = times {}", plan.baseline);
    }
    let _ = write!(text, "\n{:width$}", "filter");
    for column in &columns {
        let _ = write!(text, "  {:>1$}", column.head, column.width());
    }
    text.push('\n');
    for row in rows {
        let _ = write!(text, "{:width$}", row.filter);
        if let Some(figures) = &row.figures {
            for column in &columns {
                let _ = write!(text, "  {:>1$}", (column.cell)(figures), column.width());
            }
        } else {
            let _ = write!(text, "  failed: {}", row.error.as_deref().unwrap_or("no repeat was made").trim());
        }
        text.push('\n');
    }
    text
}

impl Column<'_> {
    /// Wide enough for its head, and for every cell.
    fn width(&self) -> usize {
        self.head.chars().count().max(9)
    }
}

/// Columns about remotes and adaptation appear only if some filter fills them.
fn columns<'a>(rows: &[Row], baseline: Option<&'a Figures>) -> Vec<Column<'a>> {
    let any = |has: fn(&Figures) -> bool| rows.iter().filter_map(|row| row.figures.as_ref()).any(has);
    let mut columns = vec![column("insert", |figures| speed(figures.insert))];
    if any(|figures| figures.insert_with_remote.is_some()) {
        columns.push(column("insert+remote", |figures| speed(figures.insert_with_remote)));
    }
    columns.push(column("positive", |figures| speed(Some(figures.positive))));
    columns.push(column("negative", |figures| speed(Some(figures.negative))));
    columns.push(column("batched", |figures| speed(figures.batch_negative)));
    columns.push(column("fpr", |figures| percent(figures.fpr)));
    if any(|figures| figures.adapting_fpr.is_some()) {
        columns.push(column("adapting", |figures| percent(figures.adapting_fpr)));
    }
    if any(|figures| figures.repair.is_some()) {
        let thousands = |spread: Spread| format!("{:.0}", 1_000.0 * spread.median);
        columns.push(column("repairs", move |figures| figures.repair.map_or_else(|| "–".into(), thousands)));
    }
    columns.push(column("bits/key", |figures| format!("{:.2}", figures.bits_per_key)));
    columns.push(column("spread", |figures| format!("{:.0}%", 100.0 * noise(figures))));
    if let Some(base) = baseline {
        columns.push(column("insert ×", move |figures| ratio(figures.insert, base.insert)));
        columns.push(column("posit. ×", move |figures| ratio(Some(figures.positive), Some(base.positive))));
        columns.push(column("negat. ×", move |figures| ratio(Some(figures.negative), Some(base.negative))));
        let batched = base.batch_negative.or(Some(base.negative));
        columns.push(column("batched ×", move |figures| ratio(figures.batch_negative, batched)));
    }
    columns
}

fn column<'a>(head: &'static str, cell: impl Fn(&Figures) -> String + 'a) -> Column<'a> {
    Column { head, cell: Box::new(cell) }
}

fn speed(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "–".into(), |spread| format!("{:.1}", spread.median))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), |share| format!("{:.4}%", 100.0 * share))
}

fn ratio(spread: Option<Spread>, base: Option<Spread>) -> String {
    let ratio = spread.zip(base).map(|(spread, base)| spread.median / base.median);
    ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"))
}

/// The widest range among the speeds of insertion and of single queries.
fn noise(figures: &Figures) -> f64 {
    let insert = figures.insert.or(figures.insert_with_remote);
    let speeds = [Some(figures.positive), Some(figures.negative), insert];
    speeds.iter().flatten().map(Spread::relative).fold(0.0, f64::max)
}

fn title(case: &Case) -> String {
    let Case { log2_slots, shape, from, to, .. } = case;
    let size = log2_slots.map_or_else(|| "as many slots as needed".into(), |log2| format!("2^{log2} slots"));
    let mut text = format!("{to} keys, {size}, load {}, rate 1/{:.6}", shape.load, 1.0 / shape.rate);
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    if *to < shape.items {
        let _ = write!(text, ", planned for {} keys", shape.items);
    }
    if *from > 0 {
        let _ = write!(text, "; insertion timed from {from} keys on");
    }
    text + "\n"
}

fn legend(plan: &Plan) -> String {
    let Effort { queries, visits, .. } = plan.effort;
    let mut text = format!(
        "Speeds in million operations a second on random 64-bit keys: medians over {} repeat{}, each of which goes \
         through all filters,\nonce for insertion and {visits} times for queries. spread: (max − min) / median of \
         the least steady speed.\n\
         batched: negative queries by {BATCH} keys a call; × is to the baseline's batched queries, or to its single \
         ones if it has none.\n\
         fpr: false positives among {queries} fresh non-members a repeat. bits/key: all memory that the filter holds for \
         its keys and repairs,\nas the allocator counts it; what operations work in, some kilobits at any size, is in the \
         JSON.\n",
        plan.repeat,
        if plan.repeat == 1 { "" } else { "s" },
    );
    if plan.entries.iter().any(|entry| entry.remote) {
        text.push_str(
            "insert: into the filter alone, an adaptive one with a remote that stores nothing (none where it cannot insert \
             without the stored keys);\ninsert+remote: with a MemoryRemote behind an adaptive filter.\n",
        );
    }
    if plan.adapt_queries > 0 {
        let _ = writeln!(
            text,
            "adapting: false positives among {} queries before the measured ones, Zipf(1.0) over 10 non-members a \
             key, each repaired\nif the filter can. repairs: thousands a second, with a remote in memory; the queries are not counted.",
            plan.adapt_queries
        );
    }
    text
}

/// What it was measured on.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| {
        let line = info.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut text = format!("besom-bench {} on {arch} {os}", env!("CARGO_PKG_VERSION"));
    if let Some(cpu) = cpu {
        let _ = write!(text, ", {cpu}");
    }
    let _ = write!(text, "; besom with {}", besom::isa::Isa::active());
    if cfg!(debug_assertions) {
        text.push_str(" — NOT OPTIMISED: build with --release to measure");
    }
    text + "\n"
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use besom::FilterStats;

    use super::*;
    use crate::subject::Shape;

    fn spread(median: f64) -> Spread {
        Spread { median, min: median, max: median * 1.5 }
    }

    /// A plain filter, an adaptive one, and one that failed.
    pub(crate) fn rows() -> Vec<Row> {
        let shape = Shape { items: 100, load: 0.9, rate: 1.0 / 256.0, seed: 1 };
        let case = Case { log2_slots: Some(7), shape, fill: 1.0, from: 0, to: 100 };
        let plain = Figures {
            insert: Some(spread(20.0)),
            insert_with_remote: None,
            positive: spread(30.0),
            negative: spread(40.0),
            batch_negative: None,
            fpr: Some(0.0039),
            adapting_fpr: None,
            repair: None,
            bits_per_key: 11.5,
            stats: None,
        };
        let adaptive = Figures {
            insert: Some(spread(30.0)),
            insert_with_remote: Some(spread(3.0)),
            batch_negative: Some(spread(100.0)),
            adapting_fpr: Some(0.0007),
            repair: Some(Spread { median: 0.5, min: 0.4, max: 0.6 }),
            stats: Some(FilterStats::default()),
            ..plain.clone()
        };
        let row = |filter, figures: Option<Figures>, error: Option<&str>| Row {
            filter,
            case,
            figures,
            error: error.map(Into::into),
        };
        vec![
            row("plain", Some(plain), None),
            row("adaptive", Some(adaptive), None),
            row("broken", None, Some("no \"room\"\n")),
        ]
    }

    fn plan(baseline: &str) -> Plan {
        let entry = |name| Entry {
            name,
            note: "its note".into(),
            build: Box::new(|_| Err("never built".into())),
            remote: false,
            bare: None,
        };
        Plan {
            entries: ["plain", "adaptive", "broken"].map(entry).into(),
            cases: vec![rows()[0].case],
            repeat: 5,
            adapt_queries: 10,
            baseline: baseline.into(),
            seed: 1,
            effort: Effort { queries: 1, at_least: Duration::ZERO, visits: 1 },
        }
    }

    fn cells(text: &str, filter: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(filter)).unwrap();
        line.split_whitespace().map(Into::into).collect()
    }

    #[test]
    fn ratios_are_to_the_baseline() {
        let text = render(&plan("plain"), &rows());
        let expected = [
            "adaptive", "30.0", "3.0", "30.0", "40.0", "100.0", "0.3900%", "0.0700%", "500", "11.50", "50%",
            "1.50", "1.00", "1.00", "2.50",
        ];
        assert_eq!(cells(&text, "adaptive"), expected, "{text}");
        assert!(text.contains("× = times plain"));
        assert!(text.contains("100 keys, 2^7 slots, load 0.9, rate 1/256\n"), "{text}");
        assert!(text.contains("broken    failed: no \"room\"\n"), "{text}");
    }

    #[test]
    fn batched_ratios_are_to_the_baselines_batched_queries() {
        let text = render(&plan("adaptive"), &rows());
        assert_eq!(cells(&text, "adaptive").last().unwrap(), "1.00", "{text}");
        assert_eq!(cells(&text, "plain").last().unwrap(), "–", "{text}");
    }

    #[test]
    fn insertions_with_different_remotes_are_in_different_columns() {
        let mut rows = rows();
        let figures = rows[1].figures.as_mut().unwrap();
        figures.insert = None;
        let text = render(&plan("plain"), &rows);
        assert_eq!(cells(&text, "filter")[1..3], ["insert", "insert+remote"], "{text}");
        assert_eq!(cells(&text, "plain")[1..3], ["20.0", "–"], "{text}");
        assert_eq!(cells(&text, "adaptive")[1..3], ["–", "3.0"], "{text}");
        assert_eq!(cells(&text, "adaptive")[11], "–", "no ratio to an insertion without a remote: {text}");
    }

    #[test]
    fn without_a_usable_baseline_there_are_no_ratios() {
        for baseline in ["broken", "absent"] {
            let text = render(&plan(baseline), &rows());
            assert!(!text.contains("insert ×") && !text.contains("× = "), "{text}");
            assert_eq!(cells(&text, "plain").len(), 11, "{text}");
        }
    }

    #[test]
    fn every_filter_has_its_footnote() {
        assert_eq!(render(&plan("plain"), &rows()).matches("its note").count(), 3);
        assert!(render(&Plan { entries: Vec::new(), ..plan("plain") }, &[]).contains("besom-bench"));
    }
}
