//! Several charts as one picture.

use crate::error::{Error, Result};
use crate::output::Chart;
use crate::scene::{Rect, Scene, SceneShape};

/// Puts charts beside and below each other, `columns` in a row. The picture is as large as they are together.
///
/// # Errors
/// [`Error::Empty`] without charts or columns.
pub fn arrange(charts: Vec<Chart>, columns: usize) -> Result<Chart> {
    if charts.is_empty() || columns == 0 {
        return Err(Error::Empty);
    }
    let mut all = Scene::new(0, 0);
    let mut y = 0_u32;
    let mut rest = charts.into_iter().peekable();
    while rest.peek().is_some() {
        let (mut x, mut height) = (0_u32, 0_u32);
        for chart in rest.by_ref().take(columns) {
            let Scene { width, height: own, shapes } = chart.scene;
            all.shapes.extend(shapes.into_iter().map(|shape| moved(shape, x, y)));
            height = height.max(own);
            x = x.saturating_add(width);
        }
        all.width = all.width.max(x);
        y = y.saturating_add(height);
    }
    all.height = y;
    Ok(Chart { scene: all })
}

/// The same shape further to the right and further down.
fn moved(shape: SceneShape, right: u32, down: u32) -> SceneShape {
    let (dx, dy) = (f64::from(right), f64::from(down));
    match shape {
        SceneShape::Fill { rect, colour } => {
            let Rect { x0, y0, x1, y1 } = rect;
            let rect = Rect { x0: x0 + dx, y0: y0 + dy, x1: x1 + dx, y1: y1 + dy };
            SceneShape::Fill { rect, colour }
        }
        SceneShape::Path { mut points, colour, width } => {
            points.iter_mut().for_each(|(x, y)| (*x, *y) = (*x + dx, *y + dy));
            SceneShape::Path { points, colour, width }
        }
        SceneShape::Label(mut label) => {
            label.at = (label.at.0 + dx, label.at.1 + dy);
            SceneShape::Label(label)
        }
        SceneShape::Raster(mut raster) => {
            raster.at = (raster.at.0 + right, raster.at.1 + down);
            SceneShape::Raster(raster)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use crate::{Curve, LineOptions, MapField, MapOptions, lines, map};

    fn line(width: u32) -> Chart {
        let curve = Curve { name: String::new(), points: vec![(0.0, 1.0), (1.0, 2.0), (2.0, 1.5)] };
        lines(
            &[curve],
            &LineOptions { title: "a line".to_owned(), width, ..LineOptions::default() },
        )
        .unwrap()
    }

    fn a_map(width: u32) -> Chart {
        let field = MapField {
            columns: 2,
            rows: 2,
            values: &[1.0, 2.0, 3.0, f64::NAN],
            x: crate::Axis::default(),
            x_centres: None,
            y: crate::Axis::default(),
            y_centres: None,
            x_edges: None,
            y_edges: None,
            positions: None,
        };
        map(&field, &MapOptions { title: "a map".to_owned(), width, ..MapOptions::default() })
            .unwrap()
    }

    #[test]
    fn charts_in_rows() {
        let (one, other) = (line(600), a_map(600));
        let height = one.size().1.max(other.size().1);
        let chart = arrange(vec![one.clone(), other.clone(), line(500)], 2).unwrap();
        assert_eq!(chart.size(), (1200, height + line(500).size().1));
        chart.scene.assert_legible();
        let titles = chart.scene.labels().into_iter().filter(|label| label.text.starts_with("a "));
        let at: Vec<(f64, f64)> = titles.map(|label| label.at).collect();
        assert_eq!(at[1].0 - at[0].0, 600.0);
        assert_eq!(at[2].1 - at[0].1, f64::from(height));
        chart.encode(Format::Png).unwrap();
        assert_eq!(arrange(vec![one.clone()], 3).unwrap().size(), one.size());
        assert!(matches!(arrange(vec![], 2), Err(Error::Empty)));
        assert!(matches!(arrange(vec![one], 0), Err(Error::Empty)));
    }
}
