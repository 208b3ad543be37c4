//! The records of a zip file (APPNOTE 6.3.10 §4.3).

/// Values from which on a 32-bit field says "look into the 64-bit extension".
pub(super) const LARGE: u64 = 0xffff_ffff;
/// The same for the number of entries.
pub(super) const MANY: u64 = 0xffff;
pub(super) const LOCAL: usize = 30;
pub(super) const CENTRAL: usize = 46;
pub(super) const END: usize = 22;
pub(super) const END64: usize = 56;
pub(super) const LOCATOR64: usize = 20;
pub(super) const LOCAL_SIGNATURE: u32 = 0x0403_4b50;
pub(super) const CENTRAL_SIGNATURE: u32 = 0x0201_4b50;
pub(super) const END_SIGNATURE: u32 = 0x0605_4b50;
pub(super) const END64_SIGNATURE: u32 = 0x0606_4b50;
pub(super) const LOCATOR64_SIGNATURE: u32 = 0x0706_4b50;
const DESCRIPTOR_SIGNATURE: u32 = 0x0807_4b50;
/// Id of the 64-bit extension.
pub(super) const EXTENSION64: u16 = 1;
pub(super) const ENCRYPTED: u16 = 1;
/// The checksum follows the contents.
const DESCRIPTOR: u16 = 1 << 3;
pub(super) const UTF8: u16 = 1 << 11;
/// Made by version 4.5 of the format, on Unix.
const MADE_BY: u16 = 0x032d;
/// A regular file that its owner may write and everybody may read.
const ATTRIBUTES: u32 = 0o100_644 << 16;

/// What is known of an entry before its contents are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    pub(super) size: u64,
    /// Time and date as DOS has them.
    pub(super) modified: u32,
}

impl Entry<'_> {
    fn is_large(&self) -> bool {
        self.size >= LARGE
    }

    fn flags(&self) -> u16 {
        let utf8 = !self.name.is_ascii() && std::str::from_utf8(self.name).is_ok();
        DESCRIPTOR | if utf8 { UTF8 } else { 0 }
    }

    fn version(&self) -> u16 {
        if self.is_large() { 45 } else { 20 }
    }

    /// Bytes before the contents.
    pub(super) fn local_length(&self) -> u64 {
        (LOCAL + self.name.len() + if self.is_large() { 20 } else { 0 }) as u64
    }

    /// Bytes behind the contents.
    pub(super) fn descriptor_length(&self) -> u64 {
        if self.is_large() { 24 } else { 16 }
    }

    /// Bytes in the directory at the end.
    pub(super) fn central_length(&self, offset: u64) -> u64 {
        let extension = match (self.is_large(), offset >= LARGE) {
            (false, false) => 0,
            (true, false) => 20,
            (false, true) => 12,
            (true, true) => 28,
        };
        (CENTRAL + self.name.len()) as u64 + extension
    }

    pub(super) fn write_local(&self, out: &mut Vec<u8>) {
        let size = low(self.size);
        put4(out, LOCAL_SIGNATURE);
        for half in [self.version(), self.flags(), 0] {
            put2(out, half);
        }
        put4(out, self.modified);
        put4(out, 0);
        // The sizes are known already; readers that do not look at the end first need them.
        put4(out, size);
        put4(out, size);
        put2(out, low2(self.name.len() as u64));
        put2(out, if self.is_large() { 20 } else { 0 });
        out.extend_from_slice(self.name);
        if self.is_large() {
            put2(out, EXTENSION64);
            put2(out, 16);
            put8(out, self.size);
            put8(out, self.size);
        }
    }

    pub(super) fn write_descriptor(&self, crc: u32, out: &mut Vec<u8>) {
        put4(out, DESCRIPTOR_SIGNATURE);
        put4(out, crc);
        for _size in 0..2 {
            if self.is_large() {
                put8(out, self.size);
            } else {
                put4(out, low(self.size));
            }
        }
    }

    pub(super) fn write_central(&self, crc: u32, offset: u64, out: &mut Vec<u8>) {
        let extension = self.central_length(offset) - (CENTRAL + self.name.len()) as u64;
        put4(out, CENTRAL_SIGNATURE);
        let version = if extension > 0 { 45 } else { self.version() };
        for half in [MADE_BY, version, self.flags(), 0] {
            put2(out, half);
        }
        put4(out, self.modified);
        put4(out, crc);
        put4(out, low(self.size));
        put4(out, low(self.size));
        // Name, extension, comment, disk, internal attributes.
        for half in [low2(self.name.len() as u64), low2(extension), 0, 0, 0] {
            put2(out, half);
        }
        put4(out, ATTRIBUTES);
        put4(out, low(offset));
        out.extend_from_slice(self.name);
        if extension > 0 {
            put2(out, EXTENSION64);
            put2(out, low2(extension - 4));
            if self.is_large() {
                put8(out, self.size);
                put8(out, self.size);
            }
            if offset >= LARGE {
                put8(out, offset);
            }
        }
    }
}

