//! The reference's answers (`tests/golden/split.json`, written by `split.py` beside it).

/// Texts that the reference takes for several commands and this crate does not, by what they contain, and why.
pub(super) const EXCEPTIONS: [(&str, &str); 6] = [
    (";#c", "the reference passes over the `#` and takes the comment for a command"),
    ("&#c", "the reference passes over the `#` and takes the comment for a command"),
    (";# c", "the reference passes over the `#` and takes the comment for a command"),
    (")# c", "the reference passes over the `#` and takes the comment for a command"),
    ("ls\\\n\npwd", "the reference loses a line behind a word that ends in a line continuation"),
    ("a'$(ls)'", "the reference runs a substitution inside single quotes; whether it can read it is left open"),
];

/// A text, the kind of the answer, and the pieces.
pub(super) type Row = (String, String, Vec<String>);

/// Reads the rows. The file has one row in a line, and only strings and lists.
pub(super) fn rows(file: &str) -> Vec<Row> {
    file.lines().filter(|line| line.starts_with("[\"")).map(row).collect()
}

fn row(line: &str) -> Row {
    let mut strings = strings(line).into_iter();
    let text = strings.next().expect("a row starts with the text");
    let answer = strings.next().expect("the answer follows");
    (text, answer, strings.collect())
}

/// All JSON strings of a line.
fn strings(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut characters = line.chars();
    while characters.by_ref().any(|character| character == '"') {
        let mut string = String::new();
        while let Some(character) = characters.next().filter(|character| *character != '"') {
            string.push(if character == '\\' { escaped(&mut characters) } else { character });
        }
        found.push(string);
    }
    found
}

fn escaped(characters: &mut std::str::Chars<'_>) -> char {
    match characters.next().expect("an escape has a letter") {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'u' => {
            let digits: String = characters.by_ref().take(4).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).expect("an escape names a character")
        }
        other => other,
    }
}
