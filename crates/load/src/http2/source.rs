//! Where the requests of a thread come from, and how their heads are written.

use std::sync::Arc;

use wire::h2::{FRAME, HEAD, Templates, put_field, put_headers, request_of_http1, set_stream};
use wire::http::{Method, RequestLine};

use super::session::Table;
use super::upload::Sending;
use crate::error::LoadError;
use crate::http::answer::Judge;
use crate::http::listed;
use crate::http::source::Source as _;
use crate::list::List;
use crate::tally::Decoded;
use crate::target::Http;

/// The field that carries a request's id, and that the answer repeats.
pub(super) const ID: &str = "x-request-id";
/// The number of digits of an id, enough for any u64.
const ID_DIGITS: usize = 20;
/// A change of the table's size to 0, at the start of a header block.
const RESIZE: u8 = 0x20;

/// Gives the requests that are sent.
pub(crate) trait Source {
    /// Says which request an exchange sends.
    type Request: Copy + Default;

    /// Chooses the request of the next exchange.
    fn pick(&mut self) -> Self::Request;

    /// Appends the head of a request, and says what follows it.
    fn head(
        &mut self,
        request: Self::Request,
        table: &mut Table,
        stream: u32,
        out: &mut Vec<u8>,
        sending: &mut Sending,
    );

    /// Who judges the answer to a request.
    #[inline]
    fn judge<'j>(&'j mut self, usual: &'j mut Judge, _request: Self::Request) -> &'j mut Judge {
        usual
    }

    /// The bodies that its own judges have read since the last call.
    fn take_decoded(&mut self) -> Decoded {
        Decoded::default()
    }

    /// The number of the name under which a request is counted.
    fn name(&self, _request: Self::Request) -> Option<usize> {
        None
    }

    /// How many names there are.
    fn names(&self) -> usize {
        0
    }
}

fn scheme(target: &Http) -> &'static [u8] {
    if target.tls.is_some() { b"https" } else { b"http" }
}

/// The same request again and again, except for its id.
pub(crate) struct Same {
    /// Its head as one frame, in each form.
    frames: Templates,
    /// Whether it fits a frame. Otherwise `frames` has header blocks.
    fits: bool,
    /// Whether, besides, it has no body and no id, and its answer may have a body. Then nothing of it is to be remembered.
    bare: bool,
    length: u64,
    awaits: bool,
    head_only: bool,
    /// The next id.
    next: Option<u64>,
}

impl Same {
    pub(super) fn new(target: &Http, first_id: u64) -> Result<Self, LoadError> {
        let mut request = Vec::new();
        RequestLine {
            method: &target.method,
            host: &target.host,
            path: &target.path,
            headers: &target.headers,
            body: target.body.len(),
            keep_alive: true,
            expect_continue: target.expect_continue,
        }
        .encode(&mut request)?;
        let mut list = Vec::new();
        request_of_http1(&request, scheme(target), |name, value| list.push((name.to_vec(), value.to_vec())));
        let mut frames = Templates::new(list.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
        if target.ids {
            frames.put_changing(ID.as_bytes(), &[b'0'; ID_DIGITS]);
        }
        let length = target.body.len().unwrap_or(0);
        let fits = frames.plain.len().max(frames.first.len()) < FRAME;
        if fits {
            for block in [&mut frames.first, &mut frames.repeat, &mut frames.plain] {
                let mut frame = Vec::with_capacity(block.len() + HEAD);
                put_headers(&mut frame, 0, block, length == 0);
                *block = frame;
            }
        }
        let head_only = Method::from_name(target.method.as_bytes()) == Method::Head;
        let next = target.ids.then_some(first_id);
        let bare = fits && length == 0 && !head_only && next.is_none();
        Ok(Self { frames, fits, bare, length, awaits: target.expect_continue && length > 0, head_only, next })
    }
}

impl Source for Same {
    type Request = ();

    #[inline]
    fn pick(&mut self) {}

    #[inline]
    fn head(&mut self, (): (), table: &mut Table, stream: u32, out: &mut Vec<u8>, sending: &mut Sending) {
        let block = match table {
            Table::Filled if self.bare => {
                let at = out.len();
                out.extend_from_slice(&self.frames.repeat);
                return set_stream(out, at, stream);
            }
            Table::Filled => &self.frames.repeat,
            Table::Empty => {
                *table = Table::Filled;
                &self.frames.first
            }
            Table::Unused { told: true } => &self.frames.plain,
            Table::Unused { told } => {
                *told = true;
                // Rare: the block anew, after the table's size.
                let block =
                    if self.fits { self.frames.plain.get(HEAD..) } else { Some(&self.frames.plain[..]) };
                let block = [&[RESIZE], block.unwrap_or_default()].concat();
                put_headers(out, stream, &block, self.length == 0);
                return self.follow(out, sending);
            }
        };
        if self.fits {
            let at = out.len();
            out.extend_from_slice(block);
            set_stream(out, at, stream);
        } else {
            put_headers(out, stream, block, self.length == 0);
        }
        self.follow(out, sending);
    }
}

impl Same {
    /// Says what follows the head that was just written, and writes its id.
    #[inline]
    fn follow(&mut self, out: &mut [u8], sending: &mut Sending) {
        (sending.length, sending.awaits, sending.head_only) = (self.length, self.awaits, self.head_only);
        if let Some(id) = &mut self.next {
            sending.id = Some(*id);
            let mut rest = *id;
            // The id is the last field, and its digits are the block's last bytes.
            for digit in out.iter_mut().rev().take(ID_DIGITS) {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            *id += 1;
        }
    }
}

/// The requests that one of several threads takes from a list.
pub(crate) struct Listed {
    list: listed::Listed,
    scheme: &'static [u8],
    /// The request as HTTP/1.1 would send it, and its header block.
    request: Vec<u8>,
    block: Vec<u8>,
}

impl Listed {
    pub(super) fn new(target: &Http, list: &Arc<List>, thread: (usize, usize)) -> Self {
        let list = listed::Listed::new(target, list, 1, thread);
        Self { list, scheme: scheme(target), request: Vec::new(), block: Vec::new() }
    }
}

impl Source for Listed {
    type Request = u32;

    #[inline]
    fn pick(&mut self) -> u32 {
        self.list.pick()
    }

    fn head(
        &mut self,
        request: u32,
        table: &mut Table,
        stream: u32,
        out: &mut Vec<u8>,
        sending: &mut Sending,
    ) {
        let Self { list, scheme, request: text, block } = self;
        text.clear();
        block.clear();
        if let Table::Unused { told: told @ false } = table {
            *told = true;
            block.push(RESIZE);
        }
        list.append(request as usize, text);
        let head = request_of_http1(text, scheme, |name, value| put_field(block, name, value));
        let body = text.get(head..).unwrap_or_default();
        put_headers(out, stream, block, body.is_empty());
        (sending.length, sending.own) = (body.len() as u64, (!body.is_empty()).then(|| body.into()));
        sending.head_only = list.is_head(request as usize);
    }

    fn judge<'j>(&'j mut self, usual: &'j mut Judge, request: u32) -> &'j mut Judge {
        self.list.judge_of(usual, request as usize)
    }

    fn take_decoded(&mut self) -> Decoded {
        self.list.take_decoded()
    }

    fn name(&self, request: u32) -> Option<usize> {
        self.list.name(request)
    }

    fn names(&self) -> usize {
        self.list.names()
    }
}
