//! Over how many servers of a Lustre file system a file is spread, and in which pieces.
//!
//! Lustre spreads a file in *stripes*, which its servers (object storage targets) have in turn. A file gets its layout when it is made, and keeps it: so
//! who wants another one than that of the folder makes the file without one, and says which before anything is written. All of it is
//! a system call or two that other file systems do not know, so they are asked of nothing but Lustre. Nothing here is needed for a file to be right.

use std::path::Path;

use crate::backend::{File, folder_of};
use crate::os::{Errno, Fd};

/// `LUSTRE_SUPER_MAGIC`: what `statfs` says of Lustre.
const LUSTRE: u64 = 0x0BD0_0BD0;
/// The beginning of a `struct lov_user_md`: of simple layouts there are two, which differ behind the numbers that are read here.
const LOV_USER_MAGIC_V1: u32 = 0x0BD1_0BD0;
const LOV_USER_MAGIC_V3: u32 = 0x0BD3_0BD0;
/// Bytes of a `struct lov_user_md_v1` without the list of servers.
const LAYOUT_BYTES: usize = 32;

/// How a file is spread over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Striping {
    /// Bytes of a stripe; 0 leaves it to the file system.
    pub unit_bytes: u64,
    /// Servers that have stripes in turn; 0 leaves it to the file system.
    pub n_servers: u64,
}

/// What became of a wish for a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripedFile {
    /// The file was made, with the layout.
    Made,
    /// The file was made, and Lustre refused the layout with this error of the system: it has that of its folder.
    MadePlain(i32),
    /// The file was there, and keeps its layout.
    Existed,
    /// The folder is not on Lustre: nothing was made.
    NotLustre,
    /// The file could not be made: this error of the system. Who opens it next is told why.
    NotMade(i32),
}

impl StripedFile {
    /// Whether the file is there now and was not before.
    #[must_use]
    pub fn is_made(self) -> bool {
        matches!(self, StripedFile::Made | StripedFile::MadePlain(_))
    }
}

/// Makes a file with a layout, where its folder is on Lustre. It is empty, and closed again; a file that is there is left alone.
#[must_use]
pub fn make_striped(path: &Path, striping: Striping) -> StripedFile {
    let folder = folder_of(path).ok().flatten();
    make_by(folder.as_ref(), || Fd::make_without_layout(path), striping)
}

/// What is asked of the system about an open file.
trait LayoutCalls {
    /// The magic number of the file system.
    fn file_system(&self) -> Result<u64, Errno>;

    /// Gives the file its layout.
    fn set_layout(&self, layout: &[u8; LAYOUT_BYTES]) -> Result<(), Errno>;

    /// The layout that it has.
    fn layout(&self) -> Result<Vec<u8>, Errno>;
}

impl LayoutCalls for Fd {
    fn file_system(&self) -> Result<u64, Errno> {
        Fd::file_system(self)
    }

    fn set_layout(&self, layout: &[u8; LAYOUT_BYTES]) -> Result<(), Errno> {
        Fd::set_layout(self, layout)
    }

    fn layout(&self) -> Result<Vec<u8>, Errno> {
        Fd::layout(self)
    }
}

fn make_by<C: LayoutCalls>(
    folder: Option<&C>,
    make: impl FnOnce() -> Result<C, Errno>,
    striping: Striping,
) -> StripedFile {
    if folder.map(LayoutCalls::file_system) != Some(Ok(LUSTRE)) {
        return StripedFile::NotLustre;
    }
    match make() {
        Err(Errno(libc::EEXIST)) => StripedFile::Existed,
        Err(Errno(errno)) => StripedFile::NotMade(errno),
        Ok(file) => match file.set_layout(&layout_of(striping)) {
            Ok(()) => StripedFile::Made,
            Err(Errno(errno)) => StripedFile::MadePlain(errno),
        },
    }
}

fn striping_by(file: &impl LayoutCalls) -> Option<Striping> {
    if file.file_system() != Ok(LUSTRE) {
        return None;
    }
    striping_of(&file.layout().ok()?)
}

impl File {
    /// How the file is spread over the servers of Lustre; `None` on another file system, and for layouts of several components.
    #[must_use]
    pub fn striping(&self) -> Option<Striping> {
        striping_by(&*self.fd)
    }
}

/// A `struct lov_user_md_v1`, in the order of this machine's bytes: magic (4), pattern (4; 0 is the default), object (16), bytes of a
/// stripe (4), number of servers (2; all ones are all of them), the first server (2; all ones leave it to Lustre).
fn layout_of(Striping { unit_bytes, n_servers }: Striping) -> [u8; LAYOUT_BYTES] {
    let unit = u32::try_from(unit_bytes).unwrap_or(u32::MAX);
    let servers = u16::try_from(n_servers).unwrap_or(u16::MAX);
    let mut layout = [0; LAYOUT_BYTES];
    layout[..4].copy_from_slice(&LOV_USER_MAGIC_V1.to_ne_bytes());
    layout[24..28].copy_from_slice(&unit.to_ne_bytes());
    layout[28..30].copy_from_slice(&servers.to_ne_bytes());
    layout[30..].copy_from_slice(&u16::MAX.to_ne_bytes());
    layout
}

