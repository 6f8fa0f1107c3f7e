//! Extension filters on bins: what the tests that all grounds share need of them (see `values::tests`), and tests of what
//! only bins have.

mod lines;

use crate::coding::Extension;
use crate::ground::{Listed, members_of, read};
use crate::values::Parameters;
use crate::values::testing::{Tested, forward_to_filter};
use crate::{Digest, KeyHasher, MemoryRemote};

use super::{BinParameters, ExtendingBins};

/// The filter that a filter with values would be on bins.
pub(crate) fn extension_bins<H: KeyHasher>(parameters: Parameters) -> ExtendingBins<H> {
    let Parameters { capacity, rate, load, seed, growable, .. } = parameters;
    BinParameters { capacity, rate, load, growable }.build(seed).unwrap()
}

impl<H: KeyHasher> ExtendingBins<H> {
    /// The stored keys with the fingerprint of a digest, with their extensions.
    fn alike(&self, digest: Digest, remote: &mut MemoryRemote) -> Vec<(Vec<u8>, Extension)> {
        let home @ (bin, entry) = Listed::home(self, digest);
        let list = read(self, home, remote).unwrap();
        let ranks = self.table.items_of(bin).equal(entry);
        let values = ranks.map(|rank| self.values.get(bin, rank));
        members_of(self, &list, home).map(|(rank, _)| list.keys.get(rank).to_vec()).zip(values).collect()
    }
}

impl<H: KeyHasher> Tested for ExtendingBins<H> {
    type Hasher = H;
    type Value = Extension;

    forward_to_filter!();

    fn let_grow(&mut self) {
        self.growable = true;
    }

    fn kept(&self) -> u32 {
        self.addresses.kept()
    }

    fn home(&self, digest: Digest) -> u64 {
        self.table.place(digest).bin
    }

    fn homes(&self) -> u64 {
        self.table.bins()
    }

    fn addresses(&self) -> Vec<u64> {
        self.expected_addresses().collect()
    }

    fn accepting(&self, digest: Digest, remote: &mut MemoryRemote) -> Vec<(Vec<u8>, Extension)> {
        let query = self.string(digest);
        self.alike(digest, remote).into_iter().filter(|(_, value)| value.begins(&query, 0)).collect()
    }

    fn value_of(&self, key: &[u8], remote: &mut MemoryRemote) -> Extension {
        let alike = self.alike(self.hasher.digest(key), remote);
        alike.into_iter().find(|(other, _)| other == key).unwrap().1
    }
}
