//! Splits the byte stream into text, control characters and escape sequences and applies them to the screen.

use memchr::{memchr, memchr3};

use super::screen::{Arrows, CursorOnSwitch, Part, Screen};

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
const DEL: u8 = 0x7f;

/// Bytes after which a control string counts as ended, so that a lost terminator does not hide all later output.
const STRING_LIMIT: usize = 64 * 1024;

/// Bytes that are examined at once for lines that need not be put on the screen.
const BLOCK: usize = 128 * 1024;

/// Plain lines in a row after which it is worth while to look for a block of them.
const MANY_LINES: usize = 16;

/// Parameters of a control sequence that are kept.
const PARAMETERS: usize = 16;

/// What the bytes read so far have left open.
#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
    sequence: Sequence,
    utf8: Utf8,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// An escape sequence of which the last byte alone is missing, like the choice of a character set.
    EscapeTail,
    /// In the middle of a control sequence.
    Control,
    String {
        /// Whether BEL ends it, as it ends operating system commands.
        bell_ends: bool,
        length: usize,
    },
}

/// A control sequence (CSI) as far as it has been read.
#[derive(Debug, Clone, Copy, Default)]
struct Sequence {
    parameters: [u16; PARAMETERS],
    current: usize,
    marker: Marker,
}

/// What kind of sequence the bytes around the parameters make it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Marker {
    #[default]
    Plain,
    /// `?` in front: private modes.
    Private,
    /// Anything else; none of these changes the text.
    Other,
}

/// A UTF-8 sequence as far as it has been read.
#[derive(Debug, Default)]
struct Utf8 {
    code: u32,
    /// Bytes that are missing.
    missing: u8,
    /// Values that the next byte may have.
    low: u8,
    high: u8,
}

impl Parser {
    pub(super) fn feed(&mut self, screen: &mut Screen, bytes: &[u8]) {
        let mut rest = bytes;
        // Plain lines that came one after the other.
        let mut lines = 0_usize;
        // Bytes of `rest` up to here have been looked at as a block already.
        let mut examined = 0_usize;
        while let Some(&byte) = rest.first() {
            let taken = match self.state {
                State::Text if self.utf8.missing > 0 || !byte.is_ascii() => self.utf8.feed(screen, rest),
                State::Text => {
                    let mut taken = 0;
                    if lines >= MANY_LINES && examined == 0 && screen.is_at_end() {
                        let block = rest.get(..BLOCK).unwrap_or(rest);
                        let block = block.get(..plain_length(block, b'\n')).unwrap_or_default();
                        taken = screen.print_lines(block);
                        examined = block.len();
                    }
                    if taken == 0 { self.text(screen, rest, &mut lines) } else { taken }
                }
                State::Escape => {
                    self.escape(screen, byte);
                    1
                }
                State::EscapeTail => {
                    self.escape_tail(screen, byte);
                    1
                }
                State::Control => self.control_sequence(screen, byte),
                State::String { .. } => self.string(rest),
            };
            rest = rest.get(taken..).unwrap_or_default();
            examined = examined.saturating_sub(taken);
        }
    }

    /// Takes printable ASCII with a line feed after it, or one control character; counts `lines` without any other.
    #[inline]
    fn text(&mut self, screen: &mut Screen, rest: &[u8], lines: &mut usize) -> usize {
        let length = plain_length(rest, b' ');
        if length > 0 {
            screen.print_ascii(rest.get(..length).unwrap_or_default());
        }
        match rest.get(length) {
            Some(&b'\n') => {
                *lines += 1;
                screen.line_feed();
                length + 1
            }
            Some(&byte) if byte.is_ascii() => {
                *lines = 0;
                self.control(screen, byte);
                length + 1
            }
            _ => length,
        }
    }

    /// Executes a control character, also in the middle of an escape sequence.
    fn control(&mut self, screen: &mut Screen, byte: u8) {
        match byte {
            b'\n' | 0x0b | 0x0c => screen.line_feed(),
            b'\r' => screen.carriage_return(),
            0x08 => screen.left(1),
            b'\t' => screen.tab(1),
            ESC => self.state = State::Escape,
            CAN | SUB => self.state = State::Text,
            _ => {}
        }
    }

