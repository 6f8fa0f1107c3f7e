//! One page for a whole run: everything inside it, nothing loaded from elsewhere.

use std::fmt::Write;

use serde::Serialize;

use super::svg::{FIGURE_STYLE, escape, render_figure};
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
    /// How many tasks were left undone because the run was interrupted.
    pub undone: usize,
}

impl Page {
    /// What an interrupted run says before everything else. Its claims must all be [open](Claim::opened).
    #[must_use]
    pub fn interruption(&self) -> Option<String> {
        (self.undone > 0).then(|| {
            format!(
                "Interrupted: {} tasks were not done, so no claim is judged. Go on with --resume.",
                self.undone
            )
        })
    }

    /// The table that a run ends with: every claim, what was measured, whether the two agree.
    #[must_use]
    pub fn verdicts(&self) -> Table {
        let agrees = format!("agrees{}", self.scope());
        let columns = ["experiment", "the paper claims", "measured", &agrees, "reason or remark"];
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

    /// How many claims agree, disagree and are open, in a sentence that says at which size.
    #[must_use]
    pub fn tally_sentence(&self) -> String {
        let [agree, disagree, open] = self.tally();
        format!("{agree} claims agree, {disagree} disagree{}, {open} open.", self.scope())
    }

    /// What every word about claims needs beside it: they are about the papers' sizes.
    fn scope(&self) -> &'static str {
        if self.is_quick() { " at this size" } else { "" }
    }

