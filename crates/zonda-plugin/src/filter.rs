//! A plugin's filter, used like a built-in one.

use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use zonda_chunk::filter::{Filter, FilterError};
use zonda_runtime::callout::{self, Mark};

use crate::load::Plugin;

/// `H5Z_FLAG_REVERSE`: undo.
const REVERSE: c_uint = 0x0100;

/// A plugin's filter with its parameters for one array.
#[derive(Debug)]
pub(crate) struct PluginFilter {
    plugin: Arc<Plugin>,
    params: Vec<u32>,
    /// Number of `params` that count. The list has at least one more, so that its pointer is valid.
    n_params: usize,
    /// The file whose chunks these are.
    mark: Mark,
}

impl PluginFilter {
    pub(crate) fn new(plugin: Arc<Plugin>, params: &[u32], mark: Mark) -> PluginFilter {
        let n_params = params.len();
        let params = params.iter().copied().chain([0]).collect();
        PluginFilter { plugin, params, n_params, mark }
    }

    /// Runs the plugin on a copy of `input` and appends its result to `out`. A result of more than `most` bytes is
    /// cut if `cut` is set, else it is an error.
    fn call(
        &self,
        flags: c_uint,
        input: &[u8],
        (most, cut): (usize, bool),
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let failed = FilterError::Plugin { id: self.plugin.id };
        let mut memory = CMemory::copy_of(input)
            .ok_or(FilterError::NoMemory { filter: self.plugin.name, bytes: input.len() })?;
        let filter = self.plugin.name;
        let alone = &self.plugin.alone;
        let turn = alone.enter().map_err(|what| FilterError::Busy { filter, what })?;
        let len = callout::run(self.mark, alone.id(), || {
            // SAFETY: the contract of H5Z_func_t: `buf` is memory from malloc with `buf_size`
            // bytes, of which the first `nbytes` are the input; the function leaves there the
            // memory that holds its result, which has `buf_size` bytes, and returns the result's
            // length, or 0 and the memory as it was.
            unsafe {
                (self.plugin.function)(
                    flags,
                    self.n_params,
                    self.params.as_ptr(),
                    input.len(),
                    &raw mut memory.size,
                    &raw mut memory.start,
                )
            }
        });
        drop(turn);
        let what = "the plugin and the library called each other too deeply";
        let len = len.ok_or(FilterError::Busy { filter, what })?;
        if len == 0 {
            return Err(failed);
        }
        if len > most && !cut {
            return Err(FilterError::WrongLength { filter, got: len, expected: most });
        }
        let len = len.min(most);
        // SAFETY: the length is at most what the plugin returned for this memory.
        let result = unsafe { memory.bytes(len) }.ok_or(failed)?;
        out.try_reserve(len)
            .map_err(|_| FilterError::NoMemory { filter: self.plugin.name, bytes: len })?;
        out.extend_from_slice(result);
        Ok(())
    }
}

impl PluginFilter {
    fn undo(
        &self,
        stored: &[u8],
        room: (usize, bool),
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if !self.plugin.decodes {
            let what = "undoing it by its plugin";
            return Err(FilterError::Unsupported { filter: self.plugin.name, what });
        }
        self.call(REVERSE, stored, room, out)
    }
}

impl Filter for PluginFilter {
    fn name(&self) -> &'static str {
        self.plugin.name
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        self.undo(stored, (most, false), out)
    }

    /// As in HDF5: bytes that a plugin leaves after those of the chunk are ignored.
    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let mut bytes = Vec::new();
        self.undo(stored, (out.len(), true), &mut bytes)?;
        if bytes.len() != out.len() {
            let (filter, got, expected) = (self.plugin.name, bytes.len(), out.len());
            return Err(FilterError::WrongLength { filter, got, expected });
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        if !self.plugin.encodes {
            let what = "applying it by its plugin";
            return Err(FilterError::Unsupported { filter: self.plugin.name, what });
        }
        self.call(0, raw, (isize::MAX as usize, false), out)?;
        Ok(true)
    }
}

/// Memory from malloc that a plugin may free, grow or replace.
struct CMemory {
    start: *mut c_void,
    size: usize,
}

impl CMemory {
    fn copy_of(bytes: &[u8]) -> Option<CMemory> {
        // SAFETY: any length may be asked for; one byte at least, so that null is a failure.
        let start = NonNull::new(unsafe { libc::malloc(bytes.len().max(1)) })?.as_ptr();
        // SAFETY: the new memory has room for the bytes and overlaps nothing.
        unsafe { start.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(CMemory { start, size: bytes.len() })
    }

    /// The first `len` bytes; empty if the plugin has freed the memory.
    ///
    /// # Safety
    /// A plugin says that so many bytes are there. `size` does not have to: plugins exist that
    /// replace the memory and leave it.
    unsafe fn bytes(&self, len: usize) -> Option<&[u8]> {
        let start = NonNull::new(self.start)?.cast::<u8>();
        // SAFETY: the contract above.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }
}

impl Drop for CMemory {
    fn drop(&mut self) {
        // SAFETY: from malloc, by `copy_of` or by the plugin, and owned by this value.
        unsafe { libc::free(self.start) };
    }
}