/// The end of a zip file.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) entries: u64,
    /// Length of the directory.
    pub(super) length: u64,
    /// Where the directory begins.
    pub(super) offset: u64,
}

impl End {
    fn is_large(&self) -> bool {
        self.entries >= MANY || self.length >= LARGE || self.offset >= LARGE
    }

    pub(super) fn encoded_length(&self) -> u64 {
        (END + if self.is_large() { END64 + LOCATOR64 } else { 0 }) as u64
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.is_large() {
            put4(out, END64_SIGNATURE);
            put8(out, (END64 - 12) as u64);
            put2(out, MADE_BY);
            put2(out, 45);
            put4(out, 0);
            put4(out, 0);
            for value in [self.entries, self.entries, self.length, self.offset] {
                put8(out, value);
            }
            put4(out, LOCATOR64_SIGNATURE);
            put4(out, 0);
            put8(out, self.offset + self.length);
            put4(out, 1);
        }
        put4(out, END_SIGNATURE);
        for half in [0, 0, low2(self.entries), low2(self.entries)] {
            put2(out, half);
        }
        put4(out, low(self.length));
        put4(out, low(self.offset));
        put2(out, 0);
    }
}

/// The value, or the mark of a value in the extension.
fn low(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn low2(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn put2(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put4(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put8(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Reads numbers from the beginning of a record; behind its end they are 0, so lengths are checked before.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    pub(super) fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    pub(super) fn two(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(super) fn four(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn eight(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let value = self.0.first_chunk().copied().unwrap_or([0; N]);
        self.skip(N);
        value
    }
}

/// Seconds since 1970 as DOS has them (UTC, two seconds exact, 1980 to 2107).
pub fn dos_time(seconds: i64) -> u32 {
    const FIRST: i64 = 315_532_800; // 1980-01-01
    const LAST: i64 = 4_354_819_199; // 2107-12-31 23:59:59
    let seconds = seconds.clamp(FIRST, LAST);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Civil date from a day count: eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let date = (year - 1980) << 9 | month << 5 | day_of_month;
    let time = ((second / 3_600) << 11) | ((second / 60 % 60) << 5) | (second % 60 / 2);
    u32::try_from(date << 16 | time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_those_of_dos() {
        let dos = |year: u32, month: u32, day: u32, hour: u32, minute: u32, second: u32| {
            (year - 1980) << 25 | month << 21 | day << 16 | hour << 11 | minute << 5 | (second / 2)
        };
        for (seconds, expected) in [
            (0, dos(1980, 1, 1, 0, 0, 0)),
            (951_782_400, dos(2000, 2, 29, 0, 0, 0)),
            (951_868_799, dos(2000, 2, 29, 23, 59, 58)),
            (1_709_251_199, dos(2024, 2, 29, 23, 59, 58)),
            (1_735_689_600, dos(2025, 1, 1, 0, 0, 0)),
            (i64::MAX, dos(2107, 12, 31, 23, 59, 58)),
        ] {
            assert_eq!(dos_time(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn the_announced_lengths_are_those_of_the_records() {
        for size in [0, 1, LARGE - 1, LARGE, 1 << 40] {
            for offset in [0, LARGE - 1, LARGE, 1 << 41] {
                let entry = Entry { name: "dir/ü".as_bytes(), size, modified: 0 };
                let (mut local, mut descriptor, mut central) = (Vec::new(), Vec::new(), Vec::new());
                entry.write_local(&mut local);
                entry.write_descriptor(1, &mut descriptor);
                entry.write_central(1, offset, &mut central);
                assert_eq!(local.len() as u64, entry.local_length(), "{size}");
                assert_eq!(descriptor.len() as u64, entry.descriptor_length(), "{size}");
                assert_eq!(central.len() as u64, entry.central_length(offset), "{size} {offset}");
            }
        }
        for (entries, length, offset) in [(0, 0, 0), (MANY, 1, 1), (1, LARGE, 1), (1, 1, LARGE), (MANY - 1, 5, 5)] {
            let end = End { entries, length, offset };
            let mut encoded = Vec::new();
            end.write(&mut encoded);
            assert_eq!(encoded.len() as u64, end.encoded_length(), "{end:?}");
        }
    }
}
