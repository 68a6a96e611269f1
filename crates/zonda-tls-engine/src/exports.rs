//! The functions of the table. Callers keep to what `zonda_tls::table` says of each.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use rustls::ClientConfig;
use zonda_tls::table::{
    Bytes, HAS_IDENTITY, IS_HANDSHAKING, MAY_BE_EMPTY, MAY_BE_SHOWN, MOST_SAID, NOTHING_YET,
    RawSettings, RawSource, Room, Said, Table, VERIFY_HOST, VERIFY_PEER, VERSION, WANTS_READ,
    WANTS_WRITE,
};
use zonda_tls::{Engine, Fault, Identity, Kind, Settings, Source};

use crate::config::config;
use crate::connection::Connection;

static TABLE: Table = Table {
    version: VERSION,
    #[allow(clippy::cast_possible_truncation)] // some tens of bytes
    table_bytes: size_of::<Table>() as u32,
    client,
    free_client,
    connect,
    free_connection,
    state,
    receive,
    send,
    put,
    get,
};

/// This engine, for a program that has it inside.
#[must_use]
pub fn engine() -> Engine {
    // SAFETY: the functions below do what the table says of them, and are never unloaded.
    unsafe { Engine::new(&TABLE) }
}

/// The one symbol of `libzonda-tls.so.1`.
#[unsafe(no_mangle)]
extern "C" fn zonda_tls_table() -> *const Table {
    &raw const TABLE
}

/// What scripts/link.sh puts in the place of `zonda_tls_linked` in `libnetcdf.a`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // a name for linkers
static zonda_tls_here: AtomicPtr<Table> = AtomicPtr::new((&raw const TABLE).cast_mut());

/// What a client is to us.
type HeldClient = Arc<ClientConfig>;

/// A connection, and whether a panic has left it half way.
struct HeldConnection {
    connection: Connection,
    is_broken: bool,
}

unsafe extern "C" fn client(
    settings: *const RawSettings,
    made: *mut *mut c_void,
    said: *mut Said,
) -> u32 {
    let work = || {
        // SAFETY: the caller's settings, with all that they point to, are valid for this call.
        let raw = unsafe { &*settings };
        // SAFETY: as above.
        let sources = unsafe { slice(raw.sources, raw.n_sources) };
        let sources: Vec<Source<'_>> = sources
            .iter()
            .map(|source: &RawSource| Source {
                // SAFETY: as above.
                pem: unsafe { bytes(source.pem) },
                may_be_empty: source.flags & MAY_BE_EMPTY != 0,
                may_be_shown: source.flags & MAY_BE_SHOWN != 0,
            })
            .collect();
        // SAFETY: as above.
        let (certificate, key) = unsafe { (bytes(raw.certificate), bytes(raw.key)) };
        config(&Settings {
            verify_peer: raw.flags & VERIFY_PEER != 0,
            verify_host: raw.flags & VERIFY_HOST != 0,
            sources: &sources,
            identity: (raw.flags & HAS_IDENTITY != 0).then_some(Identity { certificate, key }),
        })
    };
    // SAFETY: `made` and `said` are the caller's, valid for this call.
    unsafe { make::<HeldClient>(made, said, work) }
}

unsafe extern "C" fn free_client(client: *mut c_void) {
    // SAFETY: `client` made it, and the caller has given it up.
    unsafe { free::<HeldClient>(client) }
}

unsafe extern "C" fn connect(
    client: *const c_void,
    name: Bytes,
    made: *mut *mut c_void,
    said: *mut Said,
) -> u32 {
    let work = || {
        // SAFETY: `client` made it, it is there during this call, and nobody changes it.
        let config = unsafe { &*client.cast::<HeldClient>() };
        // SAFETY: the caller's, valid for this call.
        let connection = Connection::new(config, unsafe { bytes(name) })?;
        Ok(HeldConnection { connection, is_broken: false })
    };
    // SAFETY: `made` and `said` are the caller's, valid for this call.
    unsafe { make::<HeldConnection>(made, said, work) }
}

