//! References to user objects of the driver.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use curium_sys::{CUuserObject, CUuserObject_flags, CUuserObject_st};

use crate::base::contain::contain_host_callback;
use crate::base::handle::Handle;
use crate::base::release::{is_exiting, release};
use crate::call;
use crate::{Driver, Result};

/// A shared reference to a user object of the driver.
#[derive(Clone)]
pub(crate) struct ObjectReference(Arc<Reference>);

struct Reference {
    raw: Handle<CUuserObject_st>,
    driver: Driver,
}

impl ObjectReference {
    /// Creates a user object that owns `value`. Also returns the address of the value.
    pub(super) fn new<T: Send + 'static>(driver: &Driver, value: Box<T>) -> Result<(Self, *mut T)> {
        let address = Box::into_raw(value);
        let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
        let mut raw = std::ptr::null_mut();
        let destroy = end::<T> as unsafe extern "C" fn(*mut c_void);
        // SAFETY: `raw` is valid for writes; `destroy` is called once, when the value is no longer
        // used.
        let created = unsafe {
            call!(driver, cuUserObjectCreate(&raw mut raw, address.cast(), Some(destroy), 1, flags) creates raw)
        };
        if let Err(error) = created {
            // SAFETY: the driver did not take ownership of the value, which came from a `Box`.
            drop(unsafe { Box::from_raw(address) });
            return Err(error);
        }
        Ok((
            Self(Arc::new(Reference {
                raw: Handle::new(raw),
                driver: driver.clone(),
            })),
            address,
        ))
    }

    pub(super) fn as_raw(&self) -> CUuserObject {
        self.0.raw.raw()
    }

    pub(super) fn driver(&self) -> &Driver {
        &self.0.driver
    }
}

impl fmt::Debug for ObjectReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.raw.fmt(formatter)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference, which is released here.
        release(|| unsafe { call!(&self.driver, cuUserObjectRelease(self.raw.raw(), 1)) });
    }
}

/// Drops the value of a user object.
///
/// # Safety
///
/// `address` was obtained from a `Box<T>`, and this is the only call with it.
unsafe extern "C" fn end<T>(address: *mut c_void) {
    contain_host_callback("the destructor of a value that a graph retained", || {
        if is_exiting() {
            return;
        }
        // SAFETY: the caller is responsible for the pointer.
        drop(unsafe { Box::from_raw(address.cast::<T>()) });
    });
}
