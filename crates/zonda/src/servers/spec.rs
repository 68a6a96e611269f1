//! How many servers there are, and which files belong to which group: `groups=2,size=3,out_*=1`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::reading::Reading;

/// The servers of a run: groups, each with as many servers, and files that go to a certain group by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServersSpec {
    /// How many groups there are; 0 for a program that writes its files itself.
    pub groups: usize,
    /// How many servers a group has.
    pub size: usize,
    /// What servers read, too.
    pub read: Reading,
    /// Patterns of file names, each with the number of a group, from 1. The first one that fits decides.
    patterns: Vec<(String, usize)>,
}

/// Most groups, and most servers of one. Each server is a process.
const MOST_GROUPS: usize = 64;
/// Most servers in all.
const MOST_SERVERS: usize = 256;
/// The file in the folder of the sockets that says which servers there are.
const TABLE: &str = "servers";

impl Default for ServersSpec {
    fn default() -> ServersSpec {
        ServersSpec { groups: 1, size: 1, read: Reading::Off, patterns: Vec::new() }
    }
}

impl FromStr for ServersSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ServersSpec, String> {
        let (mut groups, mut size, mut read, mut patterns) = (None, None, None, Vec::new());
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.rsplit_once('=').unwrap_or((pair, ""));
            if key == "read" {
                let known = Reading::of(value);
                let what = known
                    .ok_or_else(|| format!("{pair}: known are read=on, read=all and read=off"))?;
                if read.replace(what).is_some() {
                    return Err(format!("{pair}: read is given twice"));
                }
                continue;
            }
            let number = value.parse::<usize>().map_err(|_| format!("{pair}: no number"))?;
            let (given, least) = match key {
                "groups" => (&mut groups, 0),
                "size" => (&mut size, 1),
                pattern if pattern.contains(['*', '?', '.']) => {
                    patterns.push((pattern.to_owned(), number));
                    continue;
                }
                _ => {
                    return Err(format!(
                        "{pair}: known are groups=N, size=N, read=on, and patterns of file names as out_*=N or run.nc=N"
                    ));
                }
            };
            if !(least..=MOST_GROUPS).contains(&number) {
                return Err(format!("{pair}: {key} is a number from {least} to {MOST_GROUPS}"));
            }
            if given.replace(number).is_some() {
                return Err(format!("{pair}: {key} is given twice"));
            }
        }
        let (groups, size) = (groups.unwrap_or(1), size.unwrap_or(1));
        if groups * size > MOST_SERVERS {
            return Err(format!("{text}: {} servers; at most {MOST_SERVERS}", groups * size));
        }
        // Without servers, patterns mean nothing: the rest of the text may stay.
        let wrong = patterns.iter().find(|(_, group)| groups > 0 && !(1..=groups).contains(group));
        if let Some((pattern, group)) = wrong {
            return Err(format!("{pattern}={group}: groups have the numbers 1 to {groups}"));
        }
        Ok(ServersSpec { groups, size, read: read.unwrap_or_default(), patterns })
    }
}

impl fmt::Display for ServersSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "groups={},size={}", self.groups, self.size)?;
        if self.read != Reading::Off {
            write!(f, ",read={}", self.read.word())?;
        }
        self.patterns.iter().try_for_each(|(pattern, group)| write!(f, ",{pattern}={group}"))
    }
}

impl ServersSpec {
    /// The group, from 1, to which a file goes by its name; `None` for one that any group may take.
    pub(super) fn group_of(&self, path: &Path) -> Option<usize> {
        let name: Vec<char> = path.file_name()?.to_string_lossy().chars().collect();
        let fits = |pattern: &String| fits(&pattern.chars().collect::<Vec<_>>(), &name);
        self.patterns.iter().find(|(pattern, _)| fits(pattern)).map(|(_, group)| *group)
    }

    /// The sockets of all servers in a folder, which are those of one group after the other.
    pub fn sockets(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let (groups, size, folder) = (self.groups, self.size, folder.to_owned());
        (0..groups * size).map(move |at| socket(&folder, at / size + 1, at % size + 1))
    }

    /// Writes down in a folder which servers there are, for clients.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(TABLE), self.to_string())
    }

    /// The servers of a folder; `None` where it names none.
    pub(super) fn of_folder(folder: &Path) -> Option<ServersSpec> {
        std::fs::read_to_string(folder.join(TABLE)).ok()?.parse().ok()
    }
}

/// The socket of a server: numbers of its group and of the member, from 1.
pub(super) fn socket(folder: &Path, group: usize, member: usize) -> PathBuf {
    folder.join(format!("{group}.{member}"))
}

