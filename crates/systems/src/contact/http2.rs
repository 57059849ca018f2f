//! HTTP/2 behind a contact. Its user writes requests of HTTP/1.1 and reads answers of HTTP/1.1, and need not know better: a first
//! look, readiness and checks are the same for both. Pure: bytes in, bytes out.

use std::collections::VecDeque;

use wire::h2::{
    Event, LARGEST_WINDOW, PREFACE, Reader, ResponseHeads, SendWindow, Settings, put_field, put_frame_head,
    put_headers, put_ping, put_settings, put_settings_ack, put_window_update, request_of_http1,
};
use wire::h2::{FRAME, Flags, Kind, WINDOW};

/// The most bytes of an answer, or of a request, that are kept.
const LONGEST: usize = 256 << 20;

/// A connection that speaks HTTP/2 for a user who speaks HTTP/1.1.
pub(super) struct Interpreter {
    scheme: &'static [u8],
    reader: Reader,
    heads: ResponseHeads,
    /// What the user has written and no frame has yet.
    said: Vec<u8>,
    /// The requests that were sent, and are not answered.
    open: VecDeque<Open>,
    /// The next stream.
    next: u32,
    connection: SendWindow,
    initial: u32,
    /// What is to be sent.
    out: Vec<u8>,
    /// Whether the server's settings have come.
    greeted: bool,
    /// Whether the user's last request asked for the close.
    closes: bool,
}

struct Open {
    stream: u32,
    head_only: bool,
    /// The rest of the request's body.
    body: Vec<u8>,
    window: SendWindow,
    /// The answer as HTTP/1.1 has it: its head without the empty line, and its body.
    head: Vec<u8>,
    has_length: bool,
    answer: Vec<u8>,
    ended: bool,
}

impl Interpreter {
    pub(super) fn new(secured: bool) -> Self {
        let mut out = PREFACE.to_vec();
        let settings = Settings { push: Some(false), window: Some(LARGEST_WINDOW), ..Settings::default() };
        put_settings(&mut out, &settings);
        put_window_update(&mut out, 0, LARGEST_WINDOW - WINDOW);
        Self {
            scheme: if secured { b"https" } else { b"http" },
            reader: Reader::default(),
            heads: ResponseHeads::watching(""),
            said: Vec::new(),
            open: VecDeque::new(),
            next: 1,
            connection: SendWindow::new(WINDOW),
            initial: WINDOW,
            out,
            greeted: false,
            closes: false,
        }
    }

