//! Amounts as a cluster writes them: `500m`, `2Gi`, `1e3`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// What may follow a number, and what it means.
const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// An amount that is more than nothing.
pub(crate) fn parse(text: &str) -> Result<Quantity, String> {
    match value(text) {
        Some(value) if value > 0.0 => Ok(Quantity(text.to_owned())),
        Some(_) => Err(format!("`{text}` must be more than nothing")),
        None => Err(format!("`{text}` is no amount; write one like `500m`, `2` or `2Gi`")),
    }
}

/// So many times an amount.
pub(crate) fn times(amount: &Quantity, factor: u32) -> Quantity {
    if factor == 1 {
        return amount.clone();
    }
    let product = value(&amount.0).unwrap_or_default() * f64::from(factor);
    // Amounts of memory are whole bytes, those of processors have thousandths.
    let text = if product.fract() == 0.0 { format!("{product:.0}") } else { format!("{:.0}m", product * 1e3) };
    Quantity(text)
}

/// So many processors.
pub(crate) fn cpus(count: f64) -> Quantity {
    Quantity(format!("{:.0}m", (count * 1e3).max(1.0)))
}

/// So many bytes.
pub(crate) fn bytes(count: u64) -> Quantity {
    Quantity(count.to_string())
}

/// The smaller one.
pub(crate) fn smaller(one: Quantity, other: &Quantity) -> Quantity {
    if value(&other.0) < value(&one.0) { other.clone() } else { one }
}

/// The larger one.
pub(crate) fn larger<'a>(one: &'a Quantity, other: &'a Quantity) -> &'a Quantity {
    if value(&other.0) > value(&one.0) { other } else { one }
}

fn value(text: &str) -> Option<f64> {
    let (number, factor) =
        SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor))).unwrap_or((text, 1.0));
    let plain = number.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let number: f64 = number.parse().ok().filter(|number: &f64| plain && number.is_finite())?;
    Some(number * factor).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_a_cluster() {
        for (text, expected) in [("1", 1.0), ("500m", 0.5), ("2Gi", 2_147_483_648.0), ("1.5", 1.5), ("1e3", 1e3)] {
            assert_eq!(value(text), Some(expected), "{text}");
            parse(text).unwrap();
        }
        for wrong in ["", "x", "1 Gi", "-1", "+1", "inf", "nan", "1GiB", "Gi", "0", "0Gi", "1e999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_multiplied_and_compared() {
        let amount = |text: &str| Quantity(text.to_owned());
        assert_eq!(times(&amount("1Gi"), 1), amount("1Gi"));
        assert_eq!(times(&amount("1Gi"), 2), amount("2147483648"));
        assert_eq!(times(&amount("250m"), 3), amount("750m"));
        assert_eq!(times(&amount("500m"), 2), amount("1"));
        assert_eq!(smaller(amount("1Gi"), &amount("512Mi")), amount("512Mi"));
        assert_eq!(smaller(amount("1"), &amount("2")), amount("1"));
        assert_eq!(larger(&amount("1Gi"), &amount("1025Mi")), &amount("1025Mi"));
        assert_eq!(larger(&amount("1Gi"), &amount("x")), &amount("1Gi"));
        assert_eq!((cpus(0.5), cpus(0.0001), bytes(5)), (amount("500m"), amount("1m"), amount("5")));
    }
}
