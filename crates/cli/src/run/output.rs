//! The output of ranks, with the rank in front of each line.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::thread::{self, JoinHandle};

/// Copies `source` to `sink` on a thread of its own, line by line, each with the rank in front. The thread ends with the source.
pub(super) fn forward(
    rank: usize,
    source: impl Read + Send + 'static,
    sink: impl Write + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(format!("output of rank {rank}"))
        .spawn(move || {
            // A sink that fails, as a closed pipe does, must not stop the rank: the rest is read and discarded.
            let mut source = BufReader::new(source);
            if copy_lines(rank, &mut source, sink).is_err() {
                let _ = io::copy(&mut source, &mut io::sink());
            }
        })
}

/// Copies the lines. Each is written in one piece, so that lines of several ranks do not mix.
fn copy_lines(
    rank: usize,
    source: &mut BufReader<impl Read>,
    mut sink: impl Write,
) -> io::Result<()> {
    let prefix = format!("[{rank}] ").into_bytes();
    let mut line = prefix.clone();
    while source.read_until(b'\n', &mut line)? > 0 {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        sink.write_all(&line)?;
        sink.flush()?;
        line.truncate(prefix.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_rank_in_front_and_the_last_one_is_completed() {
        let mut written = Vec::new();
        let mut source = BufReader::new(b"one\n\ntwo \xff\nthree".as_slice());
        copy_lines(3, &mut source, &mut written).expect("a vector");
        assert_eq!(written, b"[3] one\n[3] \n[3] two \xff\n[3] three\n");
    }
}
