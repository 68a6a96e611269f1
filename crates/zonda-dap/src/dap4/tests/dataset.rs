//! What is asked of servers, and what their answers are taken for.

use std::io::Cursor;
use std::sync::mpsc::{Sender, channel};

use zonda_format::FormatError;
use zonda_model::NcError;
use zonda_storage::RemoteFailure;

use super::*;

/// Answers by extension, and what was asked for.
#[derive(Debug, Default)]
struct Answers {
    answers: HashMap<&'static str, Vec<u8>>,
    refuses: Option<RemoteFailure>,
    is_saved: bool,
    asked: Option<Sender<String>>,
}

impl Server for Answers {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let Request { extension, query } = request;
        let asked = self.asked.iter().try_for_each(|to| to.send(format!("{extension}?{query}")));
        asked.unwrap();
        if let Some(bytes) = self.answers.get(extension) {
            return Ok(Box::new(Cursor::new(bytes.clone())));
        }
        let kind = self.refuses.unwrap_or(RemoteFailure::NotFound);
        let (url, what) = ("http://x/d".into(), "404".into());
        Err(StorageError::Remote { url, range: None, kind, status: None, what })
    }

    fn heeds_constraints(&self) -> bool {
        !self.is_saved
    }

    fn parallel(&self) -> usize {
        1
    }
}

const DMR: &str = "<Dataset name='d'><Dimension name='x' size='100'/><Int32 name='v'><Dim name='/x'/></Int32>\
     <Group name='g'><Float32 name='w'><Dim name='/x'/><Dim size='7'/></Float32><Int8 name='scalar'/></Group></Dataset>";

fn try_open(answers: Answers, asked: &Asked) -> (Result<Dap4, DapError>, Vec<String>) {
    let (to, from) = channel();
    let server: Arc<dyn Server> = Arc::new(Answers { asked: Some(to), ..answers });
    let opened = open(&server, asked);
    (opened, from.try_iter().collect())
}

