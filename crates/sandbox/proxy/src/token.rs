//! Tokens that let a browser in.

/// A random UUID of version 4: 36 characters, lower case, hyphens.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    let random = u128::from_be_bytes(bytes);
    let version = (random & !(0xf << 76)) | (4 << 76);
    let digits = format!("{:032x}", (version & !(0b11 << 62)) | (0b10 << 62));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits.get(range).unwrap_or_default());
    Ok(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_uuid_of_version_4_and_there_is_none_like_it() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_ne!(one, other);
        let shape: String = one.chars().map(|it| if it == '-' { '-' } else { 'x' }).collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert!(one.chars().all(|it| matches!(it, '-' | '0'..='9' | 'a'..='f')), "{one}");
        assert!(&one[14..15] == "4" && matches!(&one[19..20], "8" | "9" | "a" | "b"), "{one}");
    }
}
