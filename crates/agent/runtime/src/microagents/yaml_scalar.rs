//! What a plain scalar means in YAML 1.1, as PyYAML reads it: `yes` is a boolean, `010` is eight.

use super::data::Data;

/// The value of a plain scalar; nothing if it has the form of a date and is none.
pub(super) fn resolve(text: &str) -> Option<Data> {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Data::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Data::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Data::Float(f64::NAN),
        _ if !text.starts_with(['-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
            Data::Text(text.to_owned())
        }
        _ if is_date(text) => return is_day(text).then(|| Data::Date(text.to_owned())),
        _ if is_time(text) => Data::Date(text.to_owned()),
        _ => integer(text)
            .map(Data::Integer)
            .or_else(|| float(text).map(Data::Float))
            .unwrap_or_else(|| Data::Text(text.to_owned())),
    };
    Some(value)
}

/// A sign and what is behind it.
fn signed(text: &str) -> (i8, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    }
}

/// A number that no integer of ours holds is none: its text says as much.
fn integer(text: &str) -> Option<i128> {
    let (sign, number) = signed(text);
    let digits = |digits: &str, base: u32| {
        let is_digit = |digit: char| digit == '_' || digit.is_digit(base);
        (!digits.is_empty() && digits.chars().all(is_digit))
            .then(|| i128::from_str_radix(&digits.replace('_', ""), base).ok())
            .flatten()
    };
    let value = if let Some(binary) = number.strip_prefix("0b") {
        digits(binary, 2)
    } else if let Some(hexadecimal) = number.strip_prefix("0x") {
        digits(hexadecimal, 16)
    } else if number == "0" {
        Some(0)
    } else if let Some(octal) = number.strip_prefix('0') {
        digits(octal, 8)
    } else if let Some((first, rest)) = number.split_once(':') {
        starts_with_digit(first).then(|| digits(first, 10)).flatten().and_then(|first| sixties(first, rest))
    } else {
        starts_with_digit(number).then(|| digits(number, 10)).flatten()
    };
    value.map(|value| value * i128::from(sign))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// Parts of sixty, such as the `30:00` of `1:30:00`.
fn sixties(first: i128, rest: &str) -> Option<i128> {
    rest.split(':').try_fold(first, |value, part| {
        let is_part = (1..=2).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit());
        let part = part.parse::<i128>().ok().filter(|part| is_part && *part < 60)?;
        value.checked_mul(60)?.checked_add(part)
    })
}

fn float(text: &str) -> Option<f64> {
    let (sign, number) = signed(text);
    let sign = f64::from(sign);
    if matches!(number, ".inf" | ".Inf" | ".INF") {
        return Some(sign * f64::INFINITY);
    }
    let (whole, rest) = number.split_once('.')?;
    // `-.5` and `+.5` are texts.
    if !(starts_with_digit(whole) || whole.is_empty() && number.len() == text.len()) {
        return None;
    }
    if let Some((first, parts)) = whole.split_once(':') {
        let first = first.replace('_', "").parse().ok()?;
        let fraction = rest.replace('_', "");
        let is_fraction = fraction.bytes().all(|digit| digit.is_ascii_digit());
        let seconds: f64 = is_fraction.then(|| format!("0.{fraction}0").parse().ok()).flatten()?;
        // Exact up to 2^53, as in Python.
        #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
        return sixties(first, parts).map(|value| sign * (value as f64 + seconds));
    }
    let (fraction, exponent) = match rest.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (rest, None),
    };
    let is_number = |digits: &str| digits.bytes().all(|digit| digit == b'_' || digit.is_ascii_digit());
    let is_exponent = |digits: &str| {
        let power = digits.strip_prefix(['-', '+']).unwrap_or_default();
        !power.is_empty() && power.bytes().all(|digit| digit.is_ascii_digit())
    };
    let has_digits = !whole.is_empty() || starts_with_digit(fraction);
    if !(is_number(whole) && is_number(fraction) && has_digits && exponent.is_none_or(is_exponent)) {
        return None;
    }
    let plain = number.replace('_', "");
    plain.parse::<f64>().ok().map(|value| sign * value)
}

