//! Whole programs, from PTX text to memory.

pub(super) mod arithmetic;
mod asynchronous;
mod atomics;
mod bits;
mod calls;
mod clusters;
mod conversions;
mod divergence;
mod faults;
mod halves;
mod hints;
mod images;
mod kernels;
mod launch_control;
mod matrices;
mod members;
mod memory;
mod multicast;
mod mutation;
mod reports;
#[cfg(all(target_os = "linux", not(miri)))]
mod speed;
mod spellings;
mod superinstructions;
mod synchronization;
mod system;
mod tensor_maps;
mod tensor_memory;
mod tensor_products;
mod tensor_spellings;
mod tensors;
mod termination;
mod uninitialized;
mod video;
mod warp_races;
mod warpgroups;
mod warps;
mod watches;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::memory::Word;
use super::memory::tests::Arena;
use super::{
    Checking, DeviceModel, Launch, Limits, Program, Report, Runtime, Schedule, Statistics, Surface,
    Texture, Written, lower, lower_with_checks, run,
};
use crate::syntax;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The address of the tests' device memory.
pub(super) const BASE: u64 = 0x7f00_0000_0000;

/// A program with device memory, ready to launch.
pub(super) struct Bench {
    module: syntax::Module,
    pub(super) program: Program,
    pub(super) memory: Arena,
    globals: Vec<u64>,
    pub(super) schedule: Schedule,
    pub(super) workers: usize,
    pub(super) dynamic_shared: u32,
    pub(super) cluster: [u32; 3],
    pub(super) host: Host,
    pub(super) limits: Limits,
}

/// The host services of a test: output, allocations and objects.
#[derive(Default)]
pub(super) struct Host {
    pub(super) printed: Mutex<Vec<u8>>,
    pub(super) complaints: Mutex<Vec<u8>>,
    /// Faults after which the launch continued; `None` if faults end the launch.
    pub(super) continued_after: Option<Mutex<Vec<Report>>>,
    /// Textures and surfaces, whose handles are their indices.
    pub(super) textures: Vec<Arc<Texture>>,
    pub(super) surfaces: Vec<Arc<Surface>>,
    /// Allocated addresses; the heap is the last half of the memory.
    allocated: Mutex<Vec<u64>>,
}

impl Host {
    /// Returns the output so far.
    pub(super) fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().expect("no thread panics")).into_owned()
    }
}

impl Runtime for Host {
    fn print(&self, text: &[u8]) {
        self.printed
            .lock()
            .expect("no thread panics")
            .extend_from_slice(text);
    }

    fn write_assertion(&self, text: &[u8]) {
        self.complaints
            .lock()
            .expect("no thread panics")
            .extend_from_slice(text);
    }

    fn continues_after(&self, fault: &Report) -> bool {
        self.continued_after
            .as_ref()
            .map(|faults| faults.lock().expect("no thread panics").push(fault.clone()))
            .is_some()
    }

    fn allocate(&self, size: u64) -> Option<u64> {
        let mut allocated = self.allocated.lock().expect("no thread panics");
        let address = BASE + 2048 + 64 * allocated.len() as u64;
        (size <= 64 && address + 64 <= BASE + 4096).then(|| {
            allocated.push(address);
            address
        })
    }

    fn free(&self, address: u64) -> bool {
        self.allocated
            .lock()
            .expect("no thread panics")
            .contains(&address)
    }

    fn texture(&self, handle: u64) -> Option<Arc<Texture>> {
        self.textures.get(handle as usize).map(Arc::clone)
    }

    fn surface(&self, handle: u64) -> Option<Arc<Surface>> {
        self.surfaces.get(handle as usize).map(Arc::clone)
    }
}

impl Bench {
    /// Compiles a program with a standard header, and `bytes` of device memory for arguments.
    pub(super) fn new(body: &str, bytes: u64) -> Self {
        Self::for_target("sm_100", body, bytes)
    }

    /// Compiles a program for a target.
    pub(super) fn for_target(target: &str, body: &str, bytes: u64) -> Self {
        Self::for_version("8.8", target, body, bytes)
    }

