//! `curium demo`, run as a program: its output, its files and its exit codes.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::program::{self, Outcome};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A directory in which the program runs, without a driver.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("failed to create a folder"),
        }
    }

    /// Returns the path of a driver that does not exist.
    fn absent_driver(&self) -> PathBuf {
        self.folder.path().join("absent").join("libcuda.so.1")
    }

    fn picture(&self) -> PathBuf {
        self.folder.path().join("curium-demo.png")
    }

    /// Runs `curium demo` with these arguments.
    fn demo(&self, arguments: &[&str]) -> Outcome {
        let mut command = program::curium();
        command
            .arg("demo")
            .args(arguments)
            .current_dir(self.folder.path())
            .env("CURIUM_DRIVER_PATH", self.absent_driver());
        program::run(&mut command).expect("failed to start the program")
    }
}

/// Returns the colors of a picture, row by row, and its width.
fn decoded(path: &Path) -> TestResult<(Vec<[u8; 3]>, usize)> {
    let file = BufReader::new(File::open(path)?);
    let mut reader = png::Decoder::new(file).read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().expect("size overflow")];
    let info = reader.next_frame(&mut bytes)?;
    assert_eq!(
        (info.color_type, info.bit_depth),
        (png::ColorType::Rgb, png::BitDepth::Eight)
    );
    let colors = bytes
        .as_chunks::<3>()
        .0
        .iter()
        .map(|color| [color[0], color[1], color[2]]);
    Ok((colors.collect(), info.width as usize))
}

/// Returns the iteration count of the textbook algorithm, computed independently of the program.
fn escape_time(c_x: f64, c_y: f64, limit: u32) -> u32 {
    let mut x = 0.0_f64;
    let mut y = 0.0_f64;
    let mut count = 0;
    while count < limit && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + c_x, 2.0 * (x * y) + c_y);
        count += 1;
    }
    count
}

#[test]
fn simulated_picture() -> TestResult {
    let folder = Folder::new();
    // The width of a pixel is a power of two, so every coordinate is exact.
    let region = [
        "--center-x",
        "-0.5",
        "--center-y",
        "0",
        "--scale",
        "4",
        "--iterations",
        "60",
    ];
    let outcome = folder.demo(
        &[
            &["--device", "sim", "--width", "512", "--height", "256"],
            &region[..],
        ]
        .concat(),
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for said in [
        "Simulator",
        "requested with --device sim",
        "2 launches",
        "all 131072 pixels equal the CPU's",
    ] {
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }

    let (colors, width) = decoded(&folder.picture())?;
    assert_eq!((colors.len(), width), (512 * 256, 512));
    let mut color_of = HashMap::new();
    for (index, color) in colors.into_iter().enumerate() {
        let column = index % width;
        let row = index / width;
        let c = (
            (column as f64 - 256.0) / 128.0 - 0.5,
            (128.0 - row as f64) / 128.0,
        );
        let count = escape_time(c.0, c.1, 60);
        assert_eq!(
            *color_of.entry(count).or_insert(color),
            color,
            "column {column}, row {row}: {count} iterations"
        );
    }
    let inside = color_of.remove(&60).ok_or("no pixel inside the set")?;
    assert!(color_of.len() > 30 && color_of.values().all(|color| *color != inside));
    Ok(())
}

#[test]
fn gpu_without_a_driver() {
    let folder = Folder::new();
    let outcome = folder.demo(&["--device", "gpu"]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(
        outcome
            .stderr
            .matches(&folder.absent_driver().display().to_string())
            .count(),
        1,
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.stdout, "");
    assert!(
        !folder.picture().exists(),
        "no empty picture is left behind"
    );
}

#[test]
fn auto_without_a_driver() {
    let folder = Folder::new();
    let small = ["--width", "64", "--height", "48", "--iterations", "100"];
    let outcome = folder.demo(&small);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let reason = "no CUDA driver could be loaded";
    assert!(
        outcome.stderr.contains(reason) && outcome.stderr.lines().count() == 1,
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stdout.contains(reason) && outcome.stdout.contains("Simulator"),
        "{}",
        outcome.stdout
    );
    assert!(
        !outcome.stderr.contains("absent"),
        "the paths are for --verbose: {}",
        outcome.stderr
    );

    let outcome = folder.demo(&[&small[..], &["--verbose"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains(&folder.absent_driver().display().to_string()),
        "{}",
        outcome.stderr
    );
}

#[test]
fn unchecked_picture_is_marked() -> TestResult {
    let folder = Folder::new();
    let outcome = folder.demo(&[
        "--device",
        "sim",
        "--width",
        "5",
        "--height",
        "3",
        "--no-check",
        "-o",
        "small.png",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("skipped (--no-check)"),
        "{}",
        outcome.stdout
    );
    let (colors, width) = decoded(&folder.folder.path().join("small.png"))?;
    assert_eq!((colors.len(), width), (15, 5));
    Ok(())
}

/// A file that cannot be written is an error before anything is computed.
#[test]
fn unwritable_file_is_refused() {
    let folder = Folder::new();
    let huge = [
        "--device",
        "sim",
        "--width",
        "65535",
        "--height",
        "65535",
        "--iterations",
        "1000000",
    ];
    let outcome = folder.demo(&[&huge[..], &["--output", "absent/picture.png"]].concat());
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome
            .stderr
            .contains("absent/picture.png could not be written"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let folder = Folder::new();
    for arguments in [
        &["--width", "0"][..],
        &["--device", "abacus"],
        &["--no-such-option"],
    ] {
        let outcome = folder.demo(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(arguments[arguments.len() - 1]),
            "{}",
            outcome.stderr
        );
    }
}
