//! Compares the definitions of two files by name.

use std::collections::BTreeMap;
use zonda_format::VarRef;

use super::forms::{ComparedForm, shown as type_shown};
use super::values::{ComparedValues, Tolerance, compare, list};
use super::{Comparison, Difference, DifferenceKind, ObjectKind, Side};
use crate::copy::Pattern;
use crate::copy::atts::values as values_of;
use crate::copy::tree::{AttDef, AxisDef, DimDef, GroupDef, TypeDef, VarDef, joined, shown};
use crate::error::Result;

/// An owner of attributes: its path, its reference in each file, and its attributes in each.
struct AttOwner<'a> {
    path: &'a [u8],
    refs: [VarRef; 2],
    atts: [&'a [AttDef]; 2],
}

type OnDifference<'a> = &'a mut dyn FnMut(Difference);

impl Comparison<'_> {
    pub(super) fn definitions(&self, on_difference: OnDifference<'_>) -> Result<()> {
        let groups = self.trees.each_ref().map(|tree| {
            tree.groups.iter().map(|group| (group.path.clone(), group)).collect::<BTreeMap<_, _>>()
        });
        let both_groups = both(&groups, ObjectKind::Group, on_difference);
        self.dimensions(&groups, on_difference);
        self.types(&groups, on_difference);
        for (path, [a, b]) in &both_groups {
            let refs = [VarRef::group(a.source), VarRef::group(b.source)];
            self.attributes(&AttOwner { path, refs, atts: [&a.atts, &b.atts] }, on_difference)?;
        }
        let vars = self.trees.each_ref().map(|tree| {
            let chosen = tree.vars().filter(|var| self.is_chosen(&var.path));
            chosen.map(|var| (var.path.clone(), var)).collect::<BTreeMap<_, _>>()
        });
        let vars = in_both_groups(vars, &groups);
        for (path, [a, b]) in &both(&vars, ObjectKind::Variable, on_difference) {
            self.variable(path, [a, b], on_difference);
            self.attributes(
                &AttOwner { path, refs: [a.source, b.source], atts: [&a.atts, &b.atts] },
                on_difference,
            )?;
        }
        Ok(())
    }

    fn dimensions(
        &self,
        groups: &[BTreeMap<Vec<u8>, &GroupDef>; 2],
        on_difference: OnDifference<'_>,
    ) {
        let dims = self.trees.each_ref().map(|tree| {
            let path = |dim: &DimDef| joined(&tree.groups[dim.group].path, &dim.name);
            tree.dims.iter().map(|dim| (path(dim), dim)).collect::<BTreeMap<_, _>>()
        });
        for (path, [a, b]) in
            both(&in_both_groups(dims, groups), ObjectKind::Dimension, on_difference)
        {
            let len = |dim: &DimDef| {
                format!("{}{}", dim.len, if dim.is_unlimited { " (unlimited)" } else { "" })
            };
            defined(ObjectKind::Dimension, &path, "length", [len(a), len(b)], on_difference);
        }
    }

    fn types(&self, groups: &[BTreeMap<Vec<u8>, &GroupDef>; 2], on_difference: OnDifference<'_>) {
        let types = self.trees.each_ref().map(|tree| {
            let path = |ty: &TypeDef| joined(&tree.groups[ty.group].path, &ty.name);
            tree.types.iter().map(|ty| (path(ty), ty)).collect::<BTreeMap<_, _>>()
        });
        for (path, [a, b]) in both(&in_both_groups(types, groups), ObjectKind::Type, on_difference)
        {
            let texts = self.types_shown([a.source, b.source]);
            defined(ObjectKind::Type, &path, "definition", texts, on_difference);
        }
    }

    fn types_shown(&self, types: [i32; 2]) -> [String; 2] {
        [0, 1].map(|side| type_shown(&self.trees[side], types[side]))
    }

    fn variable(&self, path: &[u8], vars: [&VarDef; 2], on_difference: OnDifference<'_>) {
        let types = self.types_shown(vars.map(|var| var.nc_type));
        defined(ObjectKind::Variable, path, "type", types, on_difference);
        let dims = vars.map(|var| {
            let dim = |axis: &AxisDef| format!("{}={}", shown(&axis.name), axis.len);
            format!("({})", var.axes.iter().map(dim).collect::<Vec<_>>().join(", "))
        });
        defined(ObjectKind::Variable, path, "dimensions", dims, on_difference);
    }

    fn attributes(&self, owner: &AttOwner<'_>, on_difference: OnDifference<'_>) -> Result<()> {
        let ignored = |att: &AttDef| {
            self.options.ignore_attributes.iter().any(|name| name.matches_name(&att.name))
        };
        let of_owner = |name: &[u8]| [owner.path, b"@", name].concat();
        let atts = owner.atts.map(|atts| {
            let compared = atts.iter().filter(|att| !ignored(att));
            compared.map(|att| (of_owner(&att.name), att)).collect::<BTreeMap<_, _>>()
        });
        for (path, [a, b]) in both(&atts, ObjectKind::Attribute, on_difference) {
            self.attribute(&path, owner, [a, b], on_difference)?;
        }
        Ok(())
    }

    fn attribute(
        &self,
        path: &[u8],
        owner: &AttOwner<'_>,
        atts: [&AttDef; 2],
        on_difference: OnDifference<'_>,
    ) -> Result<()> {
        let types = self.types_shown(atts.map(|att| att.nc_type));
        if types[0] != types[1] {
            defined(ObjectKind::Attribute, path, "type", types, on_difference);
            return Ok(());
        }
        let read = |side: usize| {
            let (file, att) = (self.files[side], atts[side]);
            values_of(file, owner.refs[side], att).map_err(|error| error.at(file.path()))
        };
        let [(a, a_pieces), (b, b_pieces)] = [read(0)?, read(1)?];
        let Some(form) = ComparedForm::of(&self.trees[0], atts[0].nc_type) else { return Ok(()) };
        let values = [
            ComparedValues { bytes: &a, pieces: &a_pieces },
            ComparedValues { bytes: &b, pieces: &b_pieces },
        ];
        let n = atts.map(|att| usize::try_from(att.len).unwrap_or(usize::MAX));
        let mut same = n[0] == n[1];
        if same {
            compare(&form, (values[0], values[1]), n[0], Tolerance::default(), &mut |_, _| {
                same = false
            });
        }
        if !same {
            let text = |side: usize| list(&form, values[side], n[side]);
            let how = DifferenceKind::Defined { what: "value", first: text(0), second: text(1) };
            on_difference(Difference { thing: ObjectKind::Attribute, path: shown(path), how });
        }
        Ok(())
    }
}

