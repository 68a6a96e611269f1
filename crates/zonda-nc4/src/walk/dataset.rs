//! What the walk takes in of a dataset: a dimension, a variable, or both.

use zonda_hdf5::message::{Dataspace, SpaceKind, kind};
use zonda_hdf5::{File, FileAddr, HdfError, Object};
use zonda_model::DimId;

use super::dims::UnmatchedVar;
use super::{Walk, stripped};
use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::files::ObjectAt;
use crate::hidden_atts;
use crate::model::{Dim, GroupId, SkipReason, Var};
use crate::tuning::{KNOWN_TYPE_BYTES, KNOWN_TYPE_MESSAGES};

/// The type messages of atomic types that a walk met, and the numbers of these types: most variables of a file have one
/// of a few.
#[derive(Debug, Default)]
pub(super) struct AtomicTypes(Vec<(Box<[u8]>, i32)>);

impl AtomicTypes {
    fn of(&self, message: &[u8]) -> Option<i32> {
        self.0.iter().find(|(known, _)| **known == *message).map(|(_, nc_type)| *nc_type)
    }

    fn learn(&mut self, message: &[u8], nc_type: i32) {
        if self.0.len() < KNOWN_TYPE_MESSAGES && message.len() <= KNOWN_TYPE_BYTES {
            self.0.push((message.into(), nc_type));
        }
    }
}

