//! Readers of the driver's log.

use std::path::Path;

use curium_sys::CUlogIterator;

use crate::base::c_string::c_path;
use crate::base::driver_log::{BUFFER, CAPACITY};
use crate::call;
use crate::{Driver, Result};

/// A position in the driver's log, which advances as the log is read.
///
/// Requires a driver for CUDA 12.9. The driver keeps the last 25,600 bytes. If older lines were
/// lost, the text begins with a notice.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// let mut log = driver.log_reader()?;
/// assert!(driver.device(1_000).is_err());
/// assert!(log.read()?.contains("cuDeviceGet"));
/// assert_eq!(log.read()?, "", "it was read");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogReader {
    driver: Driver,
    /// `None` means the start of the log.
    position: Option<CUlogIterator>,
}

impl Driver {
    /// Returns a reader positioned at the current end of the log.
    ///
    /// Requires CUDA 12.9. CUDA: `cuLogsCurrent`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuLogsCurrent")]
    pub fn log_reader(&self) -> Result<LogReader> {
        let position = current(self)?;
        Ok(LogReader {
            driver: self.clone(),
            position: Some(position),
        })
    }

    /// Returns a reader positioned at the start of the log.
    ///
    /// Requires CUDA 12.9.
    #[must_use]
    pub fn log_from_start(&self) -> LogReader {
        LogReader {
            driver: self.clone(),
            position: None,
        }
    }
}

impl LogReader {
    /// Returns the lines logged since the last call; empty if there are none.
    ///
    /// Requires CUDA 12.9. CUDA: `cuLogsDumpToMemory`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuLogsDumpToMemory")]
    pub fn read(&mut self) -> Result<String> {
        let mut buffer = vec![0_u8; BUFFER];
        let mut size = CAPACITY;
        let text = buffer.as_mut_ptr().cast();
        self.dump(|driver, position| {
            // SAFETY: `text` has room for the number of bytes in `size`, and `position` is null or
            // a position in this driver's log.
            unsafe { call!(driver, cuLogsDumpToMemory(position, text, &raw mut size, 0)) }
        })?;
        buffer.truncate(size);
        Ok(String::from_utf8_lossy(&buffer).into_owned())
    }

    /// Writes the lines logged since the last call to the file at `path`.
    ///
    /// Requires CUDA 12.9. CUDA: `cuLogsDumpToFile`.
    ///
    /// # Errors
    ///
    /// An argument error if the path contains a NUL; `CUDA_ERROR_INVALID_VALUE` if the file cannot
    /// be written.
    #[doc(alias = "cuLogsDumpToFile")]
    pub fn write_to(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let name = c_path("LogReader::write_to", path)?;
        let result = self.dump(|driver, position| {
            let name = name.as_ptr();
            // SAFETY: `name` is NUL-terminated, and `position` is null or a position in this
            // driver's log.
            unsafe { call!(driver, cuLogsDumpToFile(position, name, 0)) }
        });
        result.map_err(|error| error.about(path.display().to_string()))
    }

    /// Dumps the log from the reader's position and advances it.
    fn dump(&mut self, dump: impl FnOnce(&Driver, *mut CUlogIterator) -> Result<()>) -> Result<()> {
        if let Some(position) = &mut self.position {
            return dump(&self.driver, &raw mut *position);
        }
        // The driver does not return the end position of a dump from the start. Messages logged in
        // between are read twice rather than lost.
        let latest = current(&self.driver)?;
        dump(&self.driver, std::ptr::null_mut())?;
        self.position = Some(latest);
        Ok(())
    }
}

/// Returns the current end of the log.
fn current(driver: &Driver) -> Result<CUlogIterator> {
    let mut position = 0;
    // SAFETY: `position` is valid for writes, and 0 is the only value of the flags.
    unsafe { call!(driver, cuLogsCurrent(&raw mut position, 0)) }?;
    Ok(position)
}
