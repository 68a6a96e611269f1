//! Programs that somebody who knows the documentation alone would write, with what they should find.

use zonda::typed::*;
/// What each test gives.
type Tested = std::result::Result<(), Box<dyn std::error::Error>>;

#[test]
fn climate_mean() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("climate.nc");
    let f = File::create(&path)?;
    f.add_unlimited_dimension("time")?;
    f.add_dimension("lat", 3)?;
    f.add_dimension("lon", 4)?;
    let time = f.add_variable::<f64>("time", &["time"])?;
    time.put_attribute("units", "days since 2000-01-01")?;
    let tas = f.add_variable::<i16>("tas", &["time", "lat", "lon"])?;
    tas.put_attribute("scale_factor", 0.01)?;
    tas.put_attribute("add_offset", 280.0)?;
    tas.put_attribute("_FillValue", -32768i16)?;
    for day in 0..5usize {
        time.put(day, &[day as f64])?;
        tas.put((day, .., ..), &vec![day as i16 * 100; 12])?;
    }
    tas.put((2, 1, 1), &[-32768i16])?;
    f.close()?;
    let f = File::open(&path)?;
    let tas = f.variable("tas")?;
    let scale: f64 = tas.attribute("scale_factor").unwrap_or(1.0);
    let offset: f64 = tas.attribute("add_offset").unwrap_or(0.0);
    let fill: i16 = tas.attribute("_FillValue")?;
    let shape = tas.shape()?;
    let (nt, cells) = (shape[0] as usize, (shape[1] * shape[2]) as usize);
    let (mut sum, mut n) = (vec![0.0; cells], vec![0; cells]);
    let mut record = vec![0i16; cells];
    for t in 0..nt {
        assert_eq!(tas.get_into((t, .., ..), &mut record)?.out_of_range, 0);
        for (i, &v) in record.iter().enumerate() {
            if v != fill {
                sum[i] += f64::from(v) * scale + offset;
                n[i] += 1;
            }
        }
    }
    let mean: Vec<f64> = sum.iter().zip(&n).map(|(s, &n)| s / n as f64).collect();
    println!("{mean:?} {n:?}");
    let dim = f.dimension("time")?;
    println!("{dim:?}");
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Pos {
    lon: f32,
    lat: f32,
}
zonda::compound!(Pos { lon: f32, lat: f32 });
#[derive(Clone, Debug, PartialEq)]
struct Cast {
    id: [Char; 4],
    n: u8,
    at: Pos,
    temp: [f64; 3],
}
zonda::compound!(Cast { id: [Char; 4], n: u8, at: Pos, temp: [f64; 3] });
#[test]
fn compounds() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("compounds.nc");
    let f = File::create(&path)?;
    let ocean = f.add_group("ocean")?;
    ocean.add_unlimited_dimension("cast")?;
    let casts = ocean.add_variable::<Cast>("casts", &["cast"])?.chunked(&[16])?.deflated(2)?;
    for i in 0..20u8 {
        let c = Cast {
            id: (*b"AB01").map(Char),
            n: i,
            at: Pos { lon: 1.0, lat: f32::from(i) },
            temp: [0.0, 1.0, f64::from(i)],
        };
        casts.put(usize::from(i).., &[c])?;
    }
    f.close()?;
    let f = File::open(&path)?;
    let c: Vec<Cast> = f.group("ocean")?.variable("casts")?.get(18..)?;
    println!("{c:?} {}", f.group("ocean")?.variable("casts")?.type_name()?);
    Ok(())
}

#[test]
fn attributes() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("atts.nc");
    let f = File::create(&path)?;
    f.put_attribute("text", "Grüße")?;
    f.put_attribute("owned", String::from("o"))?;
    f.put_attribute("strings", ["a", "b"])?;
    f.put_attribute("strings2", vec!["a".to_owned(), "b".to_owned()])?;
    f.put_attribute("slice", &["a", "b"][..])?;
    f.put_attribute("i8", -1i8)?;
    f.put_attribute("u8", 1u8)?;
    f.put_attribute("i16", 1i16)?;
    f.put_attribute("u16", 1u16)?;
    f.put_attribute("i32", 1)?;
    f.put_attribute("u32", 1u32)?;
    f.put_attribute("i64", 1i64)?;
    f.put_attribute("u64", u64::MAX)?;
    f.put_attribute("f32", 1.5f32)?;
    f.put_attribute("f64", 1.5)?;
    f.put_attribute("list", vec![1.0, 2.0])?;
    f.put_attribute("arr", [1i16, 2])?;
    for name in f.attribute_names()? {
        let value: AttributeValue = f.attribute(&name)?;
        println!("{name} = {value:?}");
    }
    println!("{:?}", f.attribute::<i64>("u64").map_err(|e| e.to_string()));
    println!("{:?}", f.attribute::<String>("i8").map_err(|e| e.to_string()));
    let s = f.add_variable::<String>("names", &[])?;
    s.put((), &["x".to_owned()])?;
    println!("{:?}", s.get::<String>(())?);
    f.close()?;
    Ok(())
}

