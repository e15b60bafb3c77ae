//! The panic handler. The compiler of kernels replaces the panics of `core` by messages, so this
//! handles the others.

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the trap ends the launch with an error.
    unsafe { crate::intrinsics::trap() }
}