/// `2024-01-31`, by its form.
fn is_date(text: &str) -> bool {
    text.len() == 10 && has_form(text, "dddd-dd-dd")
}

fn has_form(text: &str, form: &str) -> bool {
    text.len() >= form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, form)| if form == b'd' { byte.is_ascii_digit() } else { byte == form })
}

/// Whether there is such a day.
fn is_day(text: &str) -> bool {
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

/// A date with a time behind it: `2024-01-31T10:00:00Z`, `2024-1-31 9:00:00.5 +1`.
fn is_time(text: &str) -> bool {
    let Some(rest) = digits(text, 4, 4).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let Some(rest) = digits(rest, 1, 2).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let Some(rest) = digits(rest, 1, 2) else { return false };
    let blanks = rest.trim_start_matches([' ', '\t']);
    let Some(rest) = rest.strip_prefix(['T', 't']).or_else(|| (blanks.len() < rest.len()).then_some(blanks)) else {
        return false;
    };
    let Some(rest) = digits(rest, 1, 2).filter(|rest| has_form(rest, ":dd:dd")).and_then(|rest| rest.get(6..)) else {
        return false;
    };
    let rest =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    let zone = rest.trim_start_matches([' ', '\t']);
    rest.is_empty() || zone == "Z" || is_offset(zone)
}

/// `+1`, `-05:30`
fn is_offset(zone: &str) -> bool {
    let rest = zone.strip_prefix(['-', '+']).and_then(|rest| digits(rest, 1, 2));
    rest.is_some_and(|rest| rest.is_empty() || rest.len() == 3 && has_form(rest, ":dd"))
}

/// What is behind so many digits, as many as there are.
fn digits(text: &str, least: usize, most: usize) -> Option<&str> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least).then(|| &text[count..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_mean_what_they_mean_in_yaml_1_1() {
        use Data::{Bool, Date, Float, Integer, Null, Text};
        for (text, expected) in [
            ("", Null),
            ("~", Null),
            ("NULL", Null),
            ("nULL", Text("nULL".into())),
            ("yes", Bool(true)),
            ("Off", Bool(false)),
            ("y", Text("y".into())),
            ("0", Integer(0)),
            ("-12", Integer(-12)),
            ("+1_000", Integer(1000)),
            ("010", Integer(8)),
            ("08", Text("08".into())),
            ("0x1F", Integer(31)),
            ("0b11", Integer(3)),
            ("0o7", Text("0o7".into())),
            ("1:30", Integer(90)),
            ("1:60", Text("1:60".into())),
            ("1:30:05", Integer(5405)),
            ("99999999999999999999", Integer(99_999_999_999_999_999_999)),
            ("1.", Float(1.0)),
            ("1.50", Float(1.5)),
            (".5", Float(0.5)),
            ("-.5", Text("-.5".into())),
            ("1.5e3", Text("1.5e3".into())),
            ("1.5e+3", Float(1500.0)),
            ("1e3", Text("1e3".into())),
            ("1:30.5", Float(90.5)),
            ("-.inf", Float(f64::NEG_INFINITY)),
            ("1.0.0", Text("1.0.0".into())),
            ("1_.5", Float(1.5)),
            ("._5", Text("._5".into())),
            (".", Text(".".into())),
            ("-", Text("-".into())),
            ("+", Text("+".into())),
            ("...x", Text("...x".into())),
            ("2024-01-31", Date("2024-01-31".into())),
            ("2024-1-31", Text("2024-1-31".into())),
            ("2024-02-29", Date("2024-02-29".into())),
            ("2024-1-31 9:00:00.25 +1", Date("2024-1-31 9:00:00.25 +1".into())),
            ("2024-01-31T10:00:00Z", Date("2024-01-31T10:00:00Z".into())),
            ("2024-01-31T10:00", Text("2024-01-31T10:00".into())),
            ("2024-01-31T10:00:00-05:30", Date("2024-01-31T10:00:00-05:30".into())),
            ("1é", Text("1é".into())),
        ] {
            assert_eq!(resolve(text), Some(expected), "{text}");
        }
        assert_eq!(resolve("2023-02-29"), None);
        assert!(matches!(resolve(".NaN"), Some(Float(number)) if number.is_nan()));
    }
}
