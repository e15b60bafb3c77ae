//! The libraries that this process has loaded.

use std::fs;

/// Returns the file of the loaded library whose name begins with `prefix`, if the system reports
/// it.
pub(crate) fn library(prefix: &str) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    in_maps(&maps, prefix)
}

fn in_maps(maps: &str, prefix: &str) -> Option<String> {
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|begin| &line[begin..]));
    paths
        .filter(|path| !path.ends_with(" (deleted)"))
        .find(|path| {
            let name = path.rsplit('/').next();
            name.is_some_and(|name| name.starts_with(prefix))
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_by_prefix() {
        let maps = "\
7f00-7f01 r-xp 00000000 08:01 1  /usr/lib/libcudart.so.12\n\
7f02-7f03 rw-p 00000000 00:00 0\n\
7f04-7f05 r-xp 00000000 08:01 2  /usr/lib/my libcuda.so folder/other.so\n\
7f06-7f07 r-xp 00000000 08:01 3  /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03\n";
        assert_eq!(
            in_maps(maps, "libcuda.so").as_deref(),
            Some("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03")
        );
        assert_eq!(in_maps(maps, "libnvrtc.so"), None);
    }
}
