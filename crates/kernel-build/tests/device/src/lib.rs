//! The smallest device crate, for tests of the compiler: kernels are declared by `macro_rules!`,
//! and instructions are `unsafe`.
#![no_std]

/// The table of a kernel with pointers and lengths.
#[repr(C)]
pub struct Table<const N: usize> {
    pub head: [u32; 12],
    pub count: u32,
    pub words: [[[u32; 3]; 3]; N],
}

/// The words of a slice.
pub const SLICE: [[u32; 3]; 3] = [[b'w' as u32, 8, 8], [b'v' as u32, 8, 8], [b'_' as u32, 0, 0]];

/// Declares a kernel with parameters that are slices of `u32`. `1` is a kernel of a block of 64
/// threads, `0` an element-wise one.
#[macro_export]
macro_rules! kernel {
    ($scope:literal $name:ident = $link:literal $table:literal ($($parameter:ident $length:ident),*) $body:block) => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[unsafe(export_name = $table)]
            #[unsafe(link_section = ".curium.kernel")]
            static TABLE: $crate::Table<{ $crate::count!($($parameter)*) }> = $crate::Table {
                head: [1, $scope, 64, 1, 1, 0, 0, 0, 0, 0, 0, 0],
                count: $crate::count!($($parameter)*) as u32,
                words: [$({ stringify!($parameter); $crate::SLICE }),*],
            };

            #[unsafe(export_name = $link)]
            unsafe extern "C" fn entry($($parameter: *mut u32, $length: usize),*) {
                // SAFETY: the launch passes a pointer and a length of live memory for each slice.
                $(let $parameter = unsafe { ::core::slice::from_raw_parts_mut($parameter, $length) };)*
                $name($($parameter),*)
            }
        };

        fn $name($($parameter: &mut [u32]),*) $body
    };
}

#[macro_export]
macro_rules! count {
    () => { 0 };
    ($first:ident $($rest:ident)*) => { 1 + $crate::count!($($rest)*) };
}

macro_rules! instructions {
    ($(fn $name:ident = $link:literal ($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        #[cfg(target_arch = "nvptx64")]
        unsafe extern "C" { $(#[link_name = $link] pub fn $name($($argument: $ty),*) $(-> $result)?;)* }
        $(
            /// # Safety
            ///
            /// Only on the device.
            #[cfg(not(target_arch = "nvptx64"))]
            pub unsafe fn $name($(_: $ty),*) $(-> $result)? { unimplemented!() }
        )*
    };
}

instructions! {
    fn tid_x = "curium.llvm.nvvm.read.ptx.sreg.tid.x"() -> u32;
    fn barrier = "curium.llvm.nvvm.barrier.cta.sync.aligned.all"(id: u32);
    fn atomic_add = "curium.atomicrmw|add|device|monotonic|u32"(place: *mut u32, value: u32) -> u32;
    fn exchange = "curium.cmpxchg|block|acq_rel|monotonic|u32"(place: *mut u32, old: u32, new: u32) -> u32;
    fn load = "curium.load|device|acquire|u32"(place: *const u32) -> u32;
    fn store = "curium.store|system|release|u32"(place: *mut u32, value: u32);
    fn fence = "curium.fence|block|acq_rel"();
    fn clock = "curium.asm|mov.u32 $0, %clock;|=r|nomem"() -> u32;
    fn split = "curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"(low: *mut u32, high: *mut u32, value: u64);
    fn malloc = "malloc"(size: u64) -> *mut u8;
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Includes what the build script wrote.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        include!(env!(concat!("CURIUM_KERNELS_FILE_", $name)));
    };
}

/// Declares lists with the images and the tables.
#[macro_export]
macro_rules! __kernels {
    (
        unsafe module: $module:ident,
        images: [$({ target: $target:literal, major: $major:literal, minor: $minor:literal, suffix: $suffix:literal, ptx: $ptx:expr },)*],
        kernels: [$({ name: $name:ident, path: [$($path:tt)*], table: [$($byte:literal),*] },)*],
    ) => {
        pub const IMAGES: &[(&str, &str)] = &[$(($target, include_str!($ptx))),*];
        pub const KERNELS: &[(&str, &[u8])] = &[$((stringify!($name), &[$($byte),*])),*];
    };
}
