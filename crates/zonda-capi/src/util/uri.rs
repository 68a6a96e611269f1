//! `NCURI`: a URL in parts, as C holds it. Every string and both lists are from `malloc`.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use zonda::NcError;

use super::uri_parse::{Pairs, UrlParts};
use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_copy, malloc_strings, malloc_text, put, release};

/// `NC_EURL`, which is another name of `NC_EDAPURL`.
const BAD_URL: NcError = NcError::DapUrl;
const WITH_PATH: c_int = 1;
const WITH_LOGIN: c_int = 2;
const WITH_QUERY: c_int = 4;
const WITH_FRAGMENT: c_int = 8;
const ENCODE_PATH: c_int = 16;
const ENCODE_QUERY: c_int = 32;

/// Bytes besides letters and digits that stay as they are in paths and queries, and in logins.
const PLAIN: &[u8] = b"!#$&'()*+,-./:;=?@_~";
const PLAIN_LOGIN: &[u8] = b"!$&'()*+,-.;=_~?#/";

/// `NCURI`. Callers read its members.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NcUri {
    /// As it was given.
    pub uri: *mut c_char,
    /// Such as `https`.
    pub protocol: *mut c_char,
    /// Decoded.
    pub user: *mut c_char,
    /// Decoded.
    pub password: *mut c_char,
    /// Name or address.
    pub host: *mut c_char,
    /// Digits.
    pub port: *mut c_char,
    /// With its leading slash.
    pub path: *mut c_char,
    /// Without the question mark; values encoded.
    pub query: *mut c_char,
    /// Without the number sign when parsed, with it after a key was appended.
    pub fragment: *mut c_char,
    /// Keys and values in turn, then null.
    pub fraglist: *mut *mut c_char,
    /// Keys and values in turn, then null.
    pub querylist: *mut *mut c_char,
}

fn encode(text: &[u8], plain: &[u8]) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut encoded = Vec::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            encoded.push(byte);
        } else {
            encoded.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    encoded
}

/// `key=value&key`: a key with an empty value stands alone.
fn join(pairs: &Pairs, encode_values: bool) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in pairs {
        if !text.is_empty() {
            text.push(b'&');
        }
        text.extend_from_slice(key);
        if !value.is_empty() {
            text.push(b'=');
            text.extend(if encode_values { encode(value, PLAIN) } else { value.clone() });
        }
    }
    text
}

fn text_or_null(text: Option<&[u8]>) -> Result<*mut c_char, NcError> {
    text.map_or(Ok(null_mut()), malloc_text)
}

/// Text and list of pairs, both null if there are none.
fn for_c(pairs: &Pairs) -> Result<(*mut c_char, *mut *mut c_char), NcError> {
    if pairs.is_empty() {
        return Ok((null_mut(), null_mut()));
    }
    let flat: Vec<Vec<u8>> = pairs.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect();
    Ok((malloc_text(&join(pairs, true))?, malloc_strings(&flat, 1)?))
}

/// `int ncuriparse(const char *s, NCURI **ncuri);`
///
/// # Safety
/// `s` is null or a NUL-terminated string; `durip` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncuriparse(s: *const c_char, durip: *mut *mut NcUri) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let text = unsafe { bytes(s) }.ok_or(BAD_URL)?;
        let parts = UrlParts::of(text).ok_or(BAD_URL)?;
        if durip.is_null() {
            return Ok(());
        }
        let (query, querylist) = for_c(&parts.query)?;
        let (fragment, fraglist) = for_c(&parts.fragment)?;
        let uri = malloc_copy(&[NcUri {
            uri: malloc_text(text)?,
            protocol: malloc_text(&parts.protocol)?,
            user: text_or_null(parts.user.as_deref())?,
            password: text_or_null(parts.password.as_deref())?,
            host: text_or_null(parts.host.as_deref())?,
            port: text_or_null(parts.port.as_deref())?,
            path: text_or_null(parts.path.as_deref())?,
            query,
            fragment,
            fraglist,
            querylist,
        }])?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(durip, uri) };
        Ok(())
    })
}

/// Frees a null-terminated list and its strings.
///
/// # Safety
/// `list` is null, or such a list from `malloc` that is not used afterwards.
unsafe fn release_list(list: *mut *mut c_char) {
    if list.is_null() {
        return;
    }
    let mut at = list;
    // SAFETY: `at` does not pass the null at the end.
    unsafe {
        while !(*at).is_null() {
            release(*at);
            at = at.add(1);
        }
        release(list);
    }
}

/// `void ncurifree(NCURI *ncuri);`
///
/// # Safety
/// `uri` is null, or from [`ncuriparse`] and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncurifree(uri: *mut NcUri) {
    // SAFETY: null or valid by contract; everything is from malloc.
    unsafe {
        let Some(parts) = uri.as_ref() else { return };
        for text in [
            parts.uri,
            parts.protocol,
            parts.user,
            parts.password,
            parts.host,
            parts.port,
            parts.path,
            parts.query,
            parts.fragment,
        ] {
            release(text);
        }
        release_list(parts.querylist);
        release_list(parts.fraglist);
        release(uri);
    }
}

