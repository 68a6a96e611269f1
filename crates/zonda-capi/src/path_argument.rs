//! The path argument of functions that open files: a path with options behind a `#`, or a URL.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use zonda::{Format, NcError, WriteBehind};
use zonda_user_format::number_in_url;

/// A path argument, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PathArgument {
    /// The file.
    pub(crate) path: Vec<u8>,
    /// Layer spec of `#zonda.io=`.
    pub(crate) io: Option<String>,
    /// What `#zonda.async=` says.
    pub(crate) write_behind: Option<WriteBehind>,
    /// Whether the mode of a URL asks for netCDF-4. It counts for new files only.
    pub(crate) netcdf4: bool,
    /// The format that the mode of a URL asks for, if it is none of netCDF's own; for new files only.
    pub(crate) format: Option<Format>,
    /// The number of the program's own format that the mode of a URL names; its path is then the URL.
    pub(crate) user_format: Option<usize>,
    /// Whether the path is the URL of a file on a server.
    pub(crate) is_remote: bool,
    /// Whether the mode of a URL asks for the bytes of a file (`mode=bytes`).
    pub(crate) asks_for_bytes: bool,
    /// The first of the modes of OPeNDAP that a URL names.
    pub(crate) dap: Option<&'static str>,
    /// Whether the path is the URL of a dataset of OPeNDAP, on a server or saved. Another URL of a server may be one, too.
    pub(crate) is_dap: bool,
}

/// Protocols of servers: of files that are read by ranges of bytes, and of datasets of OPeNDAP.
const REMOTE: [&[u8]; 5] = [b"http", b"https", b"s3", b"dods", b"dap4"];
/// Those of OPeNDAP alone, and the mode that says the same of a URL.
const DAP_PROTOCOLS: [(&[u8], &str); 2] = [(b"dods", "dap2"), (b"dap4", "dap4")];
/// Words in `mode=` that mean OPeNDAP.
const DAP_MODES: [&str; 2] = ["dap2", "dap4"];
/// Words in `mode=` that mean something other than a file in a format of Zonda.
const FOREIGN_MODES: [&str; 4] = ["nczarr", "zarr", "xarray", "noxarray"];
/// The word in `mode=` for the bytes of a file.
const BYTES_MODE: &str = "bytes";
/// The word in `mode=` for a server that speaks S3.
const S3_MODE: &str = "s3";
/// Words in `mode=` that mean netCDF-4.
const NETCDF4_MODES: [&str; 2] = ["netcdf-4", "enhanced"];

/// Longest path argument in bytes: more than any file system takes as a path.
const MOST_PATH_BYTES: usize = 64 << 10;

impl PathArgument {
    /// Reads a path argument; also gives the text that `nc_inq_path` gives back for it.
    ///
    /// # Errors
    /// As [`parse`].
    ///
    /// # Safety
    /// `path` is a NUL-terminated string.
    pub(crate) unsafe fn from_c(path: *const c_char) -> Result<(PathArgument, CString), NcError> {
        // SAFETY: the contract above.
        let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
        if bytes.len() > MOST_PATH_BYTES {
            return Err(NcError::System(libc::ENAMETOOLONG));
        }
        let parsed = parse(bytes)?;
        let shown_path =
            if parsed.is_remote { parsed.shown_url() } else { without_blanks(bytes).to_vec() };
        let shown_path = CString::new(shown_path).map_err(|_| NcError::Inval)?;
        Ok((parsed, shown_path))
    }

    /// A URL as `nc_inq_path` gives it: without user, password, query and settings, which may be secrets, but with what opens it as the
    /// bytes of a file again.
    fn shown_url(&self) -> Vec<u8> {
        let mut shown = zonda::shown_name(self.os_path()).as_os_str().as_bytes().to_vec();
        if self.asks_for_bytes {
            shown.extend_from_slice(b"#mode=bytes");
        } else if let Some(mode) = self.dap_mode().filter(|_| self.is_dap) {
            // What is behind the question mark is a constraint, and no secret.
            let end = |text: &[u8]| text.iter().position(|&byte| byte == b'#');
            let rest = &self.path[..end(&self.path).unwrap_or(self.path.len())];
            if let Some(query) = rest.iter().position(|&byte| byte == b'?') {
                shown.extend_from_slice(&rest[query..]);
            }
            shown.extend_from_slice(b"#mode=");
            shown.extend_from_slice(mode.as_bytes());
        }
        shown
    }

