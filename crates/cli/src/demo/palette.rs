//! Colors for iteration counts.

use std::f32::consts::PI;

/// The cyclic color stops as sRGB: night, dusk, ice, sand, ember and back.
const STOPS: [[f32; 3]; 6] = [
    [8.0, 10.0, 40.0],
    [32.0, 72.0, 156.0],
    [150.0, 214.0, 236.0],
    [252.0, 244.0, 214.0],
    [240.0, 160.0, 48.0],
    [112.0, 24.0, 56.0],
];

/// The color of the set.
const INSIDE: [u8; 3] = [4, 4, 12];

/// The part of a color cycle per doubling of the iterations.
const ROUNDS_PER_DOUBLING: f32 = 0.6;

/// The iteration count from which doublings are counted; the colors change slowly below it.
const START: f32 = 8.0;

/// Colors for iteration counts.
pub(super) struct Palette {
    max_iterations: u32,
}

impl Palette {
    /// Returns a palette in which `max_iterations` means the inside of the set.
    pub(super) fn new(max_iterations: u32) -> Self {
        Self { max_iterations }
    }

    /// Returns the color of a pixel as sRGB.
    pub(super) fn color(&self, iterations: u32) -> [u8; 3] {
        if iterations >= self.max_iterations {
            return INSIDE;
        }
        // Near the set the counts grow without bound; the logarithm keeps the color bands equally
        // wide.
        let doublings = (iterations as f32 / START + 1.0).log2();
        cycle(doublings * ROUNDS_PER_DOUBLING)
    }
}

/// Returns the color after `rounds` cycles through the stops.
fn cycle(rounds: f32) -> [u8; 3] {
    let position = rounds.fract() * STOPS.len() as f32;
    let stop = position as usize % STOPS.len();
    let from = STOPS[stop];
    let to = STOPS[(stop + 1) % STOPS.len()];
    // Cosine interpolation: no visible edge at a stop.
    let weight = 0.5 - 0.5 * (PI * position.fract()).cos();
    std::array::from_fn(|channel| {
        (from[channel] + (to[channel] - from[channel]) * weight).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_rounds_end_where_they_began() {
        assert_eq!(cycle(0.0), [8, 10, 40]);
        assert_eq!(cycle(3.0), cycle(0.0));
        assert_eq!(cycle(0.5), [252, 244, 214]);
    }

    #[test]
    fn colors_change_without_a_jump() {
        let steps = (0..=6000).map(|step| cycle(step as f32 / 3000.0));
        let jumps = steps
            .clone()
            .zip(steps.skip(1))
            .map(|(a, b)| (0..3).map(|i| a[i].abs_diff(b[i])).max());
        assert!(jumps.max() <= Some(Some(2)));
    }

    #[test]
    fn inside_has_a_color_that_no_count_has() {
        let palette = Palette::new(1000);
        assert_eq!(palette.color(1000), INSIDE);
        assert!((0..1000).all(|iterations| palette.color(iterations) != INSIDE));
    }
}
