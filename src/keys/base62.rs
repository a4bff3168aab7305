//! Base 62: digits and letters only, so that a text needs no quoting in a URL or a shell and a double click selects it.
//!
//! Owns the alphabet, random texts and the encoding of numbers. Every letter of a random text is equally likely, and
//! the randomness comes from the operating system.

use super::secret::wipe;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SIX_BITS: u8 = 0b0011_1111;

/// The operating system returned no random bytes. There is no fallback, as any other source is easier to guess.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes ({0}): no key was made, try again")]
pub struct RandomError(getrandom::Error);

/// Fills `out` with random letters.
pub(super) fn fill_random(out: &mut [u8]) -> Result<(), RandomError> {
    let mut raw = [0; 64];
    let mut filled = 0;
    while filled < out.len() {
        getrandom::fill(&mut raw).map_err(RandomError)?;
        // Rejection sampling: two of the 64 values have no letter and are skipped, so that the rest stay equally
        // likely.
        let letters = raw.iter().filter_map(|byte| ALPHABET.get(usize::from(byte & SIX_BITS)));
        for (slot, letter) in out.iter_mut().skip(filled).zip(letters) {
            *slot = *letter;
            filled += 1;
        }
    }
    wipe(&mut raw);
    Ok(())
}

/// Encodes a number as six letters with leading zeros. Every `u32` fits, as 62⁶ exceeds 2³².
pub(super) fn six_letters(number: u32) -> [u8; 6] {
    let mut rest = number as usize;
    let mut letters = [ALPHABET[0]; 6];
    for letter in letters.iter_mut().rev() {
        *letter = ALPHABET[rest % ALPHABET.len()];
        rest /= ALPHABET.len();
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_and_the_largest_fits() {
        assert_eq!(&six_letters(0), b"000000");
        assert_eq!(&six_letters(61), b"00000z");
        assert_eq!(&six_letters(62), b"000010");
        assert_eq!(&six_letters(u32::MAX), b"4gfFC3");
    }

    #[test]
    fn every_letter_is_drawn_about_equally_often() {
        let mut text = vec![0; 62 * 1000];
        fill_random(&mut text).unwrap();
        let mut drawn = std::collections::HashMap::new();
        for letter in text {
            *drawn.entry(char::from(letter)).or_insert(0) += 1;
        }
        assert_eq!(drawn.len(), ALPHABET.len());
        assert!(drawn.values().all(|times| (700..1300).contains(times)), "{drawn:?}");
    }
}
