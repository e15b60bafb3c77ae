//! The type of a loaded library: one declaration for each of NVIDIA's libraries.

use core::ffi::c_int;
use core::fmt;

/// A version of a library, whose numbers are its own and not those of CUDA.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LibraryVersion {
    /// The major version, which the name of the library has.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch level.
    pub patch: u32,
}

impl LibraryVersion {
    /// Reads the version of a library with a function such as `curandGetProperty`. `get` passes its
    /// arguments, the number of a `libraryPropertyType` and a place that is valid for writes, to
    /// this function.
    ///
    /// # Errors
    ///
    /// The error of `get`.
    pub fn from_properties<E>(get: impl Fn(u32, *mut c_int) -> Result<(), E>) -> Result<Self, E> {
        let mut values: [c_int; 3] = [0; 3];
        for (property, value) in (0..).zip(&mut values) {
            get(property, value)?;
        }
        let [major, minor, patch] = values.map(|value| value.try_into().unwrap_or_default());
        Ok(Self {
            major,
            minor,
            patch,
        })
    }
}

impl fmt::Display for LibraryVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Returns the [`Origin`](crate::load::Origin) of a library in the CUDA toolkit whose Python
/// packages are `nvidia-NAME`, `nvidia-NAME-cu12` and `nvidia-NAME-cu11`.
#[macro_export]
macro_rules! toolkit_packages {
    ($name:literal) => {
        $crate::load::Origin::Toolkit(if cfg!(windows) {
            $crate::toolkit_packages!(@in r"nvidia\cu13\bin\x86_64", concat!(r"nvidia\", $name, r"\bin"), $name)
        } else {
            $crate::toolkit_packages!(@in "nvidia/cu13/lib", concat!("nvidia/", $name, "/lib"), $name)
        })
    };
    (@in $newest:expr, $older:expr, $name:literal) => {
        &[
            $crate::load::Package { name: concat!("nvidia-", $name), folder: $newest },
            $crate::load::Package { name: concat!("nvidia-", $name, "-cu12"), folder: $older },
            $crate::load::Package { name: concat!("nvidia-", $name, "-cu11"), folder: $older },
        ]
    };
}

/// Declares the type of a loaded library, with the methods `load`, `load_from`, `from_api`,
/// `version` and `api`, and the methods of its table that [`call!`](crate::call) requires.
///
/// `unsafe` stands for the precondition of the loader: the description is correct, and the table
/// declares the signatures of the library's functions. Errors are
/// [`LibraryError`](crate::load::LibraryError)s with the `status` type, whose codes in `success`
/// are no errors. `version` is a function from the table to a `Result` with the
/// [`LibraryVersion`](crate::load::LibraryVersion), or the library's function for its properties
/// with the type of a property: `curandGetProperty(libraryPropertyType_t)`. A library whose
/// functions are numbered by its own releases adds `product: "NAME"`. One whose older releases have
/// no function for their version adds `version_of_symbols`: a function from the
/// [`LoadedLibrary`](crate::load::LoadedLibrary) to the version of such a release.
///
/// ```
/// # mod example {
/// use curium_sys::load::{LibraryDescription, LibraryError, LibraryVersion};
/// use curium_sys::{call, declare_api, declare_library, toolkit_packages};
///
/// #[derive(Clone, Copy, Debug, Eq, PartialEq)]
/// pub struct Status(pub u32);
///
/// impl Status {
///     pub const SUCCESS: Self = Self(0);
/// }
///
/// declare_api! {
///     fn exampleGetProperty(property: u32, value: *mut i32) -> Status = 11080;
/// }
///
/// static DESCRIPTION: LibraryDescription = LibraryDescription {
///     name: "cuExample",
///     variable: "CURIUM_EXAMPLE_PATH",
///     files: &["libcuexample.so.13"],
///     origin: toolkit_packages!("cuexample"),
///     companions: &[],
///     required: &[c"exampleGetProperty"],
///     symbol_versions: &[],
///     check: |_| Ok(()),
/// };
///
/// declare_library! {
///     /// cuExample, loaded.
///     pub struct CuExample {
///         // SAFETY: these are the names under which cuExample is installed, and the table declares its functions.
///         description: unsafe { DESCRIPTION },
///         functions: Api,
///         version: version,
///         status: Status,
///         success: [SUCCESS],
///     }
/// }
///
/// fn version(api: &Api) -> Result<LibraryVersion, LibraryError<Status>> {
///     // SAFETY: `value` is valid for writes.
///     LibraryVersion::from_properties(|property, value| unsafe { call!(api, exampleGetProperty(property, value)) })
/// }
/// # }
///
/// let error = example::CuExample::load().expect_err("it does not exist").to_string();
/// assert!(error.contains("pip install nvidia-cuexample"), "{error}");
/// ```
#[macro_export]
macro_rules! declare_library {
    // The version is that of a function `GetProperty`, which takes the property as this type.
    (
        $(#[$attribute:meta])*
        pub struct $library:ident {
            description: unsafe { $description:path },
            functions: $api:ty,
            version: $get_property:ident($property:ident),
            status: $status:ident,
            success: [$($success:ident),+],
        }
    ) => {
        $crate::declare_library! {
            $(#[$attribute])*
            pub struct $library {
                description: unsafe { $description },
                functions: $api,
                version: version,
                status: $status,
                success: [$($success),+],
            }
        }

        fn version(
            api: &$api,
        ) -> ::core::result::Result<$crate::load::LibraryVersion, $crate::load::LibraryError<$status>> {
            $crate::load::LibraryVersion::from_properties(|property, value| {
                // SAFETY: `value` is valid for writes.
                unsafe { $crate::call!(api, $get_property($property(property), value)) }
            })
        }
    };
    (
        $(#[$attribute:meta])*
        pub struct $library:ident {
            description: unsafe { $description:path },
            functions: $api:ty,
            version: $version:path,
            $(version_of_symbols: $version_of_symbols:path,)?
            status: $status:ident,
            success: [$($success:ident),+],
            $(product: $product:literal,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone)]
        pub struct $library {
            api: ::std::sync::Arc<$api>,
            version: $crate::load::LibraryVersion,
        }

        impl $library {
            /// Loads the library of this machine. Later calls return the same library.
            ///
            /// If the environment variable of the library names a file, or a folder that contains
            /// one, nothing else is tried. Otherwise the system's loader searches for each name,
            /// the newest version first, and then the folders of CUDA toolkits and of the Python
            /// packages are searched. Set-uid programs ignore the environment.
            ///
            /// # Errors
            ///
            /// `LibraryError::Load` lists the paths tried and the packages to install. The next
            /// call tries again.
            pub fn load() -> ::core::result::Result<Self, $crate::load::LibraryError<$status>> {
                static LOADED: ::std::sync::OnceLock<$library> = ::std::sync::OnceLock::new();
                if let Some(library) = LOADED.get() {
                    return Ok(library.clone());
                }
                // SAFETY: the declaration guarantees the description.
                let library = unsafe { $description.load() }.map_err(::std::boxed::Box::new)?;
                // SAFETY: the library is the described one.
                let library = unsafe { Self::from_library(&library) }?;
                Ok(LOADED.get_or_init(|| library).clone())
            }

            /// Loads the library at `path`, and no other.
            ///
            /// # Safety
            ///
            /// If the library at `path` exports the names of the functions, it is this library: its
            /// initializers may run in this process, and its functions have the signatures and the
            /// meaning that NVIDIA gives to their names.
            ///
            /// # Errors
            ///
            /// `LibraryError::Load` has the reason for the rejection.
            pub unsafe fn load_from(
                path: impl ::core::convert::AsRef<::std::path::Path>,
            ) -> ::core::result::Result<Self, $crate::load::LibraryError<$status>> {
                // SAFETY: the conditions of the called function are those of this one, which the
                // caller guarantees.
                let library = unsafe { $description.load_from(path.as_ref()) }.map_err(::std::boxed::Box::new)?;
                // SAFETY: the caller guarantees that the library is the described one.
                unsafe { Self::from_library(&library) }
            }

            /// Uses the functions of a table, such as those of a simulated library.
            ///
            /// # Safety
            ///
            /// The functions have the meaning that NVIDIA gives to their names, and stay callable
            /// until the process ends.
            ///
            /// # Errors
            ///
            /// `LibraryError::Call` if the library does not report its version.
            pub unsafe fn from_api(
                api: $api,
            ) -> ::core::result::Result<Self, $crate::load::LibraryError<$status>> {
                let version = $version(&api)?;
                Ok(Self { api: ::std::sync::Arc::new(api), version })
            }

            /// Creates the library from its functions.
            ///
            /// # Safety
            ///
            /// The library is the described one.
            unsafe fn from_library(
                library: &$crate::load::LoadedLibrary,
            ) -> ::core::result::Result<Self, $crate::load::LibraryError<$status>> {
                // SAFETY: the caller guarantees the library, whose functions the table declares.
                let api = unsafe { library.table() };
                $(
                    if let Some(version) = $version_of_symbols(library) {
                        return Ok(Self { api: ::std::sync::Arc::new(api), version });
                    }
                )?
                // SAFETY: the functions are those of the library, which stays loaded.
                unsafe { Self::from_api(api) }
            }

            /// Returns the version of the library.
            #[must_use]
            #[inline]
            pub fn version(&self) -> $crate::load::LibraryVersion {
                self.version
            }

            /// Returns the functions, each `None` if this version lacks it.
            #[must_use]
            #[inline]
            pub fn api(&self) -> &$api {
                &self.api
            }

            /// Returns `true` if both are the same library: one is a clone of the other.
            #[must_use]
            #[inline]
            pub fn is_same(&self, other: &Self) -> bool {
                ::std::sync::Arc::ptr_eq(&self.api, &other.api)
            }
        }

        impl ::core::fmt::Debug for $library {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::write!(formatter, "{} {}", $description.name, self.version)
            }
        }

        impl $api {
            /// Converts the code that `function` returned into a result.
            ///
            /// # Errors
            ///
            /// `LibraryError::Call` unless the code reports success.
            #[inline]
            pub fn check(
                &self,
                function: &'static str,
                code: $status,
            ) -> ::core::result::Result<(), $crate::load::LibraryError<$status>> {
                if ::core::matches!(code, $($status::$success)|+) {
                    Ok(())
                } else {
                    Err($crate::load::LibraryError::from_code(function, code, code.0))
                }
            }

            /// Returns the error of a call of `function`, which the library lacks.
            #[cold]
            #[must_use]
            pub fn missing(&self, function: &'static str) -> $crate::load::LibraryError<$status> {
                let missing = $crate::load::MissingFunction::new::<Self>($description.name, function)
                    $(.with_product($product))?;
                $crate::load::LibraryError::Missing(::std::boxed::Box::new(missing))
            }
        }
    };
}