impl Walk<'_> {
    /// Takes a dataset in.
    pub(super) fn dataset(
        &mut self,
        group: GroupId,
        name: &[u8],
        at: ObjectAt,
        file: &File,
        object: &Object,
    ) -> HdfResult<()> {
        let space = self.dataset_space(group, name, at, file, object)?;
        let hidden = hidden_atts::HiddenAtts::of(file, object);
        let hidden = match self.read_or_skip(group, Some(name), hidden)? {
            Some(hidden) => hidden,
            // The damage is noted, and may be that of one attribute.
            None => hidden_atts::HiddenAtts {
                refers_to_scales: object
                    .attributes(file)
                    .is_ok_and(|all| all.find(hidden_atts::DIMENSION_LIST).is_some()),
                ..Default::default()
            },
        };
        let scale = self.dataset_scale(group, name, at, &space, &hidden);
        if scale.is_some() && hidden.is_only_dimension {
            return Ok(());
        }
        let Some(nc_type) = self.dataset_type(group, file, object)? else {
            self.note_skipped(group, Some(name), SkipReason::Unrepresentable("its type"));
            return Ok(());
        };
        let rank = space.dims.len();
        let is_simple = space.kind == SpaceKind::Simple;
        let coordinates = hidden.coordinates.filter(|ids| is_simple && ids.len() == rank);
        let refers_to_scales = hidden.refers_to_scales;
        let attached = || match refers_to_scales {
            true => hidden_atts::scales(file, &object.attributes(file)?),
            false => Ok(None),
        };
        let mut pending = None;
        let dims = match (scale, coordinates) {
            (Some(id), _) if rank == 1 => vec![id],
            (_, Some(ids)) => ids,
            (Some(id), None) => {
                pending = Some(None);
                let mut dims = vec![DimId(-1); rank];
                // Only its first dimension says its name.
                if let Some(first) = dims.first_mut() {
                    *first = id;
                }
                dims
            }
            (None, None) => {
                pending = Some(self.read_or_skip(group, Some(name), attached())?.flatten());
                vec![DimId(-1); rank]
            }
        };
        let mut var = Var::new(stripped(name), nc_type, dims, at, space.dims.as_slice());
        var.refers_to_scales = refers_to_scales;
        if refers_to_scales && scale.is_some() && rank == 1 {
            // Nobody needs it for reading, so that damage of it is of no consequence here.
            let named = match attached() {
                Err(error) if error.is_remote() => return Err(error),
                named => named.ok().flatten(),
            };
            var.names_itself = named.is_some_and(|named| named[..] == [Some(at.addr)]);
        }
        if let Some(scales) = pending.filter(|_| rank > 0) {
            self.match_later(group, at.file, &space, scales.as_deref());
        }
        self.add_var(group, var);
        Ok(())
    }

    /// The dataspace, with the extent that a virtual dataset has by now.
    fn dataset_space(
        &mut self,
        group: GroupId,
        name: &[u8],
        at: ObjectAt,
        file: &File,
        object: &Object,
    ) -> HdfResult<Dataspace> {
        let mut space = object.dataspace(file)?;
        if space.max_dims.contains(&u64::MAX) {
            match crate::virtual_data::extent(self.files, at, file, object, &space) {
                Ok(dims) => space.dims = dims,
                // As long as it was when it was written. Gets fail.
                Err(error @ HdfError::InOtherFile { .. }) => self.note_gap(group, name, error),
                Err(error) => return Err(error),
            }
        }
        Ok(space)
    }

    /// Lists the dimension that a dataset stands for, if it is a scale. A scale needs an axis.
    fn dataset_scale(
        &mut self,
        group: GroupId,
        name: &[u8],
        at: ObjectAt,
        space: &Dataspace,
        hidden: &hidden_atts::HiddenAtts,
    ) -> Option<DimId> {
        let len = *space.dims.first().filter(|_| hidden.is_scale)?;
        let max = space.max_dims.first().copied().unwrap_or(len);
        // What the placeholder's extent says of an unlimited dimension means nothing.
        let len = if hidden.is_only_dimension && max == u64::MAX { 0 } else { len };
        Some(self.add_scale(group, name, at, len, max, hidden.dim_id))
    }

    /// The type of a dataset, which is listed in the group if no type before is the same; `None` where
    /// netCDF has none for it.
    fn dataset_type(
        &mut self,
        group: GroupId,
        file: &File,
        object: &Object,
    ) -> HdfResult<Option<i32>> {
        let header = object.header();
        let message = header.find(kind::DATATYPE).filter(|message| !message.is_shared());
        let message = message.map(|message| header.body(message));
        if let Some(known) = message.and_then(|message| self.atomic_types.of(message)) {
            return Ok(Some(known));
        }
        let datatype = object.datatype(file)?;
        let Some(form) = ElementForm::of(&datatype) else { return Ok(None) };
        if let (Some(message), Some(atomic)) = (message, form.atomic()) {
            self.atomic_types.learn(message, atomic);
        }
        let known = self.types.of(&form);
        let n_types = self.types.listed.len();
        let nc_type = known.or_else(|| self.types.add_anonymous(group, &datatype, &form));
        if self.types.listed.len() > n_types {
            let id = crate::types::number(n_types);
            if let Some(group) = self.model.group_mut(group) {
                group.types.push(id);
            }
        }
        Ok(nc_type)
    }

    /// Notes that the variable which is listed next has dimensions to be found when all objects are known.
    fn match_later(
        &mut self,
        group: GroupId,
        file: u16,
        space: &Dataspace,
        scales: Option<&[Option<FileAddr>]>,
    ) {
        let rank = space.dims.len();
        let index = self.model.group(group).map_or(0, |group| group.vars.len());
        let max = space.max_dims.iter();
        let is_unlimited = (0..rank).zip(max.map(Some).chain(std::iter::repeat(None)));
        let is_unlimited = is_unlimited.map(|(_, max)| max.copied() == Some(u64::MAX)).collect();
        let scales = scales.map(|scales| {
            scales.iter().map(|addr| addr.map(|addr| ObjectAt { file, addr })).collect()
        });
        if let Some(list) = self.unmatched.get_mut(usize::from(group.0)) {
            list.push(UnmatchedVar { var: index, scales, is_unlimited });
        }
    }

    /// Lists the dimension that a scale stands for.
    fn add_scale(
        &mut self,
        group: GroupId,
        name: &[u8],
        at: ObjectAt,
        len: u64,
        max: u64,
        wanted: Option<i32>,
    ) -> DimId {
        // No file has more dimensions than this; more would be memory that nothing in it justifies.
        let file_len = self.files.get(at.file).map_or(0, |file| file.len());
        let most = i32::try_from(file_len / 16).unwrap_or(i32::MAX).saturating_add(1024);
        let wanted = wanted.filter(|&id| id >= 0 && id < most);
        let id = wanted.unwrap_or(self.next_dim);
        self.next_dim = self.next_dim.max(id.saturating_add(1));
        // The reference takes length 0 for "unlimited", as its callers do.
        let is_unlimited = max == u64::MAX || len == 0;
        self.scales.push((at, group, DimId(id)));
        let dim = Dim { name: name.into(), group, len, is_unlimited, at: Some(at) };
        self.add_dim(id, dim);
        DimId(id)
    }
}
