//! Handles that other processes can open.

/// Declares a shareable handle type: plain bytes, with the size of the driver's type.
#[doc(hidden)]
#[macro_export]
macro_rules! shared_handle {
    ($(#[$attribute:meta])* pub struct $name:ident of $raw:ty;) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[repr(transparent)]
        pub struct $name([u8; Self::SIZE]);

        impl $name {
            /// The size of the handle in bytes.
            pub const SIZE: usize = size_of::<$raw>();

            #[doc = concat!(
                "The handle with these bytes, which came from [`", stringify!($name), "::to_bytes`], mostly in another process."
            )]
            #[must_use]
            #[inline]
            pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes of the handle.
            #[must_use]
            #[inline]
            pub const fn to_bytes(self) -> [u8; Self::SIZE] {
                self.0
            }
        }
    };
}