    /// The run as JSON: facts, tables, plots and claims of each experiment, and at which size claims were looked at.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let scope = if self.is_quick() { "at this size" } else { "at the paper's size" };
        let entry = |(name, title, section): &'_ (String, String, Section)| {
            let Section { tables, plots, claims, notes } = section;
            serde_json::json!(Entry { name, title, notes, tables, plots, scope, claims })
        };
        let [agree, disagree, open] = self.tally();
        let facts: serde_json::Map<_, _> =
            self.facts.iter().map(|(what, value)| (what.clone(), value.clone().into())).collect();
        serde_json::json!({
            "facts": facts,
            "claims": { "agree": agree, "disagree": disagree, "open": open, "scope": scope },
            "experiments": self.sections.iter().map(entry).collect::<Vec<_>>(),
            "failures": self.failures,
            "undone": self.undone,
        })
    }

    /// The page itself: a summary by paper and the plots first, what does not hold next, every number behind.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut html = format!(
            concat!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
                "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n",
                "<title>besom lab</title>\n<style>{page}{figures}{style}</style>\n</head>\n<body>\n<main>\n",
                "{interruption}<h1>What the papers claim, measured again</h1>\n<p class=\"tally\">{tally}{size}</p>\n"
            ),
            interruption = self.interruption().map_or_else(String::new, |text| format!(
                "<p class=\"interrupted\" role=\"alert\">{}</p>\n",
                escape(&text)
            )),
            page = PAGE_STYLE,
            figures = FIGURE_STYLE,
            style = STYLE,
            tally = self.tally_sentence(),
            size = if self.is_quick() { AT_THIS_SIZE } else { "" }
        );
        self.write_summary(&mut html);
        self.write_gallery(&mut html);
        self.write_failing(&mut html);
        for (name, title, section) in &self.sections {
            write_section(&mut html, name, title, section, self.scope());
        }
        self.write_verdicts(&mut html);
        self.write_facts(&mut html);
        html + "</main>\n</body>\n</html>\n"
    }

    /// Whether the run was smaller than the papers'.
    fn is_quick(&self) -> bool {
        self.facts.iter().any(|(what, value)| what == "size" && value == "quick")
    }

    /// A row for every paper.
    fn write_summary(&self, html: &mut String) {
        html.push_str(
            "<div class=\"wide\"><table class=\"papers\"><thead><tr><th>paper</th><th class=\"n\">agree</th>",
        );
        html.push_str("<th class=\"n\">do not</th><th class=\"n\">open</th><th>what that means for a choice</th></tr></thead><tbody>\n");
        for paper in PAPERS {
            let mine = || self.sections.iter().filter(|(name, ..)| name.starts_with(paper.prefix));
            if mine().next().is_none() {
                continue;
            }
            let claims = || mine().flat_map(|(_, _, section)| &section.claims);
            let count = |verdict| claims().filter(|claim| claim.verdict == verdict).count();
            let [agree, disagree, open] = [Verdict::Agrees, Verdict::Disagrees, Verdict::Open].map(count);
            let _ = write!(html, "<tr><th scope=\"row\">{}<br>", escape(paper.title));
            for (name, title, _) in mine() {
                let _ = write!(html, "<a href=\"#{}\">{}</a> ", escape(name), escape(title));
            }
            let _ = writeln!(
                html,
                "</th><td class=\"n yes\" data-label=\"agree\">{agree}</td><td class=\"n no\" data-label=\"do not\">{disagree}</td>\
                 <td class=\"n open\" data-label=\"open\">{open}</td><td>{}</td></tr>",
                escape(paper.meaning)
            );
        }
        html.push_str("</tbody></table></div>\n");
    }

    /// The first plot of every experiment.
    fn write_gallery(&self, html: &mut String) {
        html.push_str("<h2 id=\"plots\">The plots</h2>\n<div class=\"plots\">\n");
        for (_, _, section) in &self.sections {
            if let Some(plot) = section.plots.iter().find(|plot| !plot.is_empty()) {
                let _ = writeln!(html, "{}", render_figure(plot));
            }
        }
        html.push_str("</div>\n");
    }

    /// What does not hold, in plain words.
    fn write_failing(&self, html: &mut String) {
        let failing = || {
            let claims = self
                .sections
                .iter()
                .flat_map(|(name, _, section)| section.claims.iter().map(move |claim| (name, claim)));
            claims.filter(|(_, claim)| claim.verdict == Verdict::Disagrees)
        };
        let _ = writeln!(html, "<h2 id=\"failing\">What does not hold{}</h2>", self.scope());
        if failing().next().is_none() {
            let _ = writeln!(html, "<p>Everything that was measured agrees{}.</p>", self.scope());
            return;
        }
        html.push_str("<ul class=\"failing\">\n");
        for (name, claim) in failing() {
            let reason = claim
                .reason
                .as_deref()
                .map(|reason| format!(" <span class=\"reason\">Why: {}.</span>", escape(reason)));
            let _ = writeln!(
                html,
                "<li><a href=\"#{0}\">{0}</a>: <q>{1}</q> Measured: {2}.{3}</li>",
                escape(name),
                escape(&claim.statement),
                escape(&claim.measured),
                reason.unwrap_or_default()
            );
        }
        html.push_str("</ul>\n");
    }

    fn write_facts(&self, html: &mut String) {
        html.push_str("<h2 id=\"facts\">The run</h2>\n<dl class=\"run\">\n");
        for (what, value) in &self.facts {
            let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
        }
        html.push_str("</dl>\n");
        for failure in &self.failures {
            let _ = writeln!(html, "<p class=\"failure\">{}</p>", escape(failure));
        }
    }

    fn write_verdicts(&self, html: &mut String) {
        html.push_str(
            "<section id=\"claims\"><h2>All claims</h2>\n<details><summary>The whole table</summary>\n",
        );
        html.push_str("<div class=\"wide\"><table><thead><tr><th>experiment</th><th>the paper claims</th>");
        let _ = writeln!(html, "<th>measured</th><th>agrees{}</th></tr></thead><tbody>", self.scope());
        for (name, _, section) in &self.sections {
            for claim in &section.claims {
                let _ = write!(html, "<tr><td><a href=\"#{0}\">{0}</a></td>", escape(name));
                write_claim_cells(html, claim);
                html.push_str("</tr>\n");
            }
        }
        html.push_str("</tbody></table></div></details></section>\n");
    }
}

const AT_THIS_SIZE: &str = " Claims are about the papers' sizes; this run is smaller, and says what holds at this size. \
                            <code>--full</code> takes the papers' sizes.";

/// A paper, and what its claims mean to somebody who has to choose a filter.
struct Paper {
    /// What the names of its experiments begin with.
    prefix: &'static str,
    title: &'static str,
    meaning: &'static str,
}

