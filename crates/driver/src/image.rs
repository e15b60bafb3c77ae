//! Images: code in a form that the driver loads.
//!
//! PTX is text, which the driver parses: it is safe to load. Binary code is not: the driver trusts
//! its tables and crashes if they are wrong, and no check here can exclude that. An image of binary
//! code is therefore produced by a compiler in this process or by `unsafe` code.

pub(crate) mod declared;

use std::borrow::Cow;
use std::ffi::c_void;
use std::fmt;
use std::path::Path;

use curium_format::{elf, fat_binary, tile_ir};

use crate::base::c_string::c_path;
use crate::{Error, Result};

/// Code that can be loaded: PTX text, a cubin, a fatbin or Tile IR.
///
/// It is loaded as a [`Module`](crate::Module) or a [`Library`](crate::Library), or, except for
/// Tile IR, linked with a [`Linker`](crate::Linker).
///
/// PTX text is safe to load. Binary code is not: the driver trusts its tables, and a damaged cubin
/// crashes the process. Images of binary code are therefore created
///
/// - safely by the compilers and linkers in this process, from their own output, which a
///   [`DiskCache`](crate::DiskCache) may store,
/// - by `unsafe` code from other bytes. For a file that is embedded in the program, a `static` is
///   convenient:
///
/// ```standalone_crate
/// use curium_driver::{Image, ImageKind};
///
/// // SAFETY: `nvcc` made the file, and nothing else writes it.
/// static CODE: Image<'static> =
///     unsafe { Image::from_bytes_unchecked(ImageKind::FatBinary, include_bytes!("../tests/images/bump.fatbin")) };
///
/// assert_eq!(Image::from_ptx(".version 7.8\n.target sm_75\n.address_size 64\n")?.kind(), ImageKind::Ptx);
/// assert_eq!(CODE.kind(), ImageKind::FatBinary);
/// # Ok::<(), curium_driver::Error>(())
/// ```
#[derive(Clone)]
pub struct Image<'a> {
    kind: ImageKind,
    /// PTX includes the terminating NUL.
    bytes: Cow<'a, [u8]>,
}

/// The format of an [`Image`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ImageKind {
    /// PTX text, which the driver compiles.
    Ptx,
    /// A cubin: machine code for one architecture, as an ELF file.
    Cubin,
    /// A fatbin: several cubins and PTX texts, of which the driver selects the best match.
    FatBinary,
    /// Tile IR: bytecode for tile kernels, which the driver compiles. Cannot be linked. Requires
    /// CUDA 13.1.
    #[doc(alias = "cuda_tile")]
    TileIr,
}

/// The layout of a kernel parameter.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct KernelParameter {
    /// The offset from the first parameter, in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

impl<'a> Image<'a> {
    /// Creates an image of PTX text, which is copied and NUL-terminated.
    ///
    /// # Errors
    ///
    /// An argument error if the text does not start like PTX, or contains a NUL.
    pub fn from_ptx(ptx: &str) -> Result<Self> {
        Self::ptx("Image::from_ptx", ptx)
    }

