//! Plots as SVG: no script, no external font, readable in a browser and in a README.

mod scale;

use std::fmt::Write;

use self::scale::Mapping;
use super::palette::{Marker, Style, style_of};
use super::plot::{Line, Plot};
use crate::stats::Summary;

const LEGEND_ROW: f64 = 18.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 56.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 22.0;
const LETTER: f64 = 6.6;

/// The plot as an SVG document of its own, with its title.
///
/// ```
/// use besom_lab::report::{Axis, Line, Plot, render};
///
/// let mut plot = Plot::lines("squares", "Squares", Axis::linear("x"), Axis::log("x²"));
/// plot.line(Line::exact("x²", (1..10).map(|x| (f64::from(x), f64::from(x * x)))));
/// assert!(render(&plot).starts_with("<svg"));
/// ```
#[must_use]
pub fn render(plot: &Plot) -> String {
    draw(plot, Paper::WIDE)
}

/// The plot as a figure of a page: with a caption instead of a title, and drawn twice, for wide and for narrow screens.
/// The page needs [`FIGURE_STYLE`] to show one of them.
#[must_use]
pub fn render_figure(plot: &Plot) -> String {
    let [wide, narrow] =
        [Paper::WIDE, Paper::NARROW].map(|paper| draw(plot, Paper { titled: false, ..paper }));
    let caption = escape(&plot.title);
    format!(
        "<figure><figcaption>{caption}</figcaption><div class=\"on-wide\">{wide}</div><div class=\"on-narrow\">{narrow}</div></figure>"
    )
}

/// What a page with figures needs in its style.
pub const FIGURE_STYLE: &str = "\
figure{margin:0;max-width:760px;border:1px solid var(--line,#ddd);border-radius:8px;overflow:hidden}figcaption{padding:.6em .9em 0;font-weight:600}\
figure svg{display:block;width:100%;height:auto}.on-narrow{display:none}\
@media screen and (max-width:640px){.on-wide{display:none}.on-narrow{display:block}}";

/// What a plot is drawn on.
#[derive(Clone, Copy)]
struct Paper {
    width: f64,
    height: f64,
    left: f64,
    /// Whether the legend is below the data instead of beside it.
    legend_below: bool,
    titled: bool,
}

impl Paper {
    const WIDE: Self = Self { width: 760.0, height: 440.0, left: 74.0, legend_below: false, titled: true };
    const NARROW: Self = Self { width: 380.0, height: 330.0, left: 76.0, legend_below: true, titled: true };

    fn top(self) -> f64 {
        if self.titled { TOP } else { 18.0 }
    }

    /// The width of the legend beside the data.
    fn beside(self, names: &[&str]) -> f64 {
        if self.legend_below { 0.0 } else { legend_width(names) }
    }

    /// The height of the legend below the data, with one more entry if some markers are hollow.
    fn below(self, names: &[&str], hollow: bool) -> f64 {
        let entries = names.len() + usize::from(hollow);
        let rows = entries.div_ceil(self.columns(names));
        if self.legend_below { LEGEND_ROW * rows as f64 + 4.0 } else { 0.0 }
    }

    fn columns(self, names: &[&str]) -> usize {
        if self.legend_below { ((self.width / legend_width(names)) as usize).max(1) } else { 1 }
    }
}

fn draw(plot: &Plot, paper: Paper) -> String {
    if plot.dots.is_empty() { lines(plot, paper) } else { dots(plot, paper) }
}

/// Where the data is drawn.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

fn lines(plot: &Plot, paper: Paper) -> String {
    let names: Vec<&str> = plot.lines.iter().map(|line| line.name.as_str()).collect();
    let width = paper.width - paper.left - RIGHT - paper.beside(&names);
    let beside = if paper.legend_below { 0.0 } else { LEGEND_ROW * (names.len() + 1) as f64 };
    let height = (paper.height - TOP - BOTTOM).max(beside);
    let frame = Frame { left: paper.left, top: paper.top(), width, height };
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let xs = points().map(|(x, _)| *x);
    let references = plot.references.iter().map(|(_, value)| *value);
    let ys = points().flat_map(|(_, y)| [y.mean, y.low, y.high]).chain(references);
    let x = Mapping::new(&plot.x, xs, frame.left, frame.right());
    let y = Mapping::new(&plot.y, ys, frame.bottom(), frame.top);

    let hollow = points().any(|(_, value)| y.is_off(value.mean));
    let mut svg = open(plot, paper, frame.bottom() + BOTTOM + paper.below(&names, hollow));
    axis_below(&mut svg, paper, &frame, &x, &plot.x.label);
    axis_left(&mut svg, &frame, &y, &plot.y.label);
    for (name, value) in &plot.references {
        reference(&mut svg, (frame.left, y.place(*value)), (frame.right(), y.place(*value)), name);
    }
    for (place, line) in plot.lines.iter().enumerate() {
        draw_line(&mut svg, line, style_of(&line.name, place), &x, &y);
    }
    legend(&mut svg, paper, &frame, &names, hollow);
    svg + "</svg>\n"
}

