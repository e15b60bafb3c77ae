//! Declarations of an image that the driver cannot report.

use curium_format::{elf, ptx};
use curium_sys::Function;

use super::{Image, ImageKind, KernelParameter};
use crate::Driver;

/// Declarations of an image that the driver cannot report.
#[derive(Clone, Default)]
pub(crate) struct Declared {
    /// The kernels of PTX text, if the driver lacks the function that reports parameters.
    pub(crate) entries: Box<[Entry]>,
    /// The names of global variables, which no driver reports; empty for a fatbin.
    pub(crate) variables: Box<[Box<str>]>,
}

/// A kernel in PTX text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    /// The parameters in order; `None` if their declaration cannot be read.
    pub(crate) parameters: Option<Box<[KernelParameter]>>,
}

impl Declared {
    /// Reads the declarations of `image`. `function` is the driver function that reports the
    /// parameters of its kernels.
    pub(crate) fn by(image: &Image<'_>, driver: &Driver, function: Function) -> Self {
        let entries = match image.as_ptx() {
            Some(text) if !driver.has(function) => ptx::kernels(text).map(Entry::new).collect(),
            _ => Box::default(),
        };
        let variables = match (image.as_ptx(), image.kind) {
            (Some(text), _) => ptx::variables(text).map(Box::from).collect(),
            (None, ImageKind::Cubin) => elf::variables(&image.bytes).map(Box::from).collect(),
            (None, _) => Box::default(),
        };
        Self { entries, variables }
    }
}

impl Entry {
    fn new(kernel: ptx::Kernel<'_>) -> Self {
        let parameters: Result<_, _> = kernel
            .parameters()
            .map(|parameter| {
                parameter
                    .map(|ptx::Parameter { offset, size, .. }| KernelParameter { offset, size })
            })
            .collect();
        Self {
            name: kernel.name.into(),
            parameters: parameters.ok(),
        }
    }
}
