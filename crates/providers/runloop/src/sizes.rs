//! Sizes of the service (`hosted-apis` 4.2). It knows no limits below them: a sandbox gets what its size has.

use gloveport_hosted::fault::wrong;
use gloveport_provider::ProviderError;

/// Sizes with a name.
pub(crate) const NAMES: [&str; 6] = ["X_SMALL", "SMALL", "MEDIUM", "LARGE", "X_LARGE", "XX_LARGE"];
/// Their processors, in halves, and their memory in GiB.
const SIZES: [(u32, u32); 6] = [(1, 1), (2, 2), (4, 4), (4, 8), (8, 16), (16, 32)];
/// The most of each.
const MOST: (u32, u32) = (32, 64);

/// A size of a sandbox.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Size {
    /// One with a name.
    Named(&'static str),
    /// One of our own: processors, and memory in GiB.
    Custom(f64, u32),
}

/// So many times the size with this name.
pub(crate) fn of(name: &str, factor: u32) -> Result<Size, ProviderError> {
    let at = NAMES.iter().position(|other| *other == name).unwrap_or_default();
    let (halves, memory) = SIZES.get(at).copied().unwrap_or((1, 1));
    let wanted = (halves.saturating_mul(factor), memory.saturating_mul(factor));
    if let Some(at) = SIZES.iter().position(|size| *size == wanted) {
        return Ok(Size::Named(NAMES.get(at).copied().unwrap_or("LARGE")));
    }
    if wanted.0 > MOST.0 || wanted.1 > MOST.1 {
        let most = (MOST.0 / halves).min(MOST.1 / memory);
        let reason = format!("{factor} times {name} is more than Runloop has; {most} times is the most");
        return Err(wrong("limits.factor", reason));
    }
    // Half a processor, one, or an even number; one GiB, or an even number.
    let processors = if wanted.0 <= 2 { wanted.0 } else { wanted.0.div_ceil(4) * 4 };
    let memory = if wanted.1 <= 1 { 1 } else { wanted.1 + wanted.1 % 2 };
    // Two GiB for a processor are the least.
    Ok(Size::Custom(f64::from(processors) / 2.0, memory.max(processors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_multiplies_processors_and_memory_of_the_size() {
        for (name, factor, expected) in [
            ("LARGE", 1, Size::Named("LARGE")),
            ("LARGE", 2, Size::Named("X_LARGE")),
            ("LARGE", 3, Size::Custom(6.0, 24)),
            ("LARGE", 4, Size::Named("XX_LARGE")),
            ("LARGE", 8, Size::Custom(16.0, 64)),
            ("X_SMALL", 2, Size::Named("SMALL")),
            ("X_SMALL", 3, Size::Custom(2.0, 4)),
            ("SMALL", 2, Size::Named("MEDIUM")),
            ("MEDIUM", 5, Size::Custom(10.0, 20)),
        ] {
            assert_eq!(of(name, factor).unwrap(), expected, "{name} {factor}");
        }
        for (name, factor, most) in
            [("LARGE", 9, "8 times"), ("XX_LARGE", u32::MAX, "2 times"), ("X_SMALL", 33, "32 times")]
        {
            let error = of(name, factor).unwrap_err().to_string();
            assert!(error.contains(most), "{error}");
        }
    }
}
