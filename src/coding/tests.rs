//! Catches: letters that come back changed or in the wrong slot, codes that two strings share, a code that
//! takes much more space than the entropy of what it codes, and arbitrary bytes that make the decoder fail.

use super::*;
use crate::testing::Random;

fn selector_codes() -> Vec<Selectors> {
    [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 4), (3, 3), (4, 5)]
        .map(|(x, y)| Selectors::new(x, y))
        .to_vec()
}

/// Every string of `len` letters below `letters`.
fn strings(letters: u64, len: u32) -> impl Iterator<Item = Vec<u64>> {
    (0..letters.pow(len))
        .map(move |number| (0..len).map(|place| number / letters.pow(place) % letters).collect())
}

fn round_trip<L: Letters>(code: &BlockCode<L>, letters: &[L::Letter]) -> Option<u64> {
    let number = code.encode(letters)?;
    assert!(number < code.range, "{letters:?} is coded as {number}, beyond the interval");
    let decoded: Vec<_> = code.decode(number).take(letters.len() + 2).collect();
    assert_eq!(decoded[..letters.len()], *letters);
    assert!(decoded[letters.len()..].iter().all(|&letter| letter == L::Letter::default()));
    for (slot, &letter) in letters.iter().enumerate() {
        assert_eq!(code.decode(number).nth(slot), Some(letter));
    }
    Some(number)
}

#[test]
fn every_short_string_that_fits_comes_back_and_no_two_share_a_code() {
    for letters in selector_codes() {
        for bits in [1, 2, 5, 9, 13, 20] {
            let code = BlockCode::new(letters, bits, u32::MAX);
            let mut seen = std::collections::HashMap::new();
            for string in strings(8, 5) {
                let string: Vec<Selector> = string.iter().map(|&letter| letter as Selector).collect();
                if let Some(number) = round_trip(&code, &string) {
                    assert_eq!(seen.insert(number, string.clone()), None, "{string:?} in {bits} bits");
                }
            }
            assert!(seen.contains_key(&0));
        }
    }
    for bits in [1, 7, 12, 22, 30] {
        let code = BlockCode::new(Extensions::default(), bits, u32::MAX);
        let mut seen = std::collections::HashMap::new();
        for string in strings(15, 4) {
            let string: Vec<_> = string
                .iter()
                .map(|&number| {
                    let len = (number + 1).ilog2();
                    Extension::new((number + 1) ^ 1 << len, len)
                })
                .collect();
            if let Some(number) = round_trip(&code, &string) {
                assert_eq!(seen.insert(number, string.clone()), None, "{string:?} in {bits} bits");
            }
        }
        assert!(seen.contains_key(&0));
    }
}

/// The shapes that tables have: slots and bits of a block.
const SHAPES: [(usize, u32); 6] = [(46, 46), (64, 56), (64, 64), (50, 63), (32, 28), (7, 8)];

#[test]
fn random_blocks_of_every_shape_come_back() {
    let mut random = Random::new(11);
    for (slots, bits) in SHAPES {
        let (mut fit, mut failed) = (0, 0);
        for round in 0..20_000 {
            let rate = 2 + round % 40;
            let selectors: Vec<Selector> =
                (0..slots).map(|_| (0..9).take_while(|_| random.one_in(rate)).count() as Selector).collect();
            for letters in [Selectors::new(2, 3), Selectors::new(1, 2), Selectors::new(3, 3)] {
                match round_trip(&BlockCode::new(letters, bits, u32::MAX), &selectors) {
                    Some(_) => fit += 1,
                    None => failed += 1,
                }
            }
            let extensions: Vec<_> = (0..slots)
                .map(|_| {
                    let len =
                        if random.one_in(rate) { 1 + random.next().trailing_zeros().min(40) } else { 0 };
                    Extension::new(random.next() & low_mask(len), len)
                })
                .collect();
            match round_trip(&BlockCode::new(Extensions::default(), bits, u32::MAX), &extensions) {
                Some(_) => fit += 1,
                None => failed += 1,
            }
        }
        assert!(fit > 10_000 && failed > 1_000, "{slots} slots, {bits} bits: {fit} fit, {failed} do not");
    }
}

#[test]
fn letters_beyond_the_code_are_refused() {
    let code = BlockCode::new(Selectors::new(2, 3), 46, 4);
    assert!(code.encode(&[4]).is_some());
    for selector in [5, 6, 1_000, Selector::MAX] {
        assert_eq!(code.encode(&[0, selector]), None);
    }
    for selector in [7, 1_000, Selector::MAX] {
        assert_eq!(BlockCode::new(Selectors::new(2, 3), 20, u32::MAX).encode(&[selector]), None);
    }
    let code = BlockCode::new(Extensions::default(), 44, u32::MAX);
    assert!(code.encode(&[Extension::new(0, 20)]).is_some());
    assert_eq!(code.encode(&[Extension::new(low_mask(62), 62)]), None);
}

