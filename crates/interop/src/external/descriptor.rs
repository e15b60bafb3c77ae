//! Transfer of file descriptors to the driver.

use std::ffi::c_long;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use curium_driver::{Error, Result};

/// Passes a descriptor to the driver through `import`. On success, the driver owns it; on failure,
/// it is closed.
///
/// On failure, some driver functions close the descriptor and some do not, and another thread may
/// already have reused its number. The driver therefore receives a duplicate, which is closed here
/// only if it still refers to the same file.
///
/// # Errors
///
/// The error of `import`; an argument error of `operation` if the process has no descriptors left.
pub(super) fn import_with_duplicate<T>(
    operation: &'static str,
    descriptor: OwnedFd,
    import: impl FnOnce(RawFd) -> Result<T>,
) -> Result<T> {
    let duplicate = descriptor.try_clone().map_err(|error| {
        Error::argument(
            operation,
            format!("the descriptor cannot be duplicated ({error})"),
        )
    })?;
    let duplicate = duplicate.into_raw_fd();
    let imported = import(duplicate);
    if imported.is_err() && is_duplicate(&descriptor, duplicate) {
        // SAFETY: it is still the duplicate, which the driver has not closed.
        drop(unsafe { OwnedFd::from_raw_fd(duplicate) });
    }
    drop(descriptor);
    imported
}

/// Returns `true` if `other` is open and refers to the same open file. Returns `false` if the
/// system cannot determine it: leaking a descriptor is better than closing one of another thread.
fn is_duplicate(descriptor: &OwnedFd, other: RawFd) -> bool {
    // The arguments are integers of this width.
    const KCMP_FILE: c_long = 0;
    let process = std::process::id() as c_long;
    let one = c_long::from(descriptor.as_raw_fd());
    let other = c_long::from(other);
    // SAFETY: the call compares two descriptors and accesses no memory.
    COMPARE.is_some_and(
        |number| unsafe { syscall(number, process, process, KCMP_FILE, one, other) } == 0,
    )
}

/// The number of the system call `kcmp`.
const COMPARE: Option<c_long> = match () {
    () if cfg!(miri) => None,
    () if cfg!(all(target_os = "linux", target_arch = "x86_64")) => Some(312),
    () if cfg!(all(target_os = "linux", target_arch = "aarch64")) => Some(272),
    () => None,
};

// SAFETY: `syscall` of the C library has this signature on every Unix that exports it.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// Returns the number of descriptors of this process for the file.
    fn descriptors(file: &File) -> usize {
        let wanted = file.metadata().expect("the file is open");
        let open = fs::read_dir("/proc/self/fd")
            .expect("the system lists them")
            .flatten();
        open.filter(|entry| {
            fs::metadata(entry.path()).is_ok_and(|metadata| {
                metadata.dev() == wanted.dev() && metadata.ino() == wanted.ino()
            })
        })
        .count()
    }

    fn failure() -> Error {
        Error::argument("import", "it fails")
    }

    /// Some drivers close the descriptor when the import fails, and others do not.
    #[test]
    fn descriptor_is_closed_once() {
        if COMPARE.is_none() {
            return;
        }
        let path = std::env::temp_dir().join(format!("curium-descriptor-{}", std::process::id()));
        let file = File::create(&path).expect("failed to create a file");
        fs::remove_file(&path).expect("the test owns the file");
        for closes in [false, true] {
            let descriptor = OwnedFd::from(file.try_clone().expect("there are descriptors"));
            let duplicate = import_with_duplicate("import", descriptor, |number| {
                assert_eq!(descriptors(&file), 3);
                if closes {
                    // SAFETY: the descriptor was passed on, as to a driver.
                    drop(unsafe { OwnedFd::from_raw_fd(number) });
                }
                Err::<(), _>(failure())
            });
            duplicate.expect_err("it fails");
            assert_eq!(descriptors(&file), 1, "closed by the driver: {closes}");
        }
    }

    #[test]
    fn descriptor_reused_by_another_file_is_not_closed() {
        let [file, other] = ["/dev/null", "/dev/zero"]
            .map(|path| OwnedFd::from(File::open(path).expect("failed to open the device file")));
        assert!(!is_duplicate(&file, other.as_raw_fd()));
        assert!(!is_duplicate(
            &file,
            OwnedFd::from(File::open("/dev/null").expect("failed to open the device file"))
                .as_raw_fd()
        ));
    }

    #[test]
    fn imported_descriptor_belongs_to_the_driver() {
        let file = OwnedFd::from(File::open("/dev/null").expect("failed to open the device file"));
        let other = file.try_clone().expect("there are descriptors");
        let taken = import_with_duplicate("import", other, Ok).expect("import failed");
        // SAFETY: the descriptor was received, as by a driver.
        let taken = unsafe { OwnedFd::from_raw_fd(taken) };
        assert!(COMPARE.is_none() || is_duplicate(&file, taken.as_raw_fd()));
    }
}
