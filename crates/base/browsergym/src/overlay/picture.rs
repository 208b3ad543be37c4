//! Pictures in memory, and as PNG.

use std::io::Cursor;

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Limits, Transformations};

/// Why a picture is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The data is no PNG, or a broken one.
    #[error("the picture cannot be read: {0}")]
    Read(#[from] png::DecodingError),
    /// It has too many pixels, or none.
    #[error("the picture has {width} x {height} pixels; {LARGEST} are the most")]
    Size {
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// It has colours of a kind that no screenshot has.
    #[error("the picture has colours of an unknown kind")]
    Colours,
    /// The PNG could not be made.
    #[error("the picture cannot be written: {0}")]
    Write(#[from] png::EncodingError),
}

/// The most pixels of a picture.
const LARGEST: u64 = 64_000_000;

/// A picture of red, green and blue, a byte each, row after row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rgb {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Rgb {
    /// A picture of three bytes a pixel; none if there are more or fewer bytes.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        let bytes = u64::from(width) * u64::from(height) * 3;
        (u64::try_from(pixels.len()) == Ok(bytes)).then_some(Self { width, height, pixels })
    }

    /// Its width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Its height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// All rows, each of three bytes a pixel.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The last column.
    pub(super) fn right(&self) -> i64 {
        i64::from(self.width) - 1
    }

    /// The last row.
    pub(super) fn bottom(&self) -> i64 {
        i64::from(self.height) - 1
    }

    /// Colours a pixel, if it is in the picture.
    pub(super) fn set(&mut self, x: i64, y: i64, colour: [u8; 3]) {
        if x < 0 || y < 0 || x > self.right() || y > self.bottom() {
            return;
        }
        let begin = (y * i64::from(self.width) + x) * 3;
        if let Some(pixel) = usize::try_from(begin).ok().and_then(|begin| self.pixels.get_mut(begin..begin + 3)) {
            pixel.copy_from_slice(&colour);
        }
    }
}

/// Reads a PNG; transparency is left out.
pub fn decode_png(png: &[u8]) -> Result<Rgb, PictureError> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), Limits { bytes: 512 << 20 });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info()?;
    let (width, height) = (reader.info().width, reader.info().height);
    let too_large = PictureError::Size { width, height };
    if u64::from(width) * u64::from(height) > LARGEST {
        return Err(too_large);
    }
    let Some(size) = reader.output_buffer_size() else { return Err(too_large) };
    let mut data = vec![0; size];
    let frame = reader.next_frame(&mut data)?;
    data.truncate(frame.buffer_size());
    let pixels: Vec<u8> = match frame.color_type {
        ColorType::Rgb => data,
        ColorType::Rgba => data.chunks_exact(4).flat_map(|pixel| pixel.iter().take(3).copied()).collect(),
        ColorType::Grayscale => data.iter().flat_map(|&grey| [grey; 3]).collect(),
        ColorType::GrayscaleAlpha => data.iter().step_by(2).flat_map(|&grey| [grey; 3]).collect(),
        ColorType::Indexed => return Err(PictureError::Colours),
    };
    Rgb::new(width, height, pixels).ok_or(PictureError::Colours)
}

/// Writes a PNG, rather soon than small: somebody waits for it.
pub fn encode_png(picture: &Rgb) -> Result<Vec<u8>, PictureError> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, picture.width, picture.height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.pixels)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(colours: ColorType, depth: BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, width, 1);
        encoder.set_color(colours);
        encoder.set_depth(depth);
        if colours == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        out
    }

    #[test]
    fn every_kind_of_png_becomes_red_green_and_blue() {
        for (colours, depth, data, expected) in [
            (ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6][..], [1, 2, 3, 4, 5, 6]),
            (ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 9], [1, 2, 3, 4, 5, 6]),
            (ColorType::Grayscale, BitDepth::Eight, &[7, 8], [7, 7, 7, 8, 8, 8]),
            (ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 0, 8, 0], [7, 7, 7, 8, 8, 8]),
            (ColorType::Grayscale, BitDepth::Sixteen, &[7, 0, 8, 0], [7, 7, 7, 8, 8, 8]),
            (ColorType::Indexed, BitDepth::One, &[0b0100_0000], [1, 2, 3, 4, 5, 6]),
        ] {
            let picture = decode_png(&encoded(colours, depth, 2, data)).unwrap();
            assert_eq!(picture, Rgb::new(2, 1, expected.to_vec()).unwrap());
            assert_eq!(decode_png(&encode_png(&picture).unwrap()).unwrap(), picture);
        }
    }

    #[test]
    fn what_is_no_picture_or_too_large_is_an_error() {
        assert!(matches!(decode_png(b"GIF89a"), Err(PictureError::Read(_))));
        let mut huge = encoded(ColorType::Grayscale, BitDepth::Eight, 1, &[7]);
        // The header says 0x4000 x 0x4000 pixels; its checksum is that of the new size.
        huge[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
        let checksum = crc32(&huge[12..29]);
        huge[29..33].copy_from_slice(&checksum.to_be_bytes());
        assert!(matches!(decode_png(&huge), Err(PictureError::Size { width: 0x4000, height: 0x4000 })));
        let whole = encoded(ColorType::Rgb, BitDepth::Eight, 2, &[1, 2, 3, 4, 5, 6]);
        assert!(decode_png(&whole[..whole.len() - 20]).is_err());
        assert_eq!(Rgb::new(2, 2, vec![0; 11]), None);
    }

    fn crc32(data: &[u8]) -> u32 {
        !data.iter().fold(u32::MAX, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
        })
    }
}
