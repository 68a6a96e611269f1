# SPDX-License-Identifier: MIT OR Apache-2.0
"""Datasets of our own: what the reference's test data and other servers do not have."""
import numpy as np
import wire2
import wire4

DDS = """Dataset {
    Byte b;  Int16 i16;  UInt16 u16;  Int32 i32;  UInt32 u32;  Float32 f32;  Float64 f64;  String s;  Url u;
    Byte ab[x = 7];  Int16 ai16[y = 3][x = 7];  UInt16 au16[x = 7];  Int32 ai32[t = 2][y = 3][x = 7];  UInt32 au32[y = 3];
    Float32 af32[t = 2][x = 7];  Float64 af64[y = 3][x = 7];  String as[y = 3];  Url au[2];  Int32 anonymous[4][5];
    Float64 x[x = 7];
    Grid { Array: Float32 g[lat = 5][lon = 6]; Maps: Float64 lat[lat = 5]; Float64 lon[lon = 6]; } g;
    Grid { Array: Int16 h[lat = 5]; Maps: Float64 lat[lat = 5]; } h;
    Structure { Int32 n; Float64 values[3]; String name; Structure { Byte b[5]; Int16 one; } inner; } st;
    Structure { Int32 n; Float32 pair[2]; } many[4];
    Int32 last[x = 7];
} made2;
"""
DAS = """Attributes {
    b { Byte byte 0, 255; String units "m"; }
    ai16 { Int16 valid_range -5, 7; Float32 scale 0.5; }
    g { String long_name "a \\"grid\\""; Float64 missing_value 1e+30; }
    NC_GLOBAL { String title "made", "twice"; Int32 n 1, 2, 3; Url where "http://nowhere.invalid/x"; }
    st { String comment "a structure"; inner { Int32 deep 4; } }
}
"""
SEQUENCES = """Dataset {
    Sequence { Int32 n; Float64 v; String name; } rows;
    Int32 beside[3];
} sequences;
"""
DMR = """<Dataset name="made4" dapVersion="4.0" dmrVersion="1.0" xmlns="http://xml.opendap.org/ns/DAP/4.0#">
  <Dimension name="x" size="7"/><Dimension name="y" size="3"/><Dimension name="t" size="2"/>
  <Enumeration name="colour" basetype="UInt8"><EnumConst name="red" value="0"/><EnumConst name="green" value="3"/><EnumConst name="blue" value="200"/></Enumeration>
  %s
  <Enum name="e" enum="/colour"/><Enum name="ae" enum="/colour"><Dim name="/x"/></Enum>
  <Opaque name="o" _edu.ucar.opaque.size="6"/><Opaque name="ao" _edu.ucar.opaque.size="6"><Dim name="/y"/></Opaque>
  <Int32 name="anonymous"><Dim size="4"/><Dim size="5"/></Int32>
  <Float64 name="attributes"><Dim name="/x"/>
    <Attribute name="units" type="String"><Value>m &amp; s</Value></Attribute>
    <Attribute name="valid_range" type="Float64"><Value value="-1.5"/><Value value="1e10"/></Attribute>
    <Attribute name="flags" type="UInt8"><Value>1</Value><Value>255</Value></Attribute>
  </Float64>
  <Structure name="st"><Int32 name="n"/><Float64 name="values"><Dim size="3"/></Float64><UInt8 name="b"/></Structure>
  <Structure name="many"><Int16 name="n"/><Float32 name="pair"><Dim size="2"/></Float32><Dim name="/y"/></Structure>
  <Sequence name="rows"><Int32 name="n"/></Sequence>
  <Group name="g"><Dimension name="z" size="4"/>
    <Int32 name="v"><Dim name="/g/z"/><Dim name="/x"/></Int32>
    <Group name="h"><Float32 name="w"><Dim name="/g/z"/></Float32><String name="s"><Dim name="/y"/></String></Group>
  </Group>
  <Group name="k"><Int64 name="v"/></Group>
  <Attribute name="title" type="String"><Value>made</Value></Attribute>
</Dataset>
"""
SIMPLE = ("Int8", "UInt8", "Char", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float32", "Float64", "String")


def of_all_types4():
    each = ['<{0} name="{1}"/><{0} name="a{1}"><Dim name="/y"/><Dim name="/x"/></{0}><{0} name="t{1}"><Dim name="/t"/><Dim name="/y"/><Dim name="/x"/></{0}>'.format(kind, kind.lower())
            for kind in SIMPLE]  # fmt: skip
    return wire4.Dataset.made(DMR % "\n  ".join(each))


def made():
    return {"made2": wire2.Dataset.made(DDS, DAS), "sequences": wire2.Dataset.made(SEQUENCES), "made4": of_all_types4(), "cf": cf(), **plenty()}


def plenty():
    """A variable of 4 MB, of which one needs little, in both versions."""
    two = wire2.Dataset.made("Dataset { Float32 v[y = 1000][x = 1000]; } plenty;")
    four = wire4.Dataset.made('<Dataset name="plenty" dapVersion="4.0"><Dimension name="n" size="1000"/><Float32 name="v"><Dim name="/n"/><Dim name="/n"/></Float32></Dataset>')
    return {"plenty2": two, "plenty4": four}


CF = """Dataset {
    Float64 time[time = 4];  Float64 lat[lat = 19];  Float64 lon[lon = 36];
    Grid { Array: Float32 tas[time = 4][lat = 19][lon = 36]; Maps: Float64 time[time = 4]; Float64 lat[lat = 19]; Float64 lon[lon = 36]; } tas;
    Int32 count[time = 4][lat = 19][lon = 36];
} cf;
"""
CF_DAS = """Attributes {
    time { String units "days since 2000-01-01"; String calendar "standard"; String axis "T"; }
    lat { String units "degrees_north"; String standard_name "latitude"; String axis "Y"; }
    lon { String units "degrees_east"; String standard_name "longitude"; String axis "X"; }
    tas { String units "K"; String standard_name "air_temperature"; Float32 _FillValue 1e20; }
    count { String units "1"; Int32 valid_range -2147483647, 2147483647; }
    NC_GLOBAL { String Conventions "CF-1.7"; String title "for programs"; }
}
"""


def cf():
    """What programs know how to show: a field on a regular grid."""
    dataset = wire2.Dataset.made(CF, CF_DAS)
    regular = {"time": np.arange(4.0), "lat": np.linspace(-90, 90, 19), "lon": np.arange(0.0, 360, 10)}
    for var in dataset.variables:
        var.data = regular.get(var.name, var.data)
        for each in var.maps:
            each.data = regular[each.name]
    return dataset
