//! What a run leaves behind: tables in the terminal, JSON, SVG plots, one self-contained HTML page.

mod claim;
mod files;
mod html;
mod number;
mod palette;
mod plot;
mod svg;
mod table;

pub use claim::{Claim, Verdict};
pub use files::write_page;
pub use html::{PAGE_STYLE, Page};
pub use number::{compact, with_interval};
pub use palette::{Style, style_of};
pub use plot::{Axis, Dot, Line, Plot, Scale};
pub use svg::{FIGURE_STYLE, escape, render, render_figure};
pub use table::{Column, Table};

/// What one experiment has to show.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// Plots, in order.
    pub plots: Vec<Plot>,
    /// What the paper claims, beside what was measured.
    pub claims: Vec<Claim>,
    /// What a reader must know to judge the numbers: sizes, loads, deviations from the paper.
    pub notes: Vec<String>,
}

impl Section {
    /// An empty section.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a plot.
    #[must_use]
    pub fn plot(mut self, plot: Plot) -> Self {
        self.plots.push(plot);
        self
    }

    /// Adds a claim.
    #[must_use]
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}