const PAPERS: [Paper; 7] = [
    Paper {
        prefix: "000",
        title: "Adaptive filters, first version (000)",
        meaning: "Cascades of ordinary filters adapt as well; their space is that of the first level and little more.",
    },
    Paper {
        prefix: "001",
        title: "Telescoping filters (001)",
        meaning: "Telescoping is a safe choice at equal space. Where cuckooing is ahead, it is by a factor of two at most on streams that \
                  nobody aims at it, and its repairs read more.",
    },
    Paper {
        prefix: "002",
        title: "TinySet (002)",
        meaning: "The space of its tables holds; speeds are those of this machine and of today's rivals.",
    },
    Paper {
        prefix: "003",
        title: "Support optimality (003)",
        meaning: "Cuckooing has the fewest false positives on traces; the whole cuckoo family falls to a patient attacker.",
    },
    Paper {
        prefix: "004",
        title: "The broom filter (004)",
        meaning: "Against an attacker who can also have keys removed and inserted, take the broom filter or a cascade: others forget the \
                  repairs of a removed key.",
    },
    Paper {
        prefix: "train",
        title: "How to Train Your Filter (arXiv 2602.13484)",
        meaning: "Train a filter only if you know what will be asked and it stays so; whoever drifts or attacks takes the gain away, from adaptive \
                  filters he does not.",
    },
    Paper {
        prefix: "besom",
        title: "Questions of our own",
        meaning: "What repairs cost in space, whether filters hold over a hundred turnovers of all keys, and how near exact lists come to the limit.",
    },
];

/// An experiment as JSON.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    title: &'a str,
    notes: &'a [String],
    tables: &'a [Table],
    plots: &'a [super::Plot],
    /// At which size the claims were looked at.
    scope: &'a str,
    claims: &'a [Claim],
}

