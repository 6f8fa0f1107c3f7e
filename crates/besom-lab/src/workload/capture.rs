//! Packet captures, old format and new.

use std::io::Read;

use etherparse::{EtherType, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::{KeyStream, WorkloadError};

/// The packets of a capture (pcap or pcapng) as keys: the 5-tuple of protocol, addresses and ports.
///
/// A key is the protocol's number, source and target address, source and target port in network order; ports are
/// 0 where a protocol has none or a fragment, other than the first, does not carry them. Packets that are not IP are
/// passed over.
pub struct Capture {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// The link layer of each interface of the current section.
    links: Vec<Linktype>,
    offset: u64,
}

/// The longest packet or block that is read, and the memory that takes.
const BUFFER: usize = 1 << 20;

/// Link layers that are raw IP and that the parser has no name for.
const BSD_RAW: [i32; 2] = [12, 14];

impl Capture {
    /// Reads a capture.
    ///
    /// # Errors
    ///
    /// [`WorkloadError::Capture`] if it does not begin like one.
    pub fn new(reader: impl Read + Send + 'static) -> Result<Self, WorkloadError> {
        let reader = create_reader(BUFFER, Whole(reader)).map_err(|error| damage(0, &error))?;
        Ok(Self { reader, links: Vec::new(), offset: 0 })
    }
}

/// Fills every buffer as far as there are bytes: the parser takes a short first read for a short file.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl KeyStream for Capture {
    fn next_key(&mut self, key: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        loop {
            let (length, found) = match self.reader.next() {
                Ok((length, block)) => {
                    let found = visit(&block, &mut self.links, key)
                        .map_err(|problem| WorkloadError::Capture { offset: self.offset, problem })?;
                    (length, found)
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::Incomplete(_)) => {
                    self.reader.refill().map_err(|error| damage(self.offset, &error))?;
                    continue;
                }
                Err(error) => return Err(damage(self.offset, &error)),
            };
            self.reader.consume(length);
            self.offset += length as u64;
            if found {
                return Ok(true);
            }
        }
    }
}

fn damage<I>(offset: u64, error: &PcapError<I>) -> WorkloadError {
    let problem = match error {
        PcapError::HeaderNotRecognized => "neither a pcap nor a pcapng file",
        PcapError::Eof | PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
            "the file ends inside a block"
        }
        PcapError::BufferTooSmall => "a block of more than a mebibyte",
        PcapError::ReadError => "the file could not be read",
        _ => "not a block of a capture",
    };
    WorkloadError::Capture { offset, problem: problem.into() }
}

/// Notes what a block says about interfaces; if it is a packet of a flow, puts the flow into `key`.
fn visit(block: &PcapBlockOwned<'_>, links: &mut Vec<Linktype>, key: &mut Vec<u8>) -> Result<bool, String> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => *links = vec![header.network],
        PcapBlockOwned::NG(Block::SectionHeader(_)) => links.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => links.push(interface.linktype),
        PcapBlockOwned::Legacy(packet) => return flow(links, 0, packet.data, key),
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            return flow(links, packet.if_id as usize, packet.packet_data(), key);
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => return flow(links, 0, packet.packet_data(), key),
        PcapBlockOwned::NG(_) => {}
    }
    Ok(false)
}

fn flow(links: &[Linktype], interface: usize, packet: &[u8], key: &mut Vec<u8>) -> Result<bool, String> {
    let link =
        links.get(interface).ok_or_else(|| format!("a packet of interface {interface}, never described"))?;
    let sliced = match *link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(packet).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(packet).ok(),
        Linktype(raw) if BSD_RAW.contains(&raw) => LaxSlicedPacket::from_ip(packet).ok(),
        Linktype::NULL | Linktype::LOOP => packet.get(4..).and_then(|ip| LaxSlicedPacket::from_ip(ip).ok()),
        Linktype::LINUX_SLL => packet.get(14..).and_then(|rest| {
            let (ether_type, ip) = rest.split_first_chunk()?;
            Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*ether_type)), ip))
        }),
        Linktype(other) => return Err(format!("packets of link type {other}, which is not supported")),
    };
    // A packet that was cut too short to tell its flow counts as one that is not IP.
    Ok(sliced.and_then(|packet| packet.net).is_some_and(|net| put_flow(&net, key)))
}