    /// Creates an image of the kind that the first bytes indicate. PTX may end in a NUL.
    ///
    /// # Safety
    ///
    /// - A cubin, fatbin or Tile IR is the complete and unmodified output of NVIDIA's tools.
    ///   Otherwise the driver may access arbitrary memory.
    ///
    /// # Errors
    ///
    /// An argument error if the bytes are not an image, or are fewer than their headers require.
    pub unsafe fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::checked("Image::from_bytes", Cow::Borrowed(bytes))
    }

    /// Reads an image from the file at `path`, like [`Image::from_bytes`].
    ///
    /// # Safety
    ///
    /// - A cubin, fatbin or Tile IR is the complete and unmodified output of NVIDIA's tools.
    ///   Otherwise the driver may access arbitrary memory.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the path contains a NUL, or if the file cannot be read or
    /// is not an image.
    pub unsafe fn from_file(path: impl AsRef<Path>) -> Result<Image<'static>> {
        const OPERATION: &str = "Image::from_file";
        let path = path.as_ref();
        // The error contains the path, which must not contain a NUL.
        c_path(OPERATION, path)?;
        let bytes = std::fs::read(path)
            .map_err(|error| Error::argument(OPERATION, format!("{}: {error}", path.display())))?;
        Image::checked(OPERATION, Cow::Owned(bytes)).map_err(|error| match error {
            Error::Argument(argument) => {
                let reason = &argument.reason;
                Error::argument(OPERATION, format!("{}: {reason}", path.display()))
            }
            error => error,
        })
    }

    /// Creates an image of the given kind without checking its headers, also in a `const` or a
    /// `static`.
    ///
    /// # Safety
    ///
    /// - A cubin, fatbin or Tile IR is the complete and unmodified output of NVIDIA's tools.
    /// - PTX is UTF-8 and contains exactly one NUL, at its end.
    #[must_use]
    pub const unsafe fn from_bytes_unchecked(kind: ImageKind, bytes: &'a [u8]) -> Self {
        Self {
            kind,
            bytes: Cow::Borrowed(bytes),
        }
    }

    /// Returns the format of the image.
    #[must_use]
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Returns the bytes passed to the driver. PTX ends in a NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Converts the image to one that owns its bytes.
    #[must_use]
    pub fn into_owned(self) -> Image<'static> {
        Image {
            kind: self.kind,
            bytes: Cow::Owned(self.bytes.into_owned()),
        }
    }

    pub(crate) fn as_ptr(&self) -> *const c_void {
        self.bytes.as_ptr().cast()
    }

    /// Returns the text, if this is PTX.
    pub(crate) fn as_ptx(&self) -> Option<&str> {
        let text = self
            .bytes
            .strip_suffix(&[0])
            .filter(|_| self.kind == ImageKind::Ptx)?;
        std::str::from_utf8(text).ok()
    }

    pub(crate) fn ptx(operation: &'static str, text: &str) -> Result<Self> {
        check_ptx(text).map_err(|reason| Error::argument(operation, reason))?;
        let bytes = [text.as_bytes(), &[0]].concat();
        Ok(Self {
            kind: ImageKind::Ptx,
            bytes: Cow::Owned(bytes),
        })
    }

    fn checked(operation: &'static str, bytes: Cow<'a, [u8]>) -> Result<Self> {
        let kind = match bytes.as_ref() {
            binary if elf::is_elf(binary) => elf::check(binary).map(|()| ImageKind::Cubin),
            binary if fat_binary::is_fat_binary(binary) => {
                fat_binary::check(binary).map(|()| ImageKind::FatBinary)
            }
            binary if tile_ir::is_tile_ir(binary) => {
                tile_ir::check(binary).map(|()| ImageKind::TileIr)
            }
            record if fat_binary::is_record(record) => {
                let reason = "a fat binary record is not valid outside its program";
                return Err(Error::argument(operation, reason));
            }
            text => return Self::text(operation, text),
        }
        .map_err(|error| Error::argument(operation, error.to_string()))?;
        Ok(Self { kind, bytes })
    }

    /// Creates an image of PTX text from bytes that are not a binary format.
    fn text(operation: &'static str, bytes: &[u8]) -> Result<Self> {
        match std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes)) {
            Ok(text) => Self::ptx(operation, text),
            Err(_) => {
                let start = &bytes[..bytes.len().min(8)];
                let reason = format!(
                    "unknown image format ({} bytes, starting with {start:02x?})",
                    bytes.len()
                );
                Err(Error::argument(operation, reason))
            }
        }
    }
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Image({:?}, {} bytes)",
            self.kind,
            self.bytes.len()
        )
    }
}

