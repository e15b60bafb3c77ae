//! User objects, which graphs keep alive.

use curium_sys::CUuserObject_st;

use crate::handle::{Kind, Object};
use crate::host_function::HostFunction;

/// An object of the caller that is destroyed with its last reference.
pub(crate) struct UserObject {
    pub(crate) destroy: HostFunction,
    pub(crate) references: u64,
}

impl Object for UserObject {
    type Raw = CUuserObject_st;
    const KIND: Kind = Kind::UserObject;
}
