//! One page for a whole run: everything inside it, nothing loaded from elsewhere.

use std::fmt::Write;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::svg::{escape, render};
use super::{Claim, Column, Section, Table, Verdict};

/// A whole run, ready to be written.
#[derive(Debug)]
pub struct Page {
    /// How the run was made: `(what, value)`, seed and command among them.
    pub facts: Vec<(String, String)>,
    /// Name, title and content of each experiment.
    pub sections: Vec<(String, String, Section)>,
    /// Tasks that failed, with the reason.
    pub failures: Vec<String>,
}

impl Page {
    /// The table that a run ends with: every claim, what was measured, whether the two agree.
    #[must_use]
    pub fn verdicts(&self) -> Table {
        let columns = ["experiment", "the paper claims", "measured", "agrees", "reason or remark"];
        let mut table = Table::new("Claims", columns.map(Column::text).to_vec());
        for (name, _, section) in &self.sections {
            for claim in &section.claims {
                let reason = claim.reason.clone().unwrap_or_default();
                let word = word(claim.verdict).to_owned();
                table.row([name.clone(), claim.statement.clone(), claim.measured.clone(), word, reason]);
            }
        }
        table
    }

    /// How many claims agree, disagree and are open.
    #[must_use]
    pub fn tally(&self) -> [usize; 3] {
        let claims = || self.sections.iter().flat_map(|(_, _, section)| &section.claims);
        [Verdict::Agrees, Verdict::Disagrees, Verdict::Open]
            .map(|verdict| claims().filter(|claim| claim.verdict == verdict).count())
    }

    /// The run as JSON: facts, tables, plots and claims of each experiment.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let entry = |(name, title, section): &'_ (String, String, Section)| {
            let Section { tables, plots, claims, notes } = section;
            serde_json::json!(Entry { name, title, notes, tables, plots, claims })
        };
        let facts: serde_json::Map<_, _> =
            self.facts.iter().map(|(what, value)| (what.clone(), value.clone().into())).collect();
        serde_json::json!({
            "facts": facts,
            "experiments": self.sections.iter().map(entry).collect::<Vec<_>>(),
            "failures": self.failures,
        })
    }

    /// The page itself.
    #[must_use]
    pub fn to_html(&self) -> String {
        let [agree, disagree, open] = self.tally();
        let mut html = format!(
            concat!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
                "<title>besom lab</title>\n<style>{style}</style>\n</head>\n<body>\n",
                "<h1>besom lab</h1>\n<p class=\"tally\">{agree} claims agree, {disagree} disagree, {open} open.</p>\n"
            ),
            style = STYLE,
            agree = agree,
            disagree = disagree,
            open = open
        );
        self.write_facts(&mut html);
        self.write_contents(&mut html);
        self.write_verdicts(&mut html);
        for (name, title, section) in &self.sections {
            write_section(&mut html, name, title, section);
        }
        html + "</body>\n</html>\n"
    }

    fn write_facts(&self, html: &mut String) {
        html.push_str("<dl class=\"facts\">\n");
        for (what, value) in &self.facts {
            let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
        }
        html.push_str("</dl>\n");
        for failure in &self.failures {
            let _ = writeln!(html, "<p class=\"failure\">{}</p>", escape(failure));
        }
    }

    fn write_contents(&self, html: &mut String) {
        html.push_str("<nav><a href=\"#claims\">All claims</a>");
        for (name, ..) in &self.sections {
            let _ = write!(html, " <a href=\"#{0}\">{0}</a>", escape(name));
        }
        html.push_str("</nav>\n");
    }

    fn write_verdicts(&self, html: &mut String) {
        html.push_str("<section id=\"claims\"><h2>What the papers claim, and what was measured</h2>\n");
        html.push_str("<div class=\"wide\"><table><thead><tr><th>experiment</th><th>the paper claims</th>");
        html.push_str("<th>measured</th><th>agrees</th></tr></thead><tbody>\n");
        for (name, _, section) in &self.sections {
            for claim in &section.claims {
                let _ = write!(html, "<tr><td><a href=\"#{0}\">{0}</a></td>", escape(name));
                write_claim_cells(html, claim);
                html.push_str("</tr>\n");
            }
        }
        html.push_str("</tbody></table></div></section>\n");
    }
}

/// An experiment as JSON.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    title: &'a str,
    notes: &'a [String],
    tables: &'a [Table],
    plots: &'a [super::Plot],
    claims: &'a [Claim],
}