    /// Compiles a program of a version of the ISA for a target.
    pub(super) fn for_version(version: &str, target: &str, body: &str, bytes: u64) -> Self {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n{body}");
        let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let program = lower(&module).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut end = bytes.next_multiple_of(128);
        let mut globals = Vec::new();
        for global in program.globals() {
            end = end.next_multiple_of(256);
            globals.push(BASE + end);
            end += global.size;
        }
        let memory = Arena::new(BASE, end);
        for (global, address) in program.globals().iter().zip(&globals) {
            memory.write(address - BASE, &global.init);
            for relocation in &global.relocations {
                let value = relocation.target.resolve(&globals);
                let bytes = value.to_le_bytes();
                memory.write(
                    address - BASE + relocation.offset,
                    &bytes[..usize::from(relocation.size)],
                );
            }
        }
        Self {
            module,
            program,
            memory,
            globals,
            schedule: Schedule::InOrder,
            workers: 1,
            dynamic_shared: 0,
            cluster: [1; 3],
            host: Host::default(),
            limits: Limits::default(),
        }
    }

    /// Enables the check of uninitialized reads. Only the bytes in `written` count as written.
    pub(super) fn with_uninitialized_checks(self, written: Range<u64>) -> Self {
        self.with_checks(Checking::nothing().with_uninitialized(true), written)
    }

    /// Enables checks. Only the bytes in `written` count as written.
    pub(super) fn with_checks(mut self, checking: Checking, written: Range<u64>) -> Self {
        self.program = lower_with_checks(&self.module, checking).expect("lowering failed");
        self.memory.is_watched = checking.races;
        if checking.uninitialized {
            let all = Written::new(self.memory.size());
            all.add(written.start, written.end - written.start);
            self.memory.written = Some(Arc::new(all));
        }
        self
    }

    /// Compiles a kernel `main` with one pointer parameter `p`, which is in `%p`.
    pub(super) fn body(body: &str, bytes: u64) -> Self {
        Self::new(&kernel(body), bytes)
    }

    /// Runs `main` on `grid` blocks of `block` threads.
    pub(super) fn launch(&self, grid: u32, block: u32) -> Result<Statistics, Box<Report>> {
        self.launch_with([grid, 1, 1], [block, 1, 1], &BASE.to_le_bytes())
    }

    /// Runs `main`, or otherwise the first kernel, with other parameters.
    pub(super) fn launch_with(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        params: &[u8],
    ) -> Result<Statistics, Box<Report>> {
        run(&Launch {
            program: &self.program,
            kernel: self
                .program
                .kernel("main")
                .or_else(|| self.program.kernels().first())
                .expect("the program has a kernel"),
            grid,
            block,
            cluster: self.cluster,
            dynamic_shared: self.dynamic_shared,
            params,
            globals: &self.globals,
            memory: &self.memory,
            runtime: &self.host,
            device: &DeviceModel::default(),
            workers: self.workers,
            schedule: self.schedule,
            workspace: 0,
            cancel: &AtomicBool::new(false),
            limits: self.limits,
        })
    }

    /// Runs `main` on one block, and reads the results from memory.
    pub(super) fn results<T: Word>(&self, threads: u32) -> Vec<T> {
        self.launch(1, threads)
            .unwrap_or_else(|fault| panic!("{fault}"));
        self.memory.read(0, threads as usize)
    }
}

/// Returns a kernel `main` around a body, with registers of every type and the usual indices.
///
/// `%p` is the parameter. `%t` is the index in the block, `%i` that in the grid. `%at` and `%at4`
/// are the addresses of the thread's own 8 and 4 bytes.
pub(super) fn kernel(body: &str) -> String {
    format!(
        ".visible .entry main(.param .u64 p)
{{
    .reg .pred %p<16>, %q;
    .reg .b16 %h<16>;
    .reg .b32 %r<64>, %t, %i;
    .reg .b64 %d<64>, %p, %at, %at4;
    .reg .f32 %f<32>;
    .reg .f64 %e<32>;
    ld.param.u64 %p, [p];
    mov.u32 %t, %tid.x;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mad.lo.u32 %i, %r0, %r1, %t;
    mad.wide.u32 %at, %i, 8, %p;
    mad.wide.u32 %at4, %i, 4, %p;
{body}
    ret;
}}"
    )
}
