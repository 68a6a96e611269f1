//! The files in the memory map of a process (`/proc/PID/maps`, proc(5)).

use std::path::Path;

/// A part of a file in memory.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cmd) struct MappedFile<'a> {
    /// Its addresses, as `/proc/PID/map_files` names them.
    pub(in crate::cmd) range: &'a str,
    pub(in crate::cmd) file: &'a Path,
    /// The name was removed, or another file has it.
    pub(in crate::cmd) is_gone: bool,
}

/// All of them, in the order of their addresses; a file is there once for each part.
pub(in crate::cmd) fn files(maps: &str) -> impl Iterator<Item = MappedFile<'_>> {
    maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let name = &rest[rest.find('/')?..];
        let left = name.strip_suffix(" (deleted)");
        Some(MappedFile { range, file: Path::new(left.unwrap_or(name)), is_gone: left.is_some() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_memory_map() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12         /usr/bin/my python\n\
                    7f02-7f03 r-xp 00000000 08:01 13 /v/lib.so.22 (deleted)\n\
                    7f06-7f07 rw-p 00000000 00:00 0 [heap]\n\
                    \n";
        let file = |range, file, is_gone| MappedFile { range, file: Path::new(file), is_gone };
        let found: Vec<_> = files(maps).collect();
        let expected = [
            file("7f00-7f01", "/usr/bin/my python", false),
            file("7f02-7f03", "/v/lib.so.22", true),
        ];
        assert_eq!(found, expected);
    }
}
