//! Live blocks of mixed sizes, of which a random one is freed and another allocated.

use std::time::{Duration, Instant};

use anyhow::Result;
use curium::prelude::Stream;

use super::source::Source;
use crate::bench::suite::Implementation;

/// The live blocks of one implementation, which are freed on drop.
pub(super) struct Blocks<'a> {
    source: &'a Source,
    implementation: Implementation,
    stream: &'a Stream,
    blocks: Vec<(u64, usize)>,
    seed: u64,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        source: &'a Source,
        implementation: Implementation,
        stream: &'a Stream,
    ) -> Self {
        Self {
            source,
            implementation,
            stream,
            blocks: Vec::new(),
            seed: 1,
        }
    }

    pub(super) fn fill(&mut self, live: usize) -> Result<()> {
        self.blocks.reserve_exact(live);
        while self.blocks.len() < live {
            let block = self.allocate()?;
            self.blocks.push(block);
        }
        Ok(())
    }

    /// Frees a random block and allocates another, `count` times, and returns the elapsed time.
    pub(super) fn replace(&mut self, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            let index = random(&mut self.seed) as usize % self.blocks.len();
            let (address, bytes) = self.blocks.swap_remove(index);
            self.source
                .free(self.implementation, self.stream, address, bytes)?;
            let block = self.allocate()?;
            self.blocks.push(block);
        }
        Ok(begin.elapsed())
    }

    fn allocate(&mut self) -> Result<(u64, usize)> {
        let bytes = random_size(&mut self.seed);
        Ok((
            self.source
                .allocate(self.implementation, self.stream, bytes)?,
            bytes,
        ))
    }
}

impl Drop for Blocks<'_> {
    fn drop(&mut self) {
        for (address, bytes) in self.blocks.drain(..) {
            // The measurement reports failures.
            let _ = self
                .source
                .free(self.implementation, self.stream, address, bytes);
        }
    }
}

/// Returns a size from 512 B to 128 KiB, uniform in its logarithm.
fn random_size(seed: &mut u64) -> usize {
    let number = random(seed) as usize;
    let base = 512 << (number % 8);
    base + (number >> 8) % base
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 31)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_sizes_span_their_range() {
        let mut seed = 1;
        let sizes: Vec<_> = (0..10_000).map(|_| random_size(&mut seed)).collect();
        assert!(sizes.iter().all(|bytes| (512..128 << 10).contains(bytes)));
        assert!(
            sizes.iter().any(|bytes| *bytes < 1024) && sizes.iter().any(|bytes| *bytes > 64 << 10)
        );
    }
}
