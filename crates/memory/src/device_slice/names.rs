//! The names of the operations on slices in errors, by the type that the user called.

/// Declares the operations of slices, and the macro that names them for a type.
macro_rules! slice_operations {
    ($($operation:ident)*) => {
        /// The names of the operations on a type that is or dereferences to a slice, such as
        /// `DeviceBuffer::fill`.
        pub(crate) struct Names {
            $(pub(crate) $operation: &'static str,)*
        }

        /// Returns the [`Names`] of a type.
        macro_rules! names {
            ($owner:literal) => {
                $crate::device_slice::Names {
                    $($operation: concat!($owner, "::", stringify!($operation)),)*
                }
            };
        }
    };
}

slice_operations! {
    cast
    cast_mut
    chunks
    chunks_mut
    copy_from_device
    copy_from_device_with
    copy_from_slice
    copy_to_slice
    fill
    get
    pitched
    pitched_mut
    set
    slice
    slice_mut
    split_at
    split_at_mut
    to_vec
    zero
}

#[expect(
    clippy::single_component_path_imports,
    reason = "the macro is defined by another one, and has no path without this"
)]
pub(crate) use names;

/// The names of operations on views.
pub(crate) static SLICE: Names = names!("DeviceSlice");
