//! A cache of captured graphs.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::Graph;
use super::exec::GraphExec;
use super::replace::GraphUpdate;
use crate::base::capture_guard::ON_THE_SCOPE;
use crate::{Error, Result, Stream, emit_event};

/// A cache of captured graphs: a bounded number of executable graphs, by user-defined keys.
///
/// [`GraphCache::run`] takes the work as a closure and executes it in the cheapest way: it launches
/// the executable graph if the inputs are unchanged, updates it if only kernel arguments changed,
/// instantiates a new one if the topology changed, and enqueues the work directly if it cannot be
/// captured.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_driver::{LaunchConfig, Library, GraphCacheOutcome, GraphCache};
///
/// # const PTX: &str = ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let nothing = Library::from_ptx(&driver, PTX)?.kernel::<()>("nothing")?;
/// let mut replays = GraphCache::new();
/// let mut step = |blocks: u32| {
///     replays.run(&stream, "step", blocks, |stream| {
///         // SAFETY: the kernel accesses no memory.
///         unsafe { nothing.launch(stream, LaunchConfig::new(blocks, 32), ()) }
///     })
/// };
/// assert!(matches!(step(1)?, GraphCacheOutcome::Captured));
/// assert!(matches!(step(1)?, GraphCacheOutcome::Launched));
/// assert!(matches!(step(2)?, GraphCacheOutcome::Updated));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GraphCache<K, I> {
    entries: HashMap<K, Entry<I>>,
    capacity: usize,
    /// Counts uses, to find the least recently used entry.
    clock: u64,
    counts: GraphCacheCounts,
}

/// The outcome of [`GraphCache::run`].
#[derive(Debug)]
#[non_exhaustive]
pub enum GraphCacheOutcome<E = Error> {
    /// The key was new: the work was captured and launched.
    Captured,
    /// The inputs were unchanged: the executable graph was launched.
    Launched,
    /// The inputs changed and the topology did not: the executable graph was updated and launched.
    Updated,
    /// The topology changed: the work was captured again and launched.
    Recaptured,
    /// The work cannot be captured and was enqueued directly. Contains the reason if a capture was
    /// tried now.
    Ran(Option<E>),
}

/// The number of times that each outcome occurred.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct GraphCacheCounts {
    /// Captures of a new key.
    pub captured: u64,
    /// Launches with unchanged inputs.
    pub launched: u64,
    /// Updates of an executable graph.
    pub updated: u64,
    /// Captures of a key whose topology changed.
    pub recaptured: u64,
    /// Runs without a graph.
    pub ran: u64,
    /// Executable graphs that were evicted.
    pub evicted: u64,
}

struct Entry<I> {
    inputs: I,
    /// `None` if the work cannot be captured.
    executable: Option<GraphExec>,
    used: u64,
}

impl<K: Eq + Hash + Clone, I: PartialEq> GraphCache<K, I> {
    /// The default number of executable graphs.
    pub const CAPACITY: usize = 32;

    /// Creates an empty cache with the default capacity.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }

