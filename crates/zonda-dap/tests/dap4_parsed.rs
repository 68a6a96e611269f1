//! What the reference's `test_parse` asks: the tree of each DMR, printed as its own program prints it, is the expected output in
//! `dap4_test/baseline`. That program needs private functions, so this is ours on the same files. Needs `ZONDA_DAP_DATA`.

use std::fs;
use std::path::Path;

use zonda_dap::dap4::dmr::{
    Attribute, AttributeValue, DimRef, Dmr, Group, Type, Variable, reserved,
};

/// The document as it grows, without the spaces in which only layouts differ.
#[derive(Default)]
struct Printed {
    lines: Vec<String>,
    /// Lengths without a name, in the order in which they are met: the reference makes dimensions of them.
    anonymous: Vec<u64>,
}

impl Printed {
    fn say(&mut self, line: &str) {
        self.lines.push(line.split_whitespace().collect::<String>());
    }

    /// A list with the element around it that the reference has; nothing where it is empty.
    fn list(&mut self, around: &str, inside: impl FnOnce(&mut Printed)) {
        let mut list =
            Printed { anonymous: std::mem::take(&mut self.anonymous), ..Printed::default() };
        inside(&mut list);
        self.anonymous = list.anonymous;
        if !list.lines.is_empty() {
            self.say(&format!("<{around}>"));
            self.lines.append(&mut list.lines);
            self.say(&format!("</{around}>"));
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let AttributeValue::Values(ty, values) = &attribute.value else {
                panic!("{} has no values", attribute.name)
            };
            self.say(&format!("<Attribute name=\"{}\" type=\"{ty}\">", attribute.name));
            for value in values {
                self.say(&format!("<Value value=\"{value}\"/>"));
            }
            self.say("</Attribute>");
        }
    }

    /// Structures and sequences that a variable brings, each named by what it stands in.
    fn types(&mut self, prefix: &str, var: &Variable) {
        let name = format!("{prefix}{}", var.name);
        let (fields, structure) = match &var.ty {
            Type::Structure(fields) => (fields, name.clone()),
            Type::Sequence(fields) => (fields, format!("{name}_base")),
            _ => return,
        };
        self.say(&format!("<Structure name=\"{structure}\">"));
        for field in fields {
            self.variable(&format!("/{name}_"), field);
        }
        self.say("</Structure>");
        for field in fields {
            self.types(&format!("{name}_"), field);
        }
        if matches!(var.ty, Type::Sequence(_)) {
            self.say(&format!("<Vlen name=\"{name}_t\" type=\"/{structure}\"/>"));
        }
    }

    fn variable(&mut self, prefix: &str, var: &Variable) {
        let name = &var.name;
        let (open, close) = match &var.ty {
            Type::Atomic(atomic) => (format!("{} name=\"{name}\"", atomic.name()), atomic.name()),
            Type::Enum(of) => (format!("Enum name=\"{name}\" enum=\"{of}\""), "Enum"),
            Type::Opaque => {
                let size = reserved(&var.reserved, "_edu.ucar.opaque.size").unwrap_or("16");
                (format!("Opaque name=\"{name}\" type=\"/opaque{size}_t\""), "Opaque")
            }
            Type::Structure(_) => {
                (format!("Struct name=\"{name}\" type=\"{prefix}{name}\""), "Struct")
            }
            Type::Sequence(_) => {
                (format!("Seq name=\"{name}\" type=\"{prefix}{name}_t\""), "Sequence")
            }
        };
        let before = self.lines.len();
        for dim in &var.dims {
            let line = match dim {
                DimRef::Shared(path) => format!("<Dim name=\"{path}\"/>"),
                DimRef::Size(size) => {
                    if !self.anonymous.contains(size) {
                        self.anonymous.push(*size);
                    }
                    format!("<Dim name=\"/_Anonymous{size}\"/>")
                }
            };
            self.say(&line);
        }
        for map in &var.maps {
            self.say(&format!("<Map name=\"{map}\"/>"));
        }
        self.attributes(&var.attributes);
        let inside = self.lines.split_off(before);
        if inside.is_empty() {
            self.say(&format!("<{open}/>"));
        } else {
            self.say(&format!("<{open}>"));
            self.lines.extend(inside);
            self.say(&format!("</{close}>"));
        }
    }

    fn group(&mut self, group: &Group, is_root: bool) {
        let mut rest = Printed::default();
        rest.list("Types", |list| {
            for one in &group.enums {
                list.say(&format!(
                    "<Enumeration name=\"{}\" basetype=\"{}\">",
                    one.name,
                    one.base.name()
                ));
                for (name, value) in &one.constants {
                    list.say(&format!("<EnumConst name=\"{name}\" value=\"{value}\"/>"));
                }
                list.say("</Enumeration>");
            }
            for var in &group.vars {
                list.types("", var);
            }
        });
        rest.list("Variables", |list| {
            for var in &group.vars {
                list.variable("/", var);
            }
        });
        rest.attributes(&group.attributes);
        rest.list("Groups", |list| {
            for one in &group.groups {
                list.say(&format!("<Group name=\"{}\">", one.name));
                list.group(one, false);
                list.say("</Group>");
            }
        });
        self.list("Dimensions", |list| {
            for dim in &group.dims {
                let more: String =
                    dim.reserved.iter().map(|(key, value)| format!(" {key}=\"{value}\"")).collect();
                list.say(&format!(
                    "<Dimension name=\"{}\" size=\"{}\"{more}/>",
                    dim.name, dim.size
                ));
            }
            for size in rest.anonymous.iter().filter(|_| is_root) {
                list.say(&format!("<Dimension name=\"_Anonymous{size}\" size=\"{size}\"/>"));
            }
        });
        if !is_root {
            self.anonymous.append(&mut rest.anonymous);
        }
        self.lines.append(&mut rest.lines);
    }
}

fn printed(dmr: &Dmr) -> String {
    let mut printed = Printed::default();
    printed.say("<Dataset");
    printed.say(&format!("name=\"{}\"", dmr.name));
    printed.say(&format!("dapVersion=\"{}\"", dmr.dap_version));
    printed.say(&format!("dmrVersion=\"{}\"", dmr.dmr_version));
    printed.say("xmlns=\"http://xml.opendap.org/ns/DAP/4.0#\"");
    printed.say("xmlns:dap=\"http://xml.opendap.org/ns/DAP/4.0#\">");
    printed.group(&dmr.root, true);
    printed.say("</Dataset>");
    printed.lines.join("\n")
}

#[test]
fn trees_are_those_of_the_reference() {
    let Some(data) = std::env::var_os("ZONDA_DAP_DATA") else {
        eprintln!("skip: no ZONDA_DAP_DATA");
        return;
    };
    let folder = Path::new(&data).join("dap4_test");
    let mut compared = 0;
    for entry in fs::read_dir(folder.join("dmrtestfiles")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "dmr") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let wanted =
            fs::read_to_string(folder.join("baseline").join(format!("{name}.d4p"))).unwrap();
        let wanted: Vec<String> =
            wanted.lines().map(|line| line.split_whitespace().collect::<String>()).collect();
        let wanted =
            wanted.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        assert_eq!(printed(&Dmr::parse(&fs::read(&path).unwrap()).unwrap()), wanted, "{name}");
        compared += 1;
    }
    assert!(compared > 40, "only {compared} DMRs");
}
