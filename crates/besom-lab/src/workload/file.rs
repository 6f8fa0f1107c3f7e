//! Files of keys, whatever their format.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::str::FromStr;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::{ArcTrace, Capture, CsvColumn, KeyStream, Lines, WorkloadError};

/// What a file of keys looks like inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A key a line.
    Lines,
    /// A disk trace of the ARC paper.
    Arc,
    /// A packet capture.
    Capture,
    /// A column of a CSV file: a heading of its first line, or a number counted from 1 of a file without headings.
    Csv(String),
}

impl FromStr for Format {
    type Err = String;

    /// `lines`, `arc`, `capture`, `csv:COLUMN`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "lines" => Ok(Self::Lines),
            None if text == "arc" => Ok(Self::Arc),
            None if text == "capture" => Ok(Self::Capture),
            Some(("csv", column)) if !column.is_empty() => Ok(Self::Csv(column.to_owned())),
            _ => Err("not one of lines, arc, capture, csv:COLUMN (a heading, or a number from 1)".into()),
        }
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const CAPTURES: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Opens a file of keys: captures are known by their first bytes, disk traces by `.lis` in their name, everything
/// else has a key a line. Any of them may be compressed with gzip or zstd.
///
/// # Errors
///
/// When the file cannot be opened or does not begin like what it is.
pub fn open(path: &Path) -> Result<Box<dyn KeyStream>, WorkloadError> {
    open_with(path, None)
}

/// Opens a file of keys of a known format, compressed or not.
///
/// # Errors
///
/// When the file cannot be opened or does not begin like what it is.
pub fn open_as(path: &Path, format: Format) -> Result<Box<dyn KeyStream>, WorkloadError> {
    open_with(path, Some(format))
}

fn open_with(path: &Path, format: Option<Format>) -> Result<Box<dyn KeyStream>, WorkloadError> {
    let failed = |source| WorkloadError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    read(path, format, BufReader::new(file))
}

/// Reads keys from any input: standard input, for instance. Where the format is not given, it is found out as [`open`]
/// does; errors and the guess use this name.
///
/// # Errors
///
/// When the input fails or does not begin like what it is.
pub fn read(
    name: &Path,
    format: Option<Format>,
    input: impl BufRead + Send + 'static,
) -> Result<Box<dyn KeyStream>, WorkloadError> {
    let failed = |source| WorkloadError::Open { path: name.to_owned(), source };
    let (head, input) = peek(input).map_err(failed)?;
    if head == Some(ZSTD) {
        let unpacked = BufReader::new(Frames { input: Some(Input::Packed(input)) });
        let (head, unpacked) = peek(unpacked).map_err(failed)?;
        return stream(name, format, head, unpacked);
    }
    if head.is_some_and(|head| head.starts_with(&GZIP)) {
        let unpacked = BufReader::new(MultiGzDecoder::new(input));
        let (head, unpacked) = peek(unpacked).map_err(failed)?;
        return stream(name, format, head, unpacked);
    }
    stream(name, format, head, input)
}

fn stream(
    path: &Path,
    format: Option<Format>,
    head: Option<[u8; 4]>,
    reader: impl BufRead + Send + 'static,
) -> Result<Box<dyn KeyStream>, WorkloadError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let guess = || {
        if head.is_some_and(|head| CAPTURES.contains(&head)) {
            Format::Capture
        } else if name.ends_with(".lis") || name.contains(".lis.") {
            Format::Arc
        } else {
            Format::Lines
        }
    };
    Ok(match format.unwrap_or_else(guess) {
        Format::Lines => Box::new(Lines::new(reader)),
        Format::Arc => Box::new(ArcTrace::new(reader)),
        Format::Capture => Box::new(Capture::new(reader)?),
        Format::Csv(column) => Box::new(CsvColumn::new(reader, &column)?),
    })
}

type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first four bytes, if there are so many, and a reader that still has them.
fn peek<R: BufRead>(mut reader: R) -> io::Result<(Option<[u8; 4]>, Peeked<R>)> {
    let mut head = Vec::new();
    (&mut reader).take(4).read_to_end(&mut head)?;
    Ok((head.as_slice().try_into().ok(), Cursor::new(head).chain(reader)))
}