fn with(answers: &[(&'static str, &[u8])]) -> Answers {
    let answers = answers.iter().map(|(extension, bytes)| (*extension, bytes.to_vec())).collect();
    Answers { answers, ..Answers::default() }
}

fn constrained(constraint: &str) -> Asked {
    Asked { constraint: constraint.into(), settings: Vec::new() }
}

#[test]
fn documents_are_asked_for_by_both_names() {
    let (opened, asked) = try_open(with(&[(".dmr.xml", DMR.as_bytes())]), &Asked::default());
    assert_eq!(opened.unwrap().model().vars.len(), 3);
    assert_eq!(asked, [".dmr.xml?"]);
    let error = b"<Error httpcode='404'><Message>no .dmr.xml</Message></Error>";
    let answers = with(&[(".dmr", DMR.as_bytes()), (".dmr.xml", error)]);
    let (opened, asked) = try_open(answers, &constrained("dap4.ce=/v"));
    assert!(opened.is_ok());
    assert_eq!(asked, [".dmr.xml?dap4.ce=/v", ".dmr?dap4.ce=/v"]);
    let (opened, asked) = try_open(with(&[(".dmr.xml", error)]), &Asked::default());
    assert!(opened.unwrap_err().to_string().contains("no .dmr.xml"));
    assert_eq!(asked.len(), 2);
}

#[test]
fn nobody_is_asked_twice_who_does_not_answer() {
    for kind in [RemoteFailure::Unreachable, RemoteFailure::TimedOut, RemoteFailure::Denied] {
        let answers = Answers { refuses: Some(kind), ..Answers::default() };
        let (opened, asked) = try_open(answers, &Asked::default());
        assert!(matches!(opened, Err(DapError::Storage { .. })));
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn saved_responses() {
    let [_, _, high, low] = u32::try_from(DMR.len()).unwrap().to_be_bytes();
    let body = [&[4, 0, high, low], DMR.as_bytes()].concat();
    let answers = Answers { is_saved: true, ..with(&[(".dap", &body)]) };
    let (opened, asked) = try_open(answers, &Asked::default());
    let request = opened.unwrap().request(&[]).unwrap();
    assert_eq!(request, Request { extension: ".dap", query: String::new() });
    assert_eq!(asked, [".dmr.xml?", ".dmr?", ".dap?"]);
    let answers = Answers { is_saved: true, ..with(&[(".dap", &body)]) };
    let (opened, _) = try_open(answers, &constrained("/v"));
    assert_eq!(opened.unwrap_err().nc_error(), NcError::DapConstraint);
}

#[test]
fn parts_become_constraints() {
    let opened = |constraint: &str| {
        let answers = with(&[(".dmr.xml", DMR.as_bytes())]);
        try_open(answers, &constrained(constraint)).0.unwrap()
    };
    let v = Part { var: 0, start: &[3], count: &[4], stride: &[5] };
    let w = Part { var: 1, start: &[0, 6], count: &[100, 1], stride: &[1, 1] };
    let scalar = Part { var: 2, start: &[], count: &[], stride: &[] };
    let query = |dataset: &Dap4, parts: &[Part<'_>]| dataset.request(parts).unwrap().query;
    let dataset = opened("");
    let all = query(&dataset, &[v, w, scalar]);
    assert_eq!(all, "dap4.ce=/v%5B3:5:18%5D%3B/g/w%5B0:99%5D%5B6%5D%3B/g/scalar");
    let dataset = opened("dap4.ce=/x=[10:2:300];/v;/g/w&dap4.checksum=true");
    let part = query(&dataset, &[v]);
    assert_eq!(part, "dap4.ce=/v%5B16:10:46%5D&dap4.checksum=true");
    for wrong in [Part { var: 9, ..scalar }, Part { var: 0, ..scalar }] {
        assert!(dataset.request(&[wrong]).is_err());
    }
}

/// A body with the values of `v` behind a DMR.
fn body(len: u64, extra: &str, flags: u8, values: &[u8]) -> Vec<u8> {
    let dmr =
        format!("<Dataset name='d'><Int32 name='v'><Dim size='{len}'/></Int32>{extra}</Dataset>");
    let [_, a, b, c] = u32::try_from(dmr.len()).unwrap().to_be_bytes();
    let [_, d, e, f] = u32::try_from(values.len()).unwrap().to_be_bytes();
    [&[flags, a, b, c], dmr.as_bytes(), &[1, d, e, f], values].concat()
}

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn plain(&mut self, _: usize, elements: &[u8]) -> Result<(), DapError> {
        self.0.extend_from_slice(elements);
        Ok(())
    }

    fn owned(&mut self, _: usize, _: OwnedValues) -> Result<(), DapError> {
        panic!("there are no pointers");
    }
}

fn read(body: &[u8], settings: &[(&str, &str)]) -> Result<Vec<u8>, DapError> {
    let settings = settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let asked = Asked { settings, ..Asked::default() };
    let dataset = try_open(with(&[(".dmr.xml", DMR.as_bytes())]), &asked).0.unwrap();
    let part = Part { var: 0, start: &[0], count: &[2], stride: &[1] };
    let mut sink = Bytes::default();
    dataset.read(&[part], &mut &body[..], &mut sink)?;
    Ok(sink.0)
}

#[test]
fn checksums_are_there_or_not() {
    let values = [1_u32.to_be_bytes(), 2_u32.to_be_bytes()].concat();
    let native = [1_u32.to_ne_bytes(), 2_u32.to_ne_bytes()].concat();
    let sum = crc32fast::hash(&values);
    let with_sum = [&values[..], &sum.to_be_bytes()].concat();
    let wrong_sum = [&values[..], &(sum ^ 1).to_be_bytes()].concat();
    let says = "<Attribute name='_DAP4_Checksum_CRC32' type='UInt32'><Value>0</Value></Attribute>";
    // Where nobody says so, what comes decides.
    assert_eq!(read(&body(2, "", 0, &with_sum), &[]).unwrap(), native);
    assert_eq!(read(&body(2, "", 0, &values), &[]).unwrap(), native);
    let error = read(&body(2, "", 0, &wrong_sum), &[]).unwrap_err().to_string();
    assert!(error.contains("or the checksum of /v is wrong"), "{error}");
    // Where the sender says so, it has to be so.
    assert_eq!(read(&body(2, "", 8, &values), &[]).unwrap(), native);
    assert!(read(&body(2, "", 8, &with_sum), &[]).is_err());
    let said = |values: &[u8]| {
        let text = String::from_utf8(body(2, "", 0, &[])).unwrap();
        let begin = text.find("<Dim ").unwrap();
        let dmr = format!("{}{says}{}", &text[4..begin], &text[begin..text.len() - 4]);
        let [_, a, b, c] = u32::try_from(dmr.len()).unwrap().to_be_bytes();
        let [_, d, e, f] = u32::try_from(values.len()).unwrap().to_be_bytes();
        [&[0, a, b, c], dmr.as_bytes(), &[1, d, e, f], values].concat()
    };
    assert_eq!(read(&said(&with_sum), &[]).unwrap(), native);
    assert!(read(&said(&values), &[]).is_err());
    let error = read(&said(&wrong_sum), &[]).unwrap_err().to_string();
    assert!(error.contains("the checksum of /v is"), "{error}");
    // And where the user does not want to know it is read over.
    let ignore = [("checksummode", "ignore")];
    assert_eq!(read(&body(2, "", 0, &wrong_sum), &ignore).unwrap(), native);
}

#[test]
fn a_body_of_something_else() {
    let values = [0; 8];
    let other = read(&body(2, "<Int8 name='u'/>", 8, &[0; 9]), &[]).unwrap_err().to_string();
    assert!(other.contains("/u comes without having been asked for"), "{other}");
    // What has no values may be there.
    let empty = "<Int8 name='u'><Dim size='0'/></Int8>";
    assert!(read(&body(2, empty, 8, &values), &[]).is_ok());
    let shape = read(&body(3, "", 8, &[0; 12]), &[]).unwrap_err().to_string();
    assert!(shape.contains("[3]; [2] was asked for"), "{shape}");
    let none = b"\x08\0\0\x0a<Dataset/>\x01\0\0\0";
    let none = read(none, &[]).unwrap_err().to_string();
    assert!(none.contains("/v was asked for and does not come"), "{none}");
    let page = read(b"<!DOCTYPE html><html>Log in</html>", &[]).unwrap_err();
    assert_eq!(page.nc_error(), NcError::DataDds);
    let early = read(&body(2, "", 8, &[0; 7]), &[]).unwrap_err();
    assert_eq!(early.nc_error(), NcError::DataDds);
}
