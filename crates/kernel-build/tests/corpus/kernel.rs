//! A kernel with its table, and static shared memory.
#![no_std]
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

unsafe extern "C" {
    #[link_name = "curium.llvm.nvvm.read.ptx.sreg.tid.x"]
    fn tid_x() -> u32;
    #[link_name = "curium.llvm.nvvm.barrier.cta.sync.aligned.all"]
    fn barrier(id: u32);
}

#[repr(transparent)]
struct Shared(UnsafeCell<MaybeUninit<[u32; 64]>>);
unsafe impl Sync for Shared {}

#[repr(C)]
struct Table {
    head: [u32; 13],
    words: [[[u32; 3]; 3]; 2],
}

#[unsafe(export_name = "curium.meta.reverse")]
#[unsafe(link_section = ".curium.kernel")]
static TABLE: Table = Table {
    head: [1, 1, 64, 1, 1, 0, 0, 0, 0, 2, 17, 18, 2],
    words: [
        [[b'r' as u32, 8, 8], [b'v' as u32, 8, 8], [b'_' as u32, 0, 0]],
        [[b'w' as u32, 8, 8], [b'_' as u32, 0, 0], [b'_' as u32, 0, 0]],
    ],
};

#[unsafe(export_name = "curium.kernel.reverse")]
unsafe extern "C" fn entry(x: *const u32, n: usize, y: *mut u32) {
    #[unsafe(link_section = ".curium.shared")]
    static TILE: Shared = Shared(UnsafeCell::new(MaybeUninit::uninit()));
    let tile = TILE.0.get().cast::<u32>();
    unsafe {
        let index = tid_x() as usize;
        *tile.add(index) = if index < n { *x.add(index) } else { 0 };
        barrier(0);
        *y.add(index) = *tile.add(63 - index);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
