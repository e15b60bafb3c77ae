//! Calls of any function of the driver with arguments that are known at run time only.

use std::ptr;

use curium_sys::{Api, CUresult, Function};

macro_rules! define_call {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        /// Calls `function` with arguments of the bytes in `arguments`. Returns `None` if the
        /// driver lacks the function.
        ///
        /// # Safety
        ///
        /// `arguments` has the bytes of one value for each parameter, in order. The process may end
        /// in the call if the arguments violate the contract of the function: what follows must not
        /// rely on the state of its memory.
        pub(crate) unsafe fn call(api: &Api, function: Function, arguments: &[Vec<u8>]) -> Option<CUresult> {
            let mut arguments = arguments.iter();
            match function {
                $(Function::$name => {
                    let function = api.$name?;
                    $(let $parameter: $ty = read(arguments.next());)*
                    // SAFETY: the caller accepts the consequences of the arguments, which have the
                    // declared types.
                    Some(unsafe { function($($parameter),*) })
                })*
                _ => None,
            }
        }
    };
}

curium_sys::for_each_function!(define_call);

/// Returns the value of a C type with these bytes.
fn read<T>(bytes: Option<&Vec<u8>>) -> T {
    let bytes = bytes.map_or([].as_slice(), Vec::as_slice);
    assert_eq!(
        bytes.len(),
        size_of::<T>(),
        "the argument has the size of its parameter"
    );
    // SAFETY: there are as many bytes as the value has, and every bit pattern is a value of the
    // parameters' types: integers, pointers, optional functions, and structs of them.
    unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) }
}
