//! The marks on a picture of the page: a dashed frame and the bid of every flagged element (spec/browser.md §6.2).

mod font;
mod picture;

pub use picture::{PictureError, Rgb, decode_png, encode_png};

use crate::properties::ExtraProperties;

/// Smaller elements have no mark, in square pixels.
const SMALLEST: f64 = 20.0;
/// How thick frames are.
const LINE: i64 = 2;
/// A dash and the gap behind it.
const DASH: i64 = 4;
const PERIOD: i64 = 12;
/// From the text of a label to the outside of its border.
const MARGIN: i64 = 3;
/// A label shows no more characters; ids of Chromium's frames are much shorter.
const LONGEST: usize = 32;

const BLACK: [u8; 3] = [0; 3];
const WHITE: [u8; 3] = [255; 3];

/// A rectangle of pixels, which may be partly outside of the picture.
struct Area {
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

/// Draws the marks of all elements that have one, in order.
pub fn draw(picture: &mut Rgb, properties: &ExtraProperties) {
    for (bid, element) in properties.iter() {
        let Some([x, y, width, height]) = element.bbox.filter(|_| element.set_of_marks) else { continue };
        if width * height < SMALLEST || ![x, y, width, height].iter().all(|side| side.is_finite()) {
            continue;
        }
        let area = Area { left: pixel(x), top: pixel(y), right: pixel(x + width), bottom: pixel(y + height) };
        draw_frame(picture, &area);
        draw_label(picture, bid, x, y);
    }
}

/// The pixel nearest to a coordinate; far outside of any picture, some pixel outside of it.
fn pixel(coordinate: f64) -> i64 {
    const FAR: f64 = 1e9;
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small")]
    let pixel = coordinate.round_ties_even().clamp(-FAR, FAR) as i64;
    pixel
}

/// Dashes begin at the upper left corner and go around clockwise.
fn draw_frame(picture: &mut Rgb, area: &Area) {
    let in_dash = |distance: i64| distance.rem_euclid(PERIOD) <= DASH;
    for x in area.left.max(0)..=area.right.min(picture.right()) {
        for line in 0..LINE {
            if in_dash(x - area.left) {
                picture.set(x, area.top - line, BLACK);
            }
            if in_dash(area.right - x) {
                picture.set(x, area.bottom - line, BLACK);
            }
        }
    }
    for y in area.top.max(0)..=area.bottom.min(picture.bottom()) {
        for line in 0..LINE {
            if in_dash(y - area.top) {
                picture.set(area.right - line, y, BLACK);
            }
            if in_dash(area.bottom - y) {
                picture.set(area.left - line, y, BLACK);
            }
        }
    }
}

/// White on black with a white border, its middle a little below the upper left corner of the element.
fn draw_label(picture: &mut Rgb, bid: &str, x: f64, y: f64) {
    let (columns, rows) = (font::ADVANCE, font::HEIGHT);
    let characters = i64::try_from(bid.chars().take(LONGEST).count()).unwrap_or_default();
    let width = characters * columns - font::GAP + 2 * MARGIN;
    let height = rows + 2 * MARGIN;
    // Labels are at most some hundred pixels high, of which half is exact.
    let half = f64::from(i32::try_from(height).unwrap_or_default()) / 2.0;
    let (left, top) = (pixel(x), pixel(y - half + 4.0));
    for row in 0..height {
        for column in 0..width {
            let is_border = row == 0 || column == 0 || row == height - 1 || column == width - 1;
            picture.set(left + column, top + row, if is_border { WHITE } else { BLACK });
        }
    }
    for (character, at) in bid.chars().take(LONGEST).zip(0..) {
        font::dots(character, |column, row| {
            picture.set(left + MARGIN + at * columns + column, top + MARGIN + row, WHITE);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::ElementProperties;

    fn marked(bid: &str, bbox: [f64; 4]) -> ExtraProperties {
        let mut properties = ExtraProperties::default();
        let element = ElementProperties { bbox: Some(bbox), set_of_marks: true, ..ElementProperties::default() };
        properties.insert(bid, element);
        properties
    }

    fn drawn(picture: &Rgb) -> String {
        let rows = picture.pixels().chunks(usize::try_from(picture.width()).unwrap() * 3);
        let sign = |pixel: &[u8]| match pixel {
            [0, 0, 0] => '#',
            [255, 255, 255] => 'o',
            _ => '.',
        };
        rows.map(|row| row.chunks(3).map(sign).collect::<String>() + "\n").collect()
    }

    fn grey(width: u32, height: u32) -> Rgb {
        Rgb::new(width, height, vec![128; usize::try_from(width * height * 3).unwrap()]).unwrap()
    }

    #[test]
    fn a_mark_is_a_dashed_frame_and_a_label() {
        let mut picture = grey(40, 24);
        draw(&mut picture, &marked("a1", [4.0, 5.4, 30.0, 15.0]));
        let expected = "\
........................................
........................................
....ooooooooooooooooo...................
....o###############o...................
....o###############o.......#####.......
...#o##########o####o.......#######.....
...#o#########oo####o............##.....
...#o###ooo####o####o............##.....
...#o######o###o####o............##.....
....o###oooo###o####o............##.....
....o##o###o###o####o...................
....o###oooo##ooo###o...................
....o###############o...................
....o###############o...................
....o###############o...................
....o###############o...................
...#ooooooooooooooooo...................
...##............................##.....
...##............................##.....
...##.#####.......#####.......#####.....
...##.#####.......#####.......#####.....
........................................
........................................
........................................
";
        assert_eq!(drawn(&picture), expected);
    }

    #[test]
    fn what_has_no_mark_is_not_drawn() {
        for bbox in [
            [1.0, 1.0, 4.0, 4.0],
            [f64::NAN, 1.0, 9.0, 9.0],
            [1.0, 1.0, f64::INFINITY, 9.0],
            [1e300, -1e300, 1e300, 5.0],
            [-1e18, -1e18, 1e17, 1e17],
        ] {
            let mut picture = grey(20, 20);
            draw(&mut picture, &marked("1", bbox));
            assert_eq!(picture, grey(20, 20), "{bbox:?}");
        }
        let mut unmarked = ExtraProperties::default();
        let element = ElementProperties { bbox: Some([1.0, 1.0, 9.0, 9.0]), ..ElementProperties::default() };
        unmarked.insert("1", element);
        let mut picture = grey(20, 20);
        draw(&mut picture, &unmarked);
        assert_eq!(picture, grey(20, 20));
    }
}
