//! HTTP/2 frames, read just far enough to know how much of a request's headers has come without their end.

/// What every HTTP/2 connection with prior knowledge begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const FRAME_HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Follows the frames of one connection.
#[derive(Debug)]
pub(crate) struct Frames {
    preface_left: usize,
    header: [u8; FRAME_HEADER_BYTES],
    header_len: usize,
    payload_left: usize,
    /// Bytes of the frame that has begun.
    of_frame: usize,
    /// Bytes of a header block that has not ended, in frames that have.
    of_block: usize,
}

impl Frames {
    pub(crate) fn new() -> Self {
        let preface_left = PREFACE.len();
        Frames { preface_left, header: [0; _], header_len: 0, payload_left: 0, of_frame: 0, of_block: 0 }
    }

    /// Follows more bytes; how many the HTTP library then holds of headers without their end, and of other frames
    /// without theirs. Data is handed on as it comes.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> usize {
        skip(&mut self.preface_left, &mut bytes);
        while !bytes.is_empty() {
            if self.header_len < FRAME_HEADER_BYTES {
                let (taken, rest) = bytes.split_at(bytes.len().min(FRAME_HEADER_BYTES - self.header_len));
                self.header[self.header_len..][..taken.len()].copy_from_slice(taken);
                self.header_len += taken.len();
                bytes = rest;
                if self.header_len < FRAME_HEADER_BYTES {
                    break;
                }
                let [high, middle, low, ..] = self.header;
                self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.of_frame = FRAME_HEADER_BYTES;
            }
            self.of_frame += skip(&mut self.payload_left, &mut bytes);
            if self.payload_left == 0 {
                self.end_frame();
            }
        }
        let is_data = self.header_len == FRAME_HEADER_BYTES && self.header[3] == DATA;
        self.of_block + if is_data { 0 } else { self.of_frame }
    }

    fn end_frame(&mut self) {
        let [.., kind, flags, _, _, _, _] = self.header;
        if kind == HEADERS || kind == CONTINUATION {
            let has_ended = flags & END_HEADERS != 0;
            self.of_block = if has_ended { 0 } else { self.of_block + self.of_frame };
        }
        (self.header_len, self.of_frame) = (0, 0);
    }
}

/// Takes up to `left` bytes off the front; how many.
fn skip(left: &mut usize, bytes: &mut &[u8]) -> usize {
    let count = bytes.len().min(*left);
    *left -= count;
    *bytes = &bytes[count..];
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap().to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        bytes.resize(FRAME_HEADER_BYTES + payload, 0x55);
        bytes
    }

    #[test]
    fn headers_without_their_end_are_counted_however_they_come() {
        let ping = frame(6, 0, 8);
        let settled = [PREFACE, &frame(4, 0, 12), &ping, &frame(HEADERS, END_HEADERS, 500)].concat();
        let sent = [settled.clone(), frame(HEADERS, 0, 1000), frame(CONTINUATION, 0, 2000)].concat();
        let end = [frame(CONTINUATION, END_HEADERS, 300), ping, frame(DATA, 0, 16_000)].concat();
        for piece in [1, 7, 100, 100_000] {
            let mut frames = Frames::new();
            let mut read = |bytes: &[u8]| bytes.chunks(piece).map(|bytes| frames.read(bytes)).last().unwrap();
            assert_eq!(read(&settled), 0, "{piece}");
            assert_eq!(read(&sent[settled.len()..]), 3018, "{piece}");
            assert_eq!(read(&end[..200]), 3218, "{piece}");
            assert_eq!(read(&end[200..15_000]), 0, "{piece}: data is not buffered");
            assert_eq!(read(&end[15_000..]), 0, "{piece}");
        }
    }
}
