//! Colours and markers: twelve colours, the palette of Okabe and Ito (which readers with any kind of colour vision can
//! tell apart) and five more, and a marker and a dash pattern beside them, so that a print without colours stays
//! readable.

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Style {
    /// `#rrggbb`, or `currentColor`.
    pub colour: &'static str,
    /// Which marker.
    pub marker: Marker,
    /// The SVG dash pattern; empty for a full line.
    pub dash: &'static str,
}

/// The shapes of markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Up,
    /// ▼
    Down,
    /// ◆
    Diamond,
    /// ✚
    Plus,
    /// ✖
    Cross,
}

/// Black on white paper, white on black: that of the text.
const BLACK: &str = "currentColor";
const ORANGE: &str = "#e69f00";
const SKY: &str = "#56b4e9";
const GREEN: &str = "#009e73";
const BLUE: &str = "#0072b2";
const VERMILION: &str = "#d55e00";
const PURPLE: &str = "#cc79a7";
const WINE: &str = "#a6336b";
const OLIVE: &str = "#8f8f12";
const BROWN: &str = "#97614b";
const VIOLET: &str = "#7d64cf";
const GREY: &str = "#858585";

const FULL: &str = "";
const DASHED: &str = "6 3";
const DOTTED: &str = "2 3";

/// Filters keep their style in every plot.
const NAMED: [(&str, Style); 31] = [
    ("telescoping", style(BLUE, Marker::Circle, FULL)),
    ("telescoping-uncompressed", style(BLUE, Marker::Circle, DOTTED)),
    ("telescoping-reset", style(BLUE, Marker::Down, DASHED)),
    ("extension", style(VERMILION, Marker::Square, FULL)),
    ("extension-quotient", style(VERMILION, Marker::Square, DASHED)),
    ("extension-bins", style(VERMILION, Marker::Square, DOTTED)),
    ("extension-reset", style(VERMILION, Marker::Down, DASHED)),
    ("broom", style(GREEN, Marker::Diamond, FULL)),
    ("broom-quotient", style(GREEN, Marker::Diamond, DASHED)),
    ("broom-bins", style(GREEN, Marker::Diamond, DOTTED)),
    ("cuckooing", style(PURPLE, Marker::Up, FULL)),
    ("swapping", style(ORANGE, Marker::Down, FULL)),
    ("cyclic-1", style(SKY, Marker::Circle, FULL)),
    ("cyclic-2", style(SKY, Marker::Square, DASHED)),
    ("cyclic-3", style(SKY, Marker::Diamond, DOTTED)),
    ("cuckoo-remote", style(BLACK, Marker::Cross, FULL)),
    ("quotient", style(BLACK, Marker::Plus, DASHED)),
    ("vacuum", style(BLACK, Marker::Up, DOTTED)),
    ("adaptive-bloom", style(OLIVE, Marker::Cross, FULL)),
    ("cascade", style(OLIVE, Marker::Plus, DOTTED)),
    ("whitelist", style(BROWN, Marker::Plus, FULL)),
    ("bloom+cache", style(WINE, Marker::Square, FULL)),
    ("stacked", style(VIOLET, Marker::Diamond, FULL)),
    ("bloom", style(GREY, Marker::Cross, DASHED)),
    ("blocked-bloom", style(GREY, Marker::Square, DASHED)),
    ("bins", style(BLACK, Marker::Square, FULL)),
    ("tinyset", style(BROWN, Marker::Plus, DOTTED)),
    ("fastbloom", style(GREY, Marker::Circle, FULL)),
    ("qfilter", style(BLACK, Marker::Circle, DOTTED)),
    ("cuckoofilter", style(ORANGE, Marker::Cross, DASHED)),
    ("xorf", style(SKY, Marker::Cross, DASHED)),
];

const COLOURS: [&str; 12] =
    [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, WINE, OLIVE, VIOLET, BROWN, GREY];
const MARKERS: [Marker; 7] =
    [Marker::Circle, Marker::Square, Marker::Up, Marker::Diamond, Marker::Down, Marker::Cross, Marker::Plus];

const fn style(colour: &'static str, marker: Marker, dash: &'static str) -> Style {
    Style { colour, marker, dash }
}

/// The style of the series with this name, which stands at this place in its plot.
///
/// ```
/// use besom_lab::report::style_of;
///
/// assert_eq!(style_of("broom", 0), style_of("broom", 5));
/// assert_ne!(style_of("paper", 0), style_of("measured", 1));
/// ```
#[must_use]
pub fn style_of(name: &str, place: usize) -> Style {
    NAMED.iter().find(|(known, _)| *known == name).map_or_else(
        || {
            let dash = [FULL, DASHED, DOTTED][place / COLOURS.len() % 3];
            // The marker advances once more with every lap of the colours, so that no pair comes twice.
            let marker = MARKERS[(place + place / COLOURS.len()) % MARKERS.len()];
            style(COLOURS[place % COLOURS.len()], marker, dash)
        },
        |(_, style)| *style,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_series_look_alike() {
        let named: HashSet<Style> = NAMED.iter().map(|(_, style)| *style).collect();
        assert_eq!(named.len(), NAMED.len());
        let numbered: HashSet<(&str, Marker)> =
            (0..84).map(|place| style_of("", place)).map(|style| (style.colour, style.marker)).collect();
        assert_eq!(numbered.len(), 84);
        let colours: HashSet<&str> = COLOURS.into_iter().collect();
        assert_eq!(colours.len(), 12);
    }
}
