//! What each filter does not withstand, beside what it does.

/// The threat that a filter gives way to, in a sentence. The games behind it are those of `besom attack`.
pub(crate) fn threat(name: &str) -> &'static str {
    match name {
        "telescoping"
        | "telescoping-uncompressed"
        | "extension"
        | "extension-quotient"
        | "extension-bins" => {
            "It withstands whoever only asks. It does not withstand somebody who can also have stored keys removed and inserted \
             again (deletion-timing, reversed-mates): take broom there."
        }
        "broom" | "broom-quotient" | "broom-bins" => {
            "It is built to withstand whoever asks, inserts and removes, as long as he does not know the seed."
        }
        "adaptive-bloom" | "cascade" => {
            "It withstands whoever asks or has keys removed; it grows with every repair, and forgets repairs when it is full."
        }
        "cuckooing" | "cyclic-1" | "cyclic-2" | "cyclic-3" => {
            "It does not withstand a patient attacker who collects keys that cover all places of a stored one (unfixable-set), \
             nor one who has keys removed and inserted again: take broom there."
        }
        "swapping" => {
            "It does not withstand a patient attacker who collects keys that cover all states of a stored one (unfixable-set), \
             nor one who has keys removed and inserted again (reversed-mates): take broom there."
        }
        "whitelist" => {
            "It does not withstand an attacker who whittles: whoever keeps asking what survived the round before beats it in 80 to 100% \
             of the games, once its list is full (whittling-rounds, lower-bound-rounds)."
        }
        "bloom+cache" => {
            "It does not withstand an attacker who repeats more false positives than the cache holds, in turns: then every one of \
             them reads the store."
        }
        "stacked" => {
            "It does not withstand anybody who repeats a false positive that was not in its sample: it is accepted for ever."
        }
        _ => "It does not withstand anybody who repeats a false positive: it is accepted for ever.",
    }
}
