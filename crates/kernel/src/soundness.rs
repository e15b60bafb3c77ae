//! The rules that make safe kernels sound, with their proofs.
//!
//! A kernel without `unsafe` code and without [`ptx!`](crate::ptx), launched from safe code, has no
//! data race, no divergent barrier, no aliasing of `&mut`, and no access outside of the memory that
//! it was given. This module states why, as numbered rules. The names in parentheses are tests:
//! programs in `tests/compile-fail` that must not compile, and tests of the package
//! `curium-test-kernels`.
//!
//! # Definitions
//!
//! *Code of a block* is the body of a kernel with a [`Block`](crate::Block), outside of the
//! closures of `threads` and `warps`. *Code of threads* is a closure that receives a
//! [`Thread`](crate::Thread), or the body of an element-wise kernel. *Code of a warp* and *of
//! lanes* are defined in the same way by [`Warp`](crate::Warp) and [`Lane`](crate::Lane). A value
//! is *uniform* if all threads of the block (or lanes of the warp) have the same.
//!
//! # Uniformity
//!
//! 1. **Code of a block computes with uniform values only.** Its values come from: parameters,
//!    which are the same for all threads of a launch; `blockIdx` and `gridDim`; memory that nobody
//!    writes at that time (rules 6 and 9); and results of this crate that one thread computes and
//!    all others receive (rule 2). By induction every value and every branch is uniform, so all
//!    threads of a block reach the same barriers in the same order. (`early_returns`,
//!    `branch_on_a_sum`)
//! 2. **Every value that code of a block or a warp receives from threads is broadcast.**
//!    `Warp::reduce` returns what one lane shuffled: a symmetric combination is not enough, because
//!    lanes combine in different orders. `reduce`, `sum` and `exclusive_scan` of a block share one
//!    value of each warp through memory; then every warp combines these same values, and broadcasts
//!    the result of its lane 0. The results of the warps are equal: lane 0 of each executes the
//!    same instructions on the same values, because a barrier stands before and a shuffle behind,
//!    both convergent, so that no pass gives one warp another copy of the code in between. Votes
//!    return one result by definition of the instruction. (`reductions_of_three_warps`,
//!    `branch_on_a_sum`)
//! 3. **What differs between threads leaves their code only in an opaque value.** The closures are
//!    `Fn + Sync`, so they cannot write to what they capture, unless it is `Sync`; and everything
//!    `Sync` that can change needs a thread to read it (rule 4). Their results are
//!    [`Registers`](crate::Registers), [`Lanes`](crate::Lanes) or [`PerWarp`](crate::PerWarp),
//!    whose fields are private, and which implement nothing but `Copy`: `Clone` requires it too, so
//!    that no `clone` of a user runs in code of a block. A destructor does, where the value of a
//!    thread is dropped, and is code of a thread: it reaches what the closure could return, which
//!    contains no token, because the closure receives tokens with a lifetime that it does not know,
//!    and can capture none. Parts of operands are created by `unsafe` methods of the operand traits
//!    only. (`registers_cloned`, `drops_in_code_of_the_block`) (`rank_leaks_by_a_variable`,
//!    `rank_leaks_by_a_cell`, `registers_as_a_condition`, `registers_opened`,
//!    `operand_part_in_code_of_the_block`)
//! 4. **Operations whose result differs between threads require a `&Thread` or a `&Lane`.** Safe
//!    code creates neither; both are neither `Send` nor `Sync`, and closures receive them by
//!    reference, so they do not leave their closure: not in its result, not in a static, not in
//!    another closure. `mem::forget`, `ManuallyDrop` and `mem::replace` need a value and yield no
//!    second one; `transmute` is `unsafe`. (`thread_escapes`, `thread_created`,
//!    `atomic_in_code_of_the_block`)
//! 5. **`Block`, `Warp`, `Shared` and the outputs are not `Sync`**, so code of threads cannot
//!    capture them: it has no barriers and no shuffles, and cannot open shared memory. Nested
//!    functions and generic functions receive them as arguments, under the same rules.
//!    (`barrier_in_code_of_a_thread`, `shuffle_in_code_of_a_lane`)
//!
//! # Memory
//!
//! 6. **Memory of a block is either owned in parts or shared.**
//!    [`Synced::synced`](crate::Synced::synced) borrows it mutably while the shared view exists,
//!    between two barriers. The view has a lifetime that its code does not know
//!    (`for<'v> FnOnce(View<'v>) -> R`), so neither the result nor a captured variable keeps it
//!    beyond the second barrier; a borrow of the memory alone would not do, because it ends before
//!    other threads have read. Writes of the owners come before the first barrier or after the
//!    second; reads through the view are in between. (`shared_read_without_a_barrier`,
//!    `view_escapes`, `view_returned`, `view_in_a_variable`, `views_returned`,
//!    `shared_filled_while_read`; every kernel runs under race checks)
//! 7. **Each type of memory has one partition.** Element `i` belongs to the thread `i % THREADS` of
//!    the block, or of the grid for [`PerThread`](crate::PerThread). Two accesses by owners without
//!    a barrier in between therefore never concern the same element, whatever methods they use.
//!    Elements of a [`PerBlockChunk`](crate::PerBlockChunk) and of rows at distances of the grid
//!    belong to a block, and in it to the thread `i % THREADS`; those of a
//!    [`PerWarpChunk`](crate::PerWarpChunk) to a warp, and in it to the lane `i % 32`; those of a
//!    [`PerWarpPlaneTile`](crate::PerWarpPlaneTile) are written by one method only. Other
//!    partitions ([`Pairs`](crate::Pairs), scratch memory) have barriers around them and borrow the
//!    memory mutably.
//! 8. **Index arithmetic does not wrap.** Indices are 64 bits wide. A thread of a grid is below 2⁴²
//!    (2³¹ blocks of 1024 threads), and the constants of types are limited to 2²⁰ by assertions at
//!    compile time, so products stay below 2⁶². Rows and columns are 32 bits wide, and the launch
//!    checks that their product is the length of the buffer, and that the tiles of a grid have at
//!    most 2³¹ rows and columns. Lengths are 64 bits wide. (`grid_of_too_many_rows`, and examples
//!    below)
//! 9. **Inputs are not written.** The launcher borrows the buffer of a `&[T]` or a
//!    [`Matrix`](crate::Matrix), and buffers of outputs mutably: two arguments of one launch cannot
//!    overlap unless both are inputs, and hazard tracking orders the launch with all other work on
//!    the buffers. (`one_buffer_for_input_and_output`, `one_buffer_for_two_outputs`)
//! 10. **Memory contains valid values.** Elements are [`AnyBitPattern`](crate::AnyBitPattern): no
//!     `bool`, no enum, no reference, no pointer, no interior mutability, `Copy` and therefore
//!     without `Drop`. Padding is not read. Uninitialized shared memory has unspecified values, but
//!     is not undefined for the compiler. Arguments by value are [`ByValue`](crate::ByValue):
//!     without padding, so the host initialized every byte. (`bool_in_shared_memory`,
//!     `reference_in_shared_memory`, `cell_in_an_output`, `bool_slice`)
//! 11. **Nothing outlives the launch.** A slice borrows a value of the entry point. Outputs and
//!     tokens have no lifetime, but no memory that outlives the launch can hold them: statics must
//!     be `Sync`, and elements of buffers are `AnyBitPattern`. Memory with a shorter lifetime, such
//!     as a row of an output, is a type of its own, so that `mem::swap` cannot put it into a value
//!     that lives longer. (`static_slice`, `row_swapped_with_dynamic_shared`)
//! 12. **Atomic memory is accessed atomically for all threads that can reach it.** The scope is a
//!     part of the type. A slice of a buffer needs a scope that includes the grid;
//!     [`BlockScope`](crate::BlockScope) is for shared memory. Non-atomic access needs `&mut`.
//!     (`block_scope_in_a_buffer`)
//!
//! 42. **Fragments are in shared memory.** `ldmatrix` loads from addresses that lanes compute.
//!     [`Fragments`](crate::Fragments) exist between the barriers of
//!     [`Synced::synced`](crate::Synced::synced) only, and are created from a `Shared<Tile<…>>`,
//!     which only static shared memory is: not from a copy of a tile, and not from a row of a
//!     buffer. The position is the same in all lanes, and is checked against the tile.
//!     (`fragments_without_a_barrier`, `fragments_returned`, `fragments_of_a_copy`)
//! 43. **Barriers without memory synchronize atomics only.** [`Block::sync`](crate::Block::sync)
//!     and [`Warp::sync`](crate::Warp::sync) belong to code of a block and of a warp (rules 1 and
//!     5). They end no borrow, so memory that is not atomic changes its owner only by rule 6.
//!     (`block_sync_in_code_of_a_thread`, `warp_sync_in_code_of_a_lane`)
//!
//! # The boundary to the host
//!
//! 13. **The type decides, not its spelling.** Sizes, grids and kinds are constants of traits that
//!     only this crate implements. The macro reads the spelling only to choose the trait that a
//!     type must implement, and no type implements two of them. (`alias_of_shared`,
//!     `names_do_not_collide`)
//! 14. **Host and device agree.** Both evaluate the same table: the kind, size, alignment and
//!     constants of each parameter, the block, and a hash of the function's tokens. Of a value that
//!     is passed, the table also has the types of the fields in order, because types of one size
//!     can have different values (`bool` and `u8`); elements of buffers are any bytes (rule 10).
//!     The host compares the tables at compile time, so `cfg(target_arch)`, other versions of a
//!     dependency, or a stale PTX are errors. (`table_differs`, `fields_of_values_are_compared`)
//! 15. **A launcher launches its own code.** The struct of a kernel holds a `Function<Self>`, which
//!     only `unsafe` code creates; the macro that `include_kernels!` expands to has the token
//!     `unsafe` of the build script. Macros call those of `core` by paths of this crate, because a
//!     user's macro of the same name would be called instead (`stringify!` names the function), and
//!     pass no `unsafe` to a macro whose path a user writes. The build script refuses another crate
//!     that is called `curium_kernel`. (`function_of_another_kernel`, `kernels_without_unsafe`,
//!     `launcher_of_another_kernel`, `crate_of_by_value`,
//!     `other_crates_are_not_called_like_the_device_crate`)
//! 16. **Grids divide outputs.** `launch` checks that a grid is along x, or along x and y for
//!     [`PerBlockTile`](crate::PerBlockTile); the dimensions of the block are those of the type,
//!     and `.reqntid` of the kernel. An empty grid enqueues nothing. (`wrong_grids_are_errors`,
//!     `empty_launch`)
//! 17. **Launch attributes do not change the order of work.** Those that let a kernel overlap with
//!     its neighbors are errors. (`attributes`)
//!
//! # The compiler
//!
//! `curium-kernel-build` guarantees the rest; its documentation has the proofs.
//!
//! 18. Barriers, shuffles and votes are convergent at every call, direct or not, so that no pass
//!     duplicates them or moves them into a branch. (`indirect_barriers`)
//! 19. Floating-point expressions are not contracted by default: `a * b + c` rounds twice, as on
//!     the host. Contraction happens after code was duplicated, and could give one uniform
//!     expression two values; allowing it is `unsafe`. For the same reason there are no fast-math
//!     flags, and remainders are exact, which those of LLVM are for constants only. Kernels call
//!     [`Float::mul_add`](crate::Float::mul_add). (`arithmetic_is_exact`, `remainders`)
//! 20. Code of a kernel contains no atomics of `core`, no statics that can change, and no special
//!     registers except through this crate. A kernel of blocks allocates no memory: addresses and
//!     failures would differ between threads.
//! 21. Memory that threads of a block exchange is not `noalias`; inputs, and outputs whose elements
//!     one thread accesses, are.
//!
//! # Grids and clusters
//!
//! 22. **Code of a grid computes with values that are the same in all blocks.** It is rule 1, one
//!     level up: its values come from parameters, `gridDim`, memory that nobody writes at that
//!     time, and views between two grid barriers. What differs between blocks stays in closures,
//!     which are `Fn + Sync`, and leaves them only as [`BlockValues`](crate::BlockValues), which
//!     implement nothing but `Copy`. A [`Grid`](crate::Grid) is not `Sync`, so code of blocks has
//!     no grid barrier. By induction all blocks reach the same grid barriers in the same order: the
//!     k-th barrier of each block is the same place of the code, and the phases of the counter are
//!     its numbers. The same holds for a [`Cluster`](crate::Cluster) and the blocks of one cluster.
//!     (`grid_barrier_in_code_of_a_block`, `block_index_in_code_of_the_grid`,
//!     `block_values_as_a_condition`, `cluster_barrier_in_code_of_a_block`,
//!     `blocks_decide_together`)
//! 23. **A handle of memory has one meaning in all blocks.** Code of blocks receives copies of
//!     handles, by references whose lifetime it does not know. So an exchange of two handles in
//!     some blocks only ends with the code, and is unknown to the code of the grid.
//!     (`handle_kept_by_code_of_a_block`, `handles_exchanged_in_one_block`)
//! 24. **Memory of a grid is either owned in parts or shared**, as that of a block (rule 6):
//!     [`GridShared`](crate::GridShared) and [`GridPerBlock`](crate::GridPerBlock) are borrowed
//!     mutably between two grid barriers. A grid barrier is a block barrier, a fence of the device,
//!     an atomic counter and the same in reverse, so writes before it happen before reads after it.
//!     Each buffer has one partition (rule 7), and is not `noalias` (rule 21).
//!     (`grid_view_returned`, `grid_memory_filled_while_read`)
//! 25. **All blocks of a grid are resident.** The launcher launches a kernel with a
//!     [`Grid`](crate::Grid) cooperatively, whatever attributes are passed, and the driver refuses
//!     grids that are too large. The counter is in the workspace that the driver reserves for
//!     cooperative launches, initially zero, and is zero but for its highest bit after each
//!     barrier, so a launch needs no preparation. (`grid_that_is_not_resident_is_an_error`)
//! 26. **A block does not exit while others access its memory.** References to the memory of other
//!     blocks exist only within [`Shared::cluster_synced`](crate::Shared#method.cluster_synced),
//!     which ends with a cluster barrier, and begins with one, after which all blocks of the
//!     cluster run. `mapa` returns the same address for a variable of a block in all blocks of the
//!     cluster. Atomics need a scope that includes the cluster. (`cluster_view_returned`,
//!     `block_scope_in_a_cluster`)
//!
//! # Asynchronous copies and products
//!
//! 27. **A barrier in shared memory is used by all threads in the same phase.**
//!     [`Barrier::arrive`](crate::Barrier::arrive) consumes the barrier, and returns an
//!     [`Arrived`](crate::Arrived) that owns it until it has waited. `mem::forget` of either loses
//!     the barrier, and nobody can arrive or wait again. Memory that is read after the wait is
//!     borrowed from the arrival on. (`arrived_twice`, `read_before_the_wait`,
//!     `barrier_initialized_twice`)
//! 28. **Nobody accesses the target of a copy in flight.** The tiles of
//!     [`Barrier::load`](crate::Barrier::load) are borrowed until the method has waited. A
//!     [`TmaRing`](crate::TmaRing) counts the phases of its stages: a stage is copied to after all
//!     warps have released it, which is after the code with its view has returned, and its view
//!     exists after the copies are complete. The methods start as many copies as they wait for, so
//!     none is in flight when they return, and none when the block exits. Code gets views with a
//!     lifetime that it does not know. (`tile_used_during_a_copy`, `ring_view_returned`,
//!     `two_rings`)
//! 29. **Generic and asynchronous accesses are ordered.** Writes of threads to a tile come before a
//!     copy from or to it by a proxy fence in each thread and a block barrier. Copies come before
//!     reads by the wait of each reader at the mbarrier. Reads of a stage come before the next copy
//!     to it by the arrivals at its empty barrier.
//! 30. **A tensor map describes the memory and the tile.** The launcher creates it from the
//!     borrowed buffer: the type of elements, the box and the swizzle are constants of the tile,
//!     and TMA checks the bounds. Coordinates saturate at 32 bits, beyond the largest size, so that
//!     none wraps into the matrix. A block stores to its own box only.
//!     (`tensor_map_of_another_tile`, `wrong_tensors_are_errors`)
//! 31. **Operands and accumulators of a product are not used before the wait.** Only
//!     [`Products`](crate::Products) start products. Whoever creates one owns the accumulators
//!     until it has waited, and its operands are views that outlive `'s`: they are not overwritten
//!     before [`WarpGroup::multiply`](crate::WarpGroup::multiply) has waited, or
//!     [`TmaRing::multiply`](crate::TmaRing::multiply) has released the stage. The wait returns the
//!     accumulators as results of the instruction, so no pass moves an access before it. Operands
//!     come from copies only, so no proxy fence is needed. (`accumulators_opened`, `operand_kept`,
//!     `products_kept`)
//! 32. **A warpgroup executes its products together.** [`WarpGroup`](crate::WarpGroup) is a
//!     [`Warp`](crate::Warp) of 128 threads: its code has the same values in all of them, and is
//!     `Fn + Sync` (rule 3). (`product_in_code_of_a_thread`)
//!
//! # Tiles, pipelines, textures
//!
//! 33. **Halo tiles are divided as other tiles are**: by the number of the cell, modulo the number
//!     of threads (rule 7). An index is checked against the bounds of the tile with its border; the
//!     compiler removes comparisons that it can decide. (`halo_read_without_a_barrier`,
//!     `stencils_with_all_borders`)
//! 34. **A stage of a pipeline has one writer for each element, or readers.**
//!     [`Block::pipeline`](crate::Block::pipeline) borrows the memory. In each step, every thread
//!     waits for its own copies of that stage (`cp.async.wait_group`), because each step ends one
//!     group of copies; then a barrier makes them visible to all. The stage of the step before is
//!     loaded again after that barrier, when all threads have left it. Loading consumes the
//!     [`Slot`](crate::Slot), so a stage is divided between threads in one way. Slots and views
//!     have a lifetime that the closures do not know, so neither leaves them. A barrier stands
//!     before the first copy, because owners of elements may have written them in another
//!     partition, and one after the last step. Copies of other code in between only make a wait
//!     longer. (`slot_copied_twice`, `slot_escapes`, `pipeline_view_escapes`,
//!     `pipeline_memory_used_meanwhile`, `pipelines_of_matrices`)
//! 35. **Asynchronous copies read global memory that nobody writes.** A [`Matrix`](crate::Matrix)
//!     is a parameter of the kernel (rule 9). The address of a slice is tested, and other memory is
//!     copied synchronously. A copy of 16 bytes is made only if both addresses are aligned, and if
//!     the rows of the source consist of whole groups, so that it reads no element beyond them.
//!     (`pipelines_of_slices`)
//! 36. **A cache policy is a hint.** Loads and stores with a policy are weak accesses of a borrowed
//!     element. They are executed for addresses in global memory only: in local memory, a streaming
//!     load is a last use, which discards what the thread has written. (`cache_policies`)
//! 37. **A texture is an input.** The launcher checks its dimensions and that its elements are
//!     returned as the type of the parameter, and hazard tracking records a read. Arrays are shared
//!     (`Arc`), so that a texture and a surface of one array can be passed to a launch: it is
//!     refused if one of them is written. (`texture_of_another_type`, `surfaces`)
//! 38. **A cell of a surface has one owner**: the thread with its coordinates, in a grid along x
//!     and y (rule 16) of blocks without threads along z. The methods consume the surface, so that
//!     no thread reads what it wrote through a cache. Stores beyond the array have no effect
//!     (`.zero`; `.clamp` would write a cell of another thread), and coordinates are below 2²⁰, so
//!     that their positions in bytes do not wrap. (`surface_written_twice`,
//!     `surface_in_code_of_a_thread`, `surfaces`)
//! 39. **A function of numbers is a function**: instructions without effects depend on their
//!     operands only, so equal operands give equal results in all threads. Those that depend on
//!     more (`%smid`, clocks) need a `&Thread` (rule 4). (`multiprocessor_in_code_of_the_block`)
//! 40. **Code has the instructions of its target.** Inline PTX states the compute capability that
//!     it needs, and the compiler of kernels refuses older targets. (`instructions_need_targets`)
//!
//! 41. **A slot of a ring buffer has producers or consumers.** [`Block::ring`](crate::Block::ring)
//!     decides the roles by the index of the warp, and runs the same number of steps in all warps,
//!     so that all of them reach the barriers of each step; the closures cannot leave the loop. A
//!     barrier counts all threads of the block: producers arrive and consumers wait, or the other
//!     way round. It completes in step `s + N` only after it has in step `s`, because producers
//!     wait for the consumers of step `s` in between. Elements of a slot are divided between the
//!     lanes of the producers; slots and views have a lifetime that the closures do not know.
//!     (`ring_slot_escapes`, `ring_view_escapes`, `ring_buffers`)
//!
//! # Questions
//!
//! - **Addresses**: local variables have the same address in all threads, because each thread has
//!   its own local memory behind the same addresses; shared and global memory have one address.
//!   There is no heap in code of a block (rule 20).
//! - **`clock`, `globaltimer`, `%laneid`**: methods of [`Thread`](crate::Thread) and
//!   [`Lane`](crate::Lane) (rule 4). `ptx!` is `unsafe`, and its author must not pass what it reads
//!   to code of a block.
//! - **Re-entrancy and recursion**: a kernel may be called as a function by device code that has
//!   its parameters; they are moved, so no two calls have the same. Recursion follows rule 1.
//! - **Panics in some threads only** end the launch with an error. There is no unwinding, so no
//!   code runs with a broken invariant; other threads may run until the trap ends them, under the
//!   same rules.
//! - **Threads that do not end** keep the others waiting at the next barrier. That is a hang and
//!   not undefined behavior.
//! - **Closures stored in statics** must be `Sync` and `'static`; they capture no token (rule 4).
//! - **`Drop` of values in shared memory**: elements are `Copy` (rule 10).
//! - **Zero-sized and over-aligned types**: an array of zero-sized elements has no memory to race
//!   on. The launch checks that addresses have the alignment of the element type.
//! - **NaN**: `core` leaves the sign and payload of a computed NaN unspecified, so the compiler may
//!   choose them differently in two copies of one expression. Code of a block that branches on the *bits*
//!   of a computed NaN is the one known way to a value that is not uniform. The sign of a zero that
//!   `min` or `max` returns is the same in all copies, because the compiler of kernels removes the
//!   flag that leaves it open (rule 19).
//! - **Early loads**: the compiler does not load shared memory before a loop in which its owner
//!   writes it (`single_owner_of_an_element`).
//!
//! # What remains `unsafe`
//!
//! [`ptx!`](crate::ptx), because its text is arbitrary: it must be executed by all threads of a
//! warp if it is a `.aligned` or `.sync` instruction, and must not write memory that others own.
//! Declarations of extern functions. Launches of kernels from other sources (`kernels!`).
//! Contraction (rule 19). The attributes `no_mangle`, `export_name` and `link_section`, which
//! editions before 2024 accept without the word `unsafe`: the linker prefers such a definition to
//! that of the same name in `core`.
//!
//! # Constants
//!
//! Assertions at compile time refuse these kernels.
//!
//! A block has at most 1024 threads, at least one, and at most 64 along z:
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(block: Block<2000>) {}
//! ```
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(block: Block<0>) {}
//! ```
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(block: Block<1, 1, 128>) {}
//! ```
//!
//! Products of an index and a constant do not wrap (rule 8):
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(t: Thread, y: PerThreadChunk<u32, { 1 << 62 }>) {}
//! ```
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(t: Thread, y: PerThreadChunk<u32, 0>) {}
//! ```
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(block: Block<64>, y: PerBlockTile<u32, 1, { 1 << 32 }>) {}
//! ```
//!
//! All dynamic shared memory is the same memory:
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(block: Block<64>, x: DynamicShared<u32>, y: DynamicShared<f32>) {}
//! ```
//!
//! A value has a size:
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[kernel]
//! pub fn kernel(t: Thread, x: [u32; 0]) {}
//! ```
//!
//! Padding has no value (rule 10):
//!
//! ```compile_fail
//! # use curium_kernel::prelude::*;
//! #[derive(Clone, Copy, ByValue)]
//! #[repr(C)]
//! pub struct Mixed {
//!     small: u8,
//!     large: u32,
//! }
//!
//! #[kernel]
//! pub fn kernel(t: Thread, x: Mixed) {}
//! ```