fn dots(plot: &Plot, paper: Paper) -> String {
    let rows = distinct(plot.dots.iter().map(|dot| dot.row.as_str()));
    let series = distinct(plot.dots.iter().map(|dot| dot.series.as_str()));
    let longest = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let left = 16.0 + LETTER * longest as f64;
    let within = |row: &str| plot.dots.iter().filter(|dot| dot.row == row).count();
    let most = rows.iter().map(|row| within(row)).max().unwrap_or(1);
    let band = ROW.max(9.0 * most as f64 + 6.0);
    let beside = if paper.legend_below { 0.0 } else { LEGEND_ROW * (series.len() + 1) as f64 };
    let height = (band * rows.len() as f64).max(beside);
    let width = paper.width - left - RIGHT - paper.beside(&series);
    let frame = Frame { left, top: paper.top(), width, height };
    let references = plot.references.iter().map(|(_, value)| *value);
    let xs =
        plot.dots.iter().flat_map(|dot| [dot.value.mean, dot.value.low, dot.value.high]).chain(references);
    let x = Mapping::new(&plot.x, xs, frame.left, frame.right());

    let hollow = plot.dots.iter().any(|dot| x.is_off(dot.value.mean));
    let mut svg = open(plot, paper, frame.bottom() + BOTTOM + paper.below(&series, hollow));
    axis_below(&mut svg, paper, &frame, &x, &plot.x.label);
    for (index, row) in rows.iter().enumerate() {
        let top = frame.top + band * index as f64;
        if index % 2 == 1 {
            let _ = writeln!(
                svg,
                r#"<rect x="{:.1}" y="{top:.1}" width="{:.1}" height="{band:.1}" class="band"/>"#,
                frame.left, frame.width
            );
        }
        text(&mut svg, (frame.left - 8.0, top + band / 2.0 + 4.0), "end", "tick", row);
    }
    for (name, value) in &plot.references {
        reference(&mut svg, (x.place(*value), frame.top), (x.place(*value), frame.bottom()), name);
    }
    let mut drawn = vec![0; rows.len()];
    for dot in &plot.dots {
        let row = rows.iter().position(|row| *row == dot.row).unwrap_or(0);
        let place = series.iter().position(|name| *name == dot.series).unwrap_or(0);
        let style = style_of(&dot.series, place);
        // The dots of a row share its height, whatever other rows have.
        let step = band / (within(&dot.row) as f64 + 1.0);
        drawn[row] += 1;
        let height = frame.top + band * row as f64 + step * f64::from(drawn[row]);
        whisker(&mut svg, (x.place(dot.value.low), height), (x.place(dot.value.high), height), style);
        marker(&mut svg, (x.place(dot.value.mean), height), style, x.is_off(dot.value.mean));
    }
    legend(&mut svg, paper, &frame, &series, hollow);
    svg + "</svg>\n"
}

/// Light and dark, so that the page need not say more than which of them the reader prefers; print is light.
const STYLE: &str = "\
.plot{color:#1a1a1a}.paper{fill:#fff}.head{font-size:15px;font-weight:600;fill:currentColor}.label{font-size:13px;fill:currentColor}\
.tick{font-size:12px;fill:#333}.small{font-size:11px;fill:#555}.grid{stroke:#ddd}.rule{stroke:#333}.band{fill:#00000009}\
@media screen and (prefers-color-scheme:dark){.plot{color:#f0f0f0}.paper{fill:#181b20}.tick{fill:#ccc}.small{fill:#aaa}\
.grid{stroke:#343a42}.rule{stroke:#999}.band{fill:#ffffff0b}}";