    /// What is to be sent now.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes what the user writes.
    pub(super) fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.said.extend_from_slice(bytes);
        while let Some(length) = self.whole_request()? {
            let request: Vec<u8> = self.said.drain(..length).collect();
            self.send(&request);
        }
        self.upload();
        Ok(())
    }

    /// The length of the first request, if it is whole.
    fn whole_request(&self) -> Result<Option<usize>, String> {
        let said = self.said.as_slice();
        let Some(end) = said.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
        let (mut length, mut wrong) = (0_u64, false);
        request_of_http1(said, self.scheme, |name, value| {
            if name == b"content-length" {
                match std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()) {
                    Some(number) => length = number,
                    None => wrong = true,
                }
            }
        });
        let whole = usize::try_from(length).ok().and_then(|length| length.checked_add(end)?.checked_add(4));
        match whole.filter(|whole| !wrong && *whole <= LONGEST) {
            Some(whole) => Ok((whole <= said.len()).then_some(whole)),
            None => Err("a request is too long to be sent over HTTP/2 here".to_owned()),
        }
    }

    fn send(&mut self, request: &[u8]) {
        let mut block = Vec::new();
        let mut head_only = false;
        let head = request_of_http1(request, self.scheme, |name, value| {
            head_only |= (name, value) == (b":method".as_slice(), b"HEAD".as_slice());
            put_field(&mut block, name, value);
        });
        let lines = request.get(..head).unwrap_or_default().to_ascii_lowercase();
        self.closes |= lines.windows(17).any(|bytes| bytes == b"connection: close");
        let body = request.get(head..).unwrap_or_default().to_vec();
        put_headers(&mut self.out, self.next, &block, body.is_empty());
        self.open.push_back(Open {
            stream: self.next,
            head_only,
            body,
            window: SendWindow::new(self.initial),
            head: Vec::new(),
            has_length: false,
            answer: Vec::new(),
            ended: false,
        });
        self.next = self.next.saturating_add(2);
    }

    /// Sends as much of the bodies as the windows allow.
    fn upload(&mut self) {
        for open in &mut self.open {
            while !open.body.is_empty() {
                let length = open.window.allows(self.connection.allows(open.body.len().min(FRAME) as u64));
                if length == 0 {
                    break;
                }
                let piece: Vec<u8> = open.body.drain(..length as usize).collect();
                let flags = if open.body.is_empty() { Flags::END_STREAM } else { Flags::NONE };
                put_frame_head(&mut self.out, piece.len(), Kind::Data, flags, open.stream);
                self.out.extend_from_slice(&piece);
                open.window.take(length);
                self.connection.take(length);
            }
        }
    }

    /// Takes what the server has sent. Appends the answers that are whole to `plain`, in the order of their requests. Returns
    /// whether the connection ends with them.
    pub(super) fn hear(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<bool, String> {
        let mut rest = bytes;
        let mut reader = std::mem::take(&mut self.reader);
        loop {
            let step = reader.push(rest).map_err(|broken| match self.greeted {
                true => broken.to_string(),
                false => "it does not speak HTTP/2".to_owned(),
            })?;
            rest = rest.get(step.consumed..).unwrap_or_default();
            match step.event {
                Event::NeedMore => break,
                event => self.take(event, plain)?,
            }
        }
        self.reader = reader;
        self.upload();
        while self.open.front().is_some_and(|open| open.ended) {
            let Some(open) = self.open.pop_front() else { break };
            open.write(plain, self.closes && self.open.is_empty());
        }
        Ok(self.closes && self.open.is_empty())
    }

    fn find(&mut self, stream: u32) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.stream == stream)
    }

    fn take(&mut self, event: Event<'_>, plain: &mut Vec<u8>) -> Result<(), String> {
        match event {
            Event::Settings(settings) => {
                self.greeted = true;
                if let Some(window) = settings.window {
                    let by = i64::from(window).saturating_sub(i64::from(self.initial));
                    self.initial = window;
                    self.open
                        .iter_mut()
                        .try_for_each(|open| open.window.change(by))
                        .map_err(|e| e.to_string())?;
                }
                put_settings_ack(&mut self.out);
            }
            Event::Ping(data) => put_ping(&mut self.out, data, true),
            Event::WindowUpdate { stream: 0, by } => {
                self.connection.change(i64::from(by)).map_err(|e| e.to_string())?;
            }
            Event::WindowUpdate { stream, by } => {
                if let Some(open) = self.find(stream) {
                    open.window.change(i64::from(by)).map_err(|e| e.to_string())?;
                }
            }
            Event::Headers { stream, block, end_stream } => self.head(stream, block, end_stream, plain)?,
            Event::Data { stream, data, counted, end_stream } => {
                if counted > 0 {
                    put_window_update(&mut self.out, 0, counted);
                }
                if let Some(open) = self.find(stream) {
                    open.answer.extend_from_slice(data);
                    open.ended |= end_stream;
                    if open.answer.len() > LONGEST {
                        return Err("its answer is too long".to_owned());
                    }
                    if counted > 0 && !end_stream {
                        put_window_update(&mut self.out, stream, counted);
                    }
                }
            }
            Event::Reset { stream, code } => {
                if self.find(stream).is_some_and(|open| !open.ended) {
                    return Err(format!("it ended the request with RST_STREAM {code}"));
                }
            }
            Event::GoAway { code, .. } if code != wire::h2::Code::NO_ERROR => {
                return Err(format!("it ended the connection with GOAWAY {code}"));
            }
            Event::Spoiled { why, .. } => return Err(why.to_owned()),
            Event::GoAway { .. } => self.closes = true,
            Event::SettingsAck | Event::Pong(_) | Event::Priority { .. } | Event::NeedMore => {}
        }
        Ok(())
    }

    fn head(&mut self, stream: u32, block: &[u8], ended: bool, plain: &mut Vec<u8>) -> Result<(), String> {
        if self.find(stream).is_some_and(|open| !open.head.is_empty()) {
            self.heads.trailers(block).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        } else {
            let head = self.heads.response(block).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
            // The first line is replaced.
            let lines = head.text.splitn(2, |byte| *byte == b'\n').nth(1);
            let mut text = format!("HTTP/1.1 {} \r\n", head.status).into_bytes();
            text.extend_from_slice(lines.unwrap_or_default());
            if head.status < 200 {
                plain.extend_from_slice(&text);
                return Ok(());
            }
            let bodiless = matches!(head.status, 204 | 304);
            let has_length = head.length.is_some() || bodiless;
            text.truncate(text.len().saturating_sub(2));
            if let Some(open) = self.find(stream) {
                (open.head, open.has_length) = (text, has_length);
            }
        }
        if let Some(open) = self.find(stream) {
            open.ended |= ended;
        }
        Ok(())
    }
}