unsafe extern "C" fn free_connection(connection: *mut c_void) {
    // SAFETY: `connect` made it, and the caller has given it up.
    unsafe { free::<HeldConnection>(connection) }
}

unsafe extern "C" fn state(connection: *const c_void) -> u32 {
    // SAFETY: `connect` made it, it is there during this call, and nobody changes it meanwhile.
    let held = unsafe { &*connection.cast::<HeldConnection>() };
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let ask = || {
        let connection = &held.connection;
        flag(connection.is_handshaking(), IS_HANDSHAKING)
            | flag(connection.wants_read(), WANTS_READ)
            | flag(connection.wants_write(), WANTS_WRITE)
    };
    // A broken one wants nothing; the next call that does something says so.
    if held.is_broken { 0 } else { catch(ask).unwrap_or(0) }
}

unsafe extern "C" fn receive(
    connection: *mut c_void,
    came: Bytes,
    n: *mut usize,
    said: *mut Said,
) -> u32 {
    // SAFETY: the caller's, valid for this call, the connection for this call alone.
    unsafe { with(connection, n, said, |connection| connection.receive(bytes(came))) }
}

unsafe extern "C" fn send(
    connection: *mut c_void,
    room: Room,
    n: *mut usize,
    said: *mut Said,
) -> u32 {
    // SAFETY: the caller's, valid for this call, the connection for this call alone.
    unsafe { with(connection, n, said, |connection| connection.send(self::room(room))) }
}

unsafe extern "C" fn put(
    connection: *mut c_void,
    data: Bytes,
    n: *mut usize,
    said: *mut Said,
) -> u32 {
    // SAFETY: the caller's, valid for this call, the connection for this call alone.
    unsafe { with(connection, n, said, |connection| connection.put(bytes(data))) }
}

unsafe extern "C" fn get(
    connection: *mut c_void,
    room: Room,
    n: *mut usize,
    said: *mut Said,
) -> u32 {
    let work = |connection: &mut Connection| {
        // SAFETY: the caller's, valid for this call.
        connection.get(unsafe { self::room(room) }).map(|n| n.unwrap_or(NOTHING_YET))
    };
    // SAFETY: the caller's, valid for this call, the connection for this call alone.
    unsafe { with(connection, n, said, work) }
}

/// # Safety
/// `n` values are at `at`, initialised, and unchanged as long as the slice is used; or `n` is 0.
unsafe fn slice<'a, T>(at: *const T, n: usize) -> &'a [T] {
    if n == 0 || at.is_null() {
        return &[];
    }
    // SAFETY: by contract.
    unsafe { std::slice::from_raw_parts(at, n) }
}

/// # Safety
/// As for `slice`.
unsafe fn bytes<'a>(bytes: Bytes) -> &'a [u8] {
    // SAFETY: by contract.
    unsafe { slice(bytes.at, bytes.len) }
}

/// # Safety
/// There is this room, initialised, and nobody else's as long as the slice is used; or it is empty.
unsafe fn room<'a>(room: Room) -> &'a mut [u8] {
    if room.len == 0 || room.at.is_null() {
        return &mut [];
    }
    // SAFETY: by contract.
    unsafe { std::slice::from_raw_parts_mut(room.at, room.len) }
}

/// Runs `work`; none if it panics.
fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What a panic is about may panic itself when it is dropped.
    catch_unwind(AssertUnwindSafe(work)).map_err(std::mem::forget).ok()
}

fn panicked() -> Fault {
    Fault::new(Kind::Internal, "there was a panic in it")
}

/// Gives the caller a pointer to what `work` makes.
///
/// # Safety
/// `made` and `said` are valid for a write.
unsafe fn make<T>(
    made: *mut *mut c_void,
    said: *mut Said,
    work: impl FnOnce() -> Result<T, Fault>,
) -> u32 {
    let result = catch(|| work().map(|value| Box::into_raw(Box::new(value))))
        .unwrap_or_else(|| Err(panicked()));
    match result {
        // SAFETY: by contract.
        Ok(value) => unsafe {
            made.write(value.cast());
            0
        },
        // SAFETY: by contract.
        Err(fault) => unsafe { say(said, &fault) },
    }
}