fn open(plot: &Plot, paper: Paper, height: f64) -> String {
    let title = escape(&plot.title);
    let width = paper.width;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {width} {height:.0}" width="{width}" height="{height:.0}" role="img" font-family="system-ui, sans-serif">
<title>{title}</title>
<style>{STYLE}</style>
<rect width="100%" height="100%" class="paper"/>
"#
    );
    if paper.titled {
        text(&mut svg, (16.0, 22.0), "start", "head", &plot.title);
    }
    svg
}

fn axis_below(svg: &mut String, paper: Paper, frame: &Frame, x: &Mapping, label: &str) {
    let ticks = x.ticks();
    for (value, _) in &ticks {
        grid(svg, (x.place(*value), frame.top), (x.place(*value), frame.bottom()));
    }
    for (place, name) in x.names(&ticks, LETTER, paper.width - 3.0) {
        text(svg, (place, frame.bottom() + 17.0), "middle", "tick", name);
    }
    rule(svg, (frame.left, frame.bottom()), (frame.right(), frame.bottom()));
    let middle = (frame.left + frame.right()) / 2.0;
    text(svg, (middle, frame.bottom() + 40.0), "middle", "label", label);
}

fn axis_left(svg: &mut String, frame: &Frame, y: &Mapping, label: &str) {
    for (value, name) in y.ticks() {
        let place = y.place(value);
        grid(svg, (frame.left, place), (frame.right(), place));
        text(svg, (frame.left - 7.0, place + 4.0), "end", "tick", &name);
    }
    rule(svg, (frame.left, frame.top), (frame.left, frame.bottom()));
    let middle = (frame.top + frame.bottom()) / 2.0;
    let _ = writeln!(
        svg,
        r#"<text transform="translate(18 {middle:.1}) rotate(-90)" text-anchor="middle" class="label">{}</text>"#,
        escape(label)
    );
}

fn draw_line(svg: &mut String, line: &Line, style: Style, x: &Mapping, y: &Mapping) {
    let places: Vec<(f64, f64)> =
        line.points.iter().map(|(at, value)| (x.place(*at), y.place(value.mean))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="1.8" stroke-dasharray="{}"/>"#,
        path.join(" "),
        style.colour,
        style.dash
    );
    for ((at, value), place) in line.points.iter().zip(places) {
        let &Summary { low, high, .. } = value;
        if high > low {
            whisker(svg, (x.place(*at), y.place(low)), (x.place(*at), y.place(high)), style);
        }
        marker(svg, place, style, y.is_off(value.mean));
    }
}

/// The thin line of an interval.
fn whisker(svg: &mut String, from: (f64, f64), to: (f64, f64), style: Style) {
    stroke(svg, from, to, style.colour, 1.0, "", 0.65);
}

