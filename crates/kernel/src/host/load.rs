//! Loading of kernels.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::{
    Context, Device, DeviceAttribute, Dimensions, Error, Kernel, LaunchAttributes, LaunchConfig,
    Library, Result, Untyped,
};

use crate::scope::Scope;
use crate::table::KernelTable;

/// A function of the PTX that was compiled from the kernel `K`.
///
/// Safe code cannot create one, so the struct of a kernel always launches its own function.
#[doc(hidden)]
pub struct Function<K> {
    kernel: Kernel<Untyped>,
    /// `true` once the kernel may use all shared memory of a block.
    allows_large_shared: Arc<AtomicBool>,
    _kernel: PhantomData<fn(K)>,
}

impl<K> Function<K> {
    /// Looks up the function.
    ///
    /// # Safety
    ///
    /// The library contains the code that was compiled from the kernel `K`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_FOUND` with the nearest names if the function does not exist.
    pub unsafe fn new(library: &Library, name: &str) -> Result<Self> {
        Ok(Self {
            kernel: library.untyped_kernel(name)?,
            allows_large_shared: Arc::new(AtomicBool::new(false)),
            _kernel: PhantomData,
        })
    }

    /// Returns the driver's kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<Untyped> {
        &self.kernel
    }

    /// Opts in to more than 48 KiB of dynamic shared memory, if a launch needs it.
    ///
    /// The limit is set once, to all that the device has besides the kernel's static shared memory,
    /// so that concurrent launches do not lower it for each other.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_max_dynamic_shared_bytes`].
    pub fn allow_shared_bytes(&self, context: &Context, bytes: u32) -> Result<()> {
        const WITHOUT_OPT_IN: u32 = 48 << 10;
        if bytes <= WITHOUT_OPT_IN || self.allows_large_shared.load(Ordering::Acquire) {
            return Ok(());
        }
        let device = context.device();
        let limit: usize = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let remaining = limit.saturating_sub(self.kernel.static_shared_bytes(device)?);
        self.kernel
            .set_max_dynamic_shared_bytes(device, u32::try_from(remaining).unwrap_or(u32::MAX))?;
        self.allows_large_shared.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the number of blocks that fill the device.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::max_active_blocks`] and [`Kernel::active_clusters`].
    pub fn suggested_blocks<S: Scope>(
        &self,
        context: &Context,
        shared_bytes: usize,
    ) -> Result<u32> {
        self.allow_shared_bytes(context, u32::try_from(shared_bytes).unwrap_or(u32::MAX))?;
        let [x, y, z] = S::BLOCK;
        if S::CLUSTER != [0; 3] {
            let [cx, cy, cz] = S::CLUSTER;
            let cluster = Dimensions::from((cx, cy, cz));
            let config = LaunchConfig::new(cluster, (x, y, z))
                .with_shared_bytes(u32::try_from(shared_bytes).unwrap_or(u32::MAX));
            let attributes = LaunchAttributes::new().with_cluster(cluster);
            let clusters = self.kernel.active_clusters(context, config, &attributes)?;
            return Ok(clusters.max(1).saturating_mul(cx * cy * cz));
        }
        let resident = self
            .kernel
            .max_active_blocks(context, x * y * z, shared_bytes)?;
        let multiprocessors: u32 = context
            .device()
            .attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)?;
        Ok(resident.saturating_mul(multiprocessors).max(1))
    }
}

impl<K> Clone for Function<K> {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone(),
            allows_large_shared: Arc::clone(&self.allows_large_shared),
            _kernel: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Function<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kernel.fmt(formatter)
    }
}

/// The struct that launches a kernel.
#[doc(hidden)]
pub trait HostKernel: Sized {
    /// The type of the table.
    type Table: Table;

    /// The table of the kernel, as the host's compiler evaluates it.
    const TABLE: Self::Table;

    /// Creates the struct.
    fn __from_function(function: Function<Self>) -> Self;
}

/// A table of any number of parameters.
#[doc(hidden)]
pub trait Table {}

impl<const N: usize> Table for KernelTable<N> {}

/// Returns `true` if the table is that of the device's build, or if the device's build failed.
#[doc(hidden)]
#[must_use]
pub const fn is_same_table<const N: usize>(host: &KernelTable<N>, device: &[u8]) -> bool {
    if device.is_empty() {
        return true;
    }
    let words = host.as_words();
    if device.len() != 4 * words.len() {
        return false;
    }
    let mut index = 0;
    while index < words.len() {
        let bytes = words[index].to_le_bytes();
        let mut byte = 0;
        while byte < 4 {
            if bytes[byte] != device[4 * index + byte] {
                return false;
            }
            byte += 1;
        }
        index += 1;
    }
    true
}

/// The PTX for a target.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The target, such as `sm_80`.
    pub target: &'static str,
    /// The major compute capability.
    pub major: u32,
    /// The minor compute capability.
    pub minor: u32,
    /// The suffix of the target: empty, `a` (this compute capability only) or `f` (this family
    /// only).
    pub suffix: &'static str,
    /// The text.
    pub ptx: &'static str,
}

impl Image {
    /// Returns `true` if a device of this compute capability can run the code.
    fn runs_on(&self, major: u32, minor: u32) -> bool {
        match self.suffix {
            "" => (self.major, self.minor) <= (major, minor),
            "f" => self.major == major && self.minor <= minor,
            _ => (self.major, self.minor) == (major, minor),
        }
    }
}

/// Returns the best image for a device: of those that it can run, the last.
///
/// # Errors
///
/// An argument error if the device can run none.
#[doc(hidden)]
pub fn select_image(device: &Device, images: &[Image]) -> Result<Image> {
    let capability = device.compute_capability()?;
    let mut candidates = images
        .iter()
        .filter(|image| image.runs_on(capability.major, capability.minor));
    match candidates.next_back() {
        Some(image) => Ok(*image),
        None => {
            let targets: Vec<&str> = images.iter().map(|image| image.target).collect();
            Err(Error::argument(
                "Kernels::load",
                format!(
                    "the kernels were compiled for {}, and the device has compute capability {}.{}; add a target to the build script",
                    targets.join(", "),
                    capability.major,
                    capability.minor
                ),
            ))
        }
    }
}

/// Loads the best image for a device.
///
/// # Errors
///
/// As for [`select_image`] and [`Library::from_ptx`].
#[doc(hidden)]
pub fn load_library(device: &Device, images: &[Image]) -> Result<Library> {
    Library::from_ptx(device, select_image(device, images)?.ptx)
}

/// Declares the struct `Kernels`. The build script writes the invocation, whose `unsafe` states
/// that the images were compiled from these kernels.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels {
    ($unsafe:tt module: $module:path, images: [$($image:tt),* $(,)?], kernels: [$($kernel:tt),* $(,)?] $(,)?) => {
        $crate::__kernels! { @expect_unsafe $unsafe [$unsafe] [$($image)*] $($kernel)* }
    };
    (@expect_unsafe unsafe $($rest:tt)*) => {
        $crate::__kernels! { @struct $($rest)* }
    };
    (@expect_unsafe $($rest:tt)*) => {
        $crate::__private::compile_error!("the invocation begins with `unsafe`, which states that the images were compiled from these kernels");
    };
    (@struct $unsafe:tt $images:tt $({ name: $name:ident, path: [$path:path], table: [$($byte:literal),* $(,)?] $(,)? })*) => {
        /// The kernels, loaded on a device.
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        pub struct Kernels {
            $(
                #[doc = $crate::__private::concat!("The kernel `", $crate::__private::stringify!($name), "`.")]
                pub $name: $path,
            )*
        }

        impl Kernels {
            /// Loads the kernels on a device. They can be launched on every device for which the
            /// code was compiled.
            ///
            /// CUDA: `cuLibraryLoadData`, since 12.0.
            ///
            /// # Errors
            ///
            /// An argument error if the kernels were not compiled for the device; the error of the
            /// JIT compiler with its log.
            pub fn load(device: &$crate::host::Device) -> $crate::host::Result<Self> {
                let library = $crate::__private::load_library(device, &$crate::__kernels!(@images $images))?;
                $crate::__kernels!(@proven $unsafe Self::from_library(&library))
            }

            /// Looks up the kernels in a library, such as one that was loaded from machine code or
            /// with options of the JIT compiler.
            ///
            /// # Safety
            ///
            /// The code of the library was compiled from the PTX of these kernels.
            ///
            /// # Errors
            ///
            /// `CUDA_ERROR_NOT_FOUND` with the nearest names if a kernel is missing.
            pub unsafe fn from_library(library: &$crate::host::Library) -> $crate::host::Result<Self> {
                ::core::result::Result::Ok(Self {
                    $($name: $crate::__kernels!(@function $path, library, $crate::__private::stringify!($name)),)*
                })
            }
        }

        $(
            const _: () = $crate::__private::assert!(
                $crate::__private::is_same_table(&<$path as $crate::__private::HostKernel>::TABLE, &[$($byte),*]),
                $crate::__private::concat!(
                    "the kernel `", $crate::__private::stringify!($name), "` was compiled from other code for the device: its source or the layout of its parameters differs"
                )
            );
        )*
    };
    (@images [$({ target: $target:literal, major: $major:literal, minor: $minor:literal, suffix: $suffix:literal, ptx: $ptx:literal $(,)? })*]) => {
        [$($crate::host::Image {
            target: $target,
            major: $major,
            minor: $minor,
            suffix: $suffix,
            ptx: $crate::__private::include_str!($ptx),
        }),*]
    };
    (@proven [$unsafe:tt] $operation:expr) => {
        // SAFETY: the author of the invocation guarantees with `unsafe` that the images were
        // compiled from these kernels.
        $unsafe { $operation }
    };
    (@function $path:path, $library:ident, $name:expr) => {
        <$path as $crate::__private::HostKernel>::__from_function(
            // SAFETY: the caller of `from_library` guarantees that the library contains the code of
            // the kernel.
            unsafe { $crate::host::Function::new($library, $name) }?,
        )
    };
}
