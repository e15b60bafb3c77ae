//! Calls through pointers and vtables, and instructions.
#![no_std]

unsafe extern "C" {
    #[link_name = "curium.atomicrmw|add|device|monotonic|u32"]
    fn add(place: *mut u32, value: u32) -> u32;
    #[link_name = "curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"]
    fn split(low: *mut u32, high: *mut u32, value: u64);
    #[link_name = "curium.asm|bar.warp.sync $0;|r|"]
    fn sync_warp(mask: u32);
}

trait Shape {
    fn area(&self) -> u32;
}
struct Square(u32);
struct Wait(u32);
impl Shape for Square {
    fn area(&self) -> u32 {
        self.0 * self.0
    }
}
impl Shape for Wait {
    fn area(&self) -> u32 {
        unsafe { sync_warp(self.0) };
        1
    }
}

#[repr(C)]
struct Table {
    head: [u32; 13],
    words: [[[u32; 3]; 3]; 1],
}

#[unsafe(export_name = "curium.meta.calls")]
#[unsafe(link_section = ".curium.kernel")]
static TABLE: Table = Table {
    head: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    words: [[[b'p' as u32, 8, 8], [b'v' as u32, 8, 8], [b'_' as u32, 0, 0]]],
};

#[unsafe(export_name = "curium.kernel.calls")]
unsafe extern "C" fn entry(y: *mut u32, n: usize) {
    let shape: &dyn Shape = if n == 3 { &Square(3) } else { &Wait(0xffff_ffff) };
    let functions: [fn(u32) -> u32; 2] = [|x| x + 1, |x| x * 2];
    let mut low = 0;
    let mut high = 0;
    unsafe {
        split(&raw mut low, &raw mut high, n as u64);
        add(y, functions[n % 2](shape.area()) + low + high);
    }
    match n {
        0 => {}
        1 => unsafe { *y = 5 },
        2 => unsafe { *y.add(1) = u32::MAX.count_ones() },
        _ => unsafe { core::ptr::copy(y, y.add(2), n) },
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
