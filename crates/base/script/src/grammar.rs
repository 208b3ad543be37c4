//! Commands: the shell's grammar from lists down to conditional expressions.

use super::lexer::{Fault, Kind, Read, Reader, Token};
use super::words::is_name;

/// Words that have a meaning of their own where a command may start.
const RESERVED: [&[u8]; 22] = [
    b"if",
    b"then",
    b"else",
    b"elif",
    b"fi",
    b"case",
    b"esac",
    b"for",
    b"select",
    b"while",
    b"until",
    b"do",
    b"done",
    b"in",
    b"function",
    b"time",
    b"{",
    b"}",
    b"!",
    b"[[",
    b"]]",
    b"coproc",
];

/// Reserved words that can not start a command: they belong to one that is open, or to a whole pipeline.
const CLOSING: [&[u8]; 11] = [b"then", b"else", b"elif", b"fi", b"esac", b"do", b"done", b"}", b"in", b"]]", b"!"];

/// How the commands of a line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Where the last of them ends, its operator included.
    pub(super) end: usize,
    /// The operator that comes last, if there is any.
    pub(super) operator: Option<Kind>,
    /// Whether that operator is the end of the line.
    pub(super) trailing: bool,
}

/// Whether a word has a meaning of its own where a command may start.
pub(super) fn is_reserved(word: &[u8]) -> bool {
    RESERVED.contains(&word)
}

