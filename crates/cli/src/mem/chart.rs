//! The chart of memory over time.

use anyhow::{Result, anyhow};
use curium::memory::diagnostics::{CacheSample, UsageSample};
use plotters::prelude::*;

/// The chart: the memory in use and the memory that a cache would reserve for it above, the unused
/// part below.
pub(super) struct Chart<'a> {
    pub(super) usage: &'a [UsageSample],
    pub(super) cache: &'a [CacheSample],
    /// The width and height in pixels.
    pub(super) size: (u32, u32),
}

const IN_USE: RGBColor = RGBColor(0x2f, 0x6f, 0xb0);
const RESERVED: RGBColor = RGBColor(0xd9, 0x6b, 0x27);
const IDLE: RGBColor = RGBColor(0x8a, 0x3f, 0x8f);

/// The maximum number of points; of more, the highest of each run is drawn.
const POINTS: usize = 4000;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Chart<'_> {
    pub(super) fn to_svg(&self) -> Result<String> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            self.draw(&area)
                .map_err(|error| anyhow!("the picture cannot be drawn: {error}"))?;
        }
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically((self.size.1 / 3 * 2).cast_signed());
        self.draw_usage(&above)?;
        self.draw_idle(&below)?;
        area.present()?;
        Ok(())
    }

    fn draw_usage(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let in_use = thinned(
            self.usage
                .iter()
                .map(|sample| (seconds(sample.nanoseconds), mib(sample.live_bytes))),
        );
        let reserved = thinned(
            self.cache
                .iter()
                .map(|sample| (seconds(sample.nanoseconds), mib(sample.reserved_bytes))),
        );
        let top = in_use
            .iter()
            .chain(&reserved)
            .map(|point| point.1)
            .fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption("device memory", ("sans-serif", 20))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..self.end(), 0.0..top * 1.05)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("seconds")
            .y_desc("MiB")
            .draw()?;
        let fill = IN_USE.mix(0.35);
        chart
            .draw_series(AreaSeries::new(steps(&in_use), 0.0, fill).border_style(IN_USE))?
            .label("in use")
            .legend(|(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], IN_USE.filled()));
        chart
            .draw_series(LineSeries::new(steps(&reserved), RESERVED.stroke_width(2)))?
            .label("held by a cache")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], RESERVED.stroke_width(2)));
        let labels = &mut chart.configure_series_labels();
        labels
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
        Ok(())
    }

    fn draw_idle(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let idle = thinned(
            self.cache
                .iter()
                .map(|sample| (seconds(sample.nanoseconds), idle(sample))),
        );
        let mut chart = ChartBuilder::on(area)
            .caption(
                "fragmentation: share of the cache's memory that is not in use",
                ("sans-serif", 16),
            )
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..self.end(), 0.0..1.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("seconds")
            .y_desc("part")
            .draw()?;
        chart.draw_series(AreaSeries::new(steps(&idle), 0.0, IDLE.mix(0.3)).border_style(IDLE))?;
        Ok(())
    }

    /// Returns the end of the time axis, which is always after its start. Events of several threads
    /// may not be in order of time.
    fn end(&self) -> f64 {
        self.usage
            .iter()
            .map(|sample| seconds(sample.nanoseconds))
            .fold(1e-6, f64::max)
    }
}

fn idle(sample: &CacheSample) -> f64 {
    if sample.reserved_bytes == 0 {
        return 0.0;
    }
    1.0 - sample.live_bytes as f64 / sample.reserved_bytes as f64
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Reduces the points to the highest of each run, and the last.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let points: Vec<_> = points.collect();
    let run = points.len().div_ceil(POINTS).max(1);
    let mut peaks: Vec<_> = points
        .chunks(run)
        .filter_map(|run| run.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)))
        .collect();
    peaks.extend(points.last());
    peaks
}

/// Returns a step line.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points
        .windows(2)
        .flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(points.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_points_keep_the_peak_and_the_end() {
        let points = thinned((0..50_000).map(|x| (f64::from(x), if x == 777 { 9.0 } else { 1.0 })));
        assert!(points.len() <= POINTS + 1, "{}", points.len());
        assert!(points.contains(&(777.0, 9.0)));
        assert_eq!(points.last(), Some(&(49_999.0, 1.0)));
    }

    #[test]
    fn steps_stay_until_the_next_point() {
        assert_eq!(
            steps(&[(0.0, 1.0), (2.0, 3.0)]),
            [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]
        );
        assert_eq!(steps(&[]), []);
    }
}