    /// The version of OPeNDAP that the protocol of a URL names, or its mode.
    fn dap_mode(&self) -> Option<&'static str> {
        let (protocol, ..) = split_url(&self.path)?;
        let by_protocol =
            DAP_PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(protocol));
        by_protocol.map(|(_, mode)| *mode).or(self.dap)
    }

    /// Takes note of a word of `mode=` that says where a file is.
    fn apply_mode(&mut self, word: &str) -> Result<(), NcError> {
        let is_foreign = FOREIGN_MODES.contains(&word) || (word == S3_MODE && !self.is_remote);
        if is_foreign {
            return Err(NcError::NotBuilt);
        }
        self.asks_for_bytes |= word == BYTES_MODE;
        self.dap = self.dap.or_else(|| DAP_MODES.into_iter().find(|mode| *mode == word));
        Ok(())
    }

    /// The file, for messages.
    pub(crate) fn shown_file(&self) -> String {
        zonda::shown_name(self.os_path()).display().to_string()
    }

    /// The file, for the operating system.
    pub(crate) fn os_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

/// The argument without blanks and control characters at its begin.
fn without_blanks(argument: &[u8]) -> &[u8] {
    let blanks = argument.iter().take_while(|&&byte| byte <= b' ').count();
    &argument[blanks..]
}

/// Reads a path argument. Blanks and control characters in front are not part of it.
///
/// A plain path may end in `#zonda.KEY=VALUE&...`; any other `#` belongs to the file name, as the
/// reference has it. `file:` URLs lead to their path. URLs of files on servers stay as they are, but
/// for keys that begin with `zonda.`.
///
/// # Errors
/// `NC_EURL` for nothing, `NC_EINVAL` for a protocol nobody knows and for a `zonda.` key nobody knows,
/// `NC_ENOTBUILT` for what is not a file in a format of Zonda.
fn parse(argument: &[u8]) -> Result<PathArgument, NcError> {
    let text = without_blanks(argument);
    if text.is_empty() {
        return Err(NcError::DapUrl);
    }
    match split_url(text) {
        None => plain_path(text),
        Some((.., fragment)) if number_in_url(fragment).is_some() => {
            let user_format = number_in_url(fragment);
            Ok(PathArgument { path: text.to_vec(), user_format, ..PathArgument::default() })
        }
        Some((b"file", path, fragment)) => {
            if zonda::names_dap(Path::new(OsStr::from_bytes(text))) {
                return Ok(PathArgument { is_remote: false, ..url(text, fragment)? });
            }
            let mut parsed = PathArgument { path: path.to_vec(), ..PathArgument::default() };
            apply_fragment(&mut parsed, fragment)?;
            Ok(parsed)
        }
        Some((protocol, _, fragment)) if cfg!(feature = "remote") && has(&REMOTE, protocol) => {
            url(text, fragment)
        }
        Some((protocol, ..)) if has(&REMOTE, protocol) => Err(NcError::NotBuilt),
        Some(_) => Err(NcError::Inval),
    }
}

/// Whether a protocol is one of these; letters of either case are the same.
fn has(protocols: &[&[u8]], protocol: &[u8]) -> bool {
    protocols.iter().any(|known| known.eq_ignore_ascii_case(protocol))
}

/// A path argument that is no URL.
fn plain_path(text: &[u8]) -> Result<PathArgument, NcError> {
    let hash = text.iter().rposition(|&byte| byte == b'#');
    if let Some(hash) = hash {
        let (path, fragment) = (&text[..hash], &text[hash + 1..]);
        let is_zonda_key = |pair: &[u8]| pair.starts_with(b"zonda.");
        if !path.is_empty() && fragment.split(|&byte| byte == b'&').any(is_zonda_key) {
            let mut parsed = PathArgument { path: path.to_vec(), ..PathArgument::default() };
            apply_fragment(&mut parsed, fragment)?;
            return Ok(parsed);
        }
    }
    Ok(PathArgument { path: text.to_vec(), ..PathArgument::default() })
}

/// The URL of a file on a server, or of a dataset of OPeNDAP. Settings may stand in brackets before it and in its fragment.
fn url(text: &[u8], fragment: &[u8]) -> Result<PathArgument, NcError> {
    let is_dap = zonda::names_dap(Path::new(OsStr::from_bytes(text)));
    // The word `s3` is refused of paths, and not of URLs.
    let mut parsed = PathArgument { is_remote: true, is_dap, ..PathArgument::default() };
    let mut rest = text;
    while let Some(inside) = rest.strip_prefix(b"[") {
        let Some(close) = inside.iter().position(|&byte| byte == b']') else { break };
        apply_fragment(&mut parsed, &inside[..close])?;
        rest = &inside[close + 1..];
    }
    apply_fragment(&mut parsed, fragment)?;
    // Those of other libraries are for what opens URLs.
    let kept = |pair: &&[u8]| !pair.get(..6).is_some_and(|key| key.eq_ignore_ascii_case(b"zonda."));
    let kept: Vec<&[u8]> = fragment.split(|&byte| byte == b'&').filter(kept).collect();
    parsed.path = match text.iter().position(|&byte| byte == b'#') {
        Some(hash) if kept.is_empty() => text[..hash].to_vec(),
        Some(hash) => [&text[..=hash], &kept.join(&b'&')].concat(),
        None => text.to_vec(),
    };
    Ok(parsed)
}

