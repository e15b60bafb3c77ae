//! The NVTX injection protocol.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use curium_driver::emit_event;
use curium_driver::sys::has_raised_privileges;
use libloading::Library;

/// A function of a tool that takes text.
pub(super) type TextFunction = unsafe extern "C" fn(*const c_char) -> c_int;
/// A function of a tool without parameters.
pub(super) type PlainFunction = unsafe extern "C" fn() -> c_int;

/// The functions that are called here, by index in the core module of the protocol.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Slot {
    Mark = 2,
    RangePush = 9,
    RangePop = 11,
}

/// The number of functions in the core module, and its identifier.
const CORE_FUNCTIONS: usize = 16;
const CORE: c_uint = 1;

/// The identifiers of the tables that a tool requests.
const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
/// The version of the protocol.
const VERSION: u32 = 3;

/// The slots, which a tool fills in.
static SLOTS: [AtomicPtr<c_void>; CORE_FUNCTIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; CORE_FUNCTIONS];

/// The table of slots passed to a tool: addresses of slots, terminated by null.
struct SlotAddresses([*const AtomicPtr<c_void>; CORE_FUNCTIONS + 1]);

// SAFETY: the pointers point to a static array of atomics.
unsafe impl Sync for SlotAddresses {}

static SLOT_ADDRESSES: SlotAddresses = SlotAddresses({
    let mut addresses = [ptr::null(); CORE_FUNCTIONS + 1];
    let mut index = 0;
    while index < CORE_FUNCTIONS {
        addresses[index] = &raw const SLOTS[index];
        index += 1;
    }
    addresses
});

#[repr(C)]
struct Callbacks {
    size: usize,
    get_module:
        unsafe extern "C" fn(c_uint, *mut *const *const AtomicPtr<c_void>, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: extern "C" fn(u32),
}

static TABLE: Callbacks = Callbacks {
    size: size_of::<Callbacks>(),
    get_module,
};
static INFO: VersionInfo = VersionInfo {
    size: size_of::<VersionInfo>(),
    version: VERSION,
    reserved: 0,
    set_tool_version,
};

/// The name of the initialization function of a tool's library.
const BEGIN: &[u8] = b"InitializeInjectionNvtx2\0";
type Begin = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

/// Returns the tool's function in a slot for functions that take text.
pub(super) fn text_function(slot: Slot) -> Option<TextFunction> {
    debug_assert!(
        matches!(slot, Slot::Mark | Slot::RangePush),
        "these slots take text"
    );
    let address = address(slot);
    // SAFETY: by the protocol, the tool stores a function of this type, or null, in these slots.
    unsafe { std::mem::transmute::<*mut c_void, Option<TextFunction>>(address) }
}

/// Returns the tool's function in a slot for functions without parameters.
pub(super) fn plain_function(slot: Slot) -> Option<PlainFunction> {
    debug_assert!(matches!(slot, Slot::RangePop), "this slot takes nothing");
    let address = address(slot);
    // SAFETY: by the protocol, the tool stores a function of this type, or null, in this slot.
    unsafe { std::mem::transmute::<*mut c_void, Option<PlainFunction>>(address) }
}

fn address(slot: Slot) -> *mut c_void {
    static LOADED: Once = Once::new();
    LOADED.call_once(load);
    SLOTS[slot as usize].load(Ordering::Acquire)
}

/// Loads the tool's library, if any, for the lifetime of the process. A tool that fails to load is
/// ignored. A process with elevated privileges loads none, since its user controls the environment.
fn load() {
    let path = std::env::var_os("NVTX_INJECTION64_PATH")
        .filter(|path| !path.is_empty() && !has_raised_privileges());
    let Some(path) = path else { return };
    // SAFETY: the user that started the process chose to load this library into it.
    let Ok(library) = (unsafe { Library::new(path) }) else {
        emit_event!(
            WARN,
            "the library in NVTX_INJECTION64_PATH cannot be loaded"
        );
        return;
    };
    // SAFETY: by the protocol, a function of this name has this type.
    let begin = unsafe { library.get::<Begin>(BEGIN) }.map(|begin| *begin);
    std::mem::forget(library);
    if let Ok(begin) = begin {
        // SAFETY: the tool's library stays loaded, and `export_table` conforms to the protocol.
        unsafe { begin(export_table) };
    }
}

/// Returns the table with this identifier to a tool.
extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        CALLBACKS => (&raw const TABLE).cast(),
        VERSION_INFO => (&raw const INFO).cast(),
        _ => ptr::null(),
    }
}

/// Returns the addresses of a module's slots to a tool.
///
/// # Safety
///
/// `slots` and `count` are null or valid for writes.
unsafe extern "C" fn get_module(
    module: c_uint,
    slots: *mut *const *const AtomicPtr<c_void>,
    count: *mut c_uint,
) -> c_int {
    if module != CORE {
        return 0;
    }
    if !slots.is_null() {
        // SAFETY: the pointer is not null, and the caller is responsible for it.
        unsafe { slots.write(SLOT_ADDRESSES.0.as_ptr()) };
    }
    if !count.is_null() {
        // SAFETY: the pointer is not null, and the caller is responsible for it.
        unsafe { count.write(CORE_FUNCTIONS as c_uint) };
    }
    1
}

/// Receives the protocol version of a tool; all versions have the core module.
extern "C" fn set_tool_version(_: u32) {}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::sync::Mutex;

    use super::*;
    use crate::{NvtxRange, nvtx_mark};

    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Acts like a tool that is being loaded: requests the slots and fills in its functions.
    fn inject() {
        unsafe extern "C" fn push(name: *const c_char) -> c_int {
            // SAFETY: the wrapper under test passes NUL-terminated text.
            let name = unsafe { CStr::from_ptr(name) };
            SEEN.lock()
                .expect("no thread panics")
                .push(format!("push {}", name.to_string_lossy()));
            0
        }
        unsafe extern "C" fn pop() -> c_int {
            SEEN.lock()
                .expect("no thread panics")
                .push("pop".to_owned());
            0
        }
        assert!(export_table(99).is_null());
        let callbacks = export_table(CALLBACKS).cast::<Callbacks>();
        // SAFETY: the table is a static of this type.
        let callbacks = unsafe { &*callbacks };
        let mut slots = ptr::null();
        let mut count = 0;
        assert_eq!(
            // SAFETY: both are valid for writes.
            unsafe { (callbacks.get_module)(CORE, &raw mut slots, &raw mut count) },
            1
        );
        assert_eq!(count, 16);
        assert_eq!(
            // SAFETY: both output pointers may be null.
            unsafe { (callbacks.get_module)(7, ptr::null_mut(), ptr::null_mut()) },
            0
        );
        // SAFETY: the table has the reported number of entries, and one more.
        let slots = unsafe { std::slice::from_raw_parts(slots, count as usize + 1) };
        assert!(slots[16].is_null());
        for (slot, function) in [
            (Slot::RangePush, push as *mut c_void),
            (Slot::RangePop, pop as *mut c_void),
        ] {
            // SAFETY: the entries before the last point to slots.
            unsafe { &*slots[slot as usize] }.store(function, Ordering::Release);
        }
    }

    #[test]
    fn tool_receives_ranges_and_may_leave_slots_empty() {
        drop(NvtxRange::new("no tool is loaded"));
        inject();
        let outer = NvtxRange::new("outer");
        let inner = NvtxRange::new("inner\0cut off");
        nvtx_mark("the tool has no function for marks");
        drop(inner);
        drop(outer);
        assert_eq!(
            *SEEN.lock().expect("no thread panics"),
            ["push outer", "push inner", "pop", "pop"]
        );
    }
}