fn marker(svg: &mut String, (x, y): (f64, f64), style: Style, hollow: bool) {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!(r#"<polygon points="{}""#, corners.join(" "))
    };
    let cross = |turn: u32| {
        let corners = [
            (-1.4, -4.6),
            (1.4, -4.6),
            (1.4, -1.4),
            (4.6, -1.4),
            (4.6, 1.4),
            (1.4, 1.4),
            (1.4, 4.6),
            (-1.4, 4.6),
            (-1.4, 1.4),
            (-4.6, 1.4),
            (-4.6, -1.4),
            (-1.4, -1.4),
        ];
        format!(r#"{} transform="rotate({turn} {x:.1} {y:.1})""#, polygon(&corners))
    };
    let shape = match style.marker {
        Marker::Circle => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.9""#),
        Marker::Square => polygon(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        Marker::Up => polygon(&[(0.0, -4.9), (4.5, 3.3), (-4.5, 3.3)]),
        Marker::Down => polygon(&[(0.0, 4.9), (4.5, -3.3), (-4.5, -3.3)]),
        Marker::Diamond => polygon(&[(0.0, -5.2), (4.4, 0.0), (0.0, 5.2), (-4.4, 0.0)]),
        Marker::Plus => cross(0),
        Marker::Cross => cross(45),
    };
    let colour = style.colour;
    let fill = if hollow { r#"class="paper""#.to_owned() } else { format!(r#"fill="{colour}""#) };
    let _ = writeln!(svg, r#"{shape} {fill} stroke="{colour}" stroke-width="1"/>"#);
}

/// Room for the line, the marker and the longest name.
fn legend_width(names: &[&str]) -> f64 {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    54.0 + LETTER * longest.clamp(10, 40) as f64
}

fn legend(svg: &mut String, paper: Paper, frame: &Frame, names: &[&str], hollow: bool) {
    let columns = paper.columns(names);
    let (left, top) = if paper.legend_below {
        (14.0, frame.bottom() + BOTTOM)
    } else {
        (frame.right() + 18.0, frame.top + 8.0)
    };
    let place_of = |place: usize| {
        let (column, row) = (place % columns, place / columns);
        (left + column as f64 * (paper.width - left) / columns as f64, top + LEGEND_ROW * row as f64)
    };
    for (place, name) in names.iter().enumerate() {
        let style = style_of(name, place);
        let (left, y) = place_of(place);
        stroke(svg, (left, y), (left + 28.0, y), style.colour, 1.8, style.dash, 1.0);
        marker(svg, (left + 14.0, y), style, false);
        text(svg, (left + 36.0, y + 4.0), "start", "tick", name);
    }
    if hollow {
        let (x, y) = if paper.legend_below { place_of(names.len()) } else { (left, frame.bottom() - 6.0) };
        text(svg, (x, y + 4.0), "start", "small", "hollow: zero");
    }
}

fn reference(svg: &mut String, from: (f64, f64), to: (f64, f64), name: &str) {
    stroke(svg, from, to, "#777", 1.2, "3 3", 1.0);
    let vertical = from.0 == to.0;
    let at = if vertical { (to.0, from.1 - 4.0) } else { (to.0 - 4.0, to.1 - 5.0) };
    text(svg, at, if vertical { "middle" } else { "end" }, "small", name);
}

fn grid(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    classed(svg, from, to, "grid", 1.0);
}

fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    classed(svg, from, to, "rule", 1.2);
}

/// A line whose colour follows from the style.
fn classed(svg: &mut String, from: (f64, f64), to: (f64, f64), class: &str, width: f64) {
    let _ = writeln!(
        svg,
        r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" class="{class}" stroke-width="{width}"/>"#,
        from.0, from.1, to.0, to.1
    );
}

fn stroke(
    svg: &mut String,
    from: (f64, f64),
    to: (f64, f64),
    colour: &str,
    width: f64,
    dash: &str,
    opacity: f64,
) {
    let _ = write!(
        svg,
        r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}" stroke-width="{width}""#,
        from.0, from.1, to.0, to.1
    );
    if !dash.is_empty() {
        let _ = write!(svg, r#" stroke-dasharray="{dash}""#);
    }
    if opacity < 1.0 {
        let _ = write!(svg, r#" stroke-opacity="{opacity}""#);
    }
    svg.push_str("/>\n");
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, class: &str, words: &str) {
    let words = escape(words);
    let _ =
        writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{words}</text>"#);
}

/// Text that is safe between tags and in attributes.
#[must_use]
pub fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    names.for_each(|name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
    });
    seen
}

#[cfg(test)]
mod tests {
    use super::super::plot::Axis;
    use super::*;

    #[test]
    fn zeros_on_a_log_axis_are_hollow_and_inside() {
        let mut plot = Plot::lines("p", "a < b", Axis::linear("x"), Axis::log("y"));
        plot.line(Line::exact("one", [(1.0, 0.0), (2.0, 0.1), (3.0, 0.01)]));
        plot.line(Line::exact("empty", []));
        let svg = render(&plot);
        assert!(svg.contains("a &lt; b") && svg.contains("hollow: zero"));
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("empty"));
    }

    #[test]
    fn nothing_to_draw_is_still_a_picture() {
        let svg = render(&Plot::lines("p", "nothing", Axis::log("x"), Axis::log("y")));
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }

    #[test]
    fn dots_have_a_row_each() {
        let mut plot = Plot::dots("d", "rates", Axis::log("rate"));
        plot.dot("broom", "repeat", Summary::rate(1, 100));
        plot.dot("quotient", "repeat", Summary::rate(100, 100));
        plot.reference("ε", 1.0 / 64.0);
        let svg = render(&plot);
        assert!(svg.contains(">broom<") && svg.contains(">quotient<") && svg.contains(">ε<"));
    }
}