/// The pairs of a C list; a null value counts as empty.
///
/// # Safety
/// `list` is null, or keys and values in turn up to a null key.
unsafe fn pairs_of(list: *const *mut c_char) -> Pairs {
    let mut pairs = Pairs::new();
    if list.is_null() {
        return pairs;
    }
    let mut at = list;
    // SAFETY: a key that is not null has a value after it.
    unsafe {
        while let Some(key) = bytes(*at) {
            pairs.push((key.to_vec(), bytes(*at.add(1)).unwrap_or_default().to_vec()));
            at = at.add(2);
        }
    }
    pairs
}

/// `int ncuriappendfragmentkey(NCURI *duri, const char *key, const char *value);`
///
/// Sets a key of the fragment, adding it at the end if it is new; keys are compared without case.
///
/// # Safety
/// `duri` is null, or from [`ncuriparse`]; `key` and `value` are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncuriappendfragmentkey(
    duri: *mut NcUri,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    boundary(|| {
        // SAFETY: null or valid by contract.
        let (uri, key, value) = unsafe { (duri.as_mut(), bytes(key), bytes(value)) };
        let (Some(uri), Some(key)) = (uri, key) else { return Err(NcError::Inval.into()) };
        // SAFETY: lists of NcUri have that form.
        let mut pairs = unsafe { pairs_of(uri.fraglist) };
        let value = value.unwrap_or_default().to_vec();
        match pairs.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
            Some(pair) => pair.1 = value,
            None => pairs.push((key.to_vec(), value)),
        }
        let (text, list) = for_c(&pairs)?;
        // SAFETY: from malloc; nothing refers to the old ones any more.
        unsafe {
            release(text);
            release(uri.fragment);
            release_list(uri.fraglist);
        }
        uri.fraglist = list;
        uri.fragment = malloc_text(&[b"#", join(&pairs, false).as_slice()].concat())?;
        Ok(())
    })
}

/// `char *ncuribuild(NCURI *uri, const char *prefix, const char *suffix, int flags);`
///
/// The URL put together again, in memory that the caller frees; `flags` say which parts, and what
/// is encoded. `suffix` goes behind the path.
///
/// # Safety
/// `uri` is null, or from [`ncuriparse`]; the texts are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncuribuild(
    uri: *mut NcUri,
    prefix: *const c_char,
    suffix: *const c_char,
    flags: c_int,
) -> *mut c_char {
    // SAFETY: null or valid by contract.
    let Some(uri) = (unsafe { uri.as_ref() }) else { return null_mut() };
    // SAFETY: members are null or NUL-terminated strings.
    let text = |member: *const c_char| unsafe { bytes(member) };
    let with = |flag: c_int| flags & flag != 0;

    let mut url = Vec::new();
    url.extend_from_slice(text(prefix).unwrap_or_default());
    url.extend_from_slice(text(uri.protocol).unwrap_or_default());
    url.extend_from_slice(b"://");
    if let (true, Some(user), Some(password)) =
        (with(WITH_LOGIN), text(uri.user), text(uri.password))
    {
        url.extend(encode(user, PLAIN_LOGIN));
        url.push(b':');
        url.extend(encode(password, PLAIN_LOGIN));
        url.push(b'@');
    }
    url.extend_from_slice(text(uri.host).unwrap_or_default());
    if let Some(port) = text(uri.port) {
        url.push(b':');
        url.extend_from_slice(port);
    }
    if with(WITH_PATH) {
        let path = text(uri.path).unwrap_or(b"/");
        let encoded = with(ENCODE_PATH) && !uri.path.is_null();
        url.extend(if encoded { encode(path, PLAIN) } else { path.to_vec() });
    }
    url.extend_from_slice(text(suffix).unwrap_or_default());
    if let (true, Some(query)) = (with(WITH_QUERY), text(uri.query)) {
        url.push(b'?');
        url.extend(if with(ENCODE_QUERY) { encode(query, PLAIN) } else { query.to_vec() });
    }
    if let (true, Some(fragment)) = (with(WITH_FRAGMENT), text(uri.fragment)) {
        // The text may have its sign already, see the member; one is enough.
        url.push(b'#');
        url.extend_from_slice(fragment.strip_prefix(b"#").unwrap_or(fragment));
    }
    malloc_text(&url).unwrap_or(null_mut())
}

/// `int nc__testurl(const char *path, char **basename);`
///
/// 1 if `path` is a URL whose path has a last part; that part, without its last suffix, is
/// returned for the caller to free.
///
/// # Safety
/// `path` is null or a NUL-terminated string; `basenamep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc__testurl(path: *const c_char, basenamep: *mut *mut c_char) -> c_int {
    // SAFETY: the contract above is that of `bytes`.
    let parts = unsafe { bytes(path) }.and_then(UrlParts::of);
    let Some(path) = parts.and_then(|parts| parts.path) else { return 0 };
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let end = last.iter().rposition(|&byte| byte == b'.').unwrap_or(last.len());
    if end == 0 {
        return 0;
    }
    if !basenamep.is_null() {
        let Ok(copy) = malloc_text(&last[..end]) else { return 0 };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(basenamep, copy) };
    }
    1
}