/// The member that has a socket, from 0; `None` for another path.
pub(super) fn member_at(socket: &Path) -> Option<usize> {
    let (_, member) = socket.file_name()?.to_str()?.split_once('.')?;
    member.parse::<usize>().ok()?.checked_sub(1)
}

/// The socket at which another member of the group of a server waits for the others. Members count from 0.
pub(super) fn meeting_place(socket: &Path, member: usize) -> Option<PathBuf> {
    let (group, _) = socket.file_name()?.to_str()?.split_once('.')?;
    Some(socket.with_file_name(format!("{group}.{}.members", member + 1)))
}

/// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The last `*`, and how much of the name is behind what it stands for.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || Some(wanted) == name.get(n) => {
                (p, n) = (p + 1, n + 1);
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs() {
        let spec = |text: &str| text.parse::<ServersSpec>();
        let numbers = |text: &str| spec(text).map(|spec| (spec.groups, spec.size));
        assert_eq!(numbers("groups=2,size=3"), Ok((2, 3)));
        assert_eq!(numbers(""), Ok((1, 1)));
        let reading = spec("read=all,groups=2").unwrap();
        assert!(reading.read == Reading::All && reading.to_string().parse() == Ok(reading));
        assert_eq!(numbers("size=4, groups=64"), Ok((64, 4)));
        assert_eq!(numbers("groups=0,out_*=7"), Ok((0, 1)));
        for (wrong, why) in [
            ("groups=x", "groups=x: no number"),
            ("groups", "groups: no number"),
            ("groups=-1", "groups=-1: no number"),
            ("groups=65", "groups is a number from 0 to 64"),
            ("size=0", "size is a number from 1 to 64"),
            ("groups=64,size=5", "320 servers"),
            ("groups=1,groups=2", "groups is given twice"),
            ("group=2", "group=2: known are groups=N, size=N, read=on, and patterns"),
            ("groups=2,out_*=3", "out_*=3: groups have the numbers 1 to 2"),
            ("*.nc=0", "*.nc=0: groups have the numbers 1 to 1"),
            ("*.nc", "*.nc: no number"),
        ] {
            let error = spec(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let text = "groups=3,size=2,out_*=2,a=b?=1";
        assert_eq!(spec(text).unwrap().to_string(), text);
        assert_eq!(spec("").unwrap(), ServersSpec::default());
    }

    #[test]
    fn the_first_pattern_that_fits_decides() {
        let spec: ServersSpec = "groups=3,out_*=2,out_1?.nc=3,*.h5=1".parse().unwrap();
        let group = |path: &str| spec.group_of(Path::new(path));
        assert_eq!(group("/a/out_12.nc"), Some(2));
        assert_eq!(group("b.h5"), Some(1));
        assert_eq!(group("out_/b.nc"), None, "the name and not the path");
        assert_eq!(group("xout_1.nc"), None);
    }

    #[test]
    fn patterns() {
        let fits = |pattern: &str, name: &str| {
            fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("a", "a"),
            ("?", "é"),
            ("a*", "a"),
            ("*a*b", "aaab"),
            ("*.nc", ".nc.nc"),
            ("a**b?", "abbc"),
            ("*abc", "ababc"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("?", ""),
            ("a", "ab"),
            ("*a", "ab"),
            ("a*b", "acbc"),
            ("?*", ""),
            ("A", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        // No time of powers.
        assert!(!fits(&"*a".repeat(50), &"a".repeat(49)));
    }

    #[test]
    fn sockets_and_their_members() {
        let folder = Path::new("/f");
        let spec: ServersSpec = "groups=2,size=2".parse().unwrap();
        let sockets: Vec<PathBuf> = spec.sockets(folder).collect();
        assert_eq!(sockets, ["/f/1.1", "/f/1.2", "/f/2.1", "/f/2.2"].map(PathBuf::from));
        assert_eq!(sockets[2], socket(folder, 2, 1));
        assert_eq!(member_at(&sockets[1]), Some(1));
        assert_eq!(meeting_place(&sockets[3], 0), Some("/f/2.1.members".into()));
        assert!(
            ["/f/1", "/f/1.x", "/f/1.0", "/"]
                .iter()
                .all(|path| member_at(Path::new(path)).is_none())
        );
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ServersSpec::of_folder(folder.path()), None);
        spec.write_to(folder.path()).unwrap();
        assert_eq!(ServersSpec::of_folder(folder.path()), Some(spec));
    }
}
