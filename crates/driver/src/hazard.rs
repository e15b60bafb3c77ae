//! Who uses a piece of device memory on which stream, so that safe code may use it on any stream.
//!
//! The rules:
//!
//! 1. A read waits for the last write. A write, and the end of the memory, wait for the last write and for *every* read since.
//! 2. Uses on one stream are ordered by the stream: they cost no driver call, no lock and no atomic write.
//! 3. Reads do not wait for each other, on whatever streams they are.
//! 4. To wait for a use on another stream, an event is recorded behind *all* work that is on that stream by then (its tail) and
//!    the waiting stream waits for the event. The host never waits.
//! 5. The tails of a stream are counted. A use notes the count *after* its work was put on the stream, and a tail counts itself
//!    *before* it is recorded: so a tail that a use has not seen counted comes behind its work, whichever threads the two happen on,
//!    since the driver puts the one and the other on the stream in turn. A stream remembers up to which tail of another it has
//!    waited, and waits for no use twice.
//! 6. A use is noted while the memory is borrowed, so that nobody who would have to wait for it can miss it. A write of the whole
//!    borrows it exclusively, so that the stream of the last such write can be read without a lock.
//! 7. Parts of one piece that are borrowed apart are uses of the whole: they wait for each other. They may be put on streams by
//!    several threads at once, though, each between the waits of another and its note; so a note of a part forgets only what its
//!    stream is known to have waited for.
//! 8. A capture takes work down instead of running it, so that an event of the one cannot stand for work of the other: recorded inside
//!    and waited for outside, or the other way round, it breaks the capture. Where a use and what waits for it are not in the same
//!    capture, the wait is an error that says so, before an event is touched, unless the use is seen to be done: then nobody waits.
//!    Whether streams are being captured is asked only where one must wait for another.
//!
//! 9. A capture scope has streams of its own. What they do to memory is no use of it: it is noted in the scope, by the same rules, so
//!    that the graph has the edges that streams would have; and the memory is *leased* to the graph. From the first lease on, the
//!    owner's uses and the graph's share one history, and both the memory and the history live as long as either. Each launch of the graph
//!    is, for each lease, a use on the stream that it is launched on.
//! 10. A launch borrows nothing, so rule 6 does not hold for it: uses of leased memory and launches take turns, and of two launches that
//!     have a lease of the same memory, one to write, one goes after the other. Whoever uses what was never leased pays for none of this.
//!
//! Streams are told apart by their identity and never by their handle, which drivers reuse.

mod history;
#[cfg_attr(not(feature = "graphs"), expect(dead_code, reason = "captures make leases"))]
mod lease;
#[cfg_attr(not(feature = "graphs"), expect(dead_code, reason = "captures open scopes"))]
mod scope;
mod tail;
#[cfg_attr(not(feature = "graphs"), expect(dead_code, reason = "captures make leases"))]
mod turn;

use std::sync::{Arc, OnceLock};

use self::history::History;
#[cfg(feature = "graphs")]
pub(crate) use self::lease::Lease;
use self::lease::Leased;
pub use self::lease::View;
#[cfg(feature = "graphs")]
pub(crate) use self::scope::Seen;
use self::scope::in_another_graph;
pub(crate) use self::scope::{Scope, refuse_captures};
pub(crate) use self::tail::Tail;
#[cfg(feature = "graphs")]
pub(crate) use self::tail::wait;
pub(crate) use self::turn::Alone;
#[doc(hidden)]
pub use self::turn::Uses;
#[cfg(feature = "graphs")]
pub(crate) use self::turn::{Claim, Claims, Launching};
use crate::{Result, Stream};

