//! Compiled code of recent images, shared by the simulators of a process.

use std::sync::{Arc, OnceLock};

use curium_format::PtxVersion;

use crate::image::{Code, Refusal};
use crate::lock::{Mutex, Rank};

/// The most bytes of PTX in the cache. Longer texts are compiled for each load.
const MAX_BYTES: usize = 8 << 20;

/// The most images in the cache.
const MAX_IMAGES: usize = 32;

/// The images of this process.
pub(crate) static IMAGES: ImageCache = ImageCache::new();

/// The settings that the code of a text, or the reason why it was refused, depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) newest_ptx: PtxVersion,
    pub(crate) compute_capability: u32,
    pub(crate) race_checks: bool,
    pub(crate) uninitialized_checks: bool,
    pub(crate) max_registers: Option<u32>,
}

/// A cache of the images used last.
///
/// Compiled code is immutable and belongs to no driver: a test binary starts one simulator per
/// test, and each loads the same text.
pub(crate) struct ImageCache {
    /// The least recently used image first.
    images: Mutex<Vec<Arc<Image>>>,
}

struct Image {
    text: Box<str>,
    settings: Settings,
    /// Set by the thread that compiles the text, while others wait.
    compiled: OnceLock<Result<Arc<Code>, Refusal>>,
}

impl ImageCache {
    const fn new() -> Self {
        Self {
            images: Mutex::new(Rank::Images, Vec::new()),
        }
    }

    /// Returns the result of `compile` for a text, which is called unless the cache contains it.
    pub(crate) fn get_or_compile(
        &self,
        text: &str,
        settings: Settings,
        compile: impl FnOnce() -> Result<Code, Refusal>,
    ) -> Result<Arc<Code>, Refusal> {
        if text.len() > MAX_BYTES {
            return compile().map(Arc::new);
        }
        let image = self.image(text, settings);
        image
            .compiled
            .get_or_init(|| compile().map(Arc::new))
            .clone()
    }

    /// Returns the image of a text, which becomes the most recently used one.
    fn image(&self, text: &str, settings: Settings) -> Arc<Image> {
        let mut images = self.images.lock();
        let position = images
            .iter()
            .position(|image| image.settings == settings && *image.text == *text);
        let image = match position {
            Some(position) => images.remove(position),
            None => Arc::new(Image {
                text: text.into(),
                settings,
                compiled: OnceLock::new(),
            }),
        };
        images.push(Arc::clone(&image));
        let mut bytes: usize = images.iter().map(|image| image.text.len()).sum();
        let mut evicted = 0;
        while bytes > MAX_BYTES || images.len() - evicted > MAX_IMAGES {
            bytes -= images[evicted].text.len();
            evicted += 1;
        }
        images.drain(..evicted);
        image
    }
}

#[cfg(test)]
mod tests {
    use curium_ptx::exec::Program;
    use curium_sys::CUresult;

    use super::*;

    const SETTINGS: Settings = Settings {
        newest_ptx: PtxVersion::NEWEST_KNOWN,
        compute_capability: 90,
        race_checks: false,
        uninitialized_checks: false,
        max_registers: None,
    };

    fn empty_code() -> Result<Code, Refusal> {
        Ok(Code {
            program: Program::default(),
            names: Vec::new(),
            target: 90,
        })
    }

    /// Returns `true` if a load of the text compiles it.
    fn compiles(cache: &ImageCache, text: &str, settings: Settings) -> bool {
        let mut compiled = false;
        let code = cache.get_or_compile(text, settings, || {
            compiled = true;
            empty_code()
        });
        assert!(code.is_ok());
        compiled
    }

    #[test]
    fn text_is_compiled_once_per_settings() {
        let cache = ImageCache::new();
        assert!(compiles(&cache, "a", SETTINGS));
        assert!(compiles(&cache, "b", SETTINGS));
        assert!(!compiles(&cache, "a", SETTINGS));
        for other in [
            Settings {
                newest_ptx: PtxVersion::new(7, 0),
                ..SETTINGS
            },
            Settings {
                compute_capability: 100,
                ..SETTINGS
            },
            Settings {
                race_checks: true,
                ..SETTINGS
            },
            Settings {
                uninitialized_checks: true,
                ..SETTINGS
            },
            Settings {
                max_registers: Some(32),
                ..SETTINGS
            },
        ] {
            assert!(compiles(&cache, "a", other));
            assert!(!compiles(&cache, "a", other));
        }
    }

    #[test]
    fn refusal_is_kept_with_its_log() {
        let cache = ImageCache::new();
        for _ in 0..2 {
            let refused = cache.get_or_compile("a", SETTINGS, || {
                Err(Refusal::new(CUresult::CUDA_ERROR_INVALID_PTX, "line 1"))
            });
            let refusal = refused.err();
            assert!(refusal.is_some_and(|refusal| refusal.log == "line 1"));
        }
        assert!(cache.get_or_compile("a", SETTINGS, empty_code).is_err());
    }

    #[test]
    fn images_used_last_are_kept() {
        let cache = ImageCache::new();
        let names: Vec<_> = (0..=MAX_IMAGES).map(|name| name.to_string()).collect();
        for name in &names[..MAX_IMAGES] {
            assert!(compiles(&cache, name, SETTINGS));
        }
        assert!(!compiles(&cache, &names[0], SETTINGS));
        assert!(compiles(&cache, &names[MAX_IMAGES], SETTINGS));
        assert!(!compiles(&cache, &names[0], SETTINGS));
        assert!(compiles(&cache, &names[1], SETTINGS));
    }

    #[test]
    fn long_texts_are_bounded() {
        let cache = ImageCache::new();
        let half = " ".repeat(MAX_BYTES / 2);
        let other_half = "\n".repeat(MAX_BYTES / 2);
        let too_long = " ".repeat(MAX_BYTES + 1);
        assert!(compiles(&cache, &half, SETTINGS));
        assert!(compiles(&cache, &other_half, SETTINGS));
        assert!(!compiles(&cache, &half, SETTINGS));
        assert!(compiles(&cache, "a", SETTINGS));
        assert!(compiles(&cache, &other_half, SETTINGS));
        assert!(compiles(&cache, &too_long, SETTINGS));
        assert!(compiles(&cache, &too_long, SETTINGS));
    }

    /// The threads of a test binary load the same image at the same time.
    #[test]
    fn concurrent_loads_share_the_code() {
        let cache = ImageCache::new();
        let codes = std::thread::scope(|scope| {
            let loads = [(); 4].map(|()| {
                scope.spawn(|| {
                    cache.get_or_compile("a", SETTINGS, || {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        empty_code()
                    })
                })
            });
            loads.map(|load| load.join().ok().and_then(Result::ok))
        });
        for code in &codes[1..] {
            let shared = codes[0].as_ref().zip(code.as_ref());
            assert!(shared.is_some_and(|(first, other)| Arc::ptr_eq(first, other)));
        }
    }
}