impl Reader<'_> {
    /// Reads the whole text and notes where its commands start.
    pub(super) fn script(&mut self) -> Read<()> {
        loop {
            self.skip_newlines()?;
            let token = self.peek()?;
            if token.kind == Kind::End {
                break;
            }
            self.check_gap(self.last_end, token.start);
            self.starts.push(token.start);
            let end = self.simple_list()?.end;
            // The reference goes on one character behind the command, whatever that is.
            let continued = self.text.get(..end).is_some_and(|command| command.ends_with(b"\\\n"));
            self.opaque |= continued || !matches!(self.text.get(end), None | Some(b'\n' | b' ' | b'\t'));
            if !matches!(self.take()?.kind, Kind::Newline | Kind::End) {
                return Err(Fault::Syntax);
            }
            self.last_end = self.at;
        }
        if self.pending.is_empty() { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Reads the commands of one line.
    pub(super) fn simple_list(&mut self) -> Read<Line> {
        let mut line = Line { end: self.at, operator: None, trailing: false };
        loop {
            let (end, joined) = self.and_or()?;
            line.end = end;
            if joined {
                line.operator = Some(Kind::AndOr);
            }
            let token = self.peek()?;
            if !matches!(token.kind, Kind::Semicolon | Kind::Ampersand) {
                return Ok(line);
            }
            line.end = self.take()?.end;
            line.operator = Some(token.kind);
            line.trailing = matches!(self.peek()?.kind, Kind::Newline | Kind::End | Kind::Close);
            if line.trailing {
                return Ok(line);
            }
        }
    }

    /// Reads the commands inside a compound command, up to one of the words that may follow them. Leaves that word.
    ///
    /// Returns whether all there is is one pipeline and a new line behind it.
    fn compound_list(&mut self, stops: &[&[u8]]) -> Read<bool> {
        let mut lists = 0u32;
        let mut bare = false;
        loop {
            self.skip_newlines()?;
            if self.at_stop(stops)? {
                return if lists == 0 { Err(Fault::Syntax) } else { Ok(bare && lists == 1) };
            }
            let (_, joined) = self.and_or()?;
            lists = lists.saturating_add(1);
            match self.peek()?.kind {
                Kind::Semicolon | Kind::Ampersand | Kind::Newline => {
                    bare = self.take()?.kind == Kind::Newline && !joined;
                }
                Kind::Close | Kind::CaseEnd if self.at_stop(stops)? => return Ok(false),
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn at_stop(&mut self, stops: &[&[u8]]) -> Read<bool> {
        let token = self.peek()?;
        Ok(match token.kind {
            Kind::Word => stops.contains(&self.word(token).as_ref()),
            Kind::Close => stops.contains(&b")".as_slice()),
            Kind::CaseEnd => stops.contains(&b";;".as_slice()),
            _ => false,
        })
    }

    /// Reads pipelines joined by `&&` and `||`. Returns where the last ends, and whether there are several.
    fn and_or(&mut self) -> Read<(usize, bool)> {
        let mut joined = false;
        loop {
            let end = self.pipeline()?;
            if !self.take_if(Kind::AndOr)? {
                return Ok((end, joined));
            }
            joined = true;
            self.skip_newlines_after_operator()?;
        }
    }

    fn pipeline(&mut self) -> Read<usize> {
        if let Some(end) = self.pipeline_prefix()?
            && matches!(self.peek()?.kind, Kind::Newline | Kind::Semicolon | Kind::End)
        {
            self.opaque = true;
            return Ok(end);
        }
        loop {
            let end = self.nested(Self::command)?;
            if !self.take_if(Kind::Pipe)? {
                return Ok(end);
            }
            self.skip_newlines_after_operator()?;
        }
    }

    /// Reads the words that may stand in front of a pipeline. Returns where they end.
    fn pipeline_prefix(&mut self) -> Read<Option<usize>> {
        let mut end = None;
        let mut options: &[&[u8]] = &[];
        loop {
            let token = self.peek()?;
            if token.kind != Kind::Word {
                return Ok(end);
            }
            match self.word(token).as_ref() {
                b"!" => options = &[],
                b"time" => {
                    self.opaque = true;
                    options = &[b"-p", b"--"];
                }
                word if options.contains(&word) => {}
                _ => return Ok(end),
            }
            end = Some(self.take()?.end);
        }
    }

    /// Reads one command. Returns where it ends.
    fn command(&mut self) -> Read<usize> {
        let token = self.peek()?;
        match token.kind {
            Kind::Open => {
                let end = self.subshell_or_arithmetic()?;
                self.redirections(end)
            }
            Kind::Word => {
                let word = self.word(token).into_owned();
                if CLOSING.contains(&word.as_slice()) {
                    return Err(Fault::Syntax);
                }
                // Behind a `|`, where the reference does not want it.
                self.opaque |= word == b"time";
                match self.compound(&word)? {
                    Some(end) => self.redirections(end),
                    None => self.simple_or_function(),
                }
            }
            Kind::Redirect | Kind::HereDoc { .. } => self.simple_command(),
            _ => Err(Fault::Syntax),
        }
    }

    /// Reads a compound command if the word at hand starts one.
    fn compound(&mut self, word: &[u8]) -> Read<Option<usize>> {
        let end = match word {
            b"if" => self.if_command()?,
            b"while" | b"until" => {
                self.take()?;
                // The reference fails if the condition is not a list.
                self.opaque |= self.compound_list(&[b"do"])?;
                self.do_group()?
            }
            b"for" | b"select" => self.for_command(word == b"select")?,
            b"case" => self.case_command()?,
            b"{" => {
                self.take()?;
                self.compound_list(&[b"}"])?;
                self.take()?.end
            }
            b"[[" => self.conditional()?,
            b"function" => self.function()?,
            b"coproc" => self.coprocess()?,
            _ => return Ok(None),
        };
        Ok(Some(end))
    }

    /// Takes the reserved word at hand, which has to be this one.
    fn expect(&mut self, expected: &[u8]) -> Read<usize> {
        let token = self.take()?;
        if token.kind == Kind::Word && self.word(token).as_ref() == expected {
            Ok(token.end)
        } else {
            Err(Fault::Syntax)
        }
    }

    fn if_command(&mut self) -> Read<usize> {
        self.take()?;
        loop {
            self.compound_list(&[b"then"])?;
            self.take()?;
            self.compound_list(&[b"elif", b"else", b"fi"])?;
            let token = self.take()?;
            match self.word(token).as_ref() {
                b"elif" => {}
                b"else" => {
                    self.compound_list(&[b"fi"])?;
                    return Ok(self.take()?.end);
                }
                _ => return Ok(token.end),
            }
        }
    }

    fn do_group(&mut self) -> Read<usize> {
        self.expect(b"do")?;
        self.compound_list(&[b"done"])?;
        Ok(self.take()?.end)
    }

    /// Reads the body of a `for`: `do … done` or `{ … }`.
    fn loop_body(&mut self) -> Read<usize> {
        let token = self.peek()?;
        if token.kind == Kind::Word && self.word(token).as_ref() == b"{" {
            self.take()?;
            self.compound_list(&[b"}"])?;
            return Ok(self.take()?.end);
        }
        self.do_group()
    }

    fn for_command(&mut self, select: bool) -> Read<usize> {
        self.take()?;
        self.opaque |= select;
        let token = self.take()?;
        if token.kind == Kind::Open && !select && self.byte(0) == Some(b'(') {
            self.opaque = true;
            self.at += 1;
            let end = self.arithmetic_end()?.ok_or(Fault::Syntax)?;
            self.rewind(end);
            self.take_if(Kind::Semicolon)?;
            self.skip_newlines()?;
            return self.loop_body();
        }
        if token.kind != Kind::Word {
            return Err(Fault::Syntax);
        }
        if self.take_if(Kind::Semicolon)? {
            self.skip_newlines()?;
            return self.loop_body();
        }
        self.skip_newlines()?;
        let token = self.peek()?;
        if token.kind == Kind::Word && self.word(token).as_ref() == b"in" {
            self.take()?;
            while self.peek()?.kind == Kind::Word {
                let word = self.take()?;
                self.check_argument(word);
            }
            if !matches!(self.take()?.kind, Kind::Semicolon | Kind::Newline) {
                return Err(Fault::Syntax);
            }
            self.skip_newlines()?;
        }
        self.loop_body()
    }

    fn case_command(&mut self) -> Read<usize> {
        self.take()?;
        self.opaque = true;
        if self.take()?.kind != Kind::Word {
            return Err(Fault::Syntax);
        }
        self.skip_newlines()?;
        self.expect(b"in")?;
        loop {
            self.skip_newlines()?;
            let token = self.peek()?;
            if token.kind == Kind::Word && self.word(token).as_ref() == b"esac" {
                return Ok(self.take()?.end);
            }
            self.take_if(Kind::Open)?;
            loop {
                if self.take()?.kind != Kind::Word {
                    return Err(Fault::Syntax);
                }
                let token = self.take()?;
                match token.kind {
                    Kind::Close => break,
                    Kind::Pipe if token.end == token.start + 1 => {}
                    _ => return Err(Fault::Syntax),
                }
            }
            self.skip_newlines()?;
            if !self.at_stop(&[b";;", b"esac"])? {
                self.compound_list(&[b";;", b"esac"])?;
            }
            if !self.take_if(Kind::CaseEnd)? {
                return self.expect(b"esac");
            }
        }
    }

    /// Reads `( … )`, or `(( … ))` when that is an expression.
    fn subshell_or_arithmetic(&mut self) -> Read<usize> {
        let open = self.take()?;
        let mut arithmetic = None;
        if self.byte(0) == Some(b'(') {
            self.at += 1;
            arithmetic = self.arithmetic_end()?;
            self.rewind(open.end);
        }
        let Some(end) = arithmetic else { return self.subshell() };
        if !self.opaque {
            // To the reference it is two subshells.
            let pending = std::mem::take(&mut self.pending);
            self.opaque = self.subshell() != Ok(end) || self.opaque || !self.pending.is_empty();
            self.pending = pending;
        }
        self.rewind(end);
        Ok(end)
    }

    fn subshell(&mut self) -> Read<usize> {
        self.compound_list(&[b")"])?;
        Ok(self.take()?.end)
    }

    /// Reads the redirections behind a compound command.
    fn redirections(&mut self, mut end: usize) -> Read<usize> {
        while let Some(redirected) = self.redirection()? {
            end = redirected;
        }
        Ok(end)
    }

    /// Reads a redirection if one is at hand.
    fn redirection(&mut self) -> Read<Option<usize>> {
        let mut token = self.peek()?;
        if token.kind == Kind::Word && self.is_descriptor(token) {
            self.take()?;
            token = self.peek()?;
        }
        match token.kind {
            Kind::Redirect => {
                self.take()?;
                let target = self.take()?;
                self.check_argument(target);
                if target.kind == Kind::Word && !self.is_descriptor(target) {
                    Ok(Some(target.end))
                } else {
                    Err(Fault::Syntax)
                }
            }
            Kind::HereDoc { strip } => {
                self.take()?;
                let end = self.peek()?.end;
                self.expect_document(strip)?;
                Ok(Some(end))
            }
            _ => Ok(None),
        }
    }

    /// Whether a word is a number or a variable in braces right in front of a redirection.
    fn is_descriptor(&self, token: Token) -> bool {
        let follows = matches!(self.text.get(token.end), Some(b'<' | b'>'));
        let word = self.text.get(token.start..token.end).unwrap_or_default();
        let braced = word.strip_prefix(b"{").and_then(|word| word.strip_suffix(b"}")).is_some_and(is_name);
        follows && (braced || word.iter().all(u8::is_ascii_digit))
    }

    /// Reads a simple command, or a function definition that starts with the name.
    fn simple_or_function(&mut self) -> Read<usize> {
        let name = self.peek()?;
        if self.is_descriptor(name) || is_assignment(&self.word(name)) {
            return self.simple_command();
        }
        self.take()?;
        if self.take_if(Kind::Open)? {
            if !self.take_if(Kind::Close)? {
                return Err(Fault::Syntax);
            }
            return self.function_body();
        }
        let declares = DECLARING.contains(&self.word(name).as_ref());
        self.simple_rest(name.end, declares, false)
    }

    fn simple_command(&mut self) -> Read<usize> {
        let start = self.peek()?.start;
        self.simple_rest(start, false, true)
    }

    /// Reads the words, assignments and redirections of a simple command.
    fn simple_rest(&mut self, mut end: usize, declares: bool, mut leading: bool) -> Read<usize> {
        let mut declares = declares;
        loop {
            if let Some(redirected) = self.redirection()? {
                end = redirected;
                continue;
            }
            let token = self.peek()?;
            match token.kind {
                Kind::Word => {
                    self.take()?;
                    end = token.end;
                    self.check_argument(token);
                    let word = self.word(token);
                    let assignment = is_assignment(&word);
                    let array = word.last() == Some(&b'=') && self.byte(0) == Some(b'(');
                    if assignment && array && (leading || declares) {
                        end = self.nested(Self::array)?;
                        continue;
                    }
                    if leading && !assignment {
                        leading = false;
                        declares = DECLARING.contains(&word.as_ref());
                    }
                }
                Kind::Open => return Err(Fault::Syntax),
                _ => return Ok(end),
            }
        }
    }

    /// Reads the list of an array assignment.
    fn array(&mut self) -> Read<usize> {
        self.opaque = true;
        self.take()?;
        loop {
            let token = self.take()?;
            match token.kind {
                Kind::Word | Kind::Newline => {}
                Kind::Close => return Ok(token.end),
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn function(&mut self) -> Read<usize> {
        self.take()?;
        if self.take()?.kind != Kind::Word {
            return Err(Fault::Syntax);
        }
        if self.take_if(Kind::Open)? && !self.take_if(Kind::Close)? {
            return Err(Fault::Syntax);
        }
        self.function_body()
    }

    /// Reads the body of a function, which is a compound command.
    fn function_body(&mut self) -> Read<usize> {
        self.skip_newlines()?;
        let token = self.peek()?;
        let end = match token.kind {
            Kind::Open => self.nested(Self::subshell_or_arithmetic)?,
            Kind::Word => {
                let word = self.word(token).into_owned();
                if matches!(word.as_slice(), b"function" | b"coproc") {
                    return Err(Fault::Syntax);
                }
                self.nested(|reader| reader.compound(&word))?.ok_or(Fault::Syntax)?
            }
            _ => return Err(Fault::Syntax),
        };
        self.redirections(end)
    }

    fn coprocess(&mut self) -> Read<usize> {
        self.take()?;
        self.opaque = true;
        let token = self.peek()?;
        if token.kind == Kind::Word && !is_reserved(&self.word(token)) {
            let name = self.take()?;
            let next = self.peek()?;
            let compound = next.kind == Kind::Open || next.kind == Kind::Word && is_reserved(&self.word(next));
            if !compound {
                self.rewind(name.start);
                return self.simple_command();
            }
        }
        self.nested(Self::command)
    }
}

/// Commands whose arguments may be array assignments.
const DECLARING: [&[u8]; 7] = [b"declare", b"typeset", b"local", b"export", b"readonly", b"eval", b"alias"];

/// Whether a word assigns to a variable: `name=`, `name+=`, `name[…]=`.
fn is_assignment(word: &[u8]) -> bool {
    let Some(equals) = word.iter().position(|byte| *byte == b'=') else { return false };
    let left = word.get(..equals).unwrap_or_default();
    let left = left.strip_suffix(b"+").unwrap_or(left);
    let name =
        left.iter().position(|byte| *byte == b'[').map_or(left, |bracket| left.get(..bracket).unwrap_or_default());
    is_name(name) && (name.len() == left.len() || left.last() == Some(&b']'))
}
