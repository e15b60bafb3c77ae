//! Pictures of timelines.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::timeline::{Timeline, TraceItem, TraceItemKind, TraceRow};

/// The width of the picture, and of the names on the left, in pixels.
const WIDTH: f64 = 1_200.0;
const NAMES: f64 = 180.0;

/// The height of the time axis.
const AXIS: f64 = 28.0;

/// The height of a lane, and of its items.
const LANE: f64 = 18.0;
const ITEM: f64 = 15.0;

/// The space above a row.
const GAP: f64 = 6.0;

/// The maximum number of lanes in a row, in which nested and concurrent items are drawn below each
/// other.
const MAX_LANES: usize = 8;

/// The number of intervals of the time axis.
const TICKS: u32 = 8;

/// The smallest visible distance in pixels. Closer items are merged.
const VISIBLE: f64 = 0.5;

/// The average width of a character in pixels.
const CHARACTER: f64 = 6.2;

/// Text with XML's characters escaped.
struct Escaped<'a>(&'a str);

/// A duration in a unit of which it has some.
struct Readable(Duration);

/// The time of a picture.
#[derive(Clone, Copy)]
struct Scale {
    start: Duration,
    seconds: f64,
}

/// The items of one lane of a row.
#[derive(Default)]
struct Lane<'a> {
    /// The end of the last item.
    end: Duration,
    boxes: Vec<ItemBox<'a>>,
}

/// An item, or several that are too short to be visible.
struct ItemBox<'a> {
    item: &'a TraceItem,
    count: usize,
    left: f64,
    right: f64,
}

impl Scale {
    fn new(items: &[TraceItem]) -> Self {
        let start = items
            .iter()
            .map(|item| item.start)
            .min()
            .unwrap_or_default();
        let end = items.iter().map(TraceItem::end).max().unwrap_or_default();
        Self {
            start,
            seconds: end.saturating_sub(start).as_secs_f64().max(1e-9),
        }
    }

    fn x(self, time: Duration) -> f64 {
        let offset = time.saturating_sub(self.start).as_secs_f64();
        NAMES + offset / self.seconds * (WIDTH - NAMES)
    }
}

/// Draws the timeline as an SVG picture.
pub(super) fn svg(timeline: &Timeline) -> String {
    let scale = Scale::new(&timeline.items);
    let mut rows = String::new();
    let mut top = AXIS;
    let mut last_device = None;
    for row in timeline.rows() {
        let lanes = lanes(timeline, row, scale);
        top += GAP;
        let name = match row {
            TraceRow::Stream { device, .. } if last_device != Some(device) => {
                last_device = Some(device);
                format!("device {device}, {}", timeline.row_name(row))
            }
            TraceRow::Stream { .. } => timeline.row_name(row),
            TraceRow::Thread { .. } => format!("host, {}", timeline.row_name(row)),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            rows,
            "<text x=\"4\" y=\"{:.1}\">{}</text>",
            top + 12.0,
            Escaped(&name)
        );
        for lane in lanes {
            for item in lane.boxes {
                let _ = item.draw(&mut rows, top);
            }
            top += LANE;
        }
    }
    let height = top + GAP;
    let mut picture = String::new();
    let _ = writeln!(
        picture,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.1}\" width=\"{WIDTH}\" height=\"{height:.1}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    for tick in 0..=TICKS {
        let fraction = f64::from(tick) / f64::from(TICKS);
        let time = scale.start + Duration::from_secs_f64(scale.seconds * fraction);
        let x = scale.x(time);
        let anchor = match tick {
            0 => "start",
            TICKS => "end",
            _ => "middle",
        };
        let _ = writeln!(
            picture,
            "<line x1=\"{x:.1}\" y1=\"20\" x2=\"{x:.1}\" y2=\"{height:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{x:.1}\" y=\"14\" text-anchor=\"{anchor}\" fill=\"#555555\">{}</text>",
            Readable(time)
        );
    }
    picture.push_str(&rows);
    picture.push_str("</svg>\n");
    picture
}

/// Draws the timeline as a page.
pub(super) fn html(timeline: &Timeline) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>Timeline</title>\n<style>\n\
         body { font-family: sans-serif; margin: 1em; }\n\
         table { border-collapse: collapse; margin-top: 1em; font-size: 13px; }\n\
         th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #dddddd; }\n\
         th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }\n\
         </style>\n</head>\n<body>\n",
    );
    page.push_str(&svg(timeline));
    page.push_str(
        "<table>\n<tr><th>kind</th><th>name</th><th>count</th><th>total</th><th>share</th><th>mean</th><th>min</th>\
         <th>max</th></tr>\n",
    );
    for aggregate in timeline.aggregate() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1} %</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            aggregate.kind,
            Escaped(&aggregate.name),
            aggregate.count,
            Readable(aggregate.total),
            aggregate.share * 100.0,
            Readable(aggregate.mean()),
            Readable(aggregate.min),
            Readable(aggregate.max)
        );
    }
    page.push_str("</table>\n");
    let missing = [
        (timeline.calls_dropped(), "calls exceeded the capacity"),
        (timeline.work_dropped(), "items exceeded the capacity"),
        (timeline.work_lost(), "operations had no end"),
    ];
    for (count, problem) in missing {
        if count > 0 {
            let _ = writeln!(page, "<p>{count} {problem}.</p>");
        }
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Distributes the items of a row to lanes, such that those of a lane do not overlap.
fn lanes(timeline: &Timeline, row: TraceRow, scale: Scale) -> Vec<Lane<'_>> {
    let mut lanes: Vec<Lane<'_>> = vec![Lane::default()];
    for item in timeline.items.iter().filter(|item| item.row == row) {
        let free = lanes.iter().position(|lane| lane.end <= item.start);
        let index = match free {
            Some(index) => index,
            None if lanes.len() < MAX_LANES => {
                lanes.push(Lane::default());
                lanes.len() - 1
            }
            None => MAX_LANES - 1,
        };
        lanes[index].add(item, scale);
    }
    lanes
}

