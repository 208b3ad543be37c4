//! Reads one call at one place of a text.

use std::collections::HashMap;

use super::{ActionError, Call, Integer, Literal, text};

/// Deeper nesting is refused, so that no text exhausts the stack. The reference's limit is below 90.
const DEPTH_LIMIT: usize = 64;

/// Python reads no longer whole numbers.
const DIGIT_LIMIT: usize = 4300;

/// Why there is no call.
pub(super) enum Stop {
    /// What is there is no call; it is skipped.
    NoCall,
    /// The reference fails altogether.
    Fails(ActionError),
}

/// A place in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// How far the text was looked at, which may be beyond the place.
    looked_at: usize,
}

/// Whether a name may begin with the character.
pub(super) fn begins_name(c: char) -> bool {
    // The letters of Latin-1; others are none for the reference.
    matches!(c, 'a'..='z' | 'A'..='Z' | '_' | 'ª' | 'µ' | 'º' | 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ')
}

fn continues_name(c: char) -> bool {
    begins_name(c) || matches!(c, '0'..='9' | '·')
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at, looked_at: at }
    }

    /// The place behind what was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The place behind what was looked at.
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at.max(self.at)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\n', '\t', '\r']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Takes the character if it is next, apart from blanks and comments.
    fn eat(&mut self, wanted: char) -> bool {
        self.skip();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), Stop> {
        if self.eat(wanted) { Ok(()) } else { Err(Stop::NoCall) }
    }

    /// The name that begins here, if one does.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        self.skip();
        let rest = self.rest();
        rest.starts_with(begins_name).then_some(())?;
        let end = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end)
    }

    /// What follows the name of a call.
    pub(super) fn arguments(&mut self, name: &str) -> Result<Call, Stop> {
        self.expect('(')?;
        let mut call = Call { name: name.to_owned(), positional: self.elements(DEPTH_LIMIT)?, named: Vec::new() };
        while let Some(name) = self.name() {
            self.expect('=')?;
            let value = self.element(DEPTH_LIMIT)?.ok_or(Stop::NoCall)?;
            call.named.push((name.to_owned(), value));
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        Ok(call)
    }

    /// Values with commas between them, and maybe one behind them.
    fn elements(&mut self, depth: usize) -> Result<Vec<Literal>, Stop> {
        let mut elements = Vec::new();
        while let Some(element) = self.element(depth)? {
            elements.push(element);
            if !self.eat(',') {
                break;
            }
        }
        Ok(elements)
    }

    /// The value that begins here, or nothing if none does.
    fn element(&mut self, depth: usize) -> Result<Option<Literal>, Stop> {
        self.skip();
        let Some(first) = self.peek() else { return Ok(None) };
        if matches!(first, '[' | '(' | '{') {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(Stop::Fails(ActionError::new("RecursionError", "maximum recursion depth exceeded")));
            };
            self.at += 1;
            return self.container(first, depth).map(Some);
        }
        match first {
            '\'' | '"' => self.text().map(|text| Some(Literal::Str(text))),
            '0'..='9' | '+' | '-' | '.' => self.number(),
            _ => Ok(self.word()),
        }
    }

    fn container(&mut self, opening: char, depth: usize) -> Result<Literal, Stop> {
        match opening {
            '[' => {
                let elements = self.elements(depth)?;
                self.expect(']')?;
                Ok(Literal::List(elements))
            }
            '(' => {
                let elements = self.elements(depth)?;
                self.expect(')')?;
                Ok(Literal::Tuple(elements))
            }
            _ => self.members(depth).map(Literal::Dict),
        }
    }

    fn members(&mut self, depth: usize) -> Result<Vec<(String, Literal)>, Stop> {
        let mut members: Vec<(String, Literal)> = Vec::new();
        let mut places = HashMap::new();
        while !self.eat('}') {
            let key = self.text()?;
            self.expect(':')?;
            let value = self.element(depth)?.ok_or(Stop::NoCall)?;
            // A key that comes again has the later value at the earlier place.
            let place = *places.entry(key.clone()).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.1 = value,
                None => members.push((key, value)),
            }
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(members)
    }

    fn text(&mut self) -> Result<String, Stop> {
        self.skip();
        let rest = self.rest();
        let Some(quote @ (b'\'' | b'"')) = rest.bytes().next() else { return Err(Stop::NoCall) };
        let extent = text::extent(rest, quote);
        self.looked_at = self.looked_at.max(self.at + extent.looked_at);
        let end = extent.end.ok_or(Stop::NoCall)?;
        let body = rest.get(extent.quotes..end.saturating_sub(extent.quotes)).unwrap_or_default();
        self.at += end;
        text::unescape(body).map_err(Stop::Fails)
    }

    fn digits(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn number(&mut self) -> Result<Option<Literal>, Stop> {
        let start = self.at;
        let is_negative = self.rest().starts_with('-');
        if self.rest().starts_with(['+', '-']) {
            self.at += 1;
        }
        let whole = self.digits();
        let mut is_float = false;
        if self.rest().starts_with('.') {
            self.at += 1;
            let fraction = self.digits();
            if whole.is_empty() && fraction.is_empty() {
                return Err(Stop::NoCall);
            }
            is_float = true;
        } else if whole.is_empty() {
            return Err(Stop::NoCall);
        }
        if self.exponent() || is_float {
            let number = self.text.get(start..self.at).unwrap_or_default();
            return number.parse().map(|number| Some(Literal::Float(number))).map_err(|_| Stop::NoCall);
        }
        if whole.len() > DIGIT_LIMIT {
            return Err(Stop::Fails(ActionError::value(format!(
                "Exceeds the limit ({DIGIT_LIMIT} digits) for integer string conversion: value has {} digits; use \
                 sys.set_int_max_str_digits() to increase the limit",
                whole.len()
            ))));
        }
        Ok(Some(Literal::Int(Integer::from_digits(is_negative, whole))))
    }

    /// Takes an exponent if one is next.
    fn exponent(&mut self) -> bool {
        let Some(rest) = self.rest().strip_prefix(['e', 'E']) else { return false };
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let found = digits.starts_with(|c: char| c.is_ascii_digit());
        if found {
            self.at += 1 + rest.len() - digits.len();
            self.digits();
        }
        found
    }

    fn word(&mut self) -> Option<Literal> {
        let words = [("True", Literal::Bool(true)), ("False", Literal::Bool(false)), ("None", Literal::None)];
        for (word, literal) in words {
            let Some(rest) = self.rest().strip_prefix(word) else { continue };
            if !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$')) {
                self.at += word.len();
                return Some(literal);
            }
        }
        None
    }
}
