//! Files of keys, whatever their format.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::{ArcTrace, Capture, CsvColumn, JsonField, KeyStream, Lines, Separator, WorkloadError};

/// What a file of keys looks like inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A key a line, of any bytes.
    Lines,
    /// A disk trace of the ARC paper.
    Arc,
    /// A packet capture.
    Capture,
    /// A column of a table: a heading of its first line, or a number counted from 1 of a table without headings.
    /// Without a column, the only one of a table with a heading.
    Table(Separator, Option<String>),
    /// A field of the objects of a file with one JSON object a line. Without a field, the only one.
    Json(Option<String>),
}

impl FromStr for Format {
    type Err = String;

    /// `lines`, `arc`, `capture`, `csv`, `csv:COLUMN`, `tsv`, `tsv:COLUMN`, `jsonl`, `jsonl:FIELD`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, part) = text.split_once(':').map_or((text, None), |(kind, part)| (kind, Some(part)));
        let named = part.filter(|part| !part.is_empty()).map(str::to_owned);
        match (kind, part) {
            ("lines", None) => Ok(Self::Lines),
            ("arc", None) => Ok(Self::Arc),
            ("capture", None) => Ok(Self::Capture),
            ("csv", _) if part.is_none() == named.is_none() => Ok(Self::Table(Separator::Comma, named)),
            ("tsv", _) if part.is_none() == named.is_none() => Ok(Self::Table(Separator::Tab, named)),
            ("jsonl", _) if part.is_none() == named.is_none() => Ok(Self::Json(named)),
            _ => Err("not one of lines, csv:COLUMN, tsv:COLUMN (a heading, or a number from 1), jsonl:FIELD, arc, \
                      capture"
                .into()),
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

/// Opens a file of keys: captures are known by their first bytes, tables, JSON lines and disk traces by their name
/// (`.csv`, `.tsv`, `.jsonl`, `.ndjson`, `.lis`), everything else has a key a line. Any of them may be compressed with
/// gzip or zstd. A byte-order mark is no part of the first key. Text in UTF-16, and what is no text at all, is refused.
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
    let mut input = input;
    let head = input.fill_buf().map_err(failed)?;
    if head.starts_with(&ZSTD) {
        return stream(name, format, BufReader::new(Frames { input: Some(Input::Packed(input)) }));
    }
    if head.starts_with(&GZIP) {
        return stream(name, format, BufReader::new(MultiGzDecoder::new(input)));
    }
    stream(name, format, input)
}

/// The marks that texts may begin with.
const UTF_8: &[u8] = b"\xef\xbb\xbf";
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

fn stream(
    path: &Path,
    format: Option<Format>,
    mut reader: impl BufRead + Send + 'static,
) -> Result<Box<dyn KeyStream>, WorkloadError> {
    let head = reader.fill_buf().map_err(|source| WorkloadError::Open { path: path.to_owned(), source })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let given = format.is_some();
    let format = format.unwrap_or_else(|| guess(&name, head));
    if format != Format::Capture {
        if UTF_16.iter().any(|mark| head.starts_with(mark)) {
            return Err(WorkloadError::Utf16);
        }
        // Anyone who says that these are lines may mean it.
        if head.contains(&0) && !(given && format == Format::Lines) {
            return Err(WorkloadError::Binary);
        }
        if head.starts_with(UTF_8) {
            reader.consume(UTF_8.len());
        }
    }
    Ok(match format {
        Format::Lines => Box::new(Lines::new(reader)),
        Format::Arc => Box::new(ArcTrace::new(reader)),
        Format::Capture => Box::new(Capture::new(reader)?),
        Format::Table(separator, column) => Box::new(CsvColumn::new(reader, separator, column.as_deref())?),
        Format::Json(field) => Box::new(JsonField::new(reader, field)),
    })
}

/// The format by the first bytes, or by the name without the ending that a compressed file has.
fn guess(name: &str, head: &[u8]) -> Format {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        _ if CAPTURES.iter().any(|magic| head.starts_with(magic)) => Format::Capture,
        _ if name.ends_with(".lis") || name.contains(".lis.") => Format::Arc,
        Some("csv") => Format::Table(Separator::Comma, None),
        Some("tsv") => Format::Table(Separator::Tab, None),
        Some("jsonl" | "ndjson") => Format::Json(None),
        _ => Format::Lines,
    }
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
        assert_eq!(keys("one.csv", b"name\na\nb\n").unwrap(), [b"a", b"b"]);
        assert_eq!(keys("one.jsonl", b"{\"name\": \"a\"}\n\n{\"name\": 7}\n").unwrap(), [b"a", b"7"]);
        assert_eq!(keys("mark.txt", b"\xef\xbb\xbfa\nb\n").unwrap(), [b"a", b"b"]);
        assert_eq!(keys("mark.csv", b"\xef\xbb\xbfname\na\n").unwrap(), [b"a"]);
        assert!(matches!(keys("wide.txt", b"\xff\xfea\0\n\0"), Err(WorkloadError::Utf16)));
        assert!(matches!(keys("program", b"\x7fELF\0\0"), Err(WorkloadError::Binary)));
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
        assert_eq!("csv:name".parse(), Ok(Format::Table(Separator::Comma, Some("name".into()))));
        assert_eq!("tsv".parse(), Ok(Format::Table(Separator::Tab, None)));
        assert_eq!("jsonl:id".parse(), Ok(Format::Json(Some("id".into()))));
        assert_eq!("arc".parse(), Ok(Format::Arc));
        for wrong in ["csv:", "pcap", "lines:1", "jsonl:", ""] {
            assert!(wrong.parse::<Format>().is_err(), "{wrong}");
        }
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