impl<'a> Lane<'a> {
    fn add(&mut self, item: &'a TraceItem, scale: Scale) {
        self.end = self.end.max(item.end());
        let left = scale.x(item.start);
        let right = scale.x(item.end());
        match self.boxes.last_mut() {
            Some(last) if right - last.right < VISIBLE && left - last.right < VISIBLE => {
                last.count += 1;
                last.right = last.right.max(right);
            }
            _ => self.boxes.push(ItemBox {
                item,
                count: 1,
                left,
                right,
            }),
        }
    }
}

impl ItemBox<'_> {
    fn draw(&self, picture: &mut String, top: f64) -> fmt::Result {
        let Self {
            item,
            count,
            left,
            right,
        } = self;
        let width = (right - left).max(VISIBLE);
        let color = color(item.kind);
        write!(
            picture,
            "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{ITEM}\" fill=\"{color}\"><title>"
        )?;
        write!(picture, "{}: {}", item.kind, Escaped(&item.name))?;
        if *count > 1 {
            write!(picture, " and {} more", count - 1)?;
        } else {
            write!(picture, "\n{}", Readable(item.duration))?;
            if let Some(bytes) = item.bytes {
                write!(picture, "\n{bytes} bytes")?;
            }
        }
        writeln!(picture, "</title></rect>")?;
        let characters = ((width - 4.0) / CHARACTER).max(0.0) as usize;
        if *count == 1 && characters >= 3 {
            let label: String = item.name.chars().take(characters).collect();
            writeln!(
                picture,
                "<text x=\"{:.1}\" y=\"{:.1}\" pointer-events=\"none\">{}</text>",
                left + 2.0,
                top + 11.5,
                Escaped(&label)
            )?;
        }
        Ok(())
    }
}

fn color(kind: TraceItemKind) -> &'static str {
    match kind {
        TraceItemKind::Call => "#c9d6e8",
        TraceItemKind::Span => "#e3d7f0",
        TraceItemKind::Kernel => "#8fc98f",
        TraceItemKind::Copy => "#f2b774",
        TraceItemKind::Memset => "#f2d974",
        TraceItemKind::Wait => "#e08c8c",
        TraceItemKind::HazardWait => "#d05050",
        TraceItemKind::Allocation => "#79c2d0",
        TraceItemKind::Free => "#a9cdd3",
        TraceItemKind::Work => "#d9d9d9",
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '&' => formatter.write_str("&amp;")?,
                '"' => formatter.write_str("&quot;")?,
                // XML has no escape for control characters.
                control if control.is_control() => formatter.write_char(' ')?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Readable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        match nanoseconds {
            0..1_000 => write!(formatter, "{nanoseconds} ns"),
            1_000..1_000_000 => write!(formatter, "{:.2} µs", nanoseconds as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(formatter, "{:.2} ms", nanoseconds as f64 / 1e6),
            _ => write!(formatter, "{:.3} s", nanoseconds as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::timeline::tests::{HOST, STREAM, item};

    #[test]
    fn names_are_escaped_in_pictures() {
        let timeline = Timeline {
            items: vec![item(TraceItemKind::Kernel, "a<T>&\"\u{1}", STREAM, 0..9)],
            ..Timeline::default()
        };
        let svg = timeline.to_svg();
        assert!(svg.contains("kernel: a&lt;T&gt;&amp;&quot; \n"), "{svg}");
        assert!(!svg.contains("<T>"));
    }

    #[test]
    fn items_too_short_to_be_visible_are_merged() {
        let count = if cfg!(miri) { 100 } else { 10_000 };
        let mut items: Vec<_> = (0..count)
            .map(|index| item(TraceItemKind::Kernel, "k", STREAM, index * 2..index * 2 + 1))
            .collect();
        items.push(item(
            TraceItemKind::Kernel,
            "long",
            STREAM,
            2 * count..200 * count,
        ));
        let timeline = Timeline {
            items,
            ..Timeline::default()
        };
        let svg = timeline.to_svg();
        assert!(svg.matches("<rect").count() < 60, "{}", svg.len());
        assert!(svg.contains(" more</title>") && svg.contains("kernel: long"));
    }

    #[test]
    fn nested_items_are_drawn_below_each_other() {
        let timeline = Timeline {
            items: vec![
                item(TraceItemKind::Span, "outer", HOST, 0..10),
                item(TraceItemKind::Span, "inner", HOST, 2..8),
                item(TraceItemKind::Span, "next", HOST, 10..12),
            ],
            ..Timeline::default()
        };
        let scale = Scale::new(&timeline.items);
        let lanes = lanes(&timeline, HOST, scale);
        let counts: Vec<_> = lanes.iter().map(|lane| lane.boxes.len()).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn empty_timeline_has_a_picture() {
        let html = Timeline::default().to_html();
        assert!(html.contains("</svg>") && !html.contains("NaN"), "{html}");
    }

    #[test]
    fn durations_have_readable_units() {
        let texts = [999, 1_500, 2_500_000, 3_000_000_000]
            .map(|nanoseconds| Readable(Duration::from_nanos(nanoseconds)).to_string());
        assert_eq!(texts, ["999 ns", "1.50 µs", "2.50 ms", "3.000 s"]);
    }
}
