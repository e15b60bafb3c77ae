//! The error type of the crates for NVIDIA's libraries.

/// Declares the error type of a library's crate: `Error`, `Result`, `CallError`, and a type for
/// each kind of operands that the crate refuses before it calls the library.
///
/// A refusal is created by `TYPE::refused(operation, problem)`. The status type implements
/// [`LibraryStatus`](crate::LibraryStatus), and the crate depends on `thiserror`. `Error` converts
/// from the [`LibraryError`](crate::sys::load::LibraryError) of the loaded library and its calls.
///
/// ```
/// use curium_driver::{CudaError, ErrorClass, LibraryStatus, declare_library_error};
///
/// #[derive(Clone, Copy, Debug, Eq, PartialEq)]
/// pub struct Status(pub u32);
///
/// impl LibraryStatus for Status {
///     fn class(&self) -> ErrorClass {
///         if self.is_out_of_memory() { ErrorClass::Resource } else { ErrorClass::Unknown }
///     }
///
///     fn is_out_of_memory(&self) -> bool {
///         self.0 == 3
///     }
/// }
///
/// declare_library_error! {
///     library: "cuExample",
///     status: Status,
///     /// The operands do not agree. The library was not called.
///     Shape(ShapeError),
/// }
///
/// let error = ShapeError::refused("Example::multiply", "2 columns, 3 rows");
/// assert_eq!(error.to_string(), "Example::multiply: 2 columns, 3 rows");
/// assert_eq!(error.class(), ErrorClass::Usage);
/// ```
#[macro_export]
macro_rules! declare_library_error {
    (
        library: $library:literal,
        status: $status:ty,
        $($(#[$attribute:meta])* $variant:ident($refusal:ident),)+
    ) => {
        /// A `Result` of this crate.
        pub type Result<T, E = Error> = ::std::result::Result<T, E>;

        #[doc = ::core::concat!("A function of ", $library, " that returned an error.")]
        pub type CallError = $crate::sys::load::CallError<$status>;

        /// The reason why an operation failed. `Debug` is the text of `Display`.
        #[derive(::thiserror::Error)]
        #[non_exhaustive]
        pub enum Error {
            #[doc = ::core::concat!($library, " could not be loaded.")]
            #[error(transparent)]
            Load(#[from] ::std::boxed::Box<$crate::sys::load::LoadError>),
            #[doc = ::core::concat!("A function of ", $library, " returned an error.")]
            #[error(transparent)]
            Call(#[from] ::std::boxed::Box<CallError>),
            /// The library lacks a function, usually because it is too old.
            #[error(transparent)]
            Missing(#[from] ::std::boxed::Box<$crate::sys::load::MissingFunction>),
            $(
                $(#[$attribute])*
                #[error(transparent)]
                $variant(#[from] ::std::boxed::Box<$refusal>),
            )+
            /// An operation of the driver failed.
            #[error("{0}")]
            Driver(#[from] $crate::Error),
        }

        impl ::core::convert::From<$crate::sys::load::LibraryError<$status>> for Error {
            fn from(error: $crate::sys::load::LibraryError<$status>) -> Self {
                error.into_error()
            }
        }

        // Every variant is a pointer, or an enum of pointers, so that the result of a call is
        // returned in registers.
        const _: () = ::core::assert!(
            ::core::mem::size_of::<Error>() == 2 * ::core::mem::size_of::<usize>(),
            "a variant is larger than a pointer"
        );

        impl ::core::fmt::Debug for Error {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    Self::Driver(error) => ::core::fmt::Debug::fmt(error, formatter),
                    _ => ::core::fmt::Display::fmt(self, formatter),
                }
            }
        }

        impl $crate::CudaError for Error {
            fn wrapped(&self) -> ::core::option::Option<&dyn $crate::CudaError> {
                Some(match self {
                    Self::Load(error) => &**error,
                    Self::Call(error) => &**error,
                    Self::Missing(error) => &**error,
                    $(Self::$variant(error) => &**error,)+
                    Self::Driver(error) => error,
                })
            }
        }

        $(
            $(#[$attribute])*
            #[derive(Clone, Eq, PartialEq, ::thiserror::Error)]
            #[error("{operation}: {problem}")]
            #[non_exhaustive]
            pub struct $refusal {
                /// The operation, such as `Type::function`.
                pub operation: &'static str,
                /// The problem with the operands, and after `; ` advice, if any.
                pub problem: ::std::boxed::Box<str>,
            }

            impl $refusal {
                #[cold]
                pub(crate) fn refused(
                    operation: &'static str,
                    problem: impl ::core::convert::Into<::std::boxed::Box<str>>,
                ) -> Error {
                    Error::$variant(::std::boxed::Box::new(Self { operation, problem: problem.into() }))
                }
            }

            impl ::core::fmt::Debug for $refusal {
                fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Display::fmt(self, formatter)
                }
            }

            impl $crate::CudaError for $refusal {}
        )+
    };
}