fn write_section(html: &mut String, name: &str, title: &str, section: &Section, scope: &str) {
    let _ =
        writeln!(html, "<section id=\"{0}\"><h2>{1} <small>{0}</small></h2>", escape(name), escape(title));
    for note in &section.notes {
        let _ = writeln!(html, "<p>{}</p>", escape(note));
    }
    // The first one is among the plots above.
    html.push_str("<div class=\"plots\">\n");
    for plot in section.plots.iter().filter(|plot| !plot.is_empty()).skip(1) {
        let _ = writeln!(html, "{}", render_figure(plot));
    }
    html.push_str("</div>\n<details><summary>Numbers</summary>\n");
    section.tables.iter().for_each(|table| write_table(html, table));
    html.push_str("</details>\n");
    if !section.claims.is_empty() {
        html.push_str("<div class=\"wide\"><table><thead><tr><th>the paper claims</th><th>measured</th>");
        let _ = writeln!(html, "<th>agrees{scope}</th></tr></thead><tbody>");
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

/// What all pages have in common: for phones, desks and paper, light and dark. On paper nothing scrolls, so nothing may
/// need to; three plots fit on a page.
pub const PAGE_STYLE: &str = "\
:root{--paper:#fff;--ink:#1a1a1a;--soft:#5a5f66;--line:#dfe2e6;--fill:#f5f6f8;--good:#00664b;--bad:#b34700;--best:#e8f5ef;--shade:#0003}\
@media screen and (prefers-color-scheme:dark){:root{--paper:#181b20;--ink:#e9eaec;--soft:#a3a9b2;--line:#343a42;--fill:#21252c;\
--good:#5fd3a8;--bad:#ff9a5c;--best:#17382c;--shade:#fff4}}\
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}\
main{max-width:1180px;margin:0 auto;padding:1rem}h1{font-size:1.7rem;line-height:1.2;margin:.4em 0}a{color:inherit}\
.facts{color:var(--soft);font-size:.9rem;max-width:70em;overflow-wrap:anywhere}\
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin:1em 0;background:\
linear-gradient(to left,transparent,var(--paper) 2.5em) 0 0/4em 100% no-repeat local,linear-gradient(to right,transparent,var(--paper) 2.5em) 100% 0/4em 100% no-repeat local,\
linear-gradient(to right,var(--shade),transparent) 0 0/1.2em 100% no-repeat scroll,linear-gradient(to left,var(--shade),transparent) 100% 0/1.2em 100% no-repeat scroll}\
.interrupted{border:2px solid var(--bad);border-radius:8px;padding:.6em .9em;font-weight:600}\
table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{padding:.4em .7em;border-bottom:1px solid var(--line)}\
tbody tr:last-child>*{border-bottom:0}thead th{background:var(--fill)}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:1rem}\
@media print{@page{margin:13mm}html{font-size:13px}body{font-size:1rem}main{max-width:none;padding:0}table{font-size:.8rem}\
.wide{overflow:visible}tr{break-inside:avoid}h1,h2,summary,figcaption{break-after:avoid}pre{white-space:pre-wrap;overflow-wrap:anywhere}\
.plots{display:block}.plots figure{break-inside:avoid;max-width:13.5cm;margin:0 0 .8em}}";

/// What only this page has. On a phone a row of the summary becomes a paragraph; what is folded on the screen stays
/// away from paper, with its heading.
const STYLE: &str = "\
.tally{font-size:1.15rem;max-width:60em}h2{margin:2em 0 .5em;font-size:1.3rem}h2 small{font:13px monospace;color:var(--soft)}\
th,td{text-align:left;vertical-align:top}caption{text-align:left;font-weight:600;padding:.5em .7em}\
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.papers th a{font-weight:400;font-size:.85rem;margin-right:.6em}\
.papers td:last-child{min-width:16em}.run{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}\
.run dt{color:var(--soft)}.run dd{margin:0;font-family:monospace;overflow-wrap:anywhere}\
.verdict{font-weight:600}.yes{color:var(--good)}.no{color:var(--bad)}.open{color:var(--soft)}.reason{color:var(--soft)}\
.failure{color:var(--bad)}.failing li{margin:.6em 0;max-width:75em;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--soft)}\
@media screen and (max-width:640px){.papers thead{display:none}.papers tr{display:flex;flex-wrap:wrap;gap:.2em 1.4em;padding:.6em .7em;\
border-bottom:1px solid var(--line)}.papers tr>*{border:0;padding:0}.papers th,.papers td:last-child{flex-basis:100%}\
.papers td.n::before{content:attr(data-label) ' '}}\
@media print{details:not([open]),#claims:has(details:not([open])){display:none}.n{white-space:normal}.run{break-inside:avoid}}";

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
            undone: 0,
        }
    }

    #[test]
    fn the_page_is_self_contained() {
        let html = page().to_html();
        for outside in ["src=", "@import", "<script", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("A &lt;table&gt;") && html.contains("1 claims agree, 1 disagree, 1 open"));
    }

    /// A reader sees what came out before the wall of claims, and what does not hold without looking for it.
    #[test]
    fn the_summary_and_the_plots_come_first() {
        let html = page().to_html();
        let place = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words}"));
        assert!(place("class=\"papers\"") < place("id=\"plots\""));
        assert!(place("id=\"plots\"") < place("id=\"failing\""));
        assert!(place("id=\"failing\"") < place("<section id=\"000-test\""));
        assert!(place("<section id=\"000-test\"") < place("id=\"claims\""));
        let failing = &html[place("id=\"failing\"")..place("<section id=\"000-test\"")];
        assert!(failing.contains("<q>two</q> Measured: 3.") && failing.contains("Why: odd."), "{failing}");
        assert!(!failing.contains("<q>one</q>") && !html.contains("at this size"));
    }

    /// Claims are about the papers' sizes: wherever a smaller run speaks of them, it says so.
    #[test]
    fn a_small_run_says_at_this_size() {
        let mut page = page();
        assert!(
            !page.to_html().contains("at this size") && !page.verdicts().to_string().contains("at this size")
        );
        assert_eq!(page.tally_sentence(), "1 claims agree, 1 disagree, 1 open.");
        assert_eq!(page.to_json()["claims"]["scope"], "at the paper's size");
        page.facts.push(("size".into(), "quick".into()));
        let html = page.to_html();
        assert!(html.contains("1 claims agree, 1 disagree at this size, 1 open."), "{html}");
        assert!(html.contains("What does not hold at this size"));
        // The table of the experiment and that of all claims.
        assert_eq!(html.matches("<th>agrees at this size</th>").count(), 2);
        assert!(page.verdicts().to_string().contains("agrees at this size"));
        let json = page.to_json();
        let claims = serde_json::json!({ "agree": 1, "disagree": 1, "open": 1, "scope": "at this size" });
        assert_eq!(json["claims"], claims);
        assert_eq!(json["experiments"][0]["scope"], "at this size");
    }

    /// What was cut short says so before everything else.
    #[test]
    fn an_interrupted_run_says_so_first() {
        let mut page = page();
        assert!(!page.to_html().contains("Interrupted"));
        page.undone = 3;
        let html = page.to_html();
        let place = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words}"));
        assert!(place("Interrupted: 3 tasks were not done") < place("<h1>"));
        assert_eq!(page.to_json()["undone"], 3);
    }

    #[test]
    fn the_verdicts_name_every_claim() {
        let table = page().verdicts();
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[1], ["000-test", "two", "3", "no", "odd"]);
        assert_eq!(page().to_json()["experiments"][0]["claims"][2]["verdict"], "open");
    }
}
