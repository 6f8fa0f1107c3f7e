//! Catches: a wrong answer for a key of either list, a list that depends on cores, machines or the order of keys.

mod model;
