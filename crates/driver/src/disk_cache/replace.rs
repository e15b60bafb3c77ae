//! Replacing an entry that other processes may be reading.

use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

/// The number of attempts while another process has the entry open, and the pause between two of
/// them.
const ATTEMPTS: u32 = 250;
const PAUSE: Duration = Duration::from_millis(2);

/// Renames the file at `from`, which holds `bytes`, to `to`.
///
/// A rename replaces an open file on Unix, and since Windows 10 on NTFS. Other file systems of
/// Windows (FAT, network drives) refuse it while another process has the entry open. The rename is
/// then repeated, unless the entry already holds the same bytes.
pub(super) fn replace(from: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    match repeat(
        || fs::rename(from, to),
        || fs::read(to).is_ok_and(|contents| contents == bytes),
        cfg!(windows),
    ) {
        Ok(true) => Ok(()),
        Ok(false) => super::remove(from),
        Err(error) => Err(error),
    }
}

/// Repeats `rename` while it is refused because the entry is open. Returns `false` if the entry
/// turned out to hold the `same` bytes.
fn repeat(
    mut rename: impl FnMut() -> io::Result<()>,
    same: impl Fn() -> bool,
    refuses_open_files: bool,
) -> io::Result<bool> {
    for _ in 1..ATTEMPTS {
        match rename() {
            Err(error) if refuses_open_files && is_open(&error) => {}
            result => return result.map(|()| true),
        }
        if same() {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
    rename().map(|()| true)
}

/// Returns `true` for `ERROR_ACCESS_DENIED` and `ERROR_SHARING_VIOLATION` of Windows.
fn is_open(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(5 | 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Eq, PartialEq)]
    enum Entry {
        OtherBytes,
        SameBytes,
    }

    #[derive(Clone, Copy, Eq, PartialEq)]
    enum System {
        ReplacesOpenFiles,
        RefusesOpenFiles,
    }

    /// Returns the outcome of renames of which the first `refusals` are refused, and the number of
    /// renames.
    fn outcome(refusals: u32, entry: Entry, system: System) -> (Result<bool, Option<i32>>, u32) {
        let mut renames = 0;
        let rename = || {
            renames += 1;
            if renames <= refusals {
                Err(io::Error::from_raw_os_error(32))
            } else {
                Ok(())
            }
        };
        let result = repeat(
            rename,
            || entry == Entry::SameBytes,
            system == System::RefusesOpenFiles,
        );
        (result.map_err(|error| error.raw_os_error()), renames)
    }

    #[test]
    fn rename_over_an_open_entry_is_repeated() {
        assert_eq!(
            outcome(0, Entry::OtherBytes, System::RefusesOpenFiles),
            (Ok(true), 1)
        );
        assert_eq!(
            outcome(3, Entry::OtherBytes, System::RefusesOpenFiles),
            (Ok(true), 4)
        );
        assert_eq!(
            outcome(u32::MAX, Entry::OtherBytes, System::RefusesOpenFiles),
            (Err(Some(32)), ATTEMPTS)
        );
    }

    #[test]
    fn entry_with_the_same_bytes_is_not_replaced() {
        assert_eq!(
            outcome(u32::MAX, Entry::SameBytes, System::RefusesOpenFiles),
            (Ok(false), 1)
        );
    }

    #[test]
    fn other_errors_are_returned_at_once() {
        assert_eq!(
            outcome(u32::MAX, Entry::SameBytes, System::ReplacesOpenFiles),
            (Err(Some(32)), 1)
        );
        let refused = repeat(|| Err(io::ErrorKind::NotFound.into()), || true, true);
        assert_eq!(
            refused.map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }
}
