//! What `compare` says in the terminal: within 80 columns.

use std::fmt::Write;

use super::Report;
use super::contender::{Needs, Space, bits_text};
use super::replay::Row;
use super::verdict::{Verdict, in_contest};
use crate::output::{Paint, thousands};
use crate::table::{Align, Table};

/// The columns of a terminal.
const WIDTH: usize = 80;

/// The verdict, the table, the lines over time, how to build it, what the product makes of it.
pub(super) fn render(report: &Report<'_>, verdict: Option<&Verdict>, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(interruption) = report.interruption() {
        let _ = writeln!(text, "{}\n", paint.red(&wrap(&interruption)));
    }
    if let Some(verdict) = verdict {
        let _ = writeln!(text, "{}\n", bold_names(&wrap(&verdict.headline), paint));
    }
    text += &table(report, verdict, paint).render(paint);
    text += &paint.dim(&wrap(&legend(report)));
    text.push('\n');
    let _ =
        writeln!(text, "\n{}", paint.bold("Useless look-ups as the queries go on, first seed, logarithmic"));
    text += &lines(report, verdict, paint);
    if let Some(verdict) = verdict {
        text += &explained(verdict);
    }
    if let Some(product) = report.product {
        let _ = writeln!(text, "\n{}", wrap(&product.sentence()));
    }
    text
}

/// What else there is to say, and the code.
fn explained(verdict: &Verdict) -> String {
    let mut text = String::new();
    for detail in verdict.details.iter().map(String::as_str).chain(verdict.threat) {
        let _ = writeln!(text, "\n{}", wrap(detail));
    }
    if let Some(code) = &verdict.code {
        let code: Vec<String> = code.lines().map(|line| format!("    {line}")).collect();
        let _ = writeln!(text, "\n{}", code.join("\n"));
    }
    text
}

/// What is between pairs of stars is bold.
fn bold_names(text: &str, paint: Paint) -> String {
    let parts = text.split("**").enumerate();
    parts
        .map(|(place, part)| if place % 2 == 1 { paint.green(&paint.bold(part)) } else { part.to_owned() })
        .collect()
}

/// Lines of at most 80 letters, broken between words.
pub(super) fn wrap(text: &str) -> String {
    let (mut wrapped, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.replace("**", "").chars().count();
        if used > 0 && used + 1 + length > WIDTH {
            wrapped.push('\n');
            used = 0;
        } else if used > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped += word;
        used += length;
    }
    wrapped
}

/// What the columns mean, and what stands apart.
fn legend(report: &Report<'_>) -> String {
    let seeds = report.seeds();
    let mut text = format!(
        "useless: look-ups of absent keys and what repairs read beyond their first read, median of {seeds} seed{}; repairs: all reads of the \
         hash index; attacked: share of an attacker's queries that got through.",
        if seeds == 1 { "" } else { "s" }
    );
    if let Space::BitsPerKey(bits) = report.plan.space
        && report.rows.iter().any(|row| !in_contest(row, report.plan))
    {
        let _ = write!(
            text,
            " * larger than the {} a key that all were given, so not in the contest.",
            bits_text(bits)
        );
    }
    let working: Vec<String> = report
        .rows
        .iter()
        .filter(|row| row.first().working_bits > 0)
        .map(|row| format!("{} {:.0} kbit", row.entry_name, row.first().working_kbit()))
        .collect();
    if !working.is_empty() {
        let _ =
            write!(text, " Operations work in memory besides, whatever the size: {}.", working.join(", "));
    }
    text
}

fn table(report: &Report<'_>, verdict: Option<&Verdict>, paint: Paint) -> Table {
    let mut table = Table::new(&[
        ("filter", Align::Left),
        ("bits", Align::Right),
        ("useless", Align::Right),
        ("range", Align::Right),
        ("repairs", Align::Right),
        ("M/s", Align::Right),
        ("attacked", Align::Right),
    ]);
    for row in report.sorted() {
        let star = if in_contest(row, report.plan) { "" } else { "*" };
        let name = painted(row, &format!("{}{star}", row.entry_name), verdict, paint);
        let attacked = match row.attacked().map(|share| 100.0 * share.median) {
            None => "–".into(),
            Some(share) if share > 10.0 => paint.red(&format!("{share:.1}%")),
            Some(share) => format!("{share:.2}%"),
        };
        let useless = row.useless();
        table.row(vec![
            name,
            format!("{:.2}", row.bits_per_key()),
            thousands(useless.median.round() as u64),
            format!("{}–{}", thousands(useless.low as u64), thousands(useless.high as u64)),
            thousands(row.repair_reads().median.round() as u64),
            format!("{:.2}", row.first().queries_per_second() / 1e6),
            attacked,
        ]);
    }
    table
}

/// Green what is recommended, dim what learns nothing.
fn painted(row: &Row, text: &str, verdict: Option<&Verdict>, paint: Paint) -> String {
    match verdict {
        Some(verdict) if verdict.recommended.contains(&row.entry_name) => paint.green(&paint.bold(text)),
        _ if row.needs == Needs::Nothing => paint.dim(text),
        _ => text.to_owned(),
    }
}

const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Steps of a line.
const STEPS: usize = 44;

/// Every filter's useless reads over time, all to the same logarithmic scale, so that nothing is cut off.
fn lines(report: &Report<'_>, verdict: Option<&Verdict>, paint: Paint) -> String {
    let rows = report.sorted();
    let most = rows.iter().map(|row| row.first().false_positives).max().unwrap_or(0).max(1);
    let width = rows.iter().map(|row| row.entry_name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let line: String = (1..=STEPS).map(|step| level(row, step, most)).collect();
        let line = painted(row, &line, verdict, paint);
        let _ =
            writeln!(text, "  {:width$} {line} {}", row.entry_name, thousands(row.first().false_positives));
    }
    text
}

/// From nothing (no useless read) to the full height (the most of all filters).
fn level(row: &Row, step: usize, most: u64) -> char {
    let run = row.first();
    let until = run.queries * step as u64 / STEPS as u64;
    let useless = run.useless.iter().take_while(|point| point.0 <= until).last().map_or(0, |point| point.1);
    let share = (useless as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
    LEVELS[(8.0 * share).ceil().min(8.0) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let wrapped = wrap(&"four ".repeat(40));
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH) && wrapped.lines().count() == 3);
        // Marks take no room.
        assert_eq!(wrap(&format!("**{}** b", "a".repeat(78))).lines().count(), 1);
    }
}
