//! The page of a comparison: one file, nothing loaded from elsewhere; for phones, desks and paper. What came out and
//! the one plot that matters stand on the first screen.

use std::fmt::Write;

use besom_lab::report::{Axis, FIGURE_STYLE, Line, PAGE_STYLE, Plot, escape, render_figure};
use besom_lab::stats::{Spread, Summary};

use super::Report;
use super::contender::Needs;
use super::replay::Row;
use super::verdict::{Verdict, in_contest};
use crate::output::{counted, thousands};

/// The page.
pub(super) fn render(report: &Report<'_>, verdict: Option<&Verdict>) -> String {
    let rows = report.sorted();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>besom compare</title>\n<style>{PAGE_STYLE}{FIGURE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    if let Some(interruption) = report.interruption() {
        let _ = writeln!(html, "<p class=\"interrupted\" role=\"alert\">{}</p>", escape(&interruption));
    }
    if let Some(verdict) = verdict {
        let _ = writeln!(html, "<h1 class=\"headline\">{}</h1>", bold_names(&verdict.headline));
    } else {
        html.push_str("<h1 class=\"headline\">Filters in front of one store</h1>\n");
    }
    let _ = writeln!(html, "<div class=\"first\">{}</div>", render_figure(&useless(&rows, report.seeds())));
    if let Some(verdict) = verdict {
        explain(&mut html, verdict);
    }
    table(&mut html, report, &rows, verdict);
    if let Some(product) = report.product {
        let _ = writeln!(html, "<p>{}</p>", escape(&product.sentence()));
    }
    html.push_str("<div class=\"plots\">\n");
    for plot in [over_time(&rows), space(&rows), speed(&rows), attack(&rows)] {
        if !plot.is_empty() {
            html += &render_figure(&plot);
        }
    }
    html.push_str("</div>\n");
    let _ = writeln!(html, "<p class=\"facts\">{}</p>", escape(&facts(report)));
    let _ = write!(html, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

/// What is between pairs of stars is bold.
fn bold_names(text: &str) -> String {
    let parts = text.split("**").enumerate();
    let part = |(place, part): (usize, &str)| {
        if place % 2 == 1 { format!("<b>{}</b>", escape(part)) } else { escape(part) }
    };
    parts.map(part).collect()
}

/// What else there is to say, the threat, and the code.
fn explain(html: &mut String, verdict: &Verdict) {
    for detail in &verdict.details {
        let _ = writeln!(html, "<p class=\"detail\">{}</p>", escape(detail));
    }
    if let Some(threat) = verdict.threat {
        let _ = writeln!(html, "<p class=\"threat\">{}</p>", escape(threat));
    }
    if let Some(code) = &verdict.code {
        let _ = writeln!(html, "<pre><code>{}</code></pre>", escape(code));
    }
}

fn facts(report: &Report<'_>) -> String {
    format!(
        "{}, {}: {}. Behind the filters: {}. {}.{} {} from {} on, besom {}, {:.0} seconds.",
        counted(u64::from(report.source.stored), "key"),
        counted(report.source.queries.len(), "query"),
        report.source.title,
        report.store.describe(),
        report.plan.space.describe(),
        report.plan.training.describe(),
        counted(report.seeds() as u64, "seed"),
        report.plan.seed,
        env!("CARGO_PKG_VERSION"),
        report.seconds
    )
}

/// A cell: what is shown, and what it is sorted by.
type Cell = (String, f64);

const COLUMNS: [(&str, &str); 9] = [
    ("filter", "its name, and what it needs beside its memory"),
    ("bits a key", "memory at the end, repairs included, without the hash index"),
    (
        "useless reads",
        "look-ups of absent keys, and what repairs read beyond their first read: median over the seeds",
    ),
    ("range", "the fewest and the most over the seeds"),
    ("repeated", "those of them that had been useless before, first seed"),
    ("repair reads", "reads of the hash index by repairs, median"),
    ("million queries a second", "with the store behind the filter, first seed"),
    ("filter alone", "million queries a second without the store"),
    ("attacker gets through", "share of the queries of an attacker who repeats what was accepted"),
];

fn cells(row: &Row) -> [Cell; 8] {
    let (run, useless) = (row.first(), row.useless());
    let attacked = row.attacked().map(|share| share.median);
    let count = |number: f64| (thousands(number.round() as u64), number);
    [
        (format!("{:.2}", row.bits_per_key()), row.bits_per_key()),
        count(useless.median),
        (format!("{}–{}", thousands(useless.low as u64), thousands(useless.high as u64)), useless.low),
        count(run.repeated as f64),
        count(row.repair_reads().median),
        (format!("{:.2}", run.queries_per_second() / 1e6), run.queries_per_second()),
        (format!("{:.1}", run.filter_speed / 1e6), run.filter_speed),
        (
            attacked.map_or_else(|| "–".into(), |share| format!("{:.2}%", 100.0 * share)),
            attacked.unwrap_or(0.0),
        ),
    ]
}

fn table(html: &mut String, report: &Report<'_>, rows: &[&Row], verdict: Option<&Verdict>) {
    html.push_str("<p class=\"cue\" aria-hidden=\"true\">The table goes on to the right →</p>\n");
    html.push_str("<div class=\"wide scrolls\" tabindex=\"0\"><table id=\"filters\"><thead><tr>");
    for (place, (heading, meaning)) in COLUMNS.into_iter().enumerate() {
        let sorted = if place == 2 { " aria-sort=\"ascending\"" } else { "" };
        let _ = write!(
            html,
            "<th scope=\"col\"{sorted}><button type=\"button\" title=\"{meaning}\">{heading}</button></th>"
        );
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        let best = verdict.is_some_and(|verdict| verdict.recommended.contains(&row.entry_name));
        let class = if best { " class=\"best\"" } else { "" };
        let star = if in_contest(row, report.plan) { "" } else { " *" };
        let name = escape(row.entry_name);
        let kind = row.needs.name();
        let _ = write!(
            html,
            "<tr{class}><th scope=\"row\" data-value=\"{name}\">{name}{star} <small>{kind}</small></th>"
        );
        for (text, value) in cells(row) {
            let _ = write!(html, "<td data-value=\"{value}\">{text}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if rows.iter().any(|row| !in_contest(row, report.plan)) {
        html.push_str(
            "<p class=\"facts\">* larger than the space that all were given, so not in the contest.</p>\n",
        );
    }
    let working = rows.iter().filter(|row| row.first().working_bits > 0);
    let working: Vec<String> =
        working.map(|row| format!("{} {:.0}", row.entry_name, row.first().working_kbit())).collect();
    if !working.is_empty() {
        let _ = writeln!(
            html,
            "<p class=\"facts\">Working memory, kbit, whatever the size of the filter and not among the bits a key: {}.</p>",
            escape(&working.join(", "))
        );
    }
}

/// The one that matters: all filters, with their ranges.
fn useless(rows: &[&Row], seeds: usize) -> Plot {
    let over = if seeds == 1 { "one seed".into() } else { format!("median and range of {seeds} seeds") };
    let title = format!("Useless reads of the store ({over})");
    let mut plot = Plot::dots("useless", title, Axis::log("useless reads, logarithmic"));
    for row in rows {
        plot.dot(row.entry_name, kind(row), of(&row.useless(), seeds));
    }
    plot
}

/// What the colours of plots stand for.
fn kind(row: &Row) -> &'static str {
    match row.needs {
        Needs::Nothing => "plain",
        Needs::Feedback => "list or cache of absent keys",
        Needs::Sample => "trained on a sample",
        Needs::HashIndex => "adaptive, with a hash index",
    }
}

fn of(spread: &Spread, runs: usize) -> Summary {
    Summary { mean: spread.median, low: spread.low, high: spread.high, runs }
}

fn over_time(rows: &[&Row]) -> Plot {
    let (x, y) = (Axis::linear("million queries").including(0.0), Axis::log("useless look-ups so far"));
    let mut plot = Plot::lines("over-time", "Useless look-ups as the queries go on, first seed", x, y);
    for row in rows {
        let useless = &row.first().useless;
        let step = useless.len().div_ceil(16).max(1);
        let last = useless.len().saturating_sub(1);
        // The last point, and none so near to it that the two run into one another.
        let apart = |place: usize| place > 0 && place.is_multiple_of(step) && place + step / 2 < last;
        let points = useless.iter().enumerate().filter(|(place, _)| apart(*place) || *place == last);
        plot.line(Line::exact(
            row.entry_name,
            points.map(|(_, point)| (point.0 as f64 / 1e6, point.1 as f64)),
        ));
    }
    plot
}

fn space(rows: &[&Row]) -> Plot {
    let title = "Space, and the share of absent queries that got through";
    let mut plot =
        Plot::lines("space", title, Axis::linear("bits a key"), Axis::log("useless reads / absent queries"));
    for row in rows {
        let absent = row.first().absent.max(1) as f64;
        let useless = row.useless();
        let rate = Spread {
            low: useless.low / absent,
            median: useless.median / absent,
            high: useless.high / absent,
        };
        plot.line(Line::new(row.entry_name, vec![(row.bits_per_key(), of(&rate, row.runs.len()))]));
    }
    plot
}

fn speed(rows: &[&Row]) -> Plot {
    let mut plot = Plot::dots(
        "speed",
        "Queries a second, with the store behind the filter and without",
        Axis::log("million queries a second"),
    );
    for row in rows {
        plot.dot(row.entry_name, "filter alone", exactly(row.first().filter_speed / 1e6));
        plot.dot(row.entry_name, "with the store", exactly(row.first().queries_per_second() / 1e6));
    }
    plot
}

fn attack(rows: &[&Row]) -> Plot {
    let queries = rows.first().map_or(0, |row| row.first().attack.queries);
    let title = format!("An attacker who repeats whatever got through, {} queries", thousands(queries));
    let mut plot = Plot::dots("attack", title, Axis::log("share of his queries that got through"));
    for row in rows {
        if let Some(attacked) = row.attacked() {
            plot.dot(row.entry_name, kind(row), of(&attacked, row.runs.len()));
        }
    }
    plot.reference("one in ten is a new key", 0.1);
    plot
}

fn exactly(value: f64) -> Summary {
    Summary { mean: value, low: value, high: value, runs: 1 }
}

const STYLE: &str = "\
.headline{font-size:1.35rem;font-weight:400;max-width:46em}.headline b{font-weight:700;color:var(--good)}\
.first figure{max-width:900px}.detail,.threat{max-width:62em}.threat{border-left:4px solid var(--bad);padding-left:.8em}\
.interrupted{border:2px solid var(--bad);border-radius:8px;padding:.6em .9em;font-weight:600}\
pre{background:var(--fill);border:1px solid var(--line);border-radius:8px;padding:.7em 1em;overflow-x:auto;font-size:.85rem}\
table{font-variant-numeric:tabular-nums}th,td{text-align:right;white-space:nowrap}\
thead th{vertical-align:bottom;padding:0}thead button{all:unset;cursor:pointer;padding:.5em .7em;display:block;\
white-space:normal;font-weight:600;min-width:4.5em}thead button:focus-visible{outline:2px solid var(--good);outline-offset:-2px}\
thead th[aria-sort=ascending] button::after{content:' \\25B2'}thead th[aria-sort=descending] button::after{content:' \\25BC'}\
tr>:first-child{text-align:left;position:sticky;left:0;background:var(--paper);background-clip:padding-box}thead tr>:first-child{background:var(--fill)}\
tbody th{font-weight:600}small{color:var(--soft);font-weight:400}tr.best>*,tr.best>:first-child{background-color:var(--best)}\
.cue{display:none;margin:1em 0 -.6em;color:var(--soft);font-size:.85rem;text-align:right}\
@media screen and (max-width:900px){.cue{display:block}.scrolls{box-shadow:inset -14px 0 12px -12px var(--soft)}tbody th small{display:block}}\
@media print{.first figure{max-width:16cm}thead button{min-width:0;padding:.4em .5em}th,td{padding:.35em .5em}tr>:first-child{position:static}}";

/// Sorting by a click on a heading; the page is complete without it.
const SCRIPT: &str = "\
(()=>{const t=document.getElementById('filters');if(!t)return;const b=t.tBodies[0];\
[...t.tHead.rows[0].cells].forEach((h,i)=>h.firstChild.addEventListener('click',()=>{\
const up=h.getAttribute('aria-sort')!=='ascending';\
[...t.tHead.rows[0].cells].forEach(o=>o.removeAttribute('aria-sort'));\
h.setAttribute('aria-sort',up?'ascending':'descending');\
const v=r=>r.cells[i].dataset.value;\
[...b.rows].sort((x,y)=>{const p=v(x),q=v(y),d=i?p-q:p.localeCompare(q);return up?d:-d}).forEach(r=>b.append(r))}))})();";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for outside in ["http:", "https:", "@import", "url("] {
            assert!(!STYLE.contains(outside) && !SCRIPT.contains(outside) && !FIGURE_STYLE.contains(outside));
        }
    }
}
