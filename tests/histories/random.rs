//! Random numbers that depend only on the seed.

/// A SplitMix64 generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound.max(1))).unwrap()
    }

    pub fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(u32::try_from(all.len()).unwrap()) as usize].clone()
    }
}