impl Open {
    /// Appends the answer as HTTP/1.1 sends it.
    fn write(self, plain: &mut Vec<u8>, last: bool) {
        plain.extend_from_slice(&self.head);
        if !self.has_length && !self.head_only {
            plain.extend_from_slice(format!("content-length: {}\r\n", self.answer.len()).as_bytes());
        }
        if last {
            plain.extend_from_slice(b"connection: close\r\n");
        }
        plain.extend_from_slice(b"\r\n");
        plain.extend_from_slice(&self.answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_of_http1_is_understood() {
        let mut here = Interpreter::new(false);
        here.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Le").unwrap();
        here.say(b"ngth: 2\r\nConnection: close\r\n\r\nok").unwrap();
        let sent = here.take_output();
        assert!(sent.starts_with(PREFACE));
        let (mut reader, mut rest, mut seen) = (Reader::default(), &sent[PREFACE.len()..], Vec::new());
        loop {
            let step = reader.push(rest).unwrap();
            rest = &rest[step.consumed..];
            match step.event {
                Event::NeedMore => break,
                Event::Headers { stream, end_stream, .. } => seen.push((stream, Vec::new(), end_stream)),
                Event::Data { stream, data, end_stream, .. } => {
                    seen.push((stream, data.to_vec(), end_stream))
                }
                _ => {}
            }
        }
        assert_eq!(seen, [(1, vec![], true), (3, vec![], false), (3, b"ok".to_vec(), true)]);
        // The second is answered first, but is read second.
        let mut answers = Vec::new();
        put_settings(&mut answers, &Settings::default());
        put_headers(&mut answers, 3, &[0x89], true);
        put_headers(&mut answers, 1, &[0x88], false);
        put_frame_head(&mut answers, 1, Kind::Data, Flags::END_STREAM, 1);
        answers.push(b'x');
        let mut plain = Vec::new();
        assert_eq!(here.hear(&answers, &mut plain), Ok(true));
        let text = String::from_utf8(plain).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\nxHTTP/1.1 204 \r\nconnection: close\r\n\r\n"
        );
        let mut other = Interpreter::new(true);
        assert_eq!(
            other.hear(b"HTTP/1.1 400 No\r\n\r\n", &mut Vec::new()),
            Err("it does not speak HTTP/2".to_owned())
        );
    }
}
