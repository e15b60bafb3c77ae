//! `curium demo`: a picture of the Mandelbrot set, computed by a kernel in Rust.

mod check;
mod kernels;
mod palette;
mod picture;
mod render;
mod report;
mod stage;
mod view;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::check::Check;
use self::picture::PictureFile;
use self::report::Report;
use self::stage::Stage;
use self::view::View;
use crate::machine::DeviceChoice;
use crate::terminal::ColorChoice;

curium_kernel::include_kernels!("kernels");

/// The longest side of a picture, in pixels.
const MAX_SIDE: i64 = u16::MAX as i64;

/// Compute a picture with a kernel in Rust, on a GPU or simulated
///
/// The picture of the Mandelbrot set is compared with the CPU's result and written as PNG. Without
/// a GPU, the kernel runs on the simulator.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the picture is written, and correct (unless --no-check)
  1  no usable GPU with --device gpu, no such folder, or a wrong pixel
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Width of the picture in pixels
    #[arg(long, default_value_t = 1920, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=MAX_SIDE))]
    width: u32,
    /// Height of the picture in pixels
    #[arg(long, default_value_t = 1080, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=MAX_SIDE))]
    height: u32,
    /// Real part of the center
    #[arg(long, default_value_t = -0.743_643_887, value_name = "RE", allow_hyphen_values = true, value_parser = finite)]
    center_x: f64,
    /// Imaginary part of the center
    #[arg(long, default_value_t = 0.131_825_904, value_name = "IM", allow_hyphen_values = true, value_parser = finite)]
    center_y: f64,
    /// Width of the picture in the complex plane (zoom)
    #[arg(long, default_value_t = 0.0008, value_name = "WIDTH", value_parser = positive)]
    scale: f64,
    /// Iteration limit; points that reach it belong to the set
    #[arg(long, default_value_t = 2000, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,
    /// Output file, which is overwritten
    #[arg(long, short, default_value = "curium-demo.png", value_name = "FILE")]
    output: PathBuf,
    /// Device for the kernel
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Skip the comparison with the CPU
    #[arg(long)]
    no_check: bool,
    /// Explain in full why no GPU is usable
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the demo. Invalid options are rejected before anything is computed.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<()> {
    let colors = color.on(&io::stderr());
    let view = options.view()?;
    let file = PictureFile::at(&options.output)?;

    let begin = Instant::now();
    let stage = Stage::open(options.device)?;
    stage.announce(options.verbose);
    let rendering =
        render::render(&stage, &view, colors).with_context(|| format!("on {}", stage.name()))?;
    let total = begin.elapsed();

    let check = (!options.no_check)
        .then(|| check::against_cpu(&view, rendering.bands(), rendering.iterations(), colors));
    let picture = file.write(&view, rendering.iterations())?;
    let report = Report {
        view: &view,
        stage: &stage,
        rendering: &rendering,
        total,
        check: check.as_ref(),
        picture,
    };
    writeln!(io::stdout(), "{report}").context("the report could not be written")?;
    check.map_or(Ok(()), Check::into_result)
}

impl Options {
    fn view(&self) -> Result<View> {
        View::new(
            (self.width, self.height),
            (self.center_x, self.center_y),
            self.scale,
            self.iterations,
        )
    }
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if f64::is_finite(number) => Ok(number),
        _ => Err("not a finite number".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    finite(text).and_then(|number| {
        if number > 0.0 {
            Ok(number)
        } else {
            Err("not above zero".to_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Demo {
        #[command(flatten)]
        options: Options,
    }

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Demo::try_parse_from([&["demo"], arguments].concat()).map(|demo| demo.options)
    }

    #[test]
    fn negative_center_is_a_number_and_not_an_option() {
        let options =
            parse(&["--center-x", "-1.25", "--center-y", "-1e-2"]).expect("these are numbers");
        assert_eq!((options.center_x, options.center_y), (-1.25, -0.01));
    }

    #[test]
    fn sizes_outside_the_limits_are_rejected() {
        for arguments in [
            ["--width", "0"],
            ["--height", "65536"],
            ["--width", "18446744073709551616"],
        ] {
            let error = parse(&arguments)
                .err()
                .expect("the size is wrong")
                .to_string();
            assert!(
                error.contains(arguments[0]) && error.contains(arguments[1]),
                "{error}"
            );
        }
        assert!(parse(&["--width", "65535", "--height", "1"]).is_ok());
    }

    #[test]
    fn numbers_that_describe_no_region_are_rejected() {
        for arguments in [
            ["--scale", "0"],
            ["--scale", "inf"],
            ["--scale=-1", "--no-check"],
            ["--center-x", "NaN"],
        ] {
            assert!(parse(&arguments).is_err(), "{arguments:?}");
        }
    }
}
