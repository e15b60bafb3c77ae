//! NVIDIA's formats: the text of PTX, fat binaries, cubins, and the versions of CUDA and PTX.
//!
//! - [`ptx`] scans PTX text: its header, kernels with their parameters, variables, and statements.
//!   It accepts every text, and reports what it can read. `curium-ptx` has the full parser, which
//!   is built on the same [`Scanner`](ptx::Scanner).
//! - [`fat_binary`] reads the entries of fat binaries, [`elf`] checks cubins and lists their
//!   variables, and [`tile_ir`] checks Tile IR.
//! - [`CudaVersion`], [`PtxVersion`] and [`Target`] know NVIDIA's table of releases: the PTX
//!   version that a driver accepts, and the first PTX version of each architecture.
//!
//! Every function takes time proportional to the length of its input, allocates nothing and never
//! panics, whatever the input.
//!
//! ```
//! use curium_format::{CudaVersion, ptx};
//!
//! let text = ".version 8.8\n.target sm_100f\n.address_size 64\n.visible .entry fill(.param .u64 p, .param .u32 n) { ret; }";
//! let header = ptx::header(text).ok_or("no PTX header")?;
//! assert_eq!(header.version.first_cuda(), Some(CudaVersion::new(12, 9)));
//! assert!(ptx::kernels(text).map(|kernel| kernel.name).eq(["fill"]));
//! # Ok::<(), &str>(())
//! ```

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod elf;
mod error;
pub mod fat_binary;
mod generated;
pub mod ptx;
mod target;
pub mod tile_ir;
mod version;

pub use self::error::Error;
pub use self::target::{Target, TargetVariant};
pub use self::version::{CudaVersion, PtxVersion};

/// Returns the little-endian integer of `N` bytes at `offset`, if in bounds.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset.checked_add(N)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// Returns the little-endian integer of `N` bytes at `offset` as a position, if in bounds.
fn position<const N: usize>(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(number::<N>(bytes, offset)?).ok()
}