    fn escape(&mut self, screen: &mut Screen, byte: u8) {
        if byte < b' ' || byte == DEL {
            return self.control(screen, byte);
        }
        self.state = match byte {
            b'[' => State::Control,
            b']' => State::String { bell_ends: true, length: 0 },
            // DCS, SOS, PM, APC and the window title of `screen`.
            b'P' | b'X' | b'^' | b'_' | b'k' => State::String { bell_ends: false, length: 0 },
            b' '..=b'/' => State::EscapeTail,
            _ => State::Text,
        };
        match byte {
            b'[' => self.sequence = Sequence::default(),
            b'7' => screen.save_cursor(),
            b'8' => screen.restore_cursor(),
            b'D' => screen.index(),
            b'E' => {
                screen.carriage_return();
                screen.index();
            }
            b'M' => screen.reverse_index(),
            b'c' => screen.reset(),
            _ => {}
        }
    }

    fn escape_tail(&mut self, screen: &mut Screen, byte: u8) {
        match byte {
            0..b' ' | DEL => self.control(screen, byte),
            b' '..=b'/' => {}
            _ => self.state = State::Text,
        }
    }

    /// Swallows the bytes of a control string up to its end.
    fn string(&mut self, rest: &[u8]) -> usize {
        let State::String { bell_ends, length } = &mut self.state else { return 0 };
        let window = rest.get(..STRING_LIMIT - *length).unwrap_or(rest);
        let end = memchr3(ESC, CAN, SUB, window);
        let window = window.get(..end.unwrap_or(window.len())).unwrap_or_default();
        let bell = if *bell_ends { memchr(BEL, window) } else { None };
        if let Some(end) = bell.or(end) {
            self.state = if rest.get(end) == Some(&ESC) { State::Escape } else { State::Text };
            return end + 1;
        }
        *length += window.len();
        if *length >= STRING_LIMIT {
            self.state = State::Text;
        }
        window.len()
    }

    /// Takes one byte of a control sequence; none when the byte belongs to the text that follows a broken one.
    fn control_sequence(&mut self, screen: &mut Screen, byte: u8) -> usize {
        let sequence = &mut self.sequence;
        match byte {
            0..b' ' | DEL => {
                self.control(screen, byte);
                return 1;
            }
            b'0'..=b'9' => {
                if let Some(value) = sequence.parameters.get_mut(sequence.current) {
                    *value = value.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                }
            }
            b';' | b':' => sequence.current = sequence.current.saturating_add(1),
            b'?' if sequence.marker == Marker::Plain => sequence.marker = Marker::Private,
            b' '..=b'/' | b'<'..=b'?' => sequence.marker = Marker::Other,
            0x80.. => {
                self.state = State::Text;
                return 0;
            }
            b'@'..=b'~' => {
                self.state = State::Text;
                match sequence.marker {
                    Marker::Plain => sequence.apply(screen, byte),
                    Marker::Private if byte == b'h' => sequence.set_private_modes(screen, true),
                    Marker::Private if byte == b'l' => sequence.set_private_modes(screen, false),
                    Marker::Private | Marker::Other => {}
                }
                return 1;
            }
        }
        1
    }
}

impl Sequence {
    fn values(&self) -> &[u16] {
        self.parameters.get(..=self.current).unwrap_or(&self.parameters)
    }

    /// A count: missing and 0 mean 1.
    fn count(&self) -> usize {
        usize::from(self.parameters[0].max(1))
    }

    /// A position, counted from 1 in the sequence and from 0 here.
    fn position(value: u16) -> usize {
        usize::from(value.saturating_sub(1))
    }

