//! The state of a warp besides registers.

use crate::exec::check::copies::Copies;
use crate::exec::check::fact::{Fact, LaneAccesses};
use crate::exec::check::local_written::LocalWritten;
use crate::exec::check::shadow::{Steps, Suspects};
use crate::exec::check::undefined::UninitializedBytes;
use crate::exec::values::lane::{LANES, Row};

/// The maximum number of bytes of local memory of a thread.
pub(crate) const LOCAL_LIMIT: u64 = 512 << 10;

/// The state of a warp besides registers.
#[derive(Debug)]
pub(crate) struct WarpState {
    /// Index of the warp in its block.
    pub(crate) index: u32,
    /// The lanes' thread indices.
    pub(crate) thread: [[u32; LANES]; 3],
    /// Local memory: word `n` of every thread is row `n`.
    pub(crate) local: Vec<Row<u64>>,
    /// The end of the local memory that each lane's running functions allocated with `alloca`; 0
    /// without such memory.
    pub(crate) alloca_end: [u64; LANES],
    /// The written bytes of local memory, if the launch checks for uninitialized reads.
    pub(crate) written: LocalWritten,
    /// The uninitialized bytes of the last load.
    pub(crate) uninitialized: Option<Box<UninitializedBytes>>,
    /// The lanes of live threads.
    pub(crate) live: u32,
    /// The phase of the cluster's barrier at which each lane last arrived.
    pub(crate) cluster_phase: [u32; LANES],
    /// The pending asynchronous copies.
    pub(crate) copies: Copies,
    /// The progress in accesses to shared memory, if races are checked.
    pub(crate) steps: Steps,
    /// The lanes that the last check found to race for shared memory by writing.
    pub(crate) suspects: Option<Suspects>,
    /// The last failed assertion.
    pub(crate) assertion: Option<Box<Assertion>>,
    /// The accesses of all lanes, if the last instruction failed with one of them.
    pub(crate) failed_accesses: Option<Box<LaneAccesses>>,
    /// The conditions of the loop of a thread that exceeded the budget.
    pub(crate) loop_facts: Vec<Fact>,
}

/// A failed assertion, as the kernel describes it.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Default for WarpState {
    fn default() -> Self {
        Self {
            index: 0,
            thread: [[0; LANES]; 3],
            local: Vec::new(),
            alloca_end: [0; LANES],
            written: LocalWritten::default(),
            uninitialized: None,
            live: 0,
            cluster_phase: [0; LANES],
            copies: Copies::default(),
            steps: Steps::default(),
            suspects: None,
            assertion: None,
            failed_accesses: None,
            loop_facts: Vec::new(),
        }
    }
}
