//! The headers of several CUDA versions, parsed side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};

use super::header::{self, Clang, Header};
use crate::package::{CudaVersion, Pins};
use crate::version::Version;

/// Returns the pinned headers of `versions`, or of all if none is given.
pub(crate) fn parse(
    clang: &Clang,
    pins: &Pins,
    versions: &[Version],
) -> Result<BTreeMap<Version, Header>> {
    let pinned: Vec<_> = if versions.is_empty() {
        pins.cuda.iter().collect()
    } else {
        versions
            .iter()
            .map(|version| pins.cuda(*version))
            .collect::<Result<_>>()?
    };
    let texts = declarations(clang, &pinned)?;
    pinned
        .iter()
        .zip(texts)
        .map(|(cuda, text)| Ok((cuda.version, read(cuda, text)?)))
        .collect()
}

/// Parses the header at `path`, and returns it under the version that it declares.
pub(crate) fn one(clang: &Clang, path: &Path) -> Result<BTreeMap<Version, Header>> {
    let header = Header::parse(clang, path)?;
    let version = header
        .surface
        .version()
        .with_context(|| path.display().to_string())?;
    Ok(BTreeMap::from([(version, header)]))
}

/// Parses the header of each of `pinned` with bindgen, in this order, with one thread per core.
fn declarations(clang: &Clang, pinned: &[&CudaVersion]) -> Result<Vec<String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut texts = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(cuda) = pinned.get(index)
        {
            texts.push((
                index,
                header::declarations(clang, &cuda.include()?.join("cuda.h"))?,
            ));
        }
        Ok::<_, anyhow::Error>(texts)
    };
    let mut texts = BTreeMap::new();
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            texts.extend(
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            );
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(texts.into_values().collect())
}

fn read(cuda: &CudaVersion, text: String) -> Result<Header> {
    let header = Header::read(text).with_context(|| format!("CUDA {}", cuda.version))?;
    let version = header.surface.version()?;
    ensure!(
        version == cuda.version,
        "the header pinned for CUDA {} is that of CUDA {version}",
        cuda.version
    );
    Ok(header)
}
