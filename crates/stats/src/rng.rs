//! A seeded generator of random numbers. A run records its seed, and the same seed must give the same plan in every later
//! version of Narrows. The default generators of crates do not promise that, so this one is our own.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): 64 bits of
/// state; every seed is good. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniformly distributed number in `0..n` (Lemire, "Fast random integer generation in an interval", ACM TOMACS 2019).
    /// Zero if `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            // If the low half is below 2^64 mod n, the draw would make some results likelier: draw again.
            if n == 0 || product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number between 0 and 1, both excluded, uniform over 2^53 values.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A draw from the standard normal distribution (Box and Muller, Ann. Math. Statist. 29, 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * self.unit().ln()).sqrt(), std::f64::consts::TAU * self.unit());
        radius * angle.cos()
    }

    /// A draw from Student's t with `df` degrees of freedom (at least one).
    pub fn student(&mut self, df: u32) -> f64 {
        let df = df.max(1);
        let squares: f64 = (0..df).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / f64::from(df)).sqrt()
    }
}

/// Shuffles `items`. All orders are equally likely, as far as 64 bits of seed allow (Fisher and Yates, in Durstenfeld's
/// form).
pub fn shuffle<T>(items: &mut [T], rng: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_sequence() {
        // From the reference implementation (Vigna, splitmix64.c), seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn a_recorded_seed_always_gives_the_same_numbers() {
        let mut items: Vec<u8> = (0..10).collect();
        shuffle(&mut items, &mut SplitMix64::new(42));
        assert_eq!(items, [8, 3, 6, 5, 4, 0, 9, 2, 1, 7]);
    }

    #[test]
    fn every_order_of_three_is_about_as_likely() {
        let mut rng = SplitMix64::new(7);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut rng);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert!(seen.len() == 6 && seen.values().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn below_stays_below(seed: u64, n in 1..u64::MAX) {
            prop_assert!(SplitMix64::new(seed).below(n) < n);
        }

        #[test]
        fn shuffling_loses_nothing(seed: u64, items in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut shuffled = items.clone();
            shuffle(&mut shuffled, &mut SplitMix64::new(seed));
            let (mut a, mut b) = (items, shuffled);
            a.sort_unstable();
            b.sort_unstable();
            prop_assert_eq!(a, b);
        }
    }
}
