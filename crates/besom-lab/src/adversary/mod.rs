//! Attacks on filters. An adversary sees nothing but the answers of an oracle.