#[test]
fn any_number_decodes_to_something() {
    let mut random = Random::new(12);
    for (slots, bits) in SHAPES {
        for _ in 0..20_000 {
            let number = random.next() >> random.below(64) & low_mask(bits);
            for letters in selector_codes() {
                assert_eq!(BlockCode::new(letters, bits, u32::MAX).decode(number).take(slots).count(), slots);
            }
            let extensions = BlockCode::new(Extensions::default(), bits, u32::MAX).decode(number).take(slots);
            assert!(extensions.map(Extension::len).max() <= Some(Extension::MAX_LEN));
        }
    }
    for bits in 1..12 {
        for number in 0..1 << bits {
            for letters in selector_codes() {
                assert_eq!(BlockCode::new(letters, bits, u32::MAX).decode(number).take(64).count(), 64);
            }
            assert_eq!(
                BlockCode::new(Extensions::default(), bits, u32::MAX).decode(number).take(64).count(),
                64
            );
        }
    }
}

/// Corollary 3 after c·n unique queries: the probabilities of selectors 1, 2, …, and the rest for selector 0.
fn corollary_3(epsilon: f64, c: f64) -> Vec<f64> {
    let (mut sum, mut term, mut power) = (0.0, 1.0, 1.0);
    let mut probabilities = vec![0.0];
    for k in 1..=6 {
        term *= c / f64::from(k);
        sum += term;
        power *= epsilon;
        probabilities.push(power * sum);
    }
    probabilities[0] = 1.0 - probabilities.iter().sum::<f64>();
    probabilities
}

/// The average cost of a letter in bits, were blocks endless: what its share leaves of a long interval.
fn cost(letters: Selectors, probabilities: &[f64]) -> f64 {
    let range = 1_u64 << 60;
    let size = |letter: usize| match letter {
        0 => letters.initial(range),
        letter => letters.share(range, letter as Selector).unwrap().size,
    };
    let bits = |letter| (range as f64 / size(letter) as f64).log2();
    probabilities.iter().enumerate().map(|(letter, probability)| probability * bits(letter)).sum()
}

fn entropy(probabilities: &[f64]) -> f64 {
    probabilities.iter().map(|probability| -probability * probability.log2()).sum()
}

#[test]
fn the_codes_are_close_to_the_entropy_of_corollary_3_where_blocks_fill_up() {
    // ε = 2^-8, where most blocks are about to overflow.
    for (c, limit) in [(50.0, 1.02), (30.0, 1.13), (60.0, 1.02)] {
        let probabilities = corollary_3(1.0 / 256.0, c);
        let (entropy, cost) = (entropy(&probabilities), cost(Selectors::new(2, 3), &probabilities));
        assert!(cost < limit * entropy, "c = {c}: {entropy}, {cost}");
    }
    // Theorem 4's bound at 4n unique queries, 1/e + b/(b − 1)² with b = 4, holds for the code as it is.
    assert!(cost(Selectors::new(2, 3), &corollary_3(1.0 / 256.0, 4.0)) < 0.812);
}

#[test]
fn blocks_of_random_letters_need_little_more_than_their_share_of_the_code() {
    // 46 letters of Corollary 3 at 90% of the code's 46 bits by entropy: most blocks must fit.
    let mut random = Random::new(13);
    let code = BlockCode::new(Selectors::new(2, 3), 46, u32::MAX);
    let mut c = 1.0;
    while 46.0 * entropy(&corollary_3(1.0 / 256.0, c + 1.0)) < 0.9 * 46.0 {
        c += 1.0;
    }
    let probabilities = corollary_3(1.0 / 256.0, c);
    let mut draw = || {
        let mut point = random.next() as f64 / 2_f64.powi(64);
        let letter = probabilities.iter().position(|probability| {
            point -= probability;
            point < 0.0
        });
        letter.unwrap_or(0) as Selector
    };
    let fit =
        (0..4_000).filter(|_| code.encode(&(0..46).map(|_| draw()).collect::<Vec<_>>()).is_some()).count();
    assert!(fit > 2_800, "at c = {c} only {fit} of 4000 blocks fit");
}

/// Any letters in any shape come back or are refused, and any code is decoded to as many letters as are asked for.
fn fuzz_code<L: Letters>(target: &str, letter: impl Fn(&mut Random) -> L::Letter) {
    crate::testing::fuzz(target, 2_000, |random| {
        let (slots, bits) = (2 + random.below(62) as u32, 2 + random.below(63) as u32);
        let r = 2 + random.below(31) as u32;
        let letters = L::for_code(r, bits, slots);
        let code =
            BlockCode::new(letters, bits, if random.one_in(2) { u32::MAX } else { L::highest_coded(r) });
        let rare = 1 + random.below(30);
        let string: Vec<L::Letter> = (0..slots)
            .map(|_| if random.one_in(rare) { letter(random) } else { L::Letter::default() })
            .collect();
        let highest = string.iter().map(|&letter| L::rank(letter)).max();
        let coded = round_trip(&code, &string);
        assert!(coded.is_none() || highest <= Some(code.highest()), "{string:?}");
        // A code that nobody has made.
        let any = random.next() & low_mask(bits);
        assert!(code.decode(any).take(slots as usize).count() <= slots as usize);
    });
}

#[test]
fn fuzz_selector_codes() {
    fuzz_code::<Selectors>("the code of selectors", |random| random.below(40) as Selector);
}

#[test]
fn fuzz_extension_codes() {
    fuzz_code::<Extensions>("the code of extensions", |random| {
        let len = random.below(12) as u32;
        Extension::new(random.next() & low_mask(len), len)
    });
}