/// Unpacks zstd frames one after the other, and compares their checksums.
struct Frames<R: Read> {
    /// `None` only while one state becomes the other.
    input: Option<Input<R>>,
}

enum Input<R: Read> {
    Packed(R),
    Frame(Box<StreamingDecoder<R, FrameDecoder>>),
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.take() {
                None => return Ok(0),
                Some(Input::Packed(mut packed)) => {
                    if packed.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let frame = StreamingDecoder::new(packed).map_err(invalid)?;
                    self.input = Some(Input::Frame(Box::new(frame)));
                }
                Some(Input::Frame(mut frame)) => {
                    let read = frame.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        self.input = Some(Input::Frame(frame));
                        return Ok(read);
                    }
                    let (packed, decoder) = frame.into_parts();
                    let stored = decoder.get_checksum_from_data();
                    if stored.is_some() && stored != decoder.get_calculated_checksum() {
                        return Err(invalid("the checksum of a zstd frame does not match"));
                    }
                    self.input = Some(Input::Packed(packed));
                }
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "64 2 0 0\n7 1 0 1\n" as one zstd frame with a raw block and a checksum.
    fn frame(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn keys(name: &str, content: &[u8]) -> Result<Vec<Vec<u8>>, WorkloadError> {
        let path = std::env::temp_dir().join(format!("besom-lab-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let outcome = (|| {
            let mut stream = open(&path)?;
            let (mut key, mut keys) = (Vec::new(), Vec::new());
            while stream.next_key(&mut key)? {
                keys.push(key.clone());
            }
            Ok(keys)
        })();
        std::fs::remove_file(path).unwrap();
        outcome
    }

    #[test]
    fn the_format_is_found_out() {
        assert_eq!(keys("a.txt", b"64 2\n").unwrap(), [b"64 2"]);
        assert_eq!(keys("a.lis", b"64 2\n").unwrap().len(), 2);
        assert!(keys("empty", b"").unwrap().is_empty());
        assert!(keys("b.pcap", &[0xd4, 0xc3, 0xb2, 0xa1]).is_err());
    }

    #[test]
    fn compressed_files_may_have_many_frames() {
        let packed = [frame(b"64 2 0 0\n7 1"), frame(b" 0 1\n9 1 0 2\n")].concat();
        assert_eq!(keys("c.lis.zst", &packed).unwrap().len(), 4);
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, text).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn gzip_is_read_as_well_member_after_member() {
        let packed = [gzip(b"64 2 0 0\n7 1"), gzip(b" 0 1\n9 1 0 2\n")].concat();
        assert_eq!(keys("c.lis.gz", &packed).unwrap().len(), 4);
        let mut torn = gzip(b"one\ntwo\n");
        torn.truncate(torn.len() - 4);
        assert!(matches!(keys("t.gz", &torn), Err(WorkloadError::Read { .. } | WorkloadError::Open { .. })));
    }

    #[test]
    fn formats_have_names() {
        assert_eq!("csv:name".parse(), Ok(Format::Csv("name".into())));
        assert_eq!("arc".parse(), Ok(Format::Arc));
        assert!("csv:".parse::<Format>().is_err() && "pcap".parse::<Format>().is_err());
    }

    #[test]
    fn damaged_compression_is_an_error_with_a_place() {
        let text: Vec<u8> = (0..40_000_u32)
            .flat_map(|i| format!("{} 1 0 {i}\n", i.wrapping_mul(7919)).into_bytes())
            .collect();
        let mut packed = frame(&text);
        packed.truncate(packed.len() / 2);
        let error = keys("d.lis.zst", &packed).unwrap_err();
        assert!(matches!(error, WorkloadError::Read { .. } | WorkloadError::Line { .. }), "{error}");
        assert!(matches!(keys("e.zst", &[0x28, 0xb5, 0x2f, 0xfd, 9, 9]), Err(WorkloadError::Open { .. })));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = open(Path::new("/no/such/file")).err().unwrap();
        assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
    }
}
