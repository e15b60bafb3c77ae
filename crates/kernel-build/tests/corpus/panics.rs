//! Panics with and without a literal message.
#![no_std]

#[repr(C)]
struct Table {
    head: [u32; 13],
    words: [[[u32; 3]; 3]; 1],
}

#[unsafe(export_name = "curium.meta.panics")]
#[unsafe(link_section = ".curium.kernel")]
static TABLE: Table = Table {
    head: [1, 0, 64, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1],
    words: [[[b'p' as u32, 8, 8], [b'v' as u32, 8, 8], [b'_' as u32, 0, 0]]],
};

#[unsafe(export_name = "curium.kernel.panics")]
unsafe extern "C" fn entry(y: *mut u32, n: usize) {
    let y = unsafe { core::slice::from_raw_parts_mut(y, n) };
    assert!(n != 7, "seven is wrong");
    assert_ne!(y[1], 3);
    y[0] = y[2].checked_add(1).expect("too large") / y[3];
    if y[4] == 5 {
        panic!("the value is {}", y[4]);
    }
    let text = if n == 1 { "one" } else { "two or more" };
    Some(n).filter(|n| *n > 2).expect(text);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
