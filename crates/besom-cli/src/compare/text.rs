//! What `compare` says in the terminal.

use std::fmt::Write;

use super::Report;
use super::contender::{Plan, Space};
use super::replay::Row;
use super::verdict::{Verdict, in_contest};
use crate::output::{Paint, thousands};
use crate::table::{Align, Table};

/// The table, the lines over time, the recommendation, what the product makes of it.
pub(super) fn render(report: &Report<'_>, verdict: Option<&Verdict>, paint: Paint) -> String {
    let &Report { rows, plan, product, .. } = report;
    let mut text = table(rows, plan, verdict, paint).render(paint);
    if rows.iter().any(|row| !in_contest(row, plan)) {
        let bits = if let Space::BitsPerKey(bits) = plan.space { bits } else { 0.0 };
        let _ = writeln!(
            text,
            "{}",
            paint.dim(&format!("* larger than the {bits} bits a key of the others, so not in the contest"))
        );
    }
    let _ = writeln!(text, "\n{}", paint.bold("Useless look-ups in the store, as the queries go on"));
    text += &lines(rows, verdict, paint);
    if let Some(verdict) = verdict {
        let _ = write!(text, "\n{}\n\n{}\n", paint.bold(&verdict.sentence), indent(&verdict.code));
    }
    if let Some(product) = product {
        let _ = writeln!(text, "\n{}", product.sentence());
    }
    text
}

fn indent(code: &str) -> String {
    code.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn table(rows: &[Row], plan: &Plan, verdict: Option<&Verdict>, paint: Paint) -> Table {
    let mut table = Table::new(&[
        ("filter", Align::Left),
        ("bits/key", Align::Right),
        ("false pos.", Align::Right),
        ("repeated", Align::Right),
        ("repairs", Align::Right),
        ("reads/M queries", Align::Right),
        ("M/s", Align::Right),
        ("M/s alone", Align::Right),
        ("attacked", Align::Right),
        ("work kbit", Align::Right),
    ]);
    for row in rows {
        let star = if in_contest(row, plan) { "" } else { "*" };
        let name = format!("{}{star}", row.entry_name);
        let best = verdict.is_some_and(|verdict| verdict.recommended == row.entry_name);
        let name = match (best, row.adaptive) {
            (true, _) => paint.green(&paint.bold(&name)),
            (false, true) => name,
            (false, false) => paint.dim(&name),
        };
        let attacked = 100.0 * row.attack.false_positives as f64 / row.attack.queries.max(1) as f64;
        let attacked =
            if attacked > 10.0 { paint.red(&format!("{attacked:.1}%")) } else { format!("{attacked:.2}%") };
        table.row(vec![
            name,
            format!("{:.2}", row.bits_per_key),
            thousands(row.false_positives),
            thousands(row.repeated),
            thousands(row.adaptations),
            thousands((row.store_reads() as f64 * 1e6 / row.queries.max(1) as f64) as u64),
            format!("{:.2}", row.queries_per_second() / 1e6),
            format!("{:.1}", row.filter_speed / 1e6),
            attacked,
            format!("{:.0}", row.working_kbit()),
        ]);
    }
    table
}

const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Steps of a line.
const WIDTH: usize = 48;

/// Every filter's useless look-ups over time, all to the same scale.
fn lines(rows: &[Row], verdict: Option<&Verdict>, paint: Paint) -> String {
    // Whoever is far worse than the rest would flatten all others.
    let mut ends: Vec<u64> = rows.iter().map(|row| row.false_positives).collect();
    ends.sort_unstable();
    let most = ends.get(ends.len() * 3 / 4).copied().unwrap_or(0).max(1);
    let width = rows.iter().map(|row| row.entry_name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let line: String = (1..=WIDTH).map(|step| level(row, step, most)).collect();
        let best = verdict.is_some_and(|verdict| verdict.recommended == row.entry_name);
        let line = if best {
            paint.green(&line)
        } else if row.adaptive {
            line
        } else {
            paint.yellow(&line)
        };
        let _ = writeln!(text, "  {:width$} {line} {}", row.entry_name, thousands(row.false_positives));
    }
    text
}

fn level(row: &Row, step: usize, most: u64) -> char {
    let until = row.queries * step as u64 / WIDTH as u64;
    let useless = row.useless.iter().take_while(|point| point.0 <= until).last().map_or(0, |point| point.1);
    let level = (useless * 8).div_ceil(most).min(8);
    LEVELS[level as usize]
}
