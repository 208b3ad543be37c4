//! Output of a cell, within its bounds and without colours.

/// Longest escape sequence that is held back to see whether it is a colour.
const LONGEST: usize = 64;
const ESCAPE: char = '\u{1b}';

/// What a cell has shown so far.
#[derive(Debug)]
pub struct Collector {
    text: Ends,
    colours: Colours,
    images: Vec<String>,
    image_room: usize,
    image_limit: usize,
    images_left_out: usize,
}

impl Collector {
    /// Nothing so far. Of the text these many bytes are kept, the first half and the last half, and as many of the images.
    pub fn new(output_limit: usize, image_limit: usize) -> Self {
        Self {
            text: Ends::new(output_limit),
            colours: Colours::default(),
            images: Vec::new(),
            image_room: image_limit,
            image_limit,
            images_left_out: 0,
        }
    }

    /// Takes text; an escape sequence may go on in the next piece.
    pub fn text(&mut self, piece: &str) {
        let text = &mut self.text;
        self.colours.filter(piece, |kept| text.push(kept));
    }

    /// Takes a picture in base64. Answers whether it is kept.
    pub fn image(&mut self, media_type: &str, base64: &str) -> bool {
        let url = format!("data:{media_type};base64,{base64}");
        // The launcher empties what is too large for any report.
        let keep = !base64.is_empty() && url.len() <= self.image_room;
        if keep {
            self.image_room -= url.len();
            self.images.push(url);
        } else {
            self.images_left_out += 1;
        }
        keep
    }

    /// The whole text and the images.
    pub fn finish(mut self) -> (String, Vec<String>) {
        let text = &mut self.text;
        self.colours.end(|kept| text.push(kept));
        let mut text = self.text.join();
        if self.images_left_out > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let (count, limit) = (self.images_left_out, self.image_limit);
            text.extend([format!("[{count} images are left out: those of one cell have {limit} bytes at most]\n")]);
        }
        (text, self.images)
    }
}

/// The beginning and the end of a text.
#[derive(Debug)]
struct Ends {
    half: usize,
    head: String,
    /// Has the last bytes, and for a while up to as many before them.
    tail: String,
    full: bool,
    dropped: usize,
}

impl Ends {
    fn new(limit: usize) -> Self {
        Self { half: limit / 2, head: String::new(), tail: String::new(), full: false, dropped: 0 }
    }

    fn push(&mut self, mut piece: &str) {
        if !self.full {
            let room = floor(piece, self.half - self.head.len());
            let (first, rest) = piece.split_at(room);
            self.head.push_str(first);
            self.full = !rest.is_empty();
            piece = rest;
        }
        self.tail.push_str(piece);
        if self.tail.len() > 2 * self.half + 4096 {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let mut cut = self.tail.len().saturating_sub(self.half);
        while !self.tail.is_char_boundary(cut) {
            cut += 1;
        }
        self.dropped += cut;
        self.tail.drain(..cut);
    }

    fn join(mut self) -> String {
        self.shorten();
        let mut text = self.head;
        if self.dropped > 0 {
            let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let dropped = self.dropped;
            text.extend([line_break, &format!("[{dropped} bytes of output are left out here]\n")]);
        }
        text.push_str(&self.tail);
        text
    }
}

/// The largest cut of a text that is not beyond `most`.
fn floor(text: &str, most: usize) -> usize {
    let mut cut = most.min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    cut
}

/// Removes `ESC [ n (; n){0,2} m` (ipython-and-plugins 2.3) from a stream of text.
#[derive(Debug, Default)]
struct Colours {
    /// The beginning of what may be such a sequence.
    held: String,
}

impl Colours {
    fn filter(&mut self, piece: &str, mut keep: impl FnMut(&str)) {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.held.is_empty() {
                let Some(start) = rest.find(ESCAPE) else { break };
                keep(&rest[..start]);
                self.held.push(ESCAPE);
                rest = &rest[start + 1..];
            } else {
                rest = self.go_on(rest, &mut keep);
            }
        }
        if !rest.is_empty() {
            keep(rest);
        }
    }

    /// Takes the next character of a sequence; what turns out to be none is kept, and the character is looked at anew.
    fn go_on<'a>(&mut self, rest: &'a str, keep: &mut impl FnMut(&str)) -> &'a str {
        let Some(next) = rest.chars().next() else { return rest };
        let after = &rest[next.len_utf8()..];
        match next {
            '[' if self.held.len() == 1 => self.held.push(next),
            '0'..='9' if self.held.len() > 1 && self.held.len() < LONGEST => self.held.push(next),
            ';' if self.ends_with_digit() && self.held.matches(';').count() < 2 => self.held.push(next),
            'm' if self.ends_with_digit() => self.held.clear(),
            _ => {
                keep(&std::mem::take(&mut self.held));
                return rest;
            }
        }
        after
    }

    fn ends_with_digit(&self) -> bool {
        self.held.ends_with(|character: char| character.is_ascii_digit())
    }

    fn end(&mut self, mut keep: impl FnMut(&str)) {
        keep(&std::mem::take(&mut self.held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(limit: usize, pieces: &[&str]) -> String {
        let mut collector = Collector::new(limit, 0);
        for piece in pieces {
            collector.text(piece);
        }
        collector.finish().0
    }

    #[test]
    fn colours_go_at_any_cut_and_other_sequences_stay() {
        for (text, expected) in [
            ("a\x1b[31mb\x1b[0mc", "abc"),
            ("\x1b[1;31mx\x1b[38;5;1my\x1b[1;2;3;4mz", "xy\x1b[1;2;3;4mz"),
            ("\x1b[mx\x1b[2Jy\x1b[;1mz", "\x1b[mx\x1b[2Jy\x1b[;1mz"),
            ("\x1b\x1b[1mä\x1b[1", "\x1bä\x1b[1"),
            ("\x1b[1;m\x1b[1\x1b[2mé\x1b", "\x1b[1;m\x1b[1é\x1b"),
        ] {
            assert_eq!(collected(1000, &[text]), expected, "{text:?}");
            let characters: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = characters.iter().map(String::as_str).collect();
            assert_eq!(collected(1000, &pieces), expected, "{text:?} in pieces");
        }
    }

    #[test]
    fn the_first_and_the_last_half_are_kept_with_a_line_between() {
        assert_eq!(collected(8, &["abcdefgh"]), "abcdefgh");
        assert_eq!(collected(8, &["abcdefghi"]), "abcd\n[1 bytes of output are left out here]\nfghi");
        assert_eq!(collected(8, &["abc", "äöü", "xyz"]), "abc\n[6 bytes of output are left out here]\nxyz");
        let long = "0123456789".repeat(100_000);
        let text = collected(20, &[&long, &long]);
        assert_eq!(text, "0123456789\n[1999980 bytes of output are left out here]\n0123456789");
    }

    #[test]
    fn images_beyond_the_limit_are_counted() {
        let mut collector = Collector::new(1000, 60);
        assert!(collector.image("image/png", "AAAA"));
        assert!(!collector.image("image/png", &"A".repeat(40)));
        assert!(!collector.image("image/png", ""));
        assert!(collector.image("image/png", "BBBB"));
        collector.text("two");
        let (text, images) = collector.finish();
        assert_eq!(images, ["data:image/png;base64,AAAA", "data:image/png;base64,BBBB"]);
        assert_eq!(text, "two\n[2 images are left out: those of one cell have 60 bytes at most]\n");
    }
}