    fn apply(&self, screen: &mut Screen, last: u8) {
        let [first, second, ..] = self.parameters;
        match last {
            b'@' => screen.insert_chars(self.count()),
            b'A' => screen.up(self.count()),
            b'B' | b'e' => screen.down_by(self.count()),
            b'C' | b'a' => screen.right(self.count()),
            b'D' => screen.left(self.count()),
            b'E' => {
                screen.carriage_return();
                screen.down_by(self.count());
            }
            b'F' => {
                screen.carriage_return();
                screen.up(self.count());
            }
            b'G' | b'`' => screen.move_to_column(Self::position(first)),
            b'H' | b'f' => {
                screen.move_to_row(Self::position(first));
                screen.move_to_column(Self::position(second));
            }
            b'I' => screen.tab(self.count()),
            b'J' if first == 3 => screen.erase_history(),
            b'J' => part(first).into_iter().for_each(|part| screen.erase_in_display(part)),
            b'K' => part(first).into_iter().for_each(|part| screen.erase_in_line(part)),
            b'L' => screen.insert_lines(self.count()),
            b'M' => screen.delete_lines(self.count()),
            b'P' => screen.delete_chars(self.count()),
            b'S' => screen.scroll_up(self.count()),
            b'T' => screen.scroll_down(self.count()),
            b'X' => screen.erase_chars(self.count()),
            b'Z' => screen.tab_back(self.count()),
            b'b' => screen.repeat(self.count()),
            b'd' => screen.move_to_row(Self::position(first)),
            b'h' if self.values().contains(&4) => screen.set_insert(true),
            b'l' if self.values().contains(&4) => screen.set_insert(false),
            b'r' => {
                let bottom = if second == 0 { u16::MAX } else { second };
                screen.set_region(Self::position(first), Self::position(bottom));
            }
            b's' => screen.save_cursor(),
            b'u' => screen.restore_cursor(),
            // Colours and everything else that leaves the text alone.
            _ => {}
        }
    }

    fn set_private_modes(&self, screen: &mut Screen, on: bool) {
        for mode in self.values() {
            match (mode, on) {
                (1, true) => screen.arrows = Arrows::Application,
                (1, false) => screen.arrows = Arrows::Cursor,
                (7, _) => screen.set_autowrap(on),
                (47 | 1047, true) => screen.enter_alternate(CursorOnSwitch::Keep),
                (47 | 1047, false) => screen.leave_alternate(CursorOnSwitch::Keep),
                (1048, true) => screen.save_cursor(),
                (1048, false) => screen.restore_cursor(),
                (1049, true) => screen.enter_alternate(CursorOnSwitch::SaveAndRestore),
                (1049, false) => screen.leave_alternate(CursorOnSwitch::SaveAndRestore),
                _ => {}
            }
        }
    }
}

/// The part of a line or screen that an erasing sequence names.
fn part(value: u16) -> Option<Part> {
    match value {
        0 => Some(Part::After),
        1 => Some(Part::Before),
        2 => Some(Part::All),
        _ => None,
    }
}

impl Utf8 {
    /// Takes bytes up to the end of one character and prints it; each maximal part of a broken one prints U+FFFD.
    fn feed(&mut self, screen: &mut Screen, rest: &[u8]) -> usize {
        for (index, &byte) in rest.iter().enumerate() {
            if self.missing == 0 {
                (self.low, self.high) = (0x80, 0xbf);
                (self.missing, self.code) = match byte {
                    0xc2..=0xdf => (1, u32::from(byte & 0x1f)),
                    0xe0..=0xef => (2, u32::from(byte & 0x0f)),
                    0xf0..=0xf4 => (3, u32::from(byte & 0x07)),
                    _ => {
                        screen.print_char(char::REPLACEMENT_CHARACTER);
                        return index + 1;
                    }
                };
                // These keep out overlong forms, surrogates and what lies beyond the last code point.
                match byte {
                    0xe0 => self.low = 0xa0,
                    0xed => self.high = 0x9f,
                    0xf0 => self.low = 0x90,
                    0xf4 => self.high = 0x8f,
                    _ => {}
                }
            } else if (self.low..=self.high).contains(&byte) {
                (self.low, self.high) = (0x80, 0xbf);
                self.code = self.code << 6 | u32::from(byte & 0x3f);
                self.missing -= 1;
                if self.missing == 0 {
                    screen.print_char(char::from_u32(self.code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    return index + 1;
                }
            } else {
                self.missing = 0;
                screen.print_char(char::REPLACEMENT_CHARACTER);
                return index;
            }
        }
        rest.len()
    }
}

/// Length of the longest prefix that is printable ASCII or `extra`.
#[inline]
fn plain_length(bytes: &[u8], extra: u8) -> usize {
    let plain = |byte: u8| byte.wrapping_sub(b' ') < DEL - b' ' || byte == extra;
    let mut length = 0;
    // Without a branch per byte the compiler can look at all of a chunk at once.
    for chunk in bytes.as_chunks::<16>().0 {
        if !chunk.iter().fold(true, |all, byte| all & plain(*byte)) {
            return length + chunk.iter().take_while(|byte| plain(**byte)).count();
        }
        length += chunk.len();
    }
    length + bytes.iter().skip(length).take_while(|byte| plain(**byte)).count()
}
