//! The output file of the demo.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::demo::palette::Palette;
use crate::demo::view::View;

/// A writable output file. The file is created or replaced when the picture is complete, so that an
/// interrupted run leaves nothing behind, and an existing file keeps its content.
pub(super) struct PictureFile {
    path: PathBuf,
}

/// The written picture.
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

impl PictureFile {
    /// Checks that the file at `path` is writable.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not writable.
    pub(super) fn at(path: &Path) -> Result<Self> {
        try_out(path).with_context(|| cannot_be_written(path))?;
        Ok(Self {
            path: path.to_path_buf(),
        })
    }

    /// Writes the picture of `view`, and replaces the file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, such as a full disk.
    pub(super) fn write(self, view: &View, iterations: &[u32]) -> Result<Written> {
        let begin = Instant::now();
        let bytes =
            encode(&self.path, view, iterations).with_context(|| cannot_be_written(&self.path))?;
        Ok(Written {
            path: self.path,
            bytes,
            time: begin.elapsed(),
        })
    }
}

/// Opens a file for writing without changing it.
fn try_out(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

/// Writes a picture row by row, and returns its size in bytes.
fn encode(path: &Path, view: &View, iterations: &[u32]) -> Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(&mut file, view.width, view.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let palette = Palette::new(view.max_iterations);
    for row in iterations.chunks_exact(view.width as usize) {
        let colors: Vec<_> = row.iter().flat_map(|count| palette.color(*count)).collect();
        stream.write_all(&colors)?;
    }
    stream.finish()?;
    writer.finish()?;
    Ok(file.into_inner()?.metadata()?.len())
}

fn cannot_be_written(path: &Path) -> String {
    format!("{} could not be written", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::new((3, 2), (-0.5, 0.0), 3.0, 100).expect("the view is valid")
    }

    #[test]
    fn picture_has_a_color_per_count() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let path = folder.path().join("picture.png");
        fs::write(&path, [0; 4096]).expect("the folder is writable");
        let iterations = [0, 1, 2, 50, 99, 100];
        let written = PictureFile::at(&path)
            .expect("the file is writable")
            .write(&view(), &iterations);
        assert_eq!(
            written.expect("the disk has room").bytes,
            fs::metadata(&path).expect("failed to open the file").len()
        );

        let file = io::BufReader::new(File::open(&path).expect("failed to open the file"));
        let mut reader = png::Decoder::new(file).read_info().expect("not a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("size overflow")];
        let info = reader.next_frame(&mut pixels).expect("it has a picture");
        assert_eq!(
            (info.width, info.height, info.color_type),
            (3, 2, png::ColorType::Rgb)
        );
        let palette = Palette::new(100);
        assert_eq!(
            pixels,
            iterations.map(|count| palette.color(count)).concat()
        );
    }

    #[test]
    fn folder_is_unchanged_until_the_picture_is_written() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let new = folder.path().join("new.png");
        let old = folder.path().join("old.png");
        fs::write(&old, "precious").expect("the folder is writable");
        for path in [&new, &old] {
            PictureFile::at(path).expect("the file is writable");
        }
        assert!(!new.exists());
        assert_eq!(
            fs::read_to_string(&old).expect("failed to open the file"),
            "precious"
        );
    }

    #[test]
    fn path_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        for path in [
            folder.path().to_path_buf(),
            folder.path().join("absent").join("picture.png"),
        ] {
            let error = PictureFile::at(&path)
                .err()
                .expect("a missing folder was accepted")
                .to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
