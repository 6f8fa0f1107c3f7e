//! Static functions as banded linear systems over GF(2): bumped ribbons.
//!
//! A key stands for one equation: the sum of some unknowns within a short band is the key's value. The unknowns are the
//! table; a query adds up those of the key. Equations are solved as they come ("ribbon"), with slightly more equations
//! than unknowns, so that hardly an unknown is wasted. What does not fit is *bumped*: in every bucket, the equations
//! that begin before a limit of two bits go to the next layer. Dillinger, Hübschle-Schneider, Sanders and Walzer
//! describe the method in "Fast Succinct Retrieval and Approximate Membership using Ribbon" (SEA 2022).
//!
//! ```text
//! layer 0   | bucket 0 | bucket 1 | …      a little less unknowns than equations, limits of two bits a bucket
//! layer 1   the same for the 2 to 6% that were bumped
//! layer 2   an ordinary ribbon with a little more unknowns than equations, tried with several salts
//! ```
//!
//! | file | |
//! |---|---|
//! | `band` | the two widths: 64 unknowns for tables of many columns, 128 for one column |
//! | `layer` | where the equation of a key begins |
//! | `solve` | elimination with bumping, and the way back |
//! | `table` | three layers: construction and queries |
//! | `machine` | sums of the columns, by vector instructions where there are some |

mod band;
mod layer;
pub(super) mod machine;
mod solve;
mod table;

pub(super) use band::Band;
pub(super) use layer::Columns;
pub(super) use solve::Entry;
pub(super) use table::{Measures, SolvedTable, Table, Unsolvable, solve_table};
