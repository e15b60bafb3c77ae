//! The output of ranks, with the rank in front of each line.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The largest number of bytes of a line that are held in memory. Longer lines are split.
const MAX_LINE: u64 = 64 * 1024;

/// The largest number of bytes that are forwarded after the job has ended. No pipe holds more,
/// unless the system was configured so.
const MAX_TAIL: usize = 1024 * 1024;

/// The outputs of all ranks.
///
/// A process that a rank started may hold its pipe for as long as it likes. Outputs therefore also
/// end when [`Outputs::end`] is called, with what is in the pipes by then.
pub(super) struct Outputs {
    /// Shared with the thread of each output.
    job_has_ended: Arc<AtomicBool>,
}

/// The end of a pipe from which the output of a rank is read.
struct Output<R> {
    pipe: R,
    job_has_ended: Arc<AtomicBool>,
    /// The number of bytes that are still read once the job has ended.
    tail: usize,
}

impl Outputs {
    pub(super) fn new() -> Self {
        Self {
            job_has_ended: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Copies the pipe to `sink` on a thread of its own, line by line, each with the rank in front.
    pub(super) fn forward(
        &self,
        rank: usize,
        pipe: impl Pipe + 'static,
        sink: impl Write + Send + 'static,
    ) -> io::Result<()> {
        let output = Output {
            pipe,
            job_has_ended: Arc::clone(&self.job_has_ended),
            tail: MAX_TAIL,
        };
        thread::Builder::new()
            .name(format!("output of rank {rank}"))
            .spawn(move || {
                // A sink that fails, as a closed pipe does, must not stop the rank: the rest is
                // read and discarded.
                let mut source = BufReader::new(output);
                if copy_lines(rank, &mut source, sink).is_err() {
                    let _ = io::copy(&mut source, &mut io::sink());
                }
            })?;
        Ok(())
    }

    /// Ends the outputs with what is in the pipes now.
    pub(super) fn end(&self) {
        self.job_has_ended.store(true, Ordering::Release);
    }

    /// Returns `true` if every output has been forwarded to its end.
    pub(super) fn have_ended(&self) -> bool {
        // Each thread holds a reference until then.
        Arc::strong_count(&self.job_has_ended) == 1
    }
}

/// A pipe from which a thread reads.
#[cfg(unix)]
pub(super) trait Pipe: Read + Send + std::os::fd::AsFd {}

#[cfg(unix)]
impl<P: Read + Send + std::os::fd::AsFd> Pipe for P {}

/// A pipe from which a thread reads.
#[cfg(not(unix))]
pub(super) trait Pipe: Read + Send {}

#[cfg(not(unix))]
impl<P: Read + Send> Pipe for P {}

impl<P: Pipe> Read for Output<P> {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        const INTERVAL: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        loop {
            // Loaded before the pipe is examined, so that everything written before the end is
            // read.
            let job_has_ended = self.job_has_ended.load(Ordering::Acquire);
            let mut files = [PollFd::new(&self.pipe, PollFlags::IN)];
            let ready = rustix::io::retry_on_intr(|| poll(&mut files, Some(&INTERVAL)))?;
            if job_has_ended && (ready == 0 || self.tail == 0) {
                return Ok(0);
            }
            if ready == 0 {
                continue;
            }
            let count = self.pipe.read(buffer)?;
            if job_has_ended {
                self.tail = self.tail.saturating_sub(count);
            }
            return Ok(count);
        }
    }

    /// Reads until every process that holds the pipe has ended. The job object kills them when this
    /// program ends.
    #[cfg(not(unix))]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.job_has_ended.load(Ordering::Acquire) && self.tail == 0 {
            return Ok(0);
        }
        let count = self.pipe.read(buffer)?;
        if self.job_has_ended.load(Ordering::Acquire) {
            self.tail = self.tail.saturating_sub(count);
        }
        Ok(count)
    }
}

/// Copies the lines. Each is written in one piece, so that lines of several ranks do not mix.
/// Longer lines than [`MAX_LINE`] become several.
fn copy_lines(
    rank: usize,
    source: &mut BufReader<impl Read>,
    mut sink: impl Write,
) -> io::Result<()> {
    let prefix = format!("[{rank}] ").into_bytes();
    let mut line = prefix.clone();
    let mut continues_line = false;
    while source.take(MAX_LINE).read_until(b'\n', &mut line)? > 0 {
        let is_complete = line.last() == Some(&b'\n');
        // The end of a line that was just split needs no line of its own.
        let is_only_end = continues_line && line.len() == prefix.len() + 1 && is_complete;
        if !is_complete {
            line.push(b'\n');
        }
        if !is_only_end {
            sink.write_all(&line)?;
            sink.flush()?;
        }
        continues_line = !is_complete;
        line.truncate(prefix.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line is completed.
    #[test]
    fn every_line_begins_with_the_rank() {
        let mut written = Vec::new();
        let mut source = BufReader::new(b"one\n\ntwo \xff\nthree".as_slice());
        copy_lines(3, &mut source, &mut written).expect("a vector");
        assert_eq!(written, b"[3] one\n[3] \n[3] two \xff\n[3] three\n");
    }

    /// A sink that records the length of each write.
    #[derive(Default)]
    struct Lengths(Vec<usize>);

    impl Write for Lengths {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A line without an end is forwarded in pieces of 64 KiB while it arrives, and never held as a
    /// whole.
    #[test]
    fn endless_line_is_split() -> io::Result<()> {
        const PIECES: usize = 512;
        let mut lengths = Lengths::default();
        let stream = io::repeat(b'x').take(MAX_LINE * 512);
        copy_lines(0, &mut BufReader::new(stream), &mut lengths)?;
        assert_eq!(lengths.0, [65536 + "[0] \n".len(); PIECES]);
        Ok(())
    }

    /// A line of exactly the largest length stays one line.
    #[test]
    fn longest_whole_line_is_not_split() -> io::Result<()> {
        let line = "x".repeat(65536);
        let text = format!("{line}\n\n{line}{line}y\nend\n");
        let mut written = Vec::new();
        copy_lines(1, &mut BufReader::new(text.as_bytes()), &mut written)?;
        let expected = format!("[1] {line}\n[1] \n[1] {line}\n[1] {line}\n[1] y\n[1] end\n");
        assert!(written == expected.as_bytes());
        Ok(())
    }
}