/// Returns the beginning of a text in quotes.
fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Returns an error unless `text` is PTX. The driver would treat other text as binary code, and may
/// crash on it.
fn check_ptx(text: &str) -> Result<(), String> {
    let start = text.trim_start();
    if start.is_empty() {
        return Err("invalid PTX (the text is empty)".to_owned());
    }
    let is_path = !text.contains('\n') && text.ends_with(".ptx") && !start.starts_with("//");
    if is_path {
        return Err(format!(
            "invalid PTX (the text is the path {}); embed the file with `include_str!`, or read it",
            quoted(text)
        ));
    }
    if !start.starts_with('.') && !start.starts_with("//") && !start.starts_with("/*") {
        return Err(format!(
            "invalid PTX (expected a directive or a comment, not {})",
            quoted(start)
        ));
    }
    match text.find('\0') {
        None => Ok(()),
        Some(position) => Err(format!(
            "invalid PTX (NUL at byte {position} of {})",
            text.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../tests/images/bump.sm_75.cubin");
    const NEWER_CUBIN: &[u8] = include_bytes!("../tests/images/bump.sm_100.cubin");
    const FAT_BINARY: &[u8] = include_bytes!("../tests/images/bump.fatbin");
    const COMPRESSED: &[u8] = include_bytes!("../tests/images/bump.compressed.fatbin");
    /// An empty Tile IR module of version 13.1.
    const TILE_IR: &[u8] = b"\x7fTileIR\0\x0d\x01\0\0\0";

    fn from_bytes(bytes: &[u8]) -> Result<Image<'_>> {
        // SAFETY: no driver loads the image.
        unsafe { Image::from_bytes(bytes) }
    }

    #[test]
    fn complete_binaries_have_their_kind() {
        for (bytes, kind) in [
            (CUBIN, ImageKind::Cubin),
            (NEWER_CUBIN, ImageKind::Cubin),
            (FAT_BINARY, ImageKind::FatBinary),
            (COMPRESSED, ImageKind::FatBinary),
            (TILE_IR, ImageKind::TileIr),
        ] {
            let image = from_bytes(bytes).expect("the binary is whole");
            assert_eq!((image.kind(), image.as_bytes()), (kind, bytes));
        }
    }

    /// `curium-format` tests every length and every damaged byte.
    #[test]
    fn truncated_binaries_are_refused() -> Result<()> {
        for binary in [CUBIN, NEWER_CUBIN, FAT_BINARY, COMPRESSED, TILE_IR] {
            let Err(error) = from_bytes(&binary[..binary.len() - 1]) else {
                return Err(Error::argument("test", "a byte is missing"));
            };
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
        Ok(())
    }

    #[test]
    fn text_that_is_no_ptx_is_refused() {
        for text in ["", "int main() {}", " ", "{}"] {
            assert!(Image::from_ptx(text).is_err(), "{text:?}");
            assert!(from_bytes(text.as_bytes()).is_err(), "{text:?}");
        }
        let error = Image::from_ptx(".version 7.8\0.target").expect_err("there is a NUL");
        assert!(
            error.to_string().contains("NUL at byte 12 of 20"),
            "{error}"
        );
        let error = from_bytes(&[0xfe, 0xed, 0xfa]).expect_err("this is no image");
        assert!(
            error
                .to_string()
                .contains("unknown image format (3 bytes, starting with [fe, ed, fa])"),
            "{error}"
        );
    }

    /// A path in place of the text is a common mistake: the error names the remedy.
    #[test]
    fn path_in_place_of_ptx_is_refused() -> Result<()> {
        for path in [
            "kernels/add.ptx",
            "./add.ptx",
            "../add.ptx",
            "/usr/share/add.ptx",
            "C:\\add.ptx",
        ] {
            let error = Image::from_ptx(path).expect_err("a path is no PTX");
            let text = error.to_string();
            assert!(text.contains("include_str!"), "{text}");
            assert!(text.contains(&format!("{path:?}")), "{text}");
        }
        let error = Image::from_ptx(" \n").expect_err("the text is empty");
        assert!(error.to_string().contains("the text is empty"), "{error}");
        let error = Image::from_ptx("/usr/share/add.cubin").expect_err("`/` begins no comment");
        assert!(
            error.to_string().contains("expected a directive"),
            "{error}"
        );
        let long = "é".repeat(1000);
        let error = Image::from_ptx(&long).expect_err("no directive begins so");
        let text = error.to_string();
        assert!(text.contains("ééé\"…") && text.len() < 300, "{text}");
        Image::from_ptx("// made from add.ptx\n.version 7.8")?;
        Image::from_ptx("/* add */ .version 7.8")?;
        Ok(())
    }

    #[test]
    fn ptx_gets_one_nul_whether_it_had_one() {
        for bytes in [
            &b"\n// made by hand\n.version 7.8\n"[..],
            b"\n// made by hand\n.version 7.8\n\0",
        ] {
            let image = from_bytes(bytes).expect("this is PTX");
            assert_eq!(image.as_bytes(), b"\n// made by hand\n.version 7.8\n\0");
            assert_eq!(image.as_ptx(), Some("\n// made by hand\n.version 7.8\n"));
        }
    }

    #[test]
    fn record_that_points_to_a_fat_binary_is_refused() {
        let mut wrapper = 0x4662_43b1_u32.to_le_bytes().to_vec();
        wrapper.resize(24, 0);
        let error = from_bytes(&wrapper).expect_err("the record holds a pointer");
        assert!(
            error
                .to_string()
                .contains("a fat binary record is not valid outside its program"),
            "{error}"
        );
    }

    #[test]
    fn file_that_is_no_image_is_an_error_that_names_it() {
        // SAFETY: no driver loads the image, here and below.
        let error = unsafe { Image::from_file("/nowhere/at-all.cubin") }
            .expect_err("there is no such file");
        assert!(
            error.to_string().contains("/nowhere/at-all.cubin: "),
            "{error}"
        );
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        // SAFETY: no driver loads the image, here and below.
        let error = unsafe { Image::from_file(manifest) }.expect_err("a manifest is no image");
        assert!(
            error
                .to_string()
                .contains("Cargo.toml: invalid PTX (expected a directive"),
            "{error}"
        );
    }
}
