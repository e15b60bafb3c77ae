//! Blurs an image: reads a PNG file, and writes one.
//!
//! `16_image_filter IN.png OUT.png`; without arguments it blurs a generated picture in the system's
//! temporary folder.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/blur.ptx");
const RADIUS: i32 = 2;

/// An image with three bytes per pixel, in rows.
struct Image {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

fn main() -> device::Outcome {
    let files: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .take_while(|word| word != "--device")
        .map(PathBuf::from)
        .collect();
    if let [from, to] = &files[..] {
        blur(&Image::read(from)?)?.write(to)?;
        println!("wrote {}", to.display());
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("curium-image-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let from = folder.join("sharp.png");
    let to = folder.join("blurred.png");
    Image::squares(96, 64).write(&from)?;
    blur(&Image::read(&from)?)?.write(&to)?;
    let sharp = Image::read(&from)?;
    let blurred = Image::read(&to)?;
    std::fs::remove_dir_all(&folder)?;
    assert_eq!(blurred.bytes, sharp.blurred_on_host().bytes);
    println!(
        "{} × {} pixels are blurred as on the host",
        blurred.width, blurred.height
    );
    Ok(())
}

fn blur(image: &Image) -> device::Outcome<Image> {
    let device = device::driver()?.device(0)?;
    let stream = device.primary_context()?.stream()?;
    let kernel =
        Library::from_ptx(&device, KERNELS)?.kernel::<(&[u8], &mut [u8], u32, u32, i32)>("blur")?;
    let source = DeviceBuffer::from_slice(&stream, &image.bytes)?;
    let mut target = DeviceBuffer::uninit(&stream, image.bytes.len())?;
    let width = image.width;
    let height = image.height;
    let config = LaunchConfig::new((width.div_ceil(16), height.div_ceil(16)), (16, 16));
    // SAFETY: `blur` reads and writes three bytes per pixel, which both buffers have.
    unsafe {
        kernel.launch(
            &stream,
            config,
            (&source, &mut target, width, height, RADIUS),
        )
    }?;
    Ok(Image {
        width,
        height,
        bytes: target.to_vec()?,
    })
}

impl Image {
    fn read(path: &Path) -> device::Outcome<Self> {
        let mut decoder = png::Decoder::new(BufReader::new(File::open(path)?));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info()?;
        let mut bytes = vec![
            0;
            reader
                .output_buffer_size()
                .ok_or("the picture is too large")?
        ];
        let info = reader.next_frame(&mut bytes)?;
        bytes.truncate(info.buffer_size());
        let bytes = match info.color_type {
            png::ColorType::Rgb => bytes,
            png::ColorType::Rgba => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
            png::ColorType::GrayscaleAlpha => bytes
                .as_chunks::<2>()
                .0
                .iter()
                .flat_map(|pixel| [pixel[0]; 3])
                .collect(),
            _ => bytes.into_iter().flat_map(|gray| [gray; 3]).collect(),
        };
        Ok(Self {
            width: info.width,
            height: info.height,
            bytes,
        })
    }

    fn write(&self, path: &Path) -> device::Outcome {
        let mut encoder =
            png::Encoder::new(BufWriter::new(File::create(path)?), self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.bytes)?;
        Ok(writer.finish()?)
    }

    /// Draws a checkerboard in two colors.
    fn squares(width: u32, height: u32) -> Self {
        let pixels = (0..height)
            .flat_map(|row| (0..width).map(move |column| (row / 8 + column / 8) % 2 == 0));
        let bytes = pixels
            .flat_map(|light| {
                if light {
                    [240, 240, 230]
                } else {
                    [0, 114, 178]
                }
            })
            .collect();
        Self {
            width,
            height,
            bytes,
        }
    }

    /// Returns the mean of a channel around a pixel.
    fn mean(&self, row: i32, column: i32, channel: i32) -> u8 {
        let width = self.width.cast_signed();
        let height = self.height.cast_signed();
        let mut sum = 0;
        let mut count = 0;
        for y in (row - RADIUS).max(0)..=(row + RADIUS).min(height - 1) {
            for x in (column - RADIUS).max(0)..=(column + RADIUS).min(width - 1) {
                sum += u32::from(self.bytes[((y * width + x) * 3 + channel) as usize]);
                count += 1;
            }
        }
        (sum / count) as u8
    }

    fn blurred_on_host(&self) -> Self {
        let width = self.width.cast_signed();
        let bytes = (0..self.bytes.len() as i32)
            .map(|index| self.mean(index / 3 / width, index / 3 % width, index % 3))
            .collect();
        Self {
            width: self.width,
            height: self.height,
            bytes,
        }
    }
}
