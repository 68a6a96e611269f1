//! Whole pictures: the texts of an SVG, the same bytes for the same chart, nothing from the machine.

use zonda_plot::{
    AccessDirection, Axis, AxisKind, Chart, Curve, FileAccess, Format, LineOptions, MapField,
    MapOptions, OffsetOptions, OffsetPanel, lines, map, offsets,
};

fn a_map() -> Chart {
    let values: Vec<f64> =
        (0..12 * 6).map(|i| if i == 40 { f64::NAN } else { f64::from(i) }).collect();
    let x: Vec<f64> = (0..12).map(|i| f64::from(i) * 30.0).collect();
    let y: Vec<f64> = (0..6).map(|i| f64::from(i) * 30.0 - 75.0).collect();
    let field = MapField {
        columns: 12,
        rows: 6,
        values: &values,
        x: Axis::new("longitude", AxisKind::Longitude),
        x_centres: Some(&x),
        y: Axis::new("latitude", AxisKind::Latitude),
        y_centres: Some(&y),
        x_edges: None,
        y_edges: None,
        positions: None,
    };
    let options = MapOptions {
        title: "salinity <at> \"the\" surface & below".into(),
        subtitle: "time = 3".into(),
        unit: "salinity (g kg⁻¹)".into(),
        ..MapOptions::default()
    };
    map(&field, &options).unwrap()
}

fn a_line() -> Chart {
    let points = (0..100).map(|i| (f64::from(i), f64::from(i).sqrt())).collect();
    let curve = |name: &str| Curve { name: name.to_owned(), points };
    lines(&[curve("root")], &LineOptions { title: "a line".into(), ..LineOptions::default() })
        .unwrap()
}

fn an_offset_chart() -> Chart {
    let accesses: Vec<FileAccess> = (0u32..100)
        .map(|i| FileAccess {
            start_s: f64::from(i) * 1e-4,
            took_s: 1e-5,
            offset: u64::from(i) * 77_777 % 1_000_000,
            len_bytes: 4096,
            direction: if i % 3 == 0 { AccessDirection::Read } else { AccessDirection::Write },
        })
        .collect();
    let panel =
        |title: &str| OffsetPanel { title: title.into(), notes: Vec::new(), accesses: &accesses };
    offsets(&[panel("without"), panel("with")], &OffsetOptions::default()).unwrap()
}

fn texts(svg: &[u8]) -> Vec<String> {
    let svg = std::str::from_utf8(svg).unwrap();
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn svg_has_the_words_of_the_chart() {
    for (chart, words) in [
        (
            a_map(),
            &[
                "salinity <at> \"the\" surface & below",
                "time = 3",
                "salinity (g kg⁻¹)",
                "longitude",
                "latitude",
                "0°",
                "30°N",
                "60°S",
                "120°E",
                "60°W",
                "40",
                "missing",
            ][..],
        ),
        (a_line(), &["a line", "0", "20", "10"][..]),
        (
            an_offset_chart(),
            &["without", "with", "read", "write", "file offset, MB", "time, ms", "0.6", "10"][..],
        ),
    ] {
        let texts = texts(&chart.encode(Format::Svg).unwrap());
        for word in words {
            assert!(texts.iter().any(|text| text == word), "no `{word}` in {texts:?}");
        }
    }
}

#[test]
fn same_chart_same_bytes() {
    for make in [a_map, a_line, an_offset_chart] {
        for format in [Format::Png, Format::Svg] {
            assert!(make().encode(format).unwrap() == make().encode(format).unwrap());
        }
    }
}

/// Texts are drawn without any font of the machine: there is ink where the title is.
#[test]
fn png_has_its_own_font() {
    let bytes = a_map().encode(Format::Png).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes[..])).read_info().unwrap();
    let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut buffer).unwrap();
    assert_eq!((info.width, info.height), a_map().size());
    let row = info.width as usize * 3;
    let dark =
        (20..44).map(|y| buffer[y * row + 60..y * row + 1500].iter().filter(|c| **c < 80).count());
    let dark: usize = dark.sum();
    assert!((1000..10_000).contains(&dark), "{dark} dark parts of pixels in the title");
}