/// Protocol, path and fragment of a URL; `None` for anything that is none.
fn split_url(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // Clients may put parameters in brackets in front: [mode=...]http://...
    let mut text = text;
    while let Some(rest) = text.strip_prefix(b"[") {
        let close = rest.iter().position(|&byte| byte == b']')?;
        text = &rest[close + 1..];
    }
    let end = text.iter().position(|&byte| byte == b'?' || byte == b'#').unwrap_or(text.len());
    let fragment = match text.iter().position(|&byte| byte == b'#') {
        Some(hash) => &text[hash + 1..],
        None => &[],
    };
    let text = &text[..end];
    let colon = text.iter().position(|&byte| byte == b':').filter(|&at| at > 0)?;
    let (protocol, rest) = (&text[..colon], &text[colon + 1..]);
    if protocol == b"file" {
        // file:/path, file:///path, and file://path, where the reference sees no host.
        let path = match rest {
            [b'/', b'/', b'/', b'/', ..] | [b'/', b'/'] | [b'/'] => return None,
            [b'/', b'/', path @ ..] => path,
            [b'/', ..] => rest,
            _ => return None,
        };
        return Some((protocol, path, fragment));
    }
    let host = rest.strip_prefix(b"//")?;
    Some((protocol, host, fragment))
}

