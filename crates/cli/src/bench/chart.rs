//! Charts of the figures: one line per implementation over the parameter.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::suite::{Comparison, Samples};

/// A chart of several groups of measurements.
pub(super) struct Chart {
    /// The file name.
    pub(super) file: &'static str,
    title: &'static str,
    x_label: &'static str,
    y_label: &'static str,
    /// The groups with their labels.
    groups: &'static [(&'static str, &'static str)],
    /// The corner without lines, for the legend. A function, because the type is not `Copy`.
    legend: fn() -> SeriesLabelPosition,
}

/// The charts.
pub(super) const CHARTS: [Chart; 3] = [
    Chart {
        file: "bandwidth.svg",
        title: "Copies: bandwidth over size",
        x_label: "bytes",
        y_label: "GB/s",
        groups: &[
            ("copy/pageable-to-device", "slice to device"),
            ("copy/device-to-pageable", "device to slice"),
            ("copy/pinned-to-device", "pinned to device"),
            ("copy/device-to-pinned", "device to pinned"),
        ],
        legend: || SeriesLabelPosition::LowerRight,
    },
    Chart {
        file: "launch.svg",
        title: "Launches: cost over threads",
        x_label: "launching threads, each with its own stream",
        y_label: "ns per launch",
        groups: &[("launch/threads", "launch")],
        legend: || SeriesLabelPosition::LowerRight,
    },
    Chart {
        file: "allocate.svg",
        title: "Allocation: cost over live blocks",
        x_label: "live blocks of 512 B to 128 KiB",
        y_label: "ns for a free and an allocation",
        groups: &[("allocate/live", "free and allocate")],
        legend: || SeriesLabelPosition::MiddleRight,
    },
];

const SIZE: (u32, u32) = (960, 600);

/// Colors that color-blind people can distinguish.
const COLORS: [RGBColor; 4] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
];

/// One line of a chart.
struct Line {
    label: String,
    color: RGBColor,
    /// `true` for Curium's line, which is thick; C's is thin.
    is_curium: bool,
    points: Vec<Point>,
}

/// The measurements for one value of the parameter.
struct Point {
    x: f64,
    median: f64,
    quartiles: [f64; 2],
}

impl Chart {
    /// Returns the chart as SVG; `None` if nothing of it was measured.
    pub(super) fn to_svg(
        &self,
        comparisons: &[Comparison],
        subtitle: &str,
    ) -> Result<Option<String>> {
        let lines = self.lines(comparisons);
        if lines.is_empty() {
            return Ok(None);
        }
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw(&area, &lines, subtitle)
                .map_err(|error| anyhow!("{} cannot be drawn: {error}", self.file))?;
        }
        Ok(Some(svg))
    }

    fn lines(&self, comparisons: &[Comparison]) -> Vec<Line> {
        let mut lines = Vec::new();
        for ((group, label), color) in self.groups.iter().zip(COLORS) {
            for (implementation, is_curium) in [("C", false), ("Curium", true)] {
                let points: Vec<_> = comparisons
                    .iter()
                    .filter(|comparison| comparison.group() == *group)
                    .filter_map(|comparison| {
                        let samples = if is_curium {
                            &comparison.curium
                        } else {
                            &comparison.c
                        };
                        point(comparison, samples)
                    })
                    .collect();
                if !points.is_empty() {
                    lines.push(Line {
                        label: format!("{label}, {implementation}"),
                        color,
                        is_curium,
                        points,
                    });
                }
            }
        }
        lines
    }

    fn draw<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
        lines: &[Line],
        subtitle: &str,
    ) -> Result<(), Box<dyn std::error::Error + 'a>> {
        area.fill(&WHITE)?;
        let x = range(lines, |point| [point.x; 2]);
        let y = range(lines, |point| point.quartiles);
        let area = area
            .titled(self.title, ("sans-serif", 24))?
            .titled(subtitle, ("sans-serif", 14))?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(80)
            .build_cartesian_2d((x.0..x.1).log_scale(), (y.0..y.1).log_scale())?;
        chart
            .configure_mesh()
            .x_desc(self.x_label)
            .y_desc(self.y_label)
            .x_label_formatter(&|x| format_si(*x))
            .y_label_formatter(&|y| format_si(*y))
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for line in lines {
            let Line {
                color, is_curium, ..
            } = *line;
            let points: Vec<_> = line
                .points
                .iter()
                .map(|point| (point.x, point.median))
                .collect();
            let radius = if is_curium { 4 } else { 3 };
            let stroke = color.stroke_width(if is_curium { 3 } else { 1 });
            let series = chart
                .draw_series(LineSeries::new(points.clone(), stroke))?
                .label(line.label.as_str());
            series.legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], stroke));
            chart.draw_series(
                points
                    .into_iter()
                    .map(|point| Circle::new(point, radius, color.filled())),
            )?;
            chart.draw_series(line.points.iter().map(|point| {
                let quartiles = point.quartiles.map(|quartile| (point.x, quartile));
                PathElement::new(quartiles, color.mix(0.5))
            }))?;
        }
        chart
            .configure_series_labels()
            .position((self.legend)())
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK)
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// Returns a point of a line. Logarithmic axes require positive values.
fn point(comparison: &Comparison, samples: &Samples) -> Option<Point> {
    let [low, median, high] = [0.25, 0.5, 0.75].map(|part| samples.quantile(part).max(1e-3));
    Some(Point {
        x: comparison.value()?,
        median,
        quartiles: [low, high],
    })
}

/// Returns a range that contains all values and at least one power of ten: only those are labeled.
fn range(lines: &[Line], values: impl Fn(&Point) -> [f64; 2]) -> (f64, f64) {
    let mut low = f64::INFINITY;
    let mut high = 0.0_f64;
    for value in lines.iter().flat_map(|line| &line.points).flat_map(values) {
        low = low.min(value);
        high = high.max(value);
    }
    extend_to_decade(low / 1.3, high * 1.3)
}

fn extend_to_decade(low: f64, high: f64) -> (f64, f64) {
    let power = 10_f64.powf(low.log10().ceil());
    if power > high {
        (power / 10.0, high)
    } else {
        (low, high)
    }
}

/// Formats a number with an SI prefix.
fn format_si(number: f64) -> String {
    let (value, unit) = match number {
        1e9.. => (number / 1e9, "G"),
        1e6.. => (number / 1e6, "M"),
        1e3.. => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let digits = usize::from(value < 10.0 && value.fract() > 0.05);
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_has_a_label() {
        assert_eq!(extend_to_decade(1_400.0, 5_000.0), (1_000.0, 5_000.0));
        assert_eq!(extend_to_decade(1_400.0, 10_000.0), (1_400.0, 10_000.0));
        assert_eq!(extend_to_decade(0.7, 3.0), (0.7, 3.0));
    }

    #[test]
    fn numbers_are_format_si() {
        assert_eq!(
            [1.0, 1.5, 250.0, 4096.0, 1e6, 1.07e9].map(format_si),
            ["1", "1.5", "250", "4.1k", "1M", "1.1G"]
        );
    }
}