/// Writes `report.html`, `report.json` and every plot as `plots/EXPERIMENT-PLOT.svg` into a folder.
///
/// # Errors
///
/// When the folder cannot be written.
pub fn write_page(page: &Page, folder: &Path) -> io::Result<()> {
    let plots = folder.join("plots");
    std::fs::create_dir_all(&plots)?;
    for (name, _, section) in &page.sections {
        for plot in section.plots.iter().filter(|plot| !plot.is_empty()) {
            std::fs::write(plots.join(format!("{name}-{}.svg", plot.id)), render(plot))?;
        }
    }
    std::fs::write(folder.join("report.json"), serde_json::to_string_pretty(&page.to_json())?)?;
    std::fs::write(folder.join("report.html"), page.to_html())
}

fn write_section(html: &mut String, name: &str, title: &str, section: &Section) {
    let _ =
        writeln!(html, "<section id=\"{0}\"><h2>{1} <small>{0}</small></h2>", escape(name), escape(title));
    for note in &section.notes {
        let _ = writeln!(html, "<p>{}</p>", escape(note));
    }
    html.push_str("<div class=\"plots\">\n");
    for plot in section.plots.iter().filter(|plot| !plot.is_empty()) {
        let _ = writeln!(html, "<figure>{}</figure>", render(plot));
    }
    html.push_str("</div>\n");
    section.tables.iter().for_each(|table| write_table(html, table));
    if !section.claims.is_empty() {
        html.push_str("<div class=\"wide\"><table><thead><tr><th>the paper claims</th><th>measured</th>");
        html.push_str("<th>agrees</th></tr></thead><tbody>\n");
        for claim in &section.claims {
            html.push_str("<tr>");
            write_claim_cells(html, claim);
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
    }
    html.push_str("</section>\n");
}

fn write_claim_cells(html: &mut String, claim: &Claim) {
    let word = word(claim.verdict);
    let _ = write!(html, "<td>{}</td><td>{}", escape(&claim.statement), escape(&claim.measured));
    if let Some(reason) = &claim.reason {
        let _ = write!(html, "<br><span class=\"reason\">{}</span>", escape(reason));
    }
    let _ = write!(html, "</td><td class=\"verdict {word}\">{word}</td>");
}

fn write_table(html: &mut String, table: &Table) {
    let class = |column: &Column| if column.numeric { " class=\"n\"" } else { "" };
    let _ =
        write!(html, "<div class=\"wide\"><table><caption>{}</caption><thead><tr>", escape(&table.caption));
    for column in &table.columns {
        let _ = write!(html, "<th{}>{}</th>", class(column), escape(&column.heading));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in table.columns.iter().zip(row) {
            let _ = write!(html, "<td{}>{}</td>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "yes",
        Verdict::Disagrees => "no",
        Verdict::Open => "open",
    }
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:1600px;margin:0 auto;padding:1rem 1.5rem}\
h1{margin:.3em 0}h2{margin:2.2em 0 .4em;border-bottom:1px solid #ccc}h2 small{font:13px monospace;color:#666}\
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:14px}\
.facts dt{color:#555}.facts dd{margin:0;font-family:monospace}\
nav{font-size:14px;margin:1em 0}nav a{margin-right:.8em;white-space:nowrap;display:inline-block}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0;border:1px solid #ddd}figure svg{display:block;max-width:100%;height:auto}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px;margin:1em 0}\
caption{text-align:left;font-weight:600;padding:.3em 0}\
th,td{padding:.25em .7em;border-bottom:1px solid #e2e2e2;text-align:left;vertical-align:top}\
th{background:#f4f4f4}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
.verdict{font-weight:600}.yes{color:#00664b}.no{color:#b34700}.open{color:#666}\
.reason{color:#555}.failure{color:#b34700}";

#[cfg(test)]
mod tests {
    use super::super::{Axis, Line, Plot};
    use super::*;

    fn page() -> Page {
        let mut plot = Plot::lines("p", "A plot", Axis::linear("x"), Axis::log("y"));
        plot.line(Line::exact("broom", [(1.0, 0.5)]));
        let mut table = Table::new("A <table>", vec![Column::text("a"), Column::number("b")]);
        table.row(["x", "1"]);
        let section = Section::new()
            .plot(plot)
            .table(table)
            .claim(Claim::new("one").measured("1", true))
            .claim(Claim::new("two").measured("3", false).because("odd"))
            .claim(Claim::new("three"));
        Page {
            facts: vec![("seed".into(), "1".into())],
            sections: vec![("000-test".into(), "A test".into(), section)],
            failures: vec!["a task failed".into()],
        }
    }

    #[test]
    fn the_page_is_self_contained() {
        let html = page().to_html();
        for outside in ["src=", "@import", "<link", "<script", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("A &lt;table&gt;") && html.contains("1 claims agree, 1 disagree, 1 open"));
    }

    #[test]
    fn the_verdicts_name_every_claim() {
        let table = page().verdicts();
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[1], ["000-test", "two", "3", "no", "odd"]);
        assert_eq!(page().to_json()["experiments"][0]["claims"][2]["verdict"], "open");
    }
}
