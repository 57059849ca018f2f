//! Student's t distribution ("The probable error of a mean", Biometrika 6, 1908): tail probabilities and their
//! inverse, for any number of degrees of freedom.

/// The probability that |T| is at least `|t|`, two-sided; `df` above 0.
pub fn two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// The t that |T| exceeds with probability `level`, two-sided: 0.05 at 2 degrees of freedom gives 4.303. `level` is between
/// 0 and 1, both excluded.
pub fn critical(level: f64, df: f64) -> f64 {
    // Newton's method on ln p as a function of ln t. The function is concave and nearly linear in the tail, so the method
    // converges from wherever the first step lands. Each step squares the error, so a small one is the last that is needed.
    let mut u = Some(first_guess(level, df).ln()).filter(|u| u.is_finite()).unwrap_or(0.7);
    for _ in 0..60 {
        let t = u.exp();
        let p = two_sided(t, df);
        if p <= 0.0 {
            u -= 1.0;
            continue;
        }
        let step = (p.ln() - level.ln()) * p / (2.0 * density(t, df) * t);
        u += step.clamp(-4.0, 4.0);
        if step.abs() < 1e-6 {
            break;
        }
    }
    u.exp()
}

/// About the t of [`critical`]: from that of the normal distribution (Abramowitz and Stegun 26.2.23), as in Gaver and Kafadar, "A
/// retrievable recipe for inverse t", The American Statistician 38, 1984. Below two degrees of freedom it is far off.
fn first_guess(level: f64, df: f64) -> f64 {
    let w = (-2.0 * (level / 2.0).ln()).sqrt();
    let above = 2.515_517 + w * (0.802_853 + w * 0.010_328);
    let below = 1.0 + w * (1.432_788 + w * (0.189_269 + w * 0.001_308));
    let normal = w - above / below;
    let exponent = normal.powi(2) * (df - 5.0 / 6.0) / (df - 2.0 / 3.0 + 0.1 / df).powi(2);
    (df * exponent.exp_m1()).sqrt()
}

fn density(t: f64, df: f64) -> f64 {
    let constant =
        ln_gamma(f64::midpoint(df, 1.0)) - ln_gamma(df / 2.0) - 0.5 * (df * std::f64::consts::PI).ln();
    (constant - f64::midpoint(df, 1.0) * (1.0 + t * t / df).ln()).exp()
}

/// ln of the gamma function for positive arguments (Lanczos, "A precision approximation of the gamma function", SIAM
/// J. Numer. Anal. B 1, 1964), accurate to some 13 digits.
#[allow(clippy::excessive_precision)] // the published coefficients
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const C: [f64; 9] = [
        0.999_999_999_999_809_93,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_13,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_571_6e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = C.iter().enumerate().skip(1).fold(C[0], |sum, (i, c)| sum + c / (x + i as f64));
    let t = x + G + 0.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularized incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8), in
/// Lentz's form.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let safe = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut c, mut d) = (1.0, 1.0 / safe(1.0 - (a + b) * x / (a + 1.0)));
    let mut f = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut delta = 1.0;
        for term in [even, odd] {
            d = 1.0 / safe(1.0 + term * d);
            c = safe(1.0 + term / c);
            delta = c * d;
            f *= delta;
        }
        if (delta - 1.0).abs() < 1e-15 {
            break;
        }
    }
    f
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_agree_with_printed_tables() {
        for (level, df, t) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.05, 10.0, 2.228),
            (0.05, 30.0, 2.042),
            (0.01, 2.0, 9.925),
            (0.01, 9.0, 3.250),
            (0.001, 5.0, 6.869),
            (0.2, 3.0, 1.638),
        ] {
            assert!((critical(level, df) - t).abs() < 6e-4, "{level} {df}: {}", critical(level, df));
        }
        // With many degrees of freedom it is the normal distribution.
        assert!((critical(0.05, 1e6) - 1.959_97).abs() < 1e-4);
        // With one degree of freedom it is the Cauchy distribution: |T| exceeds 1 half of the time.
        assert!((two_sided(1.0, 1.0) - 0.5).abs() < 1e-12);
        assert_eq!((two_sided(f64::INFINITY, 3.0), two_sided(0.0, 3.0)), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(level in 1e-9..0.999_f64, df in 1.0..200.0_f64) {
            let back = two_sided(critical(level, df), df);
            prop_assert!((back / level - 1.0).abs() < 1e-9, "{level} {df} {back}");
        }
    }
}
