//! The walk through values in C memory that hold other values: compounds, sequences and strings.

use std::ffi::{c_char, c_void};

use zonda::{ExtType, Field, Meta, NcError, UserClass, UserType};

use crate::c_memory::{bytes, malloc_text, release};
use crate::types::{FIRST_USER_TYPE, NcType, STRING, atomic};

/// `nc_vlen_t`: one variable-length element.
#[derive(Debug)]
#[repr(C)]
pub struct NcVlen {
    /// Elements behind `p`.
    pub len: usize,
    /// The elements, from `malloc`.
    pub p: *mut c_void,
}

/// How an element lies in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementLayout<'t> {
    /// This many bytes that point nowhere.
    Plain(usize),
    /// A `char *`.
    Text,
    /// An `nc_vlen_t` of items of this type.
    Sequence(NcType),
    /// Fields, some of which own memory, and the size of all.
    Fields(&'t [Field], usize),
}

/// Where the user-defined types of a file are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserTypes<'t> {
    /// In its definitions.
    InFile(&'t Meta<'t>),
    /// In a list of their own, the first of them first.
    InList(&'t [UserType]),
}

impl<'t> UserTypes<'t> {
    fn get(self, xtype: NcType) -> Option<&'t UserType> {
        match self {
            UserTypes::InFile(meta) => meta.user_type(xtype).ok(),
            UserTypes::InList(types) => types.get(UserType::index(xtype)?),
        }
    }
}

/// Walks through values of the types of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueWalk<'t> {
    pub(crate) types: UserTypes<'t>,
}

/// Elements of a field.
fn count_of(field: &Field) -> usize {
    field.dims.iter().fold(1, |n, &len| n.saturating_mul(usize::try_from(len).unwrap_or(0)))
}

