//! The file that the picture is written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::demo::palette::Palette;
use crate::demo::view::View;

/// A file that is open for writing before the picture is there. Unless a picture is written, a file that was not there before
/// is removed again, and one that was there keeps what it had.
pub(super) struct PictureFile {
    path: PathBuf,
    file: File,
    remove_on_drop: bool,
}

/// A picture that was written.
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

impl PictureFile {
    /// Opens the file at `path`, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be written to.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let (file, is_new) = open(path).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { path: path.to_path_buf(), file, remove_on_drop: is_new })
    }

    /// Writes the picture of `view` in place of what the file had.
    ///
    /// # Errors
    ///
    /// Whatever the system says, such as that the disk is full.
    pub(super) fn write(mut self, view: &View, iterations: &[u32]) -> Result<Written> {
        let begin = Instant::now();
        let bytes =
            self.encode(view, iterations).with_context(|| format!("{} cannot be written", self.path.display()))?;
        self.remove_on_drop = false;
        Ok(Written { path: self.path.clone(), bytes, time: begin.elapsed() })
    }

    fn encode(&mut self, view: &View, iterations: &[u32]) -> Result<u64> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        let mut file = BufWriter::new(&self.file);
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
        file.flush()?;
        drop(file);
        Ok(self.file.metadata()?.len())
    }
}

impl Drop for PictureFile {
    fn drop(&mut self) {
        if self.remove_on_drop {
            // What went wrong is being reported already; a file that cannot be removed adds nothing to it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens a file for writing, and says whether it is new.
fn open(path: &Path) -> io::Result<(File, bool)> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((OpenOptions::new().write(true).open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::new((3, 2), (-0.5, 0.0), 3.0, 100).expect("the view is valid")
    }

    #[test]
    fn picture_has_the_colour_of_every_count() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("picture.png");
        fs::write(&path, [0; 4096]).expect("the folder is writable");
        let iterations = [0, 1, 2, 50, 99, 100];
        let written = PictureFile::create(&path).expect("the file is writable").write(&view(), &iterations);
        assert_eq!(written.expect("the disk has room").bytes, fs::metadata(&path).expect("it is there").len());

        let file = io::BufReader::new(File::open(&path).expect("it is there"));
        let mut reader = png::Decoder::new(file).read_info().expect("it is a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("it is small")];
        let info = reader.next_frame(&mut pixels).expect("it has a picture");
        assert_eq!((info.width, info.height, info.color_type), (3, 2, png::ColorType::Rgb));
        let palette = Palette::new(100);
        assert_eq!(pixels, iterations.map(|count| palette.color(count)).concat());
    }

    #[test]
    fn new_file_without_a_picture_is_removed_and_an_old_one_is_kept() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (new, old) = (folder.path().join("new.png"), folder.path().join("old.png"));
        fs::write(&old, "precious").expect("the folder is writable");
        for path in [&new, &old] {
            drop(PictureFile::create(path).expect("the file is writable"));
        }
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).expect("it is there"), "precious");
    }

    #[test]
    fn path_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for path in [folder.path().to_path_buf(), folder.path().join("absent").join("picture.png")] {
            let error = PictureFile::create(&path).err().expect("no file can be there").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
