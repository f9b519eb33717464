//! Plots as inline SVG. Colours come from the page's style, so that they follow light and dark mode.

use super::progress::grouped;
use std::fmt::Write;

/// The number of series with their own colour; the last colour is for all others.
pub(super) const COLOURS: usize = 8;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
const HEIGHT: f64 = 230.0;
const LANE: f64 = 20.0;

/// A column or lane: its name, and a value for each series.
pub(super) struct Stack {
    pub(super) label: String,
    pub(super) values: Vec<u64>,
}

impl Stack {
    fn total(&self) -> u64 {
        self.values.iter().sum()
    }
}

/// A stretch of time in a lane.
pub(super) struct Stretch {
    pub(super) series: usize,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) tip: String,
}

pub(super) fn colour(series: usize) -> usize {
    series.min(COLOURS - 1)
}

/// Escapes the special characters of XML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Stacked columns; about eight of them are labelled.
pub(super) fn columns(stacks: &[Stack], series: &[&str], title: &str) -> String {
    let top = nice(stacks.iter().map(Stack::total).max().unwrap_or_default());
    let (inner_width, inner_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let mut svg = open(HEIGHT, title);
    for step in 0..=4 {
        let y = TOP + inner_height * (1.0 - f64::from(step) / 4.0);
        let value = top as f64 * f64::from(step) / 4.0;
        let _ = write!(svg, r#"<line class="grid" x1="{LEFT}" x2="{:.1}" y1="{y:.1}" y2="{y:.1}"/>"#, WIDTH - RIGHT);
        let _ = write!(svg, r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#, LEFT - 6.0, y + 4.0, short(value));
    }
    let pitch = inner_width / stacks.len().max(1) as f64;
    let width = (pitch * 0.86).clamp(0.5, 60.0);
    let every = stacks.len().div_ceil(8).max(1);
    for (place, stack) in stacks.iter().enumerate() {
        let x = LEFT + pitch * place as f64 + (pitch - width) / 2.0;
        let mut y = TOP + inner_height;
        for (number, value) in stack.values.iter().enumerate().filter(|(_, value)| **value > 0) {
            let height = *value as f64 / top as f64 * inner_height;
            y -= height;
            let tip = format!("{}, {}: {}", stack.label, series[number], grouped(*value));
            rectangle(&mut svg, number, [x, y, width, height], &tip);
        }
        if place % every == 0 {
            let (x, y) = (x + width / 2.0, HEIGHT - 8.0);
            let _ = write!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#, escaped(&stack.label));
        }
    }
    svg + "</svg>"
}

/// Stacked bars, one below the other.
pub(super) fn bars(stacks: &[Stack], series: &[&str], title: &str) -> String {
    let left = label_width(stacks.iter().map(|stack| stack.label.as_str()));
    let inner_width = WIDTH - left - 90.0;
    let most = stacks.iter().map(Stack::total).max().unwrap_or_default().max(1);
    let mut svg = open(stacks.len() as f64 * LANE + 8.0, title);
    for (place, stack) in stacks.iter().enumerate() {
        let y = 4.0 + place as f64 * LANE;
        lane(&mut svg, left, y, &stack.label);
        let mut x = left;
        for (number, value) in stack.values.iter().enumerate().filter(|(_, value)| **value > 0) {
            let width = *value as f64 / most as f64 * inner_width;
            let tip = format!("{}, {}: {}", stack.label, series[number], grouped(*value));
            rectangle(&mut svg, number, [x, y + 3.0, width, LANE - 6.0], &tip);
            x += width;
        }
        let _ = write!(svg, r#"<text x="{:.1}" y="{:.1}">{}</text>"#, x + 6.0, y + 14.0, grouped(stack.total()));
    }
    svg + "</svg>"
}

/// Stretches of time in lanes, with one line for each series.
pub(super) fn lanes(lanes: &[(String, Vec<Stretch>)], ends: (&str, &str), title: &str) -> String {
    let left = label_width(lanes.iter().map(|(label, _)| label.as_str()));
    let inner_width = WIDTH - left - RIGHT;
    let all = || lanes.iter().flat_map(|(_, stretches)| stretches);
    let from = all().map(|stretch| stretch.from).min().unwrap_or_default();
    let span = (all().map(|stretch| stretch.to).max().unwrap_or_default() - from).max(1) as f64;
    let line = 9.0;
    let height: f64 = lanes.iter().map(|(_, stretches)| stretches.len() as f64 * line + 10.0).sum();
    let mut svg = open(height + BOTTOM, title);
    let mut y = 4.0;
    for (label, stretches) in lanes {
        let middle = y + (stretches.len() as f64 * line + 10.0) / 2.0 - 10.0;
        lane(&mut svg, left, middle, label);
        for (place, stretch) in stretches.iter().enumerate() {
            let x = left + (stretch.from - from) as f64 / span * inner_width;
            let width = ((stretch.to - stretch.from) as f64 / span * inner_width).max(2.0);
            rectangle(&mut svg, stretch.series, [x, y + place as f64 * line + 1.0, width, line - 2.0], &stretch.tip);
        }
        y += stretches.len() as f64 * line + 10.0;
        let _ = write!(svg, r#"<line class="grid" x1="{left:.1}" x2="{:.1}" y1="{:.1}" y2="{:.1}"/>"#, WIDTH - RIGHT, y - 5.0, y - 5.0);
    }
    let y = height + 18.0;
    let _ = write!(svg, r#"<text x="{left:.1}" y="{y:.1}">{}</text>"#, escaped(ends.0));
    let _ = write!(svg, r#"<text x="{:.1}" y="{y:.1}" text-anchor="end">{}</text>"#, WIDTH - RIGHT, escaped(ends.1));
    svg + "</svg>"
}

fn open(height: f64, title: &str) -> String {
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{}">"#, escaped(title))
}

fn rectangle(svg: &mut String, series: usize, [x, y, width, height]: [f64; 4], tip: &str) {
    let _ = write!(
        svg,
        r#"<rect class="c{}" x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}"><title>{}</title></rect>"#,
        colour(series),
        escaped(tip)
    );
}

fn lane(svg: &mut String, left: f64, y: f64, label: &str) {
    let _ = write!(svg, r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#, left - 8.0, y + 14.0, escaped(label));
}

/// Room for the longest label, about 6.6 units a character.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or_default();
    (longest as f64 * 6.6 + 16.0).clamp(40.0, 330.0)
}

/// Rounds up to a round number.
fn nice(most: u64) -> u64 {
    let most = most.max(4);
    let power = 10_u64.pow(most.ilog10());
    [1, 2, 3, 4, 5, 6, 8, 10].iter().map(|factor| factor * power).find(|round| *round >= most).unwrap_or(most)
}

/// `1.5 M`
fn short(value: f64) -> String {
    for (unit, name) in [(1e9, " G"), (1e6, " M"), (1e3, " k")] {
        if value >= unit {
            return format!("{}{name}", (value / unit * 100.0).round() / 100.0);
        }
    }
    format!("{}", (value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers() {
        for (most, top) in [(0, 4), (7, 8), (11, 20), (99, 100), (100, 100), (2_100_000, 3_000_000)] {
            assert_eq!(nice(most), top, "{most}");
        }
        assert_eq!([0.5, 750.0, 1500.0, 2e6].map(short), ["0.5", "750", "1.5 k", "2 M"]);
    }

    #[test]
    fn markup_in_names_is_escaped() {
        assert_eq!(escaped("a<b>&\"\n"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
    }
}
