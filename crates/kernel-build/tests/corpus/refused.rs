//! What kernels must not do: atomics of `core`, statics that can change, foreign functions.
#![no_std]
use core::sync::atomic::{AtomicU32, Ordering, fence};

static COUNTER: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    fn foreign() -> u32;
}

#[repr(C)]
struct Table {
    head: [u32; 13],
    words: [[[u32; 3]; 3]; 1],
}

#[unsafe(export_name = "curium.meta.refused")]
#[unsafe(link_section = ".curium.kernel")]
static TABLE: Table = Table {
    head: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    words: [[[b'p' as u32, 8, 8], [b'_' as u32, 0, 0], [b'_' as u32, 0, 0]]],
};

#[inline(never)]
fn exchange(n: &AtomicU32) -> u32 {
    n.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed).unwrap_or(3)
}

#[inline(never)]
fn load(n: &AtomicU32) -> u32 {
    fence(Ordering::SeqCst);
    n.load(Ordering::Acquire)
}

#[unsafe(export_name = "curium.kernel.refused")]
unsafe extern "C" fn entry(y: *mut u32) {
    unsafe { *y = exchange(&COUNTER) + load(&COUNTER) + foreign() };
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
