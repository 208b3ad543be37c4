//! Reads a Python literal: what `repr` of a dict prints, and a little more.
//!
//! Texts, numbers, `None`, `True`, `False`, lists, tuples and dicts with text keys are read; bytes, sets and complex
//! numbers have no JSON form and give nothing.

use serde_json::{Map, Number, Value};

/// Deeper nesting is refused, so that the text cannot exhaust the stack.
const DEPTH_LIMIT: usize = 64;

/// The literal, or nothing if the text is none or has no JSON form.
pub fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser { rest: text };
    let value = parser.value(DEPTH_LIMIT)?;
    parser.skip_blanks();
    parser.rest.is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.skip_blanks();
        match self.rest.chars().next()? {
            '[' => {
                self.next();
                Some(Value::Array(self.elements("]", depth)?.0))
            }
            '(' => {
                self.next();
                let (mut elements, trailing_comma) = self.elements(")", depth)?;
                // One element without a comma is a value in parentheses.
                if elements.len() == 1 && !trailing_comma { elements.pop() } else { Some(Value::Array(elements)) }
            }
            '{' => {
                self.next();
                self.members(depth).map(Value::Object)
            }
            '0'..='9' | '.' | '-' | '+' => self.number(),
            _ => self.word_or_text(),
        }
    }

    /// The elements up to the closing bracket, and whether a comma follows the last.
    fn elements(&mut self, close: &str, depth: usize) -> Option<(Vec<Value>, bool)> {
        let mut elements = Vec::new();
        let mut comma = true;
        loop {
            self.skip_blanks();
            if self.eat(close) {
                return Some((elements, comma));
            }
            if !comma {
                return None;
            }
            elements.push(self.value(depth)?);
            self.skip_blanks();
            comma = self.eat(",");
        }
    }

    fn members(&mut self, depth: usize) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        let mut comma = true;
        loop {
            self.skip_blanks();
            if self.eat("}") {
                return Some(members);
            }
            if !comma {
                return None;
            }
            let Value::String(key) = self.value(depth)? else { return None };
            self.skip_blanks();
            if !self.eat(":") {
                return None;
            }
            members.insert(key, self.value(depth)?);
            self.skip_blanks();
            comma = self.eat(",");
        }
    }

    fn number(&mut self) -> Option<Value> {
        let negative = self.eat("-");
        if !negative {
            self.eat("+");
        }
        let mut last = ' ';
        let end = self
            .rest
            .find(|c: char| {
                let exponent_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
                last = c;
                !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '_') || exponent_sign)
            })
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        let sign = if negative { "-" } else { "" };
        let float = crate::python::parse_float(&format!("{sign}{digits}"))?;
        if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
            return format!("{sign}{digits}").replace('_', "").parse::<i64>().ok().map(Value::from);
        }
        Number::from_f64(float).map(Value::Number)
    }

    fn word_or_text(&mut self) -> Option<Value> {
        for (word, value) in [("None", Value::Null), ("True", Value::Bool(true)), ("False", Value::Bool(false))] {
            if self.eat(word) {
                return Some(value);
            }
        }
        let mut text = String::new();
        self.text_part(&mut text)?;
        // Adjacent texts are one.
        loop {
            self.skip_blanks();
            if !self.rest.starts_with(['\'', '"', 'r', 'R', 'u', 'U']) {
                return Some(Value::String(text));
            }
            self.text_part(&mut text)?;
        }
    }

    fn text_part(&mut self, text: &mut String) -> Option<()> {
        let raw = self.eat("r") || self.eat("R");
        if !raw && !self.eat("u") {
            self.eat("U");
        }
        let close = ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| self.eat(quote))?;
        loop {
            if self.eat(close) {
                return Some(());
            }
            match self.next()? {
                '\\' if raw => {
                    text.push('\\');
                    text.push(self.next()?);
                }
                '\\' => self.escape(text)?,
                '\n' if close.len() == 1 => return None,
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        let c = match self.next()? {
            '\n' => return Some(()),
            c @ ('\\' | '\'' | '"') => c,
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            // A character by its name would need the table of all names.
            'N' => return None,
            first @ '0'..='7' => self.octal(first)?,
            other => {
                text.push('\\');
                other
            }
        };
        text.push(c);
        Some(())
    }

    fn hexadecimal(&mut self, length: usize) -> Option<char> {
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }

    fn octal(&mut self, first: char) -> Option<char> {
        let mut code = first.to_digit(8)?;
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
            self.next();
            code = code * 8 + digit;
        }
        char::from_u32(code)
    }
}