/// Applies `key=value&...`. Keys of other libraries are ignored.
fn apply_fragment(parsed: &mut PathArgument, fragment: &[u8]) -> Result<(), NcError> {
    for pair in fragment.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
        let text = std::str::from_utf8(pair).map_err(|_| NcError::Inval)?;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        match key.to_ascii_lowercase().as_str() {
            "zonda.io" => parsed.io = Some(value.to_owned()),
            "zonda.async" => {
                let write_behind = value.parse().map_err(|_| NcError::Inval)?;
                parsed.write_behind = Some(write_behind);
            }
            key if key.starts_with("zonda.") => return Err(NcError::Inval),
            "mode" => {
                for word in value.split(',') {
                    let word = word.to_ascii_lowercase();
                    parsed.apply_mode(&word)?;
                    parsed.netcdf4 |= NETCDF4_MODES.contains(&word.as_str());
                    parsed.format = parsed.format.or_else(|| zonda::format_named(&word));
                }
            }
            // Some modes may stand alone.
            word if value.is_empty() => parsed.apply_mode(word)?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(argument: &str) -> Result<String, NcError> {
        parse(argument.as_bytes()).map(|parsed| String::from_utf8(parsed.path).unwrap())
    }

    #[test]
    fn blanks_in_front_go_and_nothing_is_refused() {
        assert_eq!(path("  \t\na b.nc "), Ok("a b.nc ".into()));
        assert_eq!(path("\u{e9}.nc"), Ok("\u{e9}.nc".into()));
        assert_eq!(path(""), Err(NcError::DapUrl));
        assert_eq!(path(" \n"), Err(NcError::DapUrl));
    }

    #[test]
    fn a_fragment_of_ours_is_cut_off_and_others_are_part_of_the_name() {
        let parsed = parse(b"a#1.nc#zonda.io=cache:256:8").unwrap();
        assert_eq!(parsed.path, b"a#1.nc");
        assert_eq!(parsed.io.as_deref(), Some("cache:256:8"));
        assert_eq!(path("a.nc#mode=nczarr"), Ok("a.nc#mode=nczarr".into()));
        assert_eq!(path("a.nc#x&zonda.async=off"), Ok("a.nc".into()));
        let parsed = parse(b"a.nc#zonda.async=mem=1M,threads=2&zonda.io=file").unwrap();
        assert_eq!(
            parsed.write_behind.map(|write_behind| write_behind.to_string()),
            Some("mem=1048576,threads=2".into())
        );
        assert_eq!(path("a.nc#zonda.async=sometimes"), Err(NcError::Inval));
        assert_eq!(path("a.nc#zonda.nonsense=1"), Err(NcError::Inval));
    }

    #[test]
    fn urls() {
        assert_eq!(path("file:///tmp/a.nc"), Ok("/tmp/a.nc".into()));
        assert_eq!(path("file:/tmp/a.nc"), Ok("/tmp/a.nc".into()));
        assert_eq!(path("file://a.nc#mode=classic"), Ok("a.nc".into()));
        assert_eq!(path("file:///tmp/a#mode=zarr"), Err(NcError::NotBuilt));
        let saved = parse(b"file:///tmp/a#dap2").unwrap();
        assert_eq!((saved.path, saved.is_dap), (b"file:///tmp/a#dap2".to_vec(), true));
        assert!(parse(b"file:///tmp/a#mode=netcdf-4").unwrap().netcdf4);
        let npy = parse(b"file:///tmp/a#mode=npy").unwrap();
        assert_eq!((npy.path, npy.format), (b"/tmp/a".to_vec(), zonda::format_named("npy")));
        assert_eq!(path("file:///tmp/a#mode=s3"), Err(NcError::NotBuilt));
        if cfg!(not(feature = "remote")) {
            assert_eq!(path("dods://h/a"), Err(NcError::NotBuilt));
        }
        assert_eq!(path("foo://a/b"), Err(NcError::Inval));
        for url in ["file:///a/b#mode=bytes,udf1", "https://h/a#x=1&mode=UDF1"] {
            let parsed = parse(url.as_bytes()).unwrap();
            assert_eq!((parsed.path, parsed.user_format), (url.into(), Some(1)));
        }
    }

    #[cfg(feature = "remote")]
    #[test]
    fn urls_of_files_on_servers() {
        for url in [
            "http://h/a.nc",
            "HTTPS://h/a.nc",
            "https://h/a.nc?x=1#mode=bytes",
            "s3://b/k#mode=s3,bytes&aws.profile=p",
            "[log][bytes]http://h/a.nc",
        ] {
            let parsed = parse(url.as_bytes()).unwrap();
            assert_eq!((parsed.path, parsed.is_remote), (url.into(), true), "{url}");
            assert_eq!(parsed.asks_for_bytes, url.contains("bytes"), "{url}");
        }
        for url in ["dods://h/a", "dap4://h/a", "http://h/a#dap4", "[mode=dap2]https://h/a?x[0:1]"]
        {
            let parsed = parse(url.as_bytes()).unwrap();
            assert_eq!((parsed.path, parsed.is_dap, parsed.is_remote), (url.into(), true, true));
        }
        for mode in ["zarr", "s3,nczarr"] {
            assert_eq!(path(&format!("http://h/a#mode={mode}")), Err(NcError::NotBuilt), "{mode}");
            assert_eq!(path(&format!("[mode={mode}]s3://b/a")), Err(NcError::NotBuilt), "{mode}");
        }
        let parsed =
            parse(b"http://h/a#zonda.io=count,file&mode=bytes&Zonda.Async=off&x=1").unwrap();
        assert_eq!(parsed.path, b"http://h/a#mode=bytes&x=1");
        assert_eq!(parsed.io.as_deref(), Some("count,file"));
        assert_eq!(path("http://h/a#zonda.io=file"), Ok("http://h/a".into()));
        assert_eq!(path("http://h/a#zonda.nonsense"), Err(NcError::Inval));
    }

    #[cfg(feature = "remote")]
    #[test]
    fn inquiries_get_no_secrets_of_a_url() {
        for (url, shown) in [
            (
                "http://me:secret@h:1/a.nc?sig=secret#mode=bytes&http.x=secret",
                "http://h:1/a.nc#mode=bytes",
            ),
            ("[bytes]https://h/a.nc", "https://h/a.nc#mode=bytes"),
            ("  s3://b/k", "s3://b/k"),
            ("dods://me:secret@h/a?x[0:1]#log", "http://h/a?x[0:1]#mode=dap2"),
            ("[dap4]https://h/a#http.x=secret", "https://h/a#mode=dap4"),
            ("file:///nowhere#mode=dap4", "file:///nowhere#mode=dap4"),
        ] {
            let url = CString::new(url).unwrap();
            // SAFETY: it is a string of C.
            let (_, found) = unsafe { PathArgument::from_c(url.as_ptr()) }.unwrap();
            assert_eq!(found.to_str(), Ok(shown));
        }
    }

    #[test]
    fn what_only_looks_like_a_url_is_a_path() {
        for name in ["foo:a/b", "file:a.nc", ":a", "a.nc?x", "[a.nc", "c:/x"] {
            assert_eq!(path(name), Ok(name.into()), "{name}");
        }
    }
}
