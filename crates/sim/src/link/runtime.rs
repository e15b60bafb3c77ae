//! The device runtime library `libcudadevrt` as PTX: its functions for grid synchronization.
//!
//! NVIDIA's library contains machine code. A link with it uses these functions instead. Its other
//! functions stay unresolved, and the completion of the link reports them by name.

/// The magic number of archives.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// The identification of the library: the name of its only member. The names of functions are
/// compressed with their code.
const MARK: &[u8] = b"cuda_device_runtime";

/// A grid handle is the address of its workspace: the size, followed by the counter of arrivals.
/// The first block raises the count to the highest bit, which flips when all blocks have arrived.
pub(crate) const PTX: &str = "
.version 6.0
.target sm_70
.address_size 64
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %hi, %lo;
    .reg .b64 %address;
    mov.u32 %hi, %envreg1;
    mov.u32 %lo, %envreg2;
    mov.b64 %address, {%lo, %hi};
    st.param.b64 [handle], %address;
    ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %is_null, %is_other, %waits;
    .reg .b32 %x, %y, %z, %blocks, %arrival, %before, %now;
    .reg .b64 %counter;
    ld.param.b64 %counter, [handle];
    setp.eq.u64 %is_null, %counter, 0;
    @%is_null bra NONE;
    add.u64 %counter, %counter, 4;
    barrier.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %is_other, %x, 0;
    @%is_other bra ARRIVED;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %blocks, %x, %y;
    mul.lo.u32 %blocks, %blocks, %z;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.eq.u32 %is_other, %x, 0;
    sub.u32 %arrival, 0x80000001, %blocks;
    selp.b32 %arrival, %arrival, 1, %is_other;
    membar.gl;
    atom.add.u32 %before, [%counter], %arrival;
WAIT:
    ld.volatile.u32 %now, [%counter];
    xor.b32 %now, %now, %before;
    setp.ge.s32 %waits, %now, 0;
    @%waits bra WAIT;
    membar.gl;
ARRIVED:
    barrier.sync 0;
    mov.b32 %x, 0;
    st.param.b32 [result], %x;
    ret;
NONE:
    mov.b32 %x, 1;
    st.param.b32 [result], %x;
    ret;
}
";

/// Returns `true` if an archive is the library.
///
/// # Safety
///
/// `data` points to `size` bytes.
pub(crate) unsafe fn is_in(data: *const u8, size: usize) -> bool {
    // SAFETY: the caller guarantees the bytes.
    let data = unsafe { std::slice::from_raw_parts(data, size) };
    data.starts_with(ARCHIVE) && data.windows(MARK.len()).any(|window| window == MARK)
}
