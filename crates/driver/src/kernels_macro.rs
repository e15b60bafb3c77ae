//! The macro `kernels!`, which declares a struct of kernels.

/// Declares a struct of kernels with their signatures, which are compared with the loaded code.
///
/// ```standalone_crate
/// curium_driver::kernels! {
///     /// The kernels of this program.
///     pub struct Kernels from "../../../tests/kernels/fill.ptx" {
///         /// Writes `value` to the first `n` elements.
///         pub fn fill(out: &mut [u32], value: u32, n: u32);
///         /// Writes its index to each of the first `n` elements.
///         fn index(out: &mut [u32], n: u32) = "fill_index";
///     }
/// }
/// # fn example(device: curium_driver::Device) -> curium_driver::Result<()> {
///
/// let kernels = Kernels::load(&device)?;
/// assert_eq!(kernels.index.name(), "fill_index");
/// # Ok(())
/// # }
/// # example(curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?.device(0)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The struct implements `Clone` and `Debug`. Each function becomes a field: a
/// [`Kernel`](crate::Kernel) whose [signature](crate::Signature) consists of the parameter types.
/// The kernel is looked up by the name of the function, or by the name after `=`. The name of the
/// struct is followed by the source of the code:
///
/// - `from "file"`: PTX text, which is embedded in the program. The path is relative to the source
///   file.
/// - `include "file"`: PTX text that a build script wrote to `OUT_DIR`.
/// - `from IMAGE`: an [`Image`](crate::Image), named by a `static` or a `const`. Use this form for
///   machine code, since only `unsafe` code can create an image of it.
/// - none: the struct has no `load`, and is created from a [`Library`](crate::Library) with
///   `from_library`.
///
/// # Kernels that safe code may launch
///
/// With `unsafe { … }` instead of `{ … }`, functions may be declared as `safe fn`. They become
/// [`SafeKernel`](crate::SafeKernel)s. The author of the declaration guarantees the requirements of
/// [`Kernel::declare_safe`](crate::Kernel::declare_safe) for the code that the declaration names.
/// `load` is therefore safe, and `from_library`, which accepts any code, is an `unsafe fn`.
///
/// ```standalone_crate
/// curium_driver::kernels! {
///     pub struct Kernels from "../../../tests/kernels/print.ptx" unsafe {
///         // SAFETY: the kernel prints, and accesses no memory of the program.
///         pub safe fn print_threads(seed: u32);
///     }
/// }
/// ```
///
/// CUDA: `cuLibraryLoadData`, `cuLibraryGetKernel`, or a module per context before 12.0;
/// `cuKernelGetParamInfo`.
#[macro_export]
macro_rules! kernels {
    // The source of the code, in brackets before the struct.
    ($(#[$attribute:meta])* $vis:vis struct $name:ident $origin:ident $path:literal $($rest:tt)*) => {
        $crate::kernels! { @from [$origin $path] $(#[$attribute])* $vis struct $name $($rest)* }
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident from $image:ident $($rest:tt)*) => {
        $crate::kernels! { @from [image $image] $(#[$attribute])* $vis struct $name $($rest)* }
    };
    ($(#[$attribute:meta])* $vis:vis struct $($rest:tt)*) => {
        $crate::kernels! { @from [library] $(#[$attribute])* $vis struct $($rest)* }
    };
    (@from $origin:tt $(#[$attribute:meta])* $vis:vis struct $name:ident { $($items:tt)* }) => {
        $crate::kernels! { @collect [$origin [$(#[$attribute])*] [$vis] $name] [] [] [] $($items)* }
    };
    (@from $origin:tt $(#[$attribute:meta])* $vis:vis struct $name:ident $unsafe:tt { $($items:tt)* }) => {
        $crate::kernels! { @expect_unsafe $unsafe }
        $crate::kernels! { @collect [$origin [$(#[$attribute])*] [$vis] $name] [$unsafe] [] [] $($items)* }
    };
    (@expect_unsafe unsafe) => {};

    // Each function is rewritten as [attributes] [visibility] name kind [proof] [parameters]
    // (symbol). A proof consists of two tokens of the caller: `unsafe`, and the semicolon of a
    // `safe fn`.
    (@collect $head:tt $unsafe:tt $proof:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis fn $kernel:ident($($parameters:tt)*) = $symbol:literal; $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head $unsafe $proof
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel Kernel [] [$($parameters)*] ($symbol) }] $($rest)* }
    };
    (@collect $head:tt $unsafe:tt $proof:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis fn $kernel:ident($($parameters:tt)*); $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head $unsafe $proof
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel Kernel [] [$($parameters)*] (stringify!($kernel)) }] $($rest)* }
    };
    (@collect $head:tt [$unsafe:tt] $proof:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis safe fn $kernel:ident($($parameters:tt)*) = $symbol:literal $end:tt $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head [$unsafe] [$unsafe $end]
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel SafeKernel [$unsafe $end] [$($parameters)*] ($symbol) }] $($rest)* }
    };
    (@collect $head:tt [$unsafe:tt] $proof:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis safe fn $kernel:ident($($parameters:tt)*) $end:tt $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head [$unsafe] [$unsafe $end]
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel SafeKernel [$unsafe $end] [$($parameters)*]
                (stringify!($kernel)) }] $($rest)* }
    };
    (@collect $head:tt [] $proof:tt $done:tt $(#[$attribute:meta])* $vis:vis safe fn $kernel:ident $($rest:tt)*) => {
        compile_error!(concat!(
            "`safe fn ", stringify!($kernel), "` needs `unsafe { … }` around the functions, ",
            "which guarantees that the kernel is safe with any arguments"
        ));
    };
    (@collect $head:tt [$unsafe:tt] [] $done:tt) => {
        compile_error!("`unsafe { … }` needs a `safe fn`: write `{ … }` around functions that need `unsafe` to be launched");
    };
    (@collect [$origin:tt [$($attribute:tt)*] [$vis:vis] $name:ident] $unsafe:tt $proof:tt
        [$({ [$($kernel_attribute:tt)*] [$kernel_vis:vis] $kernel:ident $kind:ident $kernel_proof:tt [$($parameters:tt)*]
            ($symbol:expr) })*]
    ) => {
        $($attribute)*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $(
                $($kernel_attribute)*
                #[doc = concat!("\n\nThe kernel `", stringify!($kernel), "(", stringify!($($parameters)*), ")`.")]
                $kernel_vis $kernel: $crate::$kind<$crate::kernels!(@signature [] $($parameters)*)>,
            )*
        }

        impl $name {
            /// The names with which the kernels are looked up, in the order of their declaration.
            $vis const KERNEL_NAMES: &'static [&'static str] = &[$($symbol),*];
        }

        $crate::kernels! { @constructors $proof [$vis] $name [$({ $kernel $kernel_proof ($symbol) })*] }
        $crate::kernels! { @load $origin $proof [$vis] $name }
    };

    (@constructors [] [$vis:vis] $name:ident [$({ $kernel:ident $proof:tt ($symbol:expr) })*]) => {
        impl $name {
            /// Looks up the kernels in `library`.
            ///
            /// # Errors
            ///
            /// Returns `CUDA_ERROR_NOT_FOUND` with the nearest names if a kernel is missing, and an
            /// argument error if its parameters differ from the declared ones.
            $vis fn from_library(library: &$crate::Library) -> $crate::Result<Self> {
                Self::from_library_by(library, str::to_owned)
            }

            /// Looks up each kernel with the name that `name` returns for its declared name.
            #[doc(hidden)]
            $vis fn from_library_by(
                library: &$crate::Library,
                name: impl Fn(&str) -> String,
            ) -> $crate::Result<Self> {
                Ok(Self { $($kernel: library.kernel(&name($symbol))?),* })
            }
        }
    };
    (@constructors [$($struct_proof:tt)+] [$vis:vis] $name:ident [$({ $kernel:ident $proof:tt ($symbol:expr) })*]) => {
        impl $name {
            /// Looks up the kernels in `library`.
            ///
            /// # Safety
            ///
            /// Every kernel declared as `safe fn` is safe to launch with any arguments, in the code
            /// of `library`.
            ///
            /// # Errors
            ///
            /// Returns `CUDA_ERROR_NOT_FOUND` with the nearest names if a kernel is missing, and an
            /// argument error if its parameters differ from the declared ones.
            $vis unsafe fn from_library(library: &$crate::Library) -> $crate::Result<Self> {
                // The caller guarantees what `from_library_by` requires.
                $crate::kernels!(@proven [$($struct_proof)+] Self::from_library_by(library, str::to_owned))
            }

            /// Looks up each kernel with the name that `name` returns for its declared name.
            ///
            /// # Safety
            ///
            /// As for `from_library`.
            #[doc(hidden)]
            $vis unsafe fn from_library_by(
                library: &$crate::Library,
                name: impl Fn(&str) -> String,
            ) -> $crate::Result<Self> {
                Ok(Self { $($kernel: $crate::kernels!(@declare $proof library.kernel(&name($symbol))?)),* })
            }
        }
    };
    (@declare [] $kernel:expr) => { $kernel };
    (@declare [$($proof:tt)+] $kernel:expr) => {{
        let kernel = $kernel;
        $crate::kernels!(@proven [$($proof)+] kernel.declare_safe())
    }};

    // The only unsafe block of an expansion; its `unsafe` token comes from the caller. The lint
    // `unsafe_code` ignores blocks in macros of other crates, but reports the method, which starts
    // and ends with tokens of the caller.
    (@proven [$unsafe:tt $end:tt] $operation:expr) => {{
        #[allow(dead_code)]
        trait Proven {
            $unsafe fn proven() $end
        }
        // SAFETY: the author of the declaration guarantees with `unsafe` that the `safe fn` kernels
        // are safe with any arguments, in the code that the declaration names; for other code the
        // caller of the surrounding `unsafe fn` guarantees it.
        $unsafe { $operation }
    }};

    // Converts parameter types to signature types, where a slice needs a lifetime.
    (@signature [$($done:tt)*]) => { ($($done)*) };
    (@signature [$($done:tt)*] $parameter:ident: &mut [$element:ty] $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* &'static mut [$element],] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: &[$element:ty] $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* &'static [$element],] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: Option<&mut [$element:ty]> $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* ::core::option::Option<&'static mut [$element]>,] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: Option<&[$element:ty]> $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* ::core::option::Option<&'static [$element]>,] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: $ty:ty $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* $ty,] $($($rest)*)?)
    };

    (@load [library] $proof:tt [$vis:vis] $name:ident) => {};
    (@load [image $image:ident] $proof:tt [$vis:vis] $name:ident) => {
        $crate::kernels! { @load_image $proof [$vis] $name (&$image) }
    };
    (@load [from $path:literal] $proof:tt [$vis:vis] $name:ident) => {
        $crate::kernels! { @load_ptx $proof [$vis] $name $path (include_bytes!($path)) }
    };
    (@load [include $path:literal] $proof:tt [$vis:vis] $name:ident) => {
        $crate::kernels! { @load_ptx $proof [$vis] $name $path (include_bytes!(concat!(env!("OUT_DIR"), "/", $path))) }
    };
    (@load [source $path:literal] $proof:tt [$vis:vis] $name:ident) => {
        compile_error!("`source` needs NVRTC: use `kernels!` of `curium` with its feature `nvrtc`, or of `curium_nvrtc`");
    };
    // A macro of another crate adds the functions.
    (@load [by $other:path, $($origin:tt)*] $proof:tt [$vis:vis] $name:ident) => {
        $other! { @load [$($origin)*] $proof [$vis] $name }
    };
    (@load_ptx $proof:tt [$vis:vis] $name:ident $path:literal ($bytes:expr)) => {
        $crate::kernels! { @load_image $proof [$vis] $name (&{
            const PTX: &str = match ::core::str::from_utf8($bytes) {
                Ok(text) => text,
                Err(_) => panic!(concat!("`", $path, "` is not PTX text: declare machine code as an `Image`, and write `from IMAGE`")),
            };
            $crate::Image::from_ptx(PTX)?
        }) }
    };
    (@load_image $proof:tt [$vis:vis] $name:ident ($image:expr)) => {
        impl $name {
            /// Loads the code and looks up the kernels. `driver` can be a driver, a device, a
            /// context or a stream.
            ///
            /// CUDA: `cuLibraryLoadData`, and `cuModuleLoadDataEx` before 12.0.
            ///
            /// # Errors
            ///
            /// Returns the error of the JIT compiler with its log, and the errors of
            /// `from_library`.
            $vis fn load(driver: &impl AsRef<$crate::Driver>) -> $crate::Result<Self> {
                let library = $crate::Library::from_image(driver, $image, &$crate::JitOptions::new())?;
                $crate::kernels!(@made_by $proof Self::from_library(&library))
            }
        }
    };
    (@made_by [] $constructor:expr) => { $constructor };
    (@made_by [$($proof:tt)+] $constructor:expr) => { $crate::kernels!(@proven [$($proof)+] $constructor) };
}
