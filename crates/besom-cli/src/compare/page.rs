//! The page of a comparison: one file, nothing loaded from elsewhere; for phones, desks and paper.

use std::fmt::Write;

use besom_lab::report::{Axis, FIGURE_STYLE, Line, PAGE_STYLE, Plot, escape, render_figure};
use besom_lab::stats::Summary;

use super::Report;
use super::contender::Space;
use super::replay::Row;
use super::store::StoreKind;
use super::verdict::{Verdict, in_contest};
use crate::output::thousands;

/// The page.
pub(super) fn render(report: &Report<'_>, verdict: Option<&Verdict>) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>besom compare</title>\n<style>{PAGE_STYLE}{FIGURE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Which filter saves most?</h1>\n"
    );
    if let Some(verdict) = verdict {
        let _ = writeln!(html, "<p class=\"verdict\">{}</p>", escape(&verdict.sentence));
        let _ = writeln!(html, "<pre><code>{}</code></pre>", escape(&verdict.code));
    }
    if let Some(product) = report.product {
        let _ = writeln!(html, "<p>{}</p>", escape(&product.sentence()));
    }
    let _ = writeln!(html, "<p class=\"facts\">{}</p>", escape(&facts(report)));
    table(&mut html, report, verdict);
    html.push_str("<div class=\"plots\">\n");
    for plot in [over_time(report.rows), space(report.rows), speed(report.rows), attack(report.rows)] {
        if !plot.is_empty() {
            html += &render_figure(&plot);
        }
    }
    let _ = write!(html, "</div>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

fn facts(report: &Report<'_>) -> String {
    let space = match report.plan.space {
        Space::BitsPerKey(bits) => format!("{bits} bits a key for every filter"),
        Space::Rate(rate) => format!("a false-positive rate of {rate} for every filter"),
    };
    let store = match report.store {
        StoreKind::Redb => "redb, a database on disk",
        StoreKind::Memory => "a table in memory",
    };
    format!(
        "{} keys, {} queries: {}. Behind the filters: {store}; {space}. Seed {}, besom {}, {:.0} seconds.",
        thousands(u64::from(report.source.stored)),
        thousands(report.source.queries.len()),
        report.source.title,
        report.plan.seed,
        env!("CARGO_PKG_VERSION"),
        report.seconds
    )
}

/// A cell: what is shown, and what it is sorted by.
type Cell = (String, f64);

const COLUMNS: [(&str, &str); 10] = [
    ("filter", "its name; those that repair false positives are adaptive"),
    ("bits a key", "memory at the end, repairs included, without the reverse map"),
    ("false positives", "absent keys that the filter accepted: useless look-ups"),
    ("repeated", "those of them that had been false positives before"),
    ("repairs", "false positives that the filter repaired"),
    ("store reads per million queries", "look-ups, and what repairs read of the reverse map"),
    ("million queries a second", "with the store behind the filter"),
    ("filter alone", "million queries a second without the store"),
    ("attacker gets through", "share of the queries of an attacker who repeats what was accepted"),
    ("working memory, kbit", "what operations work in, however large the filter; not among the bits a key"),
];

fn cells(row: &Row) -> [Cell; 9] {
    let attacked = row.attack.false_positives as f64 / row.attack.queries.max(1) as f64;
    let reads = row.store_reads() as f64 * 1e6 / row.queries.max(1) as f64;
    let count = |number: u64| (thousands(number), number as f64);
    [
        (format!("{:.2}", row.bits_per_key), row.bits_per_key),
        count(row.false_positives),
        count(row.repeated),
        count(row.adaptations),
        count(reads as u64),
        (format!("{:.2}", row.queries_per_second() / 1e6), row.queries_per_second()),
        (format!("{:.1}", row.filter_speed / 1e6), row.filter_speed),
        (format!("{:.2}%", 100.0 * attacked), attacked),
        (format!("{:.0}", row.working_kbit()), row.working_kbit()),
    ]
}

fn table(html: &mut String, report: &Report<'_>, verdict: Option<&Verdict>) {
    html.push_str("<div class=\"wide\"><table id=\"filters\"><thead><tr>");
    for (heading, meaning) in COLUMNS {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\" title=\"{meaning}\">{heading}</button></th>"
        );
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in report.rows {
        let best = verdict.is_some_and(|verdict| verdict.recommended == row.entry_name);
        let class = if best { " class=\"best\"" } else { "" };
        let star = if in_contest(row, report.plan) { "" } else { " *" };
        let kind = if row.adaptive { " <small>adaptive</small>" } else { "" };
        let name = escape(row.entry_name);
        let _ = write!(html, "<tr{class}><th scope=\"row\" data-value=\"{name}\">{name}{star}{kind}</th>");
        for (text, value) in cells(row) {
            let _ = write!(html, "<td data-value=\"{value}\">{text}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if report.rows.iter().any(|row| !in_contest(row, report.plan)) {
        html.push_str(
            "<p class=\"facts\">* larger than the space that all were given, so not in the contest.</p>\n",
        );
    }
}

fn over_time(rows: &[Row]) -> Plot {
    let (x, y) = (
        Axis::linear("million queries").including(0.0),
        Axis::linear("useless look-ups so far").including(0.0),
    );
    let mut plot = Plot::lines("useless", "Useless look-ups in the store, as the queries go on", x, y);
    // Whoever is far worse than the rest would flatten all others; the table has them.
    let mut ends: Vec<u64> = rows.iter().map(|row| row.false_positives).collect();
    ends.sort_unstable();
    let middle = ends.get(ends.len() / 2).copied().unwrap_or(0);
    let shown = |row: &&Row| row.false_positives <= 10 * middle.max(1) || rows.len() < 4;
    for row in rows.iter().filter(shown) {
        let step = row.useless.len().div_ceil(20).max(1);
        let last = row.useless.len().saturating_sub(1);
        // The last point, and none so near to it that the two run into one another.
        let apart = |place: usize| place.is_multiple_of(step) && place + step / 2 < last;
        let points = row.useless.iter().enumerate().filter(|(place, _)| apart(*place) || *place == last);
        plot.line(Line::exact(
            row.entry_name,
            points.map(|(_, point)| (point.0 as f64 / 1e6, point.1 as f64)),
        ));
    }
    let hidden: Vec<_> = rows.iter().filter(|row| !shown(row)).map(|row| row.entry_name).collect();
    if !hidden.is_empty() {
        plot.title += &format!(" (far above: {})", hidden.join(", "));
    }
    plot
}

fn space(rows: &[Row]) -> Plot {
    let title = "Space, and the share of absent keys that got through";
    let mut plot = Plot::lines(
        "space",
        title,
        Axis::linear("bits a key"),
        Axis::log("false positives / absent queries"),
    );
    for row in rows {
        let rate = row.false_positives as f64 / row.absent.max(1) as f64;
        plot.line(Line::exact(row.entry_name, [(row.bits_per_key, rate)]));
    }
    plot
}

fn speed(rows: &[Row]) -> Plot {
    let mut plot = Plot::dots(
        "speed",
        "Queries a second, with the store behind the filter and without",
        Axis::log("million queries a second"),
    );
    for row in rows {
        plot.dot(row.entry_name, "filter alone", exactly(row.filter_speed / 1e6));
        plot.dot(row.entry_name, "with the store", exactly(row.queries_per_second() / 1e6));
    }
    plot
}

fn attack(rows: &[Row]) -> Plot {
    let queries = rows.first().map_or(0, |row| row.attack.queries);
    let title = format!("An attacker who repeats whatever got through, {} queries", thousands(queries));
    let mut plot = Plot::dots("attack", title, Axis::log("share of his queries that got through"));
    for row in rows {
        let share = row.attack.false_positives as f64 / row.attack.queries.max(1) as f64;
        plot.dot(row.entry_name, if row.adaptive { "adaptive" } else { "not adaptive" }, exactly(share));
    }
    plot.reference("one in ten is a new key", 0.1);
    plot
}

fn exactly(value: f64) -> Summary {
    Summary { mean: value, low: value, high: value, runs: 1 }
}

const STYLE: &str = "\
.verdict{font-size:1.15rem;max-width:60em}\
pre{background:var(--fill);border:1px solid var(--line);border-radius:8px;padding:.7em 1em;overflow-x:auto;font-size:.85rem}\
table{font-variant-numeric:tabular-nums}th,td{text-align:right;white-space:nowrap}\
thead th{vertical-align:bottom;padding:0}thead button{all:unset;cursor:pointer;padding:.5em .7em;display:block;\
white-space:normal;font-weight:600;min-width:4.5em}thead button:focus-visible{outline:2px solid var(--good);outline-offset:-2px}\
thead th[aria-sort=ascending] button::after{content:' \\25B2'}thead th[aria-sort=descending] button::after{content:' \\25BC'}\
tr>:first-child{text-align:left;position:sticky;left:0;background:var(--paper);background-clip:padding-box}thead tr>:first-child{background:var(--fill)}\
tbody th{font-weight:600}small{color:var(--soft);font-weight:400}tr.best>*,tr.best>:first-child{background-color:var(--best)}\
@media print{thead button{min-width:0;padding:.4em .5em}th,td{padding:.35em .5em}tr>:first-child{position:static}}";

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