/// The uses of one piece of memory that a later use may have to wait for.
///
/// [`Accesses::before_read`] and [`Accesses::before_write`] come before work is put on a stream, and [`Accesses::after_read`],
/// [`Accesses::after_write`] and [`Accesses::after_partial_write`] after it, all while the memory is borrowed accordingly. The
/// borrows order what different threads do with the same memory, so that no use needs more than a relaxed look at the last one.
#[derive(Debug)]
pub struct Accesses {
    /// The uses, until they are shared with graphs.
    history: History,
    /// The uses since then.
    lease: OnceLock<Arc<Leased>>,
    /// Whether the memory can outlive its owner, for graphs.
    is_leasable: bool,
}

/// What errors call the waits for other uses.
const OPERATION: &str = "memory on a stream";

impl Accesses {
    /// Memory that was allocated on `stream`. No graph can use it: it ends with its owner.
    #[must_use]
    #[inline]
    pub fn allocated(stream: &Stream) -> Self {
        Self::with(History::allocated(stream))
    }

    /// Memory that was allocated on `stream`, and that its owner leaves to graphs with [`Accesses::leave`] if they use it.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn leasable(stream: &Stream) -> Self {
        Self { is_leasable: true, ..Self::allocated(stream) }
    }

    /// Has `stream` wait for what a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is of another driver; whatever the driver returns for an event. The read must not take place
    /// then.
    #[inline]
    pub fn before_read(&self, stream: &Stream) -> Result<()> {
        if self.reads_freely_on(stream) { Ok(()) } else { self.before(stream, false) }
    }

    /// Whether a read on `stream` waits for nothing, as far as that is plain at once.
    #[inline]
    pub fn reads_freely_on(&self, stream: &Stream) -> bool {
        self.history.reads_freely_on(stream)
    }

    /// Whether a write on `stream` waits for nothing, as far as that is plain at once.
    #[inline]
    pub fn writes_freely_on(&self, stream: &Stream) -> bool {
        self.history.writes_freely_on(stream)
    }

    /// Notes a read that was put on `stream`.
    #[inline]
    pub fn after_read(&self, stream: &Stream) {
        if !self.history.has_noted_read(stream) {
            self.after(stream, false);
        }
    }

    /// Has `stream` wait for what a write, or the end of the memory, must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must not take place then.
    #[inline]
    pub fn before_write(&self, stream: &Stream) -> Result<()> {
        if self.writes_freely_on(stream) { Ok(()) } else { self.before(stream, true) }
    }

    /// Notes a write that was put on `stream` while the whole memory was borrowed exclusively.
    #[inline]
    pub fn after_write(&mut self, stream: &Stream) {
        if self.writes_freely_on(stream) {
            self.history.note_free_write(stream);
        } else {
            self.after_whole_write(stream);
        }
    }

    /// Notes a write of a part that was put on `stream` while other parts were borrowed by others.
    #[inline]
    pub fn after_partial_write(&self, stream: &Stream) {
        if !self.history.has_noted_write(stream) {
            self.after(stream, true);
        }
    }

    /// The streams that the memory was last written on: a read waits for these.
    #[inline]
    pub fn writers(&self) -> Vec<Stream> {
        self.shared().streams(true)
    }

    /// The streams that the memory was last used on: a write waits for these. One may come twice.
    #[inline]
    pub fn users(&self) -> Vec<Stream> {
        self.shared().streams(false)
    }

    /// Waits on the host until every use is done.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; every stream is waited for all the same.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.users().iter().map(Stream::synchronize).fold(Ok(()), Result::and)
    }

    /// Whether graphs use the memory. Memory that they used to use is the owner's alone again.
    #[doc(hidden)]
    #[inline]
    pub fn is_leased(&mut self) -> bool {
        self.lease.get().is_some() && !self.reclaim()
    }

    /// Has `end` end the memory, which graphs use, when the last of them is gone; `end` gets what it must wait for.
    #[doc(hidden)]
    #[inline]
    pub fn leave(&mut self, end: impl FnOnce(Self) -> Result<()> + Send + 'static) {
        if let Some(lease) = self.lease.get() {
            lease.leave(end);
        }
    }

    /// Takes the memory away from the graphs that use it: an attempt to launch them is an error from now on.
    ///
    /// # Errors
    ///
    /// An argument error if this is called while a graph is being launched by this thread.
    #[doc(hidden)]
    #[inline]
    pub fn revoke(&mut self) -> Result<()> {
        if let Some(lease) = self.lease.get() {
            let _alone = Alone::wait(OPERATION)?;
            lease.revoke();
        }
        Ok(())
    }

    /// An argument error of `operation` if a graph that would disturb a read, or a write, of the host can be launched at any time.
    #[doc(hidden)]
    #[inline]
    pub fn refuse_leases(&self, operation: &'static str, is_write: bool) -> Result<()> {
        self.lease.get().map_or(Ok(()), |lease| lease.refuse(operation, is_write))
    }

    /// Keeps graphs that would disturb a read, or a write, of the host from being launched while the result exists.
    ///
    /// # Errors
    ///
    /// An argument error if there is a view already that this would disturb.
    #[doc(hidden)]
    #[inline]
    pub fn view(&self, operation: &'static str, is_write: bool) -> Result<View> {
        self.lease.get().map_or_else(|| Ok(View::of_owner(is_write)), |lease| lease.view(operation, is_write))
    }

    #[inline]
    fn with(history: History) -> Self {
        Self { history, lease: OnceLock::new(), is_leasable: false }
    }

    /// The stream that the memory was allocated on, or last written as a whole.
    #[inline]
    fn home(&self) -> &Stream {
        self.history.writer()
    }

    #[inline]
    fn is_leasable(&self) -> bool {
        self.is_leasable
    }

    #[inline]
    fn leased(&self) -> Option<&Arc<Leased>> {
        self.lease.get()
    }

    /// What is shared with graphs, from now on if it was not yet.
    #[inline]
    fn lease(&self) -> &Arc<Leased> {
        let mut others = self.history.others();
        // Under the lock: whoever finds no lease there notes its use before it is shared.
        self.lease.get_or_init(|| Arc::new(Leased::new(self.history.leave(&mut others))))
    }

    /// The history that holds now.
    #[inline]
    fn shared(&self) -> &History {
        self.lease.get().map_or(&self.history, |lease| lease.history())
    }

    #[cold]
    #[inline]
    fn before(&self, stream: &Stream, is_write: bool) -> Result<()> {
        if let Some(scope) = stream.scope()
            && scope.before(self, stream, is_write)?
        {
            return Ok(());
        }
        if self.home().scope().is_some() {
            return Err(in_another_graph());
        }
        let mut others = self.history.others();
        let Some(lease) = self.lease.get() else { return self.history.before(&mut others, stream, is_write) };
        drop(others);
        lease.before(stream, is_write)
    }

    #[cold]
    #[inline]
    fn after(&self, stream: &Stream, is_write: bool) {
        if let Some(scope) = stream.scope()
            && scope.after(self, stream, is_write)
        {
            return;
        }
        let mut others = self.history.others();
        let Some(lease) = self.lease.get() else { return self.history.after(&mut others, stream, is_write) };
        drop(others);
        lease.after(stream, is_write);
    }

    #[cold]
    #[inline]
    fn after_whole_write(&mut self, stream: &Stream) {
        if self.lease.get().is_some() || stream.scope().is_some() {
            self.after(stream, true);
            self.reclaim();
        } else {
            self.history.note_whole_write(stream);
        }
    }

    /// Makes the history the owner's alone if no graph shares it any more, and says whether it is.
    #[cold]
    #[inline]
    fn reclaim(&mut self) -> bool {
        let Some(lease) = self.lease.take() else { return true };
        match Arc::try_unwrap(lease) {
            Ok(leased) => {
                self.history = leased.into_history();
                true
            }
            Err(lease) => {
                self.lease = OnceLock::from(lease);
                false
            }
        }
    }
}