impl<'t> ValueWalk<'t> {
    /// How elements of a type lie in memory; `None` where there is no such type.
    pub(crate) fn layout(&self, xtype: NcType) -> Option<ElementLayout<'t>> {
        if let Some((_, size)) = atomic(xtype) {
            return Some(if xtype == STRING {
                ElementLayout::Text
            } else {
                ElementLayout::Plain(size)
            });
        }
        let ty = self.types.get(xtype)?;
        Some(match &ty.class {
            UserClass::Vlen { base } => ElementLayout::Sequence(*base),
            UserClass::Compound(fields) if fields.iter().any(|f| self.owns(f.nc_type)) => {
                ElementLayout::Fields(fields, ty.size)
            }
            UserClass::String => ElementLayout::Text,
            _ => ElementLayout::Plain(ty.size),
        })
    }

    /// Whether elements of a type own memory.
    fn owns(&self, xtype: NcType) -> bool {
        !matches!(self.layout(xtype), None | Some(ElementLayout::Plain(_)))
    }

    /// Bytes of an element.
    pub(crate) fn elem_bytes(&self, layout: ElementLayout<'_>) -> usize {
        match layout {
            ElementLayout::Plain(size) | ElementLayout::Fields(_, size) => size,
            ElementLayout::Text => size_of::<*const c_char>(),
            ElementLayout::Sequence(_) => size_of::<NcVlen>(),
        }
    }

    /// Frees what `count` elements own.
    ///
    /// # Safety
    /// `memory` holds `count` such elements at any alignment, made by `malloc` where they own memory.
    pub(crate) unsafe fn reclaim(&self, layout: ElementLayout<'_>, memory: *mut u8, count: usize) {
        let size = self.elem_bytes(layout);
        for index in 0..count {
            // SAFETY: `index` is below `count`, and the contract above.
            unsafe {
                let at = memory.add(index * size);
                match layout {
                    ElementLayout::Plain(_) => return,
                    ElementLayout::Text => release(at.cast::<*mut c_char>().read_unaligned()),
                    ElementLayout::Sequence(base) => {
                        let NcVlen { len, p } = at.cast::<NcVlen>().read_unaligned();
                        if let Some(items) = self.layout(base).filter(|_| !p.is_null()) {
                            self.reclaim(items, p.cast(), len);
                        }
                        release(p);
                    }
                    ElementLayout::Fields(fields, _) => {
                        for field in fields {
                            if let Some(layout) = self.layout(field.nc_type) {
                                self.reclaim(layout, at.add(field.offset), count_of(field));
                            }
                        }
                    }
                }
            }
        }
    }

    /// Copies `count` elements with all they own. After an error the copy owns nothing.
    ///
    /// # Errors
    /// `NC_ENOMEM`; `NC_EBADTYPE` for sequences of a type that netCDF does not have.
    ///
    /// # Safety
    /// `from` holds `count` such elements, `to` has room for as many, both at any alignment.
    pub(crate) unsafe fn copy(
        &self,
        layout: ElementLayout<'_>,
        from: *const u8,
        to: *mut u8,
        count: usize,
    ) -> Result<(), NcError> {
        let size = self.elem_bytes(layout);
        if let ElementLayout::Plain(_) = layout {
            // SAFETY: the contract above; memmove semantics allow for a caller whose buffers touch.
            unsafe { std::ptr::copy(from, to, size * count) };
            return Ok(());
        }
        for index in 0..count {
            // SAFETY: `index` is below `count`, and the contract above.
            unsafe {
                let at = index * size;
                if let Err(error) = self.copy_one(layout, from.add(at), to.add(at)) {
                    self.reclaim(layout, to, index);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Self::copy`], for one element.
    unsafe fn copy_one(
        &self,
        layout: ElementLayout<'_>,
        from: *const u8,
        to: *mut u8,
    ) -> Result<(), NcError> {
        // SAFETY: the contract above; each arm reads and writes one element.
        unsafe {
            match layout {
                ElementLayout::Plain(size) => std::ptr::copy(from, to, size),
                ElementLayout::Text => {
                    let duplicate = match bytes(from.cast::<*const c_char>().read_unaligned()) {
                        Some(text) => malloc_text(text)?,
                        None => std::ptr::null_mut(),
                    };
                    to.cast::<*mut c_char>().write_unaligned(duplicate);
                }
                ElementLayout::Sequence(base) => {
                    let NcVlen { len, p } = from.cast::<NcVlen>().read_unaligned();
                    let mut items = std::ptr::null_mut();
                    if len > 0 && !p.is_null() {
                        let layout = self.layout(base).ok_or(NcError::BadType)?;
                        items = libc::calloc(len, self.elem_bytes(layout).max(1));
                        if items.is_null() {
                            return Err(NcError::NoMem);
                        }
                        if let Err(error) = self.copy(layout, p.cast(), items.cast(), len) {
                            release(items);
                            return Err(error);
                        }
                    }
                    to.cast::<NcVlen>().write_unaligned(NcVlen { len, p: items });
                }
                ElementLayout::Fields(fields, size) => {
                    // Padding and plain fields at once; then what owns memory, field by field.
                    std::ptr::copy(from, to, size);
                    for (done, field) in fields.iter().enumerate() {
                        let Some(layout) = self.layout(field.nc_type) else { continue };
                        let n = count_of(field);
                        let copied =
                            self.copy(layout, from.add(field.offset), to.add(field.offset), n);
                        if let Err(error) = copied {
                            for field in &fields[..done] {
                                if let Some(layout) = self.layout(field.nc_type) {
                                    self.reclaim(layout, to.add(field.offset), count_of(field));
                                }
                            }
                            return Err(error);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends one element as `nc_dump_data` writes it.
    ///
    /// # Safety
    /// `at` points to one element of the type, at any alignment.
    pub(crate) unsafe fn print(&self, xtype: NcType, at: *const u8, text: &mut Vec<u8>) {
        // SAFETY: the contract above, of this and of all that is nested in it.
        unsafe {
            if xtype < FIRST_USER_TYPE {
                print_atomic(xtype, at, text);
                return;
            }
            let Some(ty) = self.types.get(xtype) else { return };
            match &ty.class {
                UserClass::Opaque => {
                    text.push(b'|');
                    for offset in 0..ty.size {
                        text.extend_from_slice(format!("{:02x}", at.add(offset).read()).as_bytes());
                    }
                    text.push(b'|');
                }
                UserClass::Enum { base, .. } => print_atomic(*base, at, text),
                UserClass::String => print_atomic(STRING, at, text),
                UserClass::Vlen { base } => {
                    let NcVlen { len, p } = at.cast::<NcVlen>().read_unaligned();
                    let size = self.layout(*base).map_or(0, |layout| self.elem_bytes(layout));
                    text.extend_from_slice(b"{len=");
                    text.extend_from_slice(format!("{len},p=(").as_bytes());
                    for index in 0..if p.is_null() { 0 } else { len } {
                        if index > 0 {
                            text.push(b' ');
                        }
                        self.print(*base, p.cast::<u8>().add(index * size), text);
                    }
                    text.extend_from_slice(b")}");
                }
                UserClass::Compound(fields) => {
                    text.push(b'<');
                    for (number, field) in fields.iter().enumerate() {
                        if number > 0 {
                            text.push(b';');
                        }
                        text.extend_from_slice(&field.name);
                        for len in &field.dims {
                            text.extend_from_slice(format!("[{len}]").as_bytes());
                        }
                        let size =
                            self.layout(field.nc_type).map_or(0, |layout| self.elem_bytes(layout));
                        for index in 0..count_of(field) {
                            if index > 0 {
                                text.push(b' ');
                            }
                            self.print(field.nc_type, at.add(field.offset + index * size), text);
                        }
                    }
                    text.push(b'>');
                }
                UserClass::Unknown => {}
            }
        }
    }
}

/// Appends one element as `nc_dump_data` writes it.
///
/// # Safety
/// `at` points to one element of the atomic type, at any alignment.
pub(crate) unsafe fn print_atomic(xtype: NcType, at: *const u8, text: &mut Vec<u8>) {
    // SAFETY: every arm reads exactly the element's size, whatever the alignment.
    let shown = unsafe {
        match ExtType::from_nc_type(xtype) {
            Some(ExtType::Char) => {
                text.extend_from_slice(&[b'\'', *at, b'\'']);
                return;
            }
            Some(ExtType::Byte) => at.cast::<i8>().read().to_string(),
            Some(ExtType::UByte) => at.read().to_string(),
            Some(ExtType::Short) => at.cast::<i16>().read_unaligned().to_string(),
            Some(ExtType::UShort) => at.cast::<u16>().read_unaligned().to_string(),
            Some(ExtType::Int) => at.cast::<i32>().read_unaligned().to_string(),
            // The reference prints unsigned ints as signed ones.
            Some(ExtType::UInt) => at.cast::<i32>().read_unaligned().to_string(),
            Some(ExtType::Int64) => at.cast::<i64>().read_unaligned().to_string(),
            Some(ExtType::UInt64) => at.cast::<u64>().read_unaligned().to_string(),
            Some(ExtType::Float) => fixed(f64::from(at.cast::<f32>().read_unaligned())),
            Some(ExtType::Double) => fixed(at.cast::<f64>().read_unaligned()),
            None => {
                let string = bytes(at.cast::<*const c_char>().read_unaligned());
                text.push(b'"');
                text.extend_from_slice(string.unwrap_or_default());
                text.push(b'"');
                return;
            }
        }
    };
    text.extend_from_slice(shown.as_bytes());
}

/// A number as C's `%f` prints it.
fn fixed(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.6}")
    } else {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" })
    }
}