    /// Creates an empty cache for `capacity` keys, at least one. The least recently used key is
    /// evicted.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: HashMap::new(),
            capacity: capacity.max(1),
            clock: 0,
            counts: GraphCacheCounts::default(),
        }
    }

    /// Executes the work that `work` enqueues on `stream`, cached under `key`.
    ///
    /// `inputs` must contain everything that the work depends on and that may change between calls:
    /// buffer addresses, scalars, sizes. `work` is not called as long as the inputs compare equal.
    /// Buffers are leased as in [`Graph::capture`], so an omitted input leads to stale results, but
    /// not to undefined behavior.
    ///
    /// If the work cannot be captured, `work` is called a second time, for `stream` itself, and the
    /// key is not captured again until its inputs change. If `stream` is being captured, the work
    /// becomes part of that capture, and the entry of `key` is not changed.
    ///
    /// CUDA: `cuGraphLaunch`; `cuStreamBeginCapture_v2`, `cuStreamEndCapture`,
    /// `cuGraphInstantiateWithParams`, `cuGraphExecUpdate_v2`.
    ///
    /// # Errors
    ///
    /// The error of the launch, or of `work` if it was enqueued directly.
    pub fn run<E: From<Error> + fmt::Debug>(
        &mut self,
        stream: &Stream,
        key: K,
        inputs: I,
        mut work: impl FnMut(&Stream) -> Result<(), E>,
    ) -> Result<GraphCacheOutcome<E>, E> {
        stream.check_enqueue("GraphCache::run", ON_THE_SCOPE)?;
        self.clock += 1;
        let replayed = match self.entries.get_mut(&key) {
            _ if stream.is_capture_active() => {
                work(stream).map(|()| GraphCacheOutcome::Ran(None))?
            }
            Some(entry) if entry.inputs == inputs => {
                entry.used = self.clock;
                match &mut entry.executable {
                    Some(executable) => executable
                        .launch(stream)
                        .map(|()| GraphCacheOutcome::Launched)?,
                    None => work(stream).map(|()| GraphCacheOutcome::Ran(None))?,
                }
            }
            _ => self.capture(stream, key, inputs, &mut work)?,
        };
        self.counts.count(&replayed);
        emit_event!(DEBUG, ?replayed, "replay");
        Ok(replayed)
    }

    /// Returns the number of times that each outcome occurred.
    #[must_use]
    pub fn counts(&self) -> GraphCacheCounts {
        self.counts
    }

    /// Returns the number of cached keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if no key is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops all executable graphs, and with them the leases of their memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Captures the work and launches it.
    fn capture<E: From<Error>>(
        &mut self,
        stream: &Stream,
        key: K,
        inputs: I,
        work: &mut impl FnMut(&Stream) -> Result<(), E>,
    ) -> Result<GraphCacheOutcome<E>, E> {
        let before = self.entries.remove(&key).and_then(|entry| entry.executable);
        let (executable, replayed) = match executable(stream, before, work) {
            Ok((mut executable, replayed)) => {
                executable.launch(stream)?;
                (Some(executable), replayed)
            }
            Err(error) => {
                work(stream)?;
                (None, GraphCacheOutcome::Ran(Some(error)))
            }
        };
        self.make_room();
        self.entries.insert(
            key,
            Entry {
                inputs,
                executable,
                used: self.clock,
            },
        );
        Ok(replayed)
    }

    fn make_room(&mut self) {
        if self.entries.len() < self.capacity {
            return;
        }
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, entry)| entry.used)
            .map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.entries.remove(&oldest);
            self.counts.evicted += 1;
        }
    }
}

/// Returns an executable graph of the work: the previous one if it can be updated, otherwise a new
/// one.
fn executable<E: From<Error>>(
    stream: &Stream,
    before: Option<GraphExec>,
    work: &mut impl FnMut(&Stream) -> Result<(), E>,
) -> Result<(GraphExec, GraphCacheOutcome<E>), E> {
    let graph = Graph::capture(stream.context(), |scope| work(scope))?;
    let Some(mut executable) = before else {
        return Ok((graph.instantiate()?, GraphCacheOutcome::Captured));
    };
    match executable.update(&graph)? {
        GraphUpdate::Done => Ok((executable, GraphCacheOutcome::Updated)),
        GraphUpdate::Failed(_) => Ok((graph.instantiate()?, GraphCacheOutcome::Recaptured)),
    }
}

impl GraphCacheCounts {
    fn count<E>(&mut self, replayed: &GraphCacheOutcome<E>) {
        let count = match replayed {
            GraphCacheOutcome::Captured => &mut self.captured,
            GraphCacheOutcome::Launched => &mut self.launched,
            GraphCacheOutcome::Updated => &mut self.updated,
            GraphCacheOutcome::Recaptured => &mut self.recaptured,
            GraphCacheOutcome::Ran(_) => &mut self.ran,
        };
        *count += 1;
    }
}

impl<K: Eq + Hash + Clone, I: PartialEq> Default for GraphCache<K, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, I> fmt::Debug for GraphCache<K, I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "GraphCache({} of {} keys, {:?})",
            self.entries.len(),
            self.capacity,
            self.counts
        )
    }
}
