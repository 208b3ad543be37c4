//! Names that cannot be guessed, and bytes as hexadecimal digits.

pub use getrandom::Error;

/// Bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// So many bytes of the system's random numbers, as hexadecimal digits.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random<const BYTES: usize>() -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// A random UUID of version 4: 36 characters, lower case, hyphens.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn uuid() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex(&[0, 0x0a, 0xff, 0x10]), "000aff10");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn no_two_random_names_are_the_same() {
        let names = [random::<8>(), random::<8>()].map(Result::unwrap);
        assert_ne!(names[0], names[1]);
        for name in names {
            assert_eq!(name.len(), 16);
            assert!(name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{name}");
        }
    }

    #[test]
    fn a_uuid_is_of_version_4_and_there_is_none_like_it() {
        let (one, other) = (uuid().unwrap(), uuid().unwrap());
        assert_ne!(one, other);
        let shape: String = one.chars().map(|it| if it == '-' { '-' } else { 'x' }).collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert!(one.chars().all(|it| matches!(it, '-' | '0'..='9' | 'a'..='f')), "{one}");
        assert!(&one[14..15] == "4" && matches!(&one[19..20], "8" | "9" | "a" | "b"), "{one}");
    }
}
