//! A struct of kernels, declared once.

/// Declares a struct of kernels with the parameters of each, which are compared with the image when it is loaded.
///
/// ```
/// curium_driver::kernels! {
///     /// What this program computes.
///     pub struct Kernels from "../../../tests/kernels/fill.ptx" {
///         /// Writes `value` to the first `n` elements.
///         pub fn fill(out: &mut [u32], value: u32, n: u32);
///         /// Writes to each of the first `n` elements where it lies.
///         fn index(out: &mut [u32], n: u32) = "fill_index";
///     }
/// }
/// # fn example(device: curium_driver::Device) -> curium_driver::Result<()> {
///
/// let kernels = Kernels::load(&device)?;
/// assert_eq!(kernels.index.name(), "fill_index");
/// # Ok(())
/// # }
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new())?;
/// # // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
/// # example(unsafe { curium_driver::Driver::from_api(simulator.api()) }?.device(0)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The struct is `Clone` and `Debug`. Each function becomes a field: a [`Kernel`](crate::Kernel) with a [signature](crate::Signature) of
/// the types of its parameters. It is looked up by its own name, or by the one behind `=`. What stands behind the name of the struct says
/// where the code is from:
///
/// - `from "file"`: PTX, a cubin or a fat binary, which becomes part of the program. The path is relative to the source file.
/// - `include "file"`: the same from `OUT_DIR`, where a build script puts it.
/// - nothing: the struct is made from a [`Library`](crate::Library) with `from_library`, and has no `load`.
///
/// In `unsafe { … }` in place of `{ … }` functions may be `safe fn`: they become [`SafeKernel`](crate::SafeKernel)s, which safe code may
/// launch. Whoever writes this vouches for them as [`Kernel::declare_safe`](crate::Kernel::declare_safe) asks.
///
/// ```
/// curium_driver::kernels! {
///     // SAFETY: `next` writes the first element, and there is one in every slice that the program makes.
///     pub struct Kernels unsafe {
///         pub safe fn next(out: &mut [u32]);
///     }
/// }
/// ```
///
/// CUDA: `cuLibraryLoadData`, `cuLibraryGetKernel`, since 12.0; `cuKernelGetParamInfo`.
#[macro_export]
macro_rules! kernels {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident $origin:ident $path:literal { $($items:tt)* }) => {
        $crate::kernels! { @collect [[$(#[$attribute])*] [$vis] $name checked] [] $($items)* }
        $crate::kernels! { @load [$vis] $name $origin $path }
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident $origin:ident $path:literal unsafe { $($items:tt)* }) => {
        $crate::kernels! { @collect [[$(#[$attribute])*] [$vis] $name vouched] [] $($items)* }
        $crate::kernels! { @load [$vis] $name $origin $path }
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident { $($items:tt)* }) => {
        $crate::kernels! { @collect [[$(#[$attribute])*] [$vis] $name checked] [] $($items)* }
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident unsafe { $($items:tt)* }) => {
        $crate::kernels! { @collect [[$(#[$attribute])*] [$vis] $name vouched] [] $($items)* }
    };

    // The functions, one after the other, become [attributes] [visibility] name kind [parameters] "symbol".
    (@collect $head:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis fn $kernel:ident($($parameters:tt)*) = $symbol:literal; $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel Kernel [$($parameters)*] ($symbol) }] $($rest)* }
    };
    (@collect $head:tt [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis fn $kernel:ident($($parameters:tt)*); $($rest:tt)*
    ) => {
        $crate::kernels! { @collect $head
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel Kernel [$($parameters)*] (stringify!($kernel)) }] $($rest)* }
    };
    (@collect [$attributes:tt $struct_vis:tt $name:ident vouched] [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis safe fn $kernel:ident($($parameters:tt)*) $(= $symbol:literal)?; $($rest:tt)*
    ) => {
        $crate::kernels! { @collect [$attributes $struct_vis $name vouched]
            [$($done)* { [$(#[$attribute])*] [$vis] $kernel SafeKernel [$($parameters)*]
                ($crate::kernels!(@symbol $kernel $($symbol)?)) }] $($rest)* }
    };
    (@collect [$attributes:tt $struct_vis:tt $name:ident checked] [$($done:tt)*]
        $(#[$attribute:meta])* $vis:vis safe fn $kernel:ident $($rest:tt)*
    ) => {
        compile_error!(concat!(
            "`safe fn ", stringify!($kernel), "` needs `unsafe { … }` around the functions: ",
            "somebody must vouch that the kernel is safe with any arguments"
        ));
    };
    (@collect [[$($attribute:tt)*] [$vis:vis] $name:ident $trust:ident]
        [$({ [$($kernel_attribute:tt)*] [$kernel_vis:vis] $kernel:ident $kind:ident [$($parameters:tt)*] ($symbol:expr) })*]
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
            /// The names under which the kernels are looked up, in the order of their declaration.
            $vis const KERNEL_NAMES: &'static [&'static str] = &[$($symbol),*];

            /// The kernels of `library`.
            ///
            /// # Errors
            ///
            /// `CUDA_ERROR_NOT_FOUND` with the nearest names if one of them is not there; an argument error if its parameters are not
            /// those that were declared.
            $vis fn from_library(library: &$crate::Library) -> $crate::Result<Self> {
                Self::from_library_by(library, str::to_owned)
            }

            /// As `from_library`, with each kernel looked up by what `name` makes of its name.
            #[doc(hidden)]
            $vis fn from_library_by(
                library: &$crate::Library,
                name: impl Fn(&str) -> String,
            ) -> $crate::Result<Self> {
                Ok(Self { $($kernel: $crate::kernels!(@look_up $kind library, &name($symbol))),* })
            }
        }
    };

    (@symbol $kernel:ident) => { stringify!($kernel) };
    (@symbol $kernel:ident $symbol:literal) => { $symbol };

    (@look_up Kernel $library:ident, $name:expr) => { $library.kernel($name)? };
    (@look_up SafeKernel $library:ident, $name:expr) => {{
        let kernel = $library.kernel($name)?;
        // SAFETY: the declaration of the struct vouches for the kernel.
        unsafe { kernel.declare_safe() }
    }};

    // The types of parameters as those of a signature, where a slice needs a lifetime.
    (@signature [$($done:tt)*]) => { ($($done)*) };
    (@signature [$($done:tt)*] $parameter:ident: &mut [$element:ty] $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* &'static mut [$element],] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: &[$element:ty] $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* &'static [$element],] $($($rest)*)?)
    };
    (@signature [$($done:tt)*] $parameter:ident: $ty:ty $(, $($rest:tt)*)?) => {
        $crate::kernels!(@signature [$($done)* $ty,] $($($rest)*)?)
    };

    (@load [$vis:vis] $name:ident from $path:literal) => {
        $crate::kernels! { @load_bytes [$vis] $name include_bytes!($path) }
    };
    (@load [$vis:vis] $name:ident include $path:literal) => {
        $crate::kernels! { @load_bytes [$vis] $name include_bytes!(concat!(env!("OUT_DIR"), "/", $path)) }
    };
    (@load [$vis:vis] $name:ident source $path:literal) => {
        compile_error!("`source` needs NVRTC: use `kernels!` of `curium` with its feature `nvrtc`, or of `curium_nvrtc`");
    };
    (@load_bytes [$vis:vis] $name:ident $bytes:expr) => {
        impl $name {
            /// Loads the code, and looks up the kernels. A driver, a device, a context and a stream all name the driver.
            ///
            /// CUDA: `cuLibraryLoadData`, since 12.0.
            ///
            /// # Errors
            ///
            /// What the driver's compiler wrote is part of its error; else as for `from_library`.
            $vis fn load(driver: &impl AsRef<$crate::Driver>) -> $crate::Result<Self> {
                let image = $crate::Image::from_bytes($bytes)?;
                Self::from_library(&$crate::Library::from_image(driver, &image, &$crate::JitOptions::new())?)
            }
        }
    };
}