fn put_flow(net: &LaxNetSlice<'_>, key: &mut Vec<u8>) -> bool {
    let Some(payload) = net.ip_payload_ref() else { return false };
    key.clear();
    key.push(payload.ip_number.0);
    match net {
        LaxNetSlice::Ipv4(ip) => {
            key.extend_from_slice(&ip.header().source());
            key.extend_from_slice(&ip.header().destination());
        }
        LaxNetSlice::Ipv6(ip) => {
            key.extend_from_slice(&ip.header().source());
            key.extend_from_slice(&ip.header().destination());
        }
        _ => return false,
    }
    // TCP, UDP and SCTP begin with their ports.
    let with_ports = [6, 17, 132].contains(&payload.ip_number.0) && !is_later_fragment(net);
    let ports = payload.payload.first_chunk::<4>().filter(|_| with_ports);
    key.extend_from_slice(ports.unwrap_or(&[0; 4]));
    true
}

/// Whether a packet is a fragment, and not the first one: then its payload begins anywhere.
///
/// To be asked only if the payload is that of a protocol, not of a further header: the iterator over headers relies on
/// having all of them, which a packet that was cut among them has not.
fn is_later_fragment(net: &LaxNetSlice<'_>) -> bool {
    match net {
        LaxNetSlice::Ipv4(ip) => ip.header().fragments_offset().value() != 0,
        LaxNetSlice::Ipv6(ip) => ip.extensions().clone().into_iter().any(|header| {
            matches!(header, Ipv6ExtensionSlice::Fragment(header) if header.fragment_offset().value() != 0)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    //! Catches: flows whose parts are read from the wrong place, or in the wrong order of bytes.
    use std::io::Cursor;

    use etherparse::PacketBuilder;

    use super::*;

    fn packets() -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for port in [1000_u16, 2000, 1000] {
            let builder =
                PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(port, 53);
            let mut packet = Vec::new();
            builder.write(&mut packet, b"payload").unwrap();
            packets.push(packet);
        }
        let builder =
            PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([3; 16], [4; 16], 64).tcp(80, 8080, 1, 1000);
        let mut packet = Vec::new();
        builder.write(&mut packet, &[]).unwrap();
        packets.push(packet);
        // An ARP packet: no flow.
        let mut arp = vec![0xff; 12];
        arp.extend([8, 6]);
        arp.resize(60, 0);
        packets.push(arp);
        packets
    }

    /// A capture of Ethernet packets, each cut to this many bytes.
    fn pcap(cut: usize) -> Vec<u8> {
        let cut = |packet: &Vec<u8>| packet[..packet.len().min(cut)].to_vec();
        pcap_of(Linktype::ETHERNET, &packets().iter().map(cut).collect::<Vec<_>>())
    }

    fn pcap_of(link: Linktype, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(0xa1b2_c3d4_u32.to_le_bytes());
        file.extend(2_u16.to_le_bytes());
        file.extend(4_u16.to_le_bytes());
        file.extend([0; 8]);
        file.extend(65_535_u32.to_le_bytes());
        file.extend(link.0.to_le_bytes());
        for packet in packets {
            file.extend([0; 8]);
            file.extend((packet.len() as u32).to_le_bytes());
            file.extend(2_000_u32.to_le_bytes());
            file.extend(packet);
        }
        file
    }

    fn pcapng() -> Vec<u8> {
        let block = |kind: u32, body: &[u8]| {
            let padded = body.len().div_ceil(4) * 4;
            let length = (padded + 12) as u32;
            let mut block = Vec::new();
            block.extend(kind.to_le_bytes());
            block.extend(length.to_le_bytes());
            block.extend(body);
            block.resize(8 + padded, 0);
            block.extend(length.to_le_bytes());
            block
        };
        let mut section = Vec::new();
        section.extend(0x1a2b_3c4d_u32.to_le_bytes());
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        let mut file = block(0x0a0d_0d0a, &section);
        file.extend(block(1, &[1, 0, 0, 0, 0xff, 0xff, 0, 0]));
        for packet in packets() {
            let mut body = vec![0; 12];
            body.extend((packet.len() as u32).to_le_bytes());
            body.extend((packet.len() as u32).to_le_bytes());
            body.extend(packet);
            file.extend(block(6, &body));
        }
        file
    }

    fn keys(file: Vec<u8>) -> Result<Vec<Vec<u8>>, WorkloadError> {
        let mut capture = Capture::new(Cursor::new(file))?;
        let (mut key, mut keys) = (Vec::new(), Vec::new());
        while capture.next_key(&mut key)? {
            keys.push(key.clone());
        }
        Ok(keys)
    }

    #[test]
    fn both_formats_give_the_same_flows() {
        let flows = keys(pcap(usize::MAX)).unwrap();
        assert_eq!(flows.len(), 4);
        assert_eq!(flows[0], [17, 10, 0, 0, 1, 10, 0, 0, 2, 3, 232, 0, 53]);
        assert_eq!(flows[0], flows[2]);
        assert_ne!(flows[0], flows[1]);
        assert_eq!(flows[3], [&[6][..], &[3; 16], &[4; 16], &[0, 80, 31, 144]].concat());
        assert_eq!(keys(pcapng()).unwrap(), flows);
    }

    /// Linux's captures of all interfaces at once have a header of their own: 14 bytes, then the protocol, the high
    /// byte first.
    #[test]
    fn cooked_captures_give_the_same_flows() {
        let cooked = |packet: &Vec<u8>| [&[0, 0, 0, 1, 0, 6][..], &[9; 8], &packet[12..]].concat();
        let cooked: Vec<Vec<u8>> = packets().iter().map(cooked).collect();
        assert_eq!(keys(pcap_of(Linktype::LINUX_SLL, &cooked)).unwrap(), keys(pcap(usize::MAX)).unwrap());
    }

    #[test]
    fn packets_cut_after_their_headers_still_tell_their_flow() {
        assert_eq!(keys(pcap(54)).unwrap()[..3], keys(pcap(usize::MAX)).unwrap()[..3]);
    }

    /// Only the first fragment of a packet begins with its ports; what the others begin with is somebody's data.
    #[test]
    fn a_fragment_has_the_ports_that_it_carries() {
        let fragments = [(0, false), (0, true), (185, true), (185, false)];
        let ports = |mut key: Vec<u8>| key.split_off(key.len() - 4);
        let expected = [[3, 232, 0, 53], [3, 232, 0, 53], [0; 4], [0; 4]];
        for fragment in [fragment_v4, fragment_v6] {
            let packets = fragments.map(|(offset, more)| fragment(offset, more));
            let flows = keys(pcap_of(Linktype::RAW, &packets)).unwrap();
            assert!(flows.iter().all(|flow| flow[0] == 17), "{flows:?}");
            assert_eq!(flows.into_iter().map(ports).collect::<Vec<_>>(), expected);
            // Wherever a packet is cut, there is a flow or none, and nothing worse.
            let whole = &packets[2];
            let cut: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
            assert!(keys(pcap_of(Linktype::RAW, &cut)).unwrap().len() < whole.len());
        }
    }

    /// Source and target port, length, checksum, data.
    const UDP: [u8; 16] = [3, 232, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

    fn fragment_v4(offset: u16, more: bool) -> Vec<u8> {
        let field = (u16::from(more) << 13 | offset).to_be_bytes();
        let start = [0x45, 0, 0, 36, 0, 1, field[0], field[1], 64, 17, 0, 0];
        [&start[..], &[10, 0, 0, 1], &[10, 0, 0, 2], &UDP].concat()
    }

    fn fragment_v6(offset: u16, more: bool) -> Vec<u8> {
        let field = (offset << 3 | u16::from(more)).to_be_bytes();
        // A header of options first, then that of the fragment: 8 bytes each.
        let options = [44, 0, 1, 4, 0, 0, 0, 0];
        let header = [17, 0, field[0], field[1], 0, 0, 0, 1];
        [&[0x60, 0, 0, 0, 0, 32, 0, 64][..], &[3; 16], &[4; 16], &options, &header, &UDP].concat()
    }

    #[test]
    fn damage_is_reported_with_its_place() {
        let error = keys(b"not a capture at all".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "byte 0: neither a pcap nor a pcapng file");
        let mut file = pcap(usize::MAX);
        file.truncate(file.len() - 5);
        let error = keys(file).unwrap_err();
        assert!(matches!(error, WorkloadError::Capture { offset: 1.., .. }), "{error}");
        assert!(keys(Vec::new()).is_err());
    }
}
