//! A cache of captured graphs.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use super::{Graph, GraphExec, GraphUpdate};
use crate::base::capture_guard::PASS_THE_SCOPE;
use crate::{Error, Result, Stream};

/// Work that is captured once and replayed from then on: a bounded number of executables, by keys of your own.
///
/// [`GraphCache::run`] is given the work each time, and does the cheapest thing that has its effect: one launch if it was seen with the
/// same inputs, an update of the executable if only its arguments changed, a new one if its shape did, and the work itself where it cannot
/// be captured.
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
///         // SAFETY: the kernel touches no memory.
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
    /// Counts uses, so that the one that was not used for longest is known.
    clock: u64,
    counts: GraphCacheCounts,
}

/// The outcome of [`GraphCache::run`].
#[derive(Debug)]
#[non_exhaustive]
pub enum GraphCacheOutcome<E = Error> {
    /// The key was new: the work was captured, and launched.
    Captured,
    /// The inputs were those of the time before: one launch.
    Launched,
    /// The inputs had changed and the shape had not: the executable was updated, and launched.
    Updated,
    /// The shape had changed: the work was captured anew, and launched.
    Recaptured,
    /// The work was enqueued on the stream as it is, since it cannot be captured: why, if that was tried now.
    Ran(Option<E>),
}

/// Returns the number of times that each outcome occurred.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct GraphCacheCounts {
    /// Captures of a new key.
    pub captured: u64,
    /// Launches of what was captured with the same inputs.
    pub launched: u64,
    /// Updates of an executable.
    pub updated: u64,
    /// Captures of a key that had changed its shape.
    pub recaptured: u64,
    /// Runs without a capture.
    pub ran: u64,
    /// Executables that were dropped to make room.
    pub evicted: u64,
}

struct Entry<I> {
    inputs: I,
    /// Nothing if the work cannot be captured.
    executable: Option<GraphExec>,
    used: u64,
}

impl<K: Eq + Hash + Clone, I: PartialEq> GraphCache<K, I> {
    /// The default number of executable graphs.
    pub const CAPACITY: usize = 32;

    /// Nothing captured yet.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }

    /// Creates an empty cache for this many keys, at least one. The least recently used key is evicted.
    #[must_use]
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { entries: HashMap::new(), capacity: capacity.max(1), clock: 0, counts: GraphCacheCounts::default() }
    }

    /// Runs the work that `work` enqueues, under the key `key`.
    ///
    /// `inputs` is all that the work depends on and that may differ from one time to the next: addresses of buffers, numbers, sizes. While
    /// it compares equal, `work` is not called. Buffers are leased as in [`Graph::capture`], so that an input that is forgotten gives
    /// results of old buffers, and nothing worse.
    ///
    /// `work` is called a second time, for `stream` itself, where it cannot be captured; the key is remembered as such until its inputs
    /// change. On a stream that is being captured, `work` becomes a part of that capture, and the key is left as it is.
    ///
    /// CUDA: `cuGraphLaunch`; `cuStreamBeginCapture_v2`, `cuStreamEndCapture`, `cuGraphInstantiateWithParams`, `cuGraphExecUpdate_v2`.
    ///
    /// # Errors
    ///
    /// That of the launch, or of `work` where it was run as it is.
    #[inline]
    pub fn run<E: From<Error> + fmt::Debug>(
        &mut self,
        stream: &Stream,
        key: K,
        inputs: I,
        mut work: impl FnMut(&Stream) -> Result<(), E>,
    ) -> Result<GraphCacheOutcome<E>, E> {
        stream.expect_captured("GraphCache::run", PASS_THE_SCOPE)?;
        self.clock += 1;
        let replayed = match self.entries.get_mut(&key) {
            _ if stream.is_capture_active() => work(stream).map(|()| GraphCacheOutcome::Ran(None))?,
            Some(entry) if entry.inputs == inputs => {
                entry.used = self.clock;
                match &mut entry.executable {
                    Some(executable) => executable.launch(stream).map(|()| GraphCacheOutcome::Launched)?,
                    None => work(stream).map(|()| GraphCacheOutcome::Ran(None))?,
                }
            }
            _ => self.capture(stream, key, inputs, &mut work)?,
        };
        self.counts.count(&replayed);
        tracing::debug!(?replayed, "replay");
        Ok(replayed)
    }

    /// Returns the number of times that each outcome occurred.
    #[must_use]
    #[inline]
    pub fn counts(&self) -> GraphCacheCounts {
        self.counts
    }

    /// Returns the number of keys are kept.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if nothing is kept.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops every executable, and with it the leases of the memory that it uses.
    #[inline]
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Captures the work and launches it.
    #[inline]
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
        self.entries.insert(key, Entry { inputs, executable, used: self.clock });
        Ok(replayed)
    }

    #[inline]
    fn make_room(&mut self) {
        if self.entries.len() < self.capacity {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.entries.remove(&oldest);
            self.counts.evicted += 1;
        }
    }
}

/// Returns an executable of the work: the one before if it can be updated, or a new one.
#[inline]
fn executable<E: From<Error>>(
    stream: &Stream,
    before: Option<GraphExec>,
    work: &mut impl FnMut(&Stream) -> Result<(), E>,
) -> Result<(GraphExec, GraphCacheOutcome<E>), E> {
    let graph = Graph::capture(stream.context(), |scope| work(scope))?;
    let Some(mut executable) = before else { return Ok((graph.instantiate()?, GraphCacheOutcome::Captured)) };
    match executable.update(&graph)? {
        GraphUpdate::Done => Ok((executable, GraphCacheOutcome::Updated)),
        GraphUpdate::Failed(_) => Ok((graph.instantiate()?, GraphCacheOutcome::Recaptured)),
    }
}

impl GraphCacheCounts {
    #[inline]
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
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl<K, I> fmt::Debug for GraphCache<K, I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GraphCache({} of {} keys, {:?})", self.entries.len(), self.capacity, self.counts)
    }
}