fn walk(g: &Group<'_>, depth: usize) -> Result<()> {
    println!("{:depth$}group {} {}", "", g.name(), g.path());
    for d in g.dimensions()? {
        println!(
            "{:depth$}  {} = {}{}",
            "",
            d.name,
            d.len,
            if d.is_unlimited { " unlimited" } else { "" }
        );
    }
    for v in g.variables()? {
        let dims: Vec<String> = v.dimensions()?.into_iter().map(|d| d.name).collect();
        println!("{:depth$}  {} {}({})", "", v.type_name()?, v.name(), dims.join(", "));
        for a in v.attribute_names()? {
            println!("{:depth$}    {a} = {:?}", "", v.attribute::<AttributeValue>(&a)?);
        }
    }
    for inner in g.groups()? {
        walk(&inner, depth + 2)?;
    }
    Ok(())
}
#[test]
fn groups() -> Tested {
    let f = File::create(p("groups"))?;
    f.add_dimension("x", 2)?;
    let a = f.add_group("a")?;
    let b = a.add_group("b")?;
    b.add_unlimited_dimension("t")?;
    b.add_variable::<u16>("v", &["t", "x"])?.put_attribute("units", "1")?;
    walk(&f.root(), 0)?;
    f.close()?;
    Ok(())
}

#[test]
fn append_and_strides() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("append.nc");
    {
        let f = File::create(&path)?;
        f.add_unlimited_dimension("t")?;
        f.add_dimension("x", 4)?;
        f.add_variable::<i64>("v", &["t", "x"])?;
        f.close()?;
    }
    for run in 0..3 {
        let f = File::options().write().open(&path)?;
        let v = f.variable("v")?;
        let end = f.dimension("t")?.len as usize;
        v.put((end.., ..), &(0..8).map(|i| run * 100 + i).collect::<Vec<i64>>())?;
        f.close()?;
    }
    let f = File::open(&path)?;
    let v = f.variable("v")?;
    println!(
        "{:?} {:?}",
        v.shape()?,
        v.get::<i32>((AxisSelection::from(1..).step(2), AxisSelection::from(..).step(3)))?
    );
    let a = v.get_array::<f32>((1..4, 2..))?;
    println!("{a:?}");
    let m = a.mean_axis(ndarray::Axis(0)).unwrap();
    println!("{m}");
    let two: ndarray::Array2<f32> = a.into_dimensionality()?;
    let f2 = File::create(p("nd"))?;
    f2.add_dimension("a", 3)?;
    f2.add_dimension("b", 2)?;
    let w = f2.add_variable::<f32>("w", &["a", "b"])?;
    w.put_array(.., &two)?;
    w.put_array((.., ..), &two.t().to_owned().t().to_owned())?;
    w.put_array(.., &two.view())?;
    let w2 = f2.add_variable::<f32>("wt", &["b", "a"])?;
    w2.put_array(.., &two.t())?;
    println!("{:?}", w2.get::<f32>(..)?);
    let filled = f2.add_variable::<f64>("filled", &["a"])?;
    filled.put_attribute("_FillValue", f64::NAN)?;
    println!("{:?}", filled.get::<f64>(..)?);
    f2.close()?;
    Ok(())
}
#[test]
fn errors_of_records() {
    let Ok(path) = std::env::var("RECORDS") else { return };
    let f = File::open(&path).unwrap();
    let t = f.variable("t").unwrap();
    let s = [
        t.get::<String>((0, 0, ..3)).unwrap_err().to_string(),
        t.get::<i8>((0, 0, ..3)).unwrap_err().to_string(),
        t.get::<f32>((8..12, .., ..)).unwrap_err().to_string(),
        t.get::<f32>((0, 0, 36)).unwrap_err().to_string(),
        t.get::<f32>((0, 0)).unwrap_err().to_string(),
        f.variable("none").unwrap_err().to_string(),
        t.attribute::<f64>("units").unwrap_err().to_string(),
        File::open("/none.nc").unwrap_err().to_string(),
    ];
    std::fs::write(
        "/tmp/compare/zonda-errors.txt",
        s.join("\n").replace(&path, "records.nc") + "\n",
    )
    .unwrap();
}