/// # Safety
/// `make` with this type made the value, and nobody has it any more.
unsafe fn free<T>(value: *mut c_void) {
    if !value.is_null() {
        // SAFETY: by contract.
        let _ = catch(|| drop(unsafe { Box::from_raw(value.cast::<T>()) }));
    }
}

/// Runs `work` on a connection.
///
/// # Safety
/// `connect` made the connection, and this call has it alone; `n` and `said` are valid for a write.
unsafe fn with(
    connection: *mut c_void,
    n: *mut usize,
    said: *mut Said,
    work: impl FnOnce(&mut Connection) -> Result<usize, Fault>,
) -> u32 {
    // SAFETY: by contract.
    let held = unsafe { &mut *connection.cast::<HeldConnection>() };
    let result = if held.is_broken {
        Err(panicked())
    } else {
        held.is_broken = true;
        let result = catch(|| work(&mut held.connection));
        held.is_broken = result.is_none();
        result.unwrap_or_else(|| Err(panicked()))
    };
    match result {
        // SAFETY: by contract.
        Ok(done) => unsafe {
            n.write(done);
            0
        },
        // SAFETY: by contract.
        Err(fault) => unsafe { say(said, &fault) },
    }
}

/// Tells a failure; its number.
///
/// # Safety
/// `said` is valid for a write.
unsafe fn say(said: *mut Said, fault: &Fault) -> u32 {
    let mut end = fault.text.len().min(MOST_SAID);
    while !fault.text.is_char_boundary(end) {
        end -= 1;
    }
    let mut text = [0; MOST_SAID];
    text[..end].copy_from_slice(&fault.text.as_bytes()[..end]);
    let place = u32::try_from(fault.place).unwrap_or(u32::MAX);
    let len = u32::try_from(end).unwrap_or(0);
    // SAFETY: by contract.
    unsafe { said.write(Said { place, len, text }) };
    fault.kind as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> *mut c_void {
        let source = Source { pem: &[], may_be_empty: true, may_be_shown: false };
        let config = config(&Settings {
            verify_peer: false,
            verify_host: false,
            sources: &[source],
            identity: None,
        });
        let connection = Connection::new(&config.unwrap(), b"localhost").unwrap();
        Box::into_raw(Box::new(HeldConnection { connection, is_broken: false })).cast()
    }

    #[test]
    fn a_panic_stays_inside_and_its_connection_answers_nothing_any_more() {
        let (held, mut n) = (held(), 7);
        let mut said = Said { place: 0, len: 0, text: [0; MOST_SAID] };
        // SAFETY: made above, and used by this thread alone.
        unsafe {
            assert_ne!(state(held) & IS_HANDSHAKING, 0);
            let answer = with(held, &raw mut n, &raw mut said, |_| panic!("a mistake"));
            assert_eq!((answer, n), (Kind::Internal as u32, 7));
            assert_eq!(&said.text[..said.len as usize], b"there was a panic in it");
            assert_eq!(state(held), 0);
            let mut bytes = [0; 9];
            let all = Room { at: bytes.as_mut_ptr(), len: 9 };
            assert_eq!(send(held, all, &raw mut n, &raw mut said), Kind::Internal as u32);
            free_connection(held);
        }
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let mut said = Said { place: 0, len: 0, text: [0; MOST_SAID] };
        let fault = Fault { place: 3, ..Fault::new(Kind::Peer, "ä".repeat(MOST_SAID)) };
        // SAFETY: the memory is there.
        assert_eq!(unsafe { say(&raw mut said, &fault) }, Kind::Peer as u32);
        let text = std::str::from_utf8(&said.text[..said.len as usize]).unwrap();
        assert_eq!((text.len(), said.place), (MOST_SAID, 3));
        assert!(text.chars().all(|c| c == 'ä'));
        let fault = Fault::new(Kind::Peer, format!("x{}", "ä".repeat(MOST_SAID)));
        // SAFETY: the memory is there.
        unsafe { say(&raw mut said, &fault) };
        assert_eq!(said.len as usize, MOST_SAID - 1);
    }
}