/// What a structure of Lustre says; `None` for one that is of another kind, or says nothing.
fn striping_of(layout: &[u8]) -> Option<Striping> {
    let layout = layout.first_chunk::<LAYOUT_BYTES>()?;
    let magic = u32::from_ne_bytes(*layout.first_chunk()?);
    let unit = u32::from_ne_bytes(*layout.get(24..)?.first_chunk()?);
    let servers = u16::from_ne_bytes(*layout.get(28..)?.first_chunk()?);
    let is_simple = matches!(magic, LOV_USER_MAGIC_V1 | LOV_USER_MAGIC_V3);
    let found = Striping { unit_bytes: unit.into(), n_servers: servers.into() };
    (is_simple && unit > 0 && servers > 0 && servers < u16::MAX).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A file system that is made up.
    #[derive(Clone)]
    struct MadeUp {
        magic: u64,
        /// What it answers to a layout.
        errno: Option<i32>,
        layout: Rc<RefCell<Vec<u8>>>,
    }

    impl MadeUp {
        fn new(magic: u64, errno: Option<i32>) -> MadeUp {
            MadeUp { magic, errno, layout: Rc::default() }
        }
    }

    impl LayoutCalls for MadeUp {
        fn file_system(&self) -> Result<u64, Errno> {
            Ok(self.magic)
        }

        fn set_layout(&self, layout: &[u8; LAYOUT_BYTES]) -> Result<(), Errno> {
            self.layout.replace(layout.to_vec());
            self.errno.map_or(Ok(()), |errno| Err(Errno(errno)))
        }

        fn layout(&self) -> Result<Vec<u8>, Errno> {
            let layout = self.layout.borrow().clone();
            if layout.is_empty() { Err(Errno(libc::ENODATA)) } else { Ok(layout) }
        }
    }

    const WANTED: Striping = Striping { unit_bytes: 4 << 20, n_servers: 12 };

    #[test]
    fn the_bytes_are_those_of_lov_user_md_v1() {
        let lustre = MadeUp::new(LUSTRE, None);
        let made = make_by(Some(&lustre), || Ok(lustre.clone()), WANTED);
        assert_eq!((made, made.is_made()), (StripedFile::Made, true));
        let mut expected = [0; 32];
        expected[..4].copy_from_slice(&[0xd0, 0x0b, 0xd1, 0x0b]);
        expected[24..].copy_from_slice(&[0, 0, 0x40, 0, 12, 0, 0xff, 0xff]);
        if cfg!(target_endian = "little") {
            assert_eq!(*lustre.layout.borrow(), expected);
        }
        assert_eq!(striping_by(&lustre), Some(WANTED));
        // What does not fit is the most that does: all servers.
        let much = Striping { unit_bytes: 1 << 40, n_servers: 1 << 20 };
        assert_eq!(layout_of(much)[24..], [0xff; 8]);
    }

    #[test]
    fn errors_leave_a_file_as_it_is() {
        let lustre = |errno| MadeUp::new(LUSTRE, errno);
        let make = |errno: Option<i32>, made: Result<MadeUp, Errno>| {
            make_by(Some(&lustre(errno)), || made, WANTED)
        };
        let refused = make(None, Ok(lustre(Some(libc::EINVAL))));
        assert_eq!((refused, refused.is_made()), (StripedFile::MadePlain(libc::EINVAL), true));
        let there = make(None, Err(Errno(libc::EEXIST)));
        assert_eq!((there, there.is_made()), (StripedFile::Existed, false));
        let denied = make(None, Err(Errno(libc::EACCES)));
        assert_eq!((denied, denied.is_made()), (StripedFile::NotMade(libc::EACCES), false));
    }

    #[test]
    fn other_file_systems_are_asked_nothing() {
        const EXT4: u64 = 0xEF53;
        let folder = MadeUp::new(EXT4, None);
        let never = || -> Result<MadeUp, Errno> { panic!("a file was made") };
        assert_eq!(make_by(Some(&folder), never, WANTED), StripedFile::NotLustre);
        assert_eq!(make_by(None, never, WANTED), StripedFile::NotLustre);
        folder.layout.replace(layout_of(WANTED).to_vec());
        assert_eq!(striping_by(&folder), None);
        // A file of the system that this runs on.
        let own = tempfile::NamedTempFile::new().unwrap();
        let path = own.path().with_extension("striped");
        if make_striped(&path, WANTED) == StripedFile::NotLustre {
            assert!(!path.exists());
            assert_eq!(File::open_read(own.path()).unwrap().striping(), None);
        }
    }

    #[test]
    fn layouts_of_other_kinds_say_nothing() {
        let lustre = MadeUp::new(LUSTRE, None);
        assert_eq!(striping_by(&lustre), None);
        let whole = layout_of(WANTED);
        for len in 0..whole.len() {
            assert_eq!(striping_of(&whole[..len]), None, "{len}");
        }
        let mut longer = whole.to_vec();
        longer[..4].copy_from_slice(&LOV_USER_MAGIC_V3.to_ne_bytes());
        longer.extend_from_slice(&[7; 40]);
        assert_eq!(striping_of(&longer), Some(WANTED));
        // A composite layout; one that says nothing of its stripes; one of all servers.
        longer[..4].copy_from_slice(&0x0BD6_0BD0u32.to_ne_bytes());
        assert_eq!(striping_of(&longer), None);
        assert_eq!(striping_of(&layout_of(Striping::default())), None);
        assert_eq!(striping_of(&layout_of(Striping { n_servers: 1 << 20, ..WANTED })), None);
    }
}