/// The objects that both files have, by path. Reports those that only one file has.
fn both<'t, T>(
    of: &[BTreeMap<Vec<u8>, &'t T>; 2],
    thing: ObjectKind,
    on_difference: OnDifference<'_>,
) -> Vec<(Vec<u8>, [&'t T; 2])> {
    let mut pairs = Vec::new();
    for (path, first) in &of[0] {
        match of[1].get(path) {
            Some(second) => pairs.push((path.clone(), [*first, *second])),
            None => only(thing, path, Side::First, on_difference),
        }
    }
    for path in of[1].keys().filter(|path| !of[0].contains_key(*path)) {
        only(thing, path, Side::Second, on_difference);
    }
    pairs
}

fn only(thing: ObjectKind, path: &[u8], side: Side, on_difference: OnDifference<'_>) {
    on_difference(Difference { thing, path: shown(path), how: DifferenceKind::OnlyIn(side) });
}

/// The objects of groups that both files have. A group that only one file has was reported as a whole.
fn in_both_groups<'t, T>(
    of: [BTreeMap<Vec<u8>, &'t T>; 2],
    groups: &[BTreeMap<Vec<u8>, &GroupDef>; 2],
) -> [BTreeMap<Vec<u8>, &'t T>; 2] {
    of.map(|mut of| {
        of.retain(|path, _| {
            let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            let group = if slash == 0 { b"/" } else { &path[..slash] };
            groups.iter().all(|groups| groups.contains_key(group))
        });
        of
    })
}

/// Reports two texts of a definition if they are different.
fn defined(
    thing: ObjectKind,
    path: &[u8],
    what: &'static str,
    texts: [String; 2],
    on_difference: OnDifference<'_>,
) {
    let [first, second] = texts;
    if first != second {
        on_difference(Difference {
            thing,
            path: shown(path),
            how: DifferenceKind::Defined { what, first, second },
        });
    }
}

impl Pattern {
    /// Whether it means a name, which may have any bytes.
    pub(super) fn matches_name(&self, name: &[u8]) -> bool {
        self.matches(&[b"/", name].concat())
    }
}
