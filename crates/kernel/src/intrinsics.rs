//! Instructions, which the compiler of kernels defines from their link names. On the host they
//! exist for type checks only.

/// Reports that code of a device was called on the host.
#[doc(hidden)]
#[cold]
pub fn only_on_the_device() -> ! {
    panic!("code of a kernel runs on CUDA devices only")
}

macro_rules! intrinsics {
    ($($name:ident = $symbol:tt  ($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        #[cfg(target_arch = "nvptx64")]
        unsafe extern "C" {
            $(#[link_name = $symbol] pub(crate) fn $name($($argument: $ty),*) $(-> $result)?;)*
        }
        $(
            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(
                dead_code,
                clippy::too_many_arguments,
                reason = "the host only checks types, and the instructions have their operands"
            )]
            pub(crate) unsafe fn $name($(_: $ty),*) $(-> $result)? {
                only_on_the_device()
            }
        )*
    };
}
pub(crate) use intrinsics;

intrinsics! {
    tid_x = "curium.llvm.nvvm.read.ptx.sreg.tid.x"() -> u32;
    tid_y = "curium.llvm.nvvm.read.ptx.sreg.tid.y"() -> u32;
    tid_z = "curium.llvm.nvvm.read.ptx.sreg.tid.z"() -> u32;
    ctaid_x = "curium.llvm.nvvm.read.ptx.sreg.ctaid.x"() -> u32;
    ctaid_y = "curium.llvm.nvvm.read.ptx.sreg.ctaid.y"() -> u32;
    ctaid_z = "curium.llvm.nvvm.read.ptx.sreg.ctaid.z"() -> u32;
    nctaid_x = "curium.llvm.nvvm.read.ptx.sreg.nctaid.x"() -> u32;
    nctaid_y = "curium.llvm.nvvm.read.ptx.sreg.nctaid.y"() -> u32;
    nctaid_z = "curium.llvm.nvvm.read.ptx.sreg.nctaid.z"() -> u32;
    laneid = "curium.llvm.nvvm.read.ptx.sreg.laneid"() -> u32;
    clock64 = "curium.asm|mov.u64 $0, %clock64;|=l|nomem"() -> u64;
    globaltimer = "curium.asm|mov.u64 $0, %globaltimer;|=l|nomem"() -> u64;
    smid = "curium.asm|mov.u32 $0, %smid;|=r|nomem"() -> u32;
    nanosleep = "curium.asm|nanosleep.u32 $0;|r|nomem"(nanoseconds: u32);

    barrier = "curium.llvm.nvvm.barrier.cta.sync.aligned.all"(barrier: u32);
    barrier_or = "curium.asm|{ .reg .pred p, q; setp.ne.u32 p, $1, 0; barrier.cta.red.or.aligned.pred q, 0, p; selp.u32 $0, 1, 0, q; }|=r,r|"(condition: u32) -> u32;
    barrier_and = "curium.asm|{ .reg .pred p, q; setp.ne.u32 p, $1, 0; barrier.cta.red.and.aligned.pred q, 0, p; selp.u32 $0, 1, 0, q; }|=r,r|"(condition: u32) -> u32;
    barrier_count = "curium.asm|{ .reg .pred p; setp.ne.u32 p, $1, 0; barrier.cta.red.popc.aligned.u32 $0, 0, p; }|=r,r|"(condition: u32) -> u32;
    warp_sync = "curium.llvm.nvvm.bar.warp.sync"(mask: u32);
    shuffle_xor = "curium.llvm.nvvm.shfl.sync.bfly.i32"(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    shuffle_up = "curium.llvm.nvvm.shfl.sync.up.i32"(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    shuffle_down = "curium.llvm.nvvm.shfl.sync.down.i32"(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    shuffle_index = "curium.llvm.nvvm.shfl.sync.idx.i32"(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    ballot = "curium.llvm.nvvm.vote.ballot.sync"(mask: u32, condition: bool) -> u32;

    // The address of the workspace of a cooperative launch, in which CUDA's cooperative groups
    // count the blocks.
    grid_workspace = "curium.asm|{ .reg .b32 hi, lo; mov.u32 hi, %envreg1; mov.u32 lo, %envreg2; mov.b64 $0, {lo, hi}; }|=l|pure"() -> u64;
    cluster_barrier = "curium.asm|barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;||"();
    cluster_ctarank = "curium.asm|mov.u32 $0, %cluster_ctarank;|=r|pure"() -> u32;
    clusterid_x = "curium.asm|mov.u32 $0, %clusterid.x;|=r|pure"() -> u32;
    clusterid_y = "curium.asm|mov.u32 $0, %clusterid.y;|=r|pure"() -> u32;
    clusterid_z = "curium.asm|mov.u32 $0, %clusterid.z;|=r|pure"() -> u32;
    map_shared = "curium.asm|mapa.u64 $0, $1, $2;|=l,l,r|pure"(address: u64, block: u32) -> u64;

    shared_address = "curium.asm|{ .reg .b64 t; cvta.to.shared.u64 t, $1; cvt.u32.u64 $0, t; }|=r,l|pure"(address: u64) -> u32;
    mbarrier_init = "curium.asm|mbarrier.init.shared::cta.b64 [$0], $1;|r,r|"(barrier: u32, count: u32);
    mbarrier_arrive = "curium.asm|mbarrier.arrive.shared::cta.b64 _, [$0];|r|"(barrier: u32);
    mbarrier_arrive_expect = "curium.asm|mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;|r,r|"(barrier: u32, bytes: u32);
    // Waits for the end of the phase with this parity.
    mbarrier_wait = "curium.asm|{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @done bra DONE; bra WAIT; DONE: }|r,r|"(barrier: u32, parity: u32);
    fence_mbarrier_init = "curium.asm|fence.mbarrier_init.release.cluster;||"();
    fence_proxy_async = "curium.asm|fence.proxy.async.shared::cta;||"();
    wgmma_fence = "curium.asm|wgmma.fence.sync.aligned;||"();
    wgmma_commit = "curium.asm|wgmma.commit_group.sync.aligned;||"();
    wgmma_wait_1 = "curium.asm|wgmma.wait_group.sync.aligned 1;||"();

    dynamic_shared = "curium.shared.dynamic"() -> *mut u8;
    dynamic_shared_size = "curium.asm|mov.u32 $0, %dynamic_smem_size;|=r|pure"() -> u32;

    sqrt_f32 = "curium.llvm.sqrt.f32"(x: f32) -> f32;
    sqrt_f64 = "curium.llvm.sqrt.f64"(x: f64) -> f64;
    fma_f32 = "curium.llvm.fma.f32"(a: f32, b: f32, c: f32) -> f32;
    fma_f64 = "curium.llvm.fma.f64"(a: f64, b: f64, c: f64) -> f64;
    floor_f32 = "curium.llvm.floor.f32"(x: f32) -> f32;
    floor_f64 = "curium.llvm.floor.f64"(x: f64) -> f64;
    ceil_f32 = "curium.llvm.ceil.f32"(x: f32) -> f32;
    ceil_f64 = "curium.llvm.ceil.f64"(x: f64) -> f64;
    trunc_f32 = "curium.llvm.trunc.f32"(x: f32) -> f32;
    trunc_f64 = "curium.llvm.trunc.f64"(x: f64) -> f64;
    round_f32 = "curium.llvm.round.f32"(x: f32) -> f32;
    round_f64 = "curium.llvm.round.f64"(x: f64) -> f64;
    round_ties_even_f32 = "curium.llvm.roundeven.f32"(x: f32) -> f32;
    round_ties_even_f64 = "curium.llvm.roundeven.f64"(x: f64) -> f64;
    rsqrt_approx_f32 = "curium.llvm.nvvm.rsqrt.approx.f"(x: f32) -> f32;
    exp2_approx_f32 = "curium.llvm.nvvm.ex2.approx.f"(x: f32) -> f32;
    exp2_approx_ftz_f32 = "curium.asm|ex2.approx.ftz.f32 $0, $1;|=f,f|pure"(x: f32) -> f32;
    fma_saturated_f32 = "curium.asm|fma.rn.sat.f32 $0, $1, $2, $3;|=f,f,f,f|pure"(a: f32, b: f32, c: f32) -> f32;
    fma_252_down_f32 = "curium.asm|fma.rm.f32 $0, $1, 0f437C0000, $2;|=f,f,f|pure"(a: f32, c: f32) -> f32;
    log2_approx_f32 = "curium.llvm.nvvm.lg2.approx.f"(x: f32) -> f32;
    sin_approx_f32 = "curium.llvm.nvvm.sin.approx.f"(x: f32) -> f32;
    cos_approx_f32 = "curium.llvm.nvvm.cos.approx.f"(x: f32) -> f32;
    rcp_approx_f32 = "curium.asm|rcp.approx.ftz.f32 $0, $1;|=f,f|pure"(x: f32) -> f32;
    tanh_approx_f32 = "curium.asm|tanh.approx.f32 $0, $1;|=f,f|pure"(x: f32) -> f32;
}

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    #[link_name = "curium.llvm.trap"]
    pub(crate) fn trap() -> !;
    pub(crate) fn vprintf(format: *const u8, arguments: *const u8) -> i32;
}
