//! One connection: bytes in, plaintext and bytes out.

use std::fmt;
use std::ops::DerefMut;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic,
};

use crate::fault::Fault;
use crate::handshake::Handshake;
use crate::sessions::Sessions;

/// The length of a record's header.
const HEADER: usize = 5;
/// More bytes than this without a complete message are no message. rustls itself takes messages up to 64 KiB.
const PENDING: usize = 128 * 1024;
/// The most that encryption adds to a record.
const OVERHEAD: usize = 32;
/// The most plaintext in one record.
const RECORD: usize = 16 * 1024;

/// A side of a connection, as rustls has it.
pub trait Side: sealed::Connection {}

mod sealed {
    use super::{DerefMut, UnbufferedConnectionCommon, UnbufferedStatus};

    pub trait Connection: DerefMut<Target = UnbufferedConnectionCommon<Self::Data>> {
        type Data;

        fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    }
}

impl sealed::Connection for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
}

impl sealed::Connection for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
}

impl Side for UnbufferedClientConnection {}
impl Side for UnbufferedServerConnection {}

/// A connection of a client.
pub type ClientChannel = Channel<UnbufferedClientConnection>;
/// A connection of a server.
pub type ServerChannel = Channel<UnbufferedServerConnection>;

/// One connection. After a fault it is of no more use, except that its output may have an alert for the peer.
pub struct Channel<S: Side> {
    side: S,
    /// Bytes that are not complete yet: a record, or the records of a message.
    pending: Vec<u8>,
    /// Where in `pending` the record begins that is not complete.
    tail: usize,
    /// Bytes for the peer that belong to the protocol itself.
    output: Vec<u8>,
    progress: Progress,
    /// Whether an application protocol must be agreed on.
    needs_alpn: bool,
    /// Where a client's sessions come from.
    sessions: Option<Arc<Sessions>>,
    handshake: Option<Handshake>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing has arrived.
    Silent,
    /// Something has arrived.
    Heard,
    /// The peer has said that it will send nothing more.
    Ended,
    Failed(Fault),
}

impl<S: Side> Channel<S> {
    pub(crate) fn new(side: S, needs_alpn: bool, sessions: Option<Arc<Sessions>>) -> Result<Self, Fault> {
        let mut channel = Self {
            side,
            pending: Vec::new(),
            tail: 0,
            output: Vec::new(),
            progress: Progress::Silent,
            needs_alpn,
            sessions,
            handshake: None,
        };
        channel.process(&mut [], &mut |_| {}, |_| {})?;
        Ok(channel)
    }

    /// Takes bytes that arrived, and decrypts them in place. Calls `plain` with each piece of plaintext.
    ///
    /// # Errors
    /// The fault that ended the connection, now or before. Plaintext that came before it has been handed out.
    pub fn receive(&mut self, bytes: &mut [u8], mut plain: impl FnMut(&[u8])) -> Result<(), Fault> {
        let Some(first) = bytes.first() else { return Ok(()) };
        match self.progress {
            Progress::Failed(fault) => return Err(fault),
            Progress::Ended => return Ok(()),
            Progress::Silent if !(20..=24).contains(first) => return self.fail(Fault::NotTls),
            Progress::Silent => self.progress = Progress::Heard,
            Progress::Heard => {}
        }
        let result = self.take(bytes, &mut plain).and_then(|()| self.check());
        result.or_else(|fault| self.fail(fault))
    }

    /// Moves the bytes that the protocol itself has to send (handshake, alerts, new keys) to the end of `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.output);
    }

    /// Whether the protocol itself has something to send.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Encrypts `plain` to the end of `out`, after what [`Self::take_output`] would move there.
    ///
    /// # Errors
    /// The handshake is not complete, the connection has failed, or its keys are used up.
    pub fn send(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if !self.ready() {
            return Err(self.fault().unwrap_or(Fault::NotReady));
        }
        out.reserve(plain.len() + plain.len().div_ceil(RECORD) * OVERHEAD);
        // One record at a time, so that the room that is cleared for it is still in the processor's cache when it is filled.
        self.write(|traffic| {
            plain.chunks(RECORD).try_for_each(|record| {
                append(out, record.len() + OVERHEAD, |room| traffic.encrypt(record, room))
            })
        })
    }

    /// Says to the peer that nothing more will be sent, at the end of `out`. Does nothing before the handshake is complete.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        if self.ready() {
            // An alert needs no new keys, so that this cannot fail. If it did, the peer would see the connection end.
            _ = self.write(|traffic| append(out, OVERHEAD + 2, |room| traffic.queue_close_notify(room)));
        }
    }

    /// Handles the end of the peer's bytes.
    ///
    /// # Errors
    /// The peer did not announce it, or the connection had failed before.
    pub fn end(&mut self) -> Result<(), Fault> {
        match self.progress {
            Progress::Failed(fault) => Err(fault),
            Progress::Ended => Ok(()),
            _ if self.handshake.is_some() => self.fail(Fault::Truncated),
            _ => self.fail(Fault::EndedInHandshake),
        }
    }

    /// Whether data can be sent.
    pub fn ready(&self) -> bool {
        self.handshake.is_some() && self.fault().is_none()
    }

    /// Whether the peer has said that it will send nothing more.
    pub fn ended(&self) -> bool {
        self.progress == Progress::Ended
    }

    /// The fault that ended the connection.
    pub fn fault(&self) -> Option<Fault> {
        if let Progress::Failed(fault) = self.progress { Some(fault) } else { None }
    }

    /// What was agreed on, when the handshake is complete.
    pub fn handshake(&self) -> Option<Handshake> {
        self.handshake
    }

    /// The application protocol that was agreed on.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.side.alpn_protocol()
    }

    /// Lets rustls have the bytes: in place if nothing waits, or else after what waits, one record at a time.
    #[expect(clippy::indexing_slicing, reason = "rustls is done with no more bytes than it was given")]
    fn take(&mut self, mut bytes: &mut [u8], plain: &mut impl FnMut(&[u8])) -> Result<(), Fault> {
        while !self.pending.is_empty() && !bytes.is_empty() {
            let (piece, rest) = bytes.split_at_mut(self.missing().min(bytes.len()));
            bytes = rest;
            self.pending.extend_from_slice(piece);
            self.tail += whole(&self.pending[self.tail..]);
            let mut pending = std::mem::take(&mut self.pending);
            let done = self.process(&mut pending, plain, |_| {});
            self.pending = pending;
            let done = done?;
            self.pending.drain(..done);
            self.tail = self.tail.saturating_sub(done);
            if self.pending.len() > PENDING {
                return Err(Fault::TooLarge);
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        // rustls moves the parts of messages together, so that records can only be told apart before.
        let tail = whole(bytes);
        let done = self.process(bytes, plain, |_| {})?;
        self.pending.extend_from_slice(&bytes[done..]);
        self.tail = tail.saturating_sub(done);
        Ok(())
    }

    /// How many bytes complete the record that is not complete, or its header.
    fn missing(&self) -> usize {
        let record = self.pending.get(self.tail..).unwrap_or_default();
        record_length(record).unwrap_or(HEADER).saturating_sub(record.len())
    }

    /// Lets rustls process `bytes` until it needs more of them. Returns how many it is done with. If data can be sent then,
    /// `traffic` may do so.
    #[expect(clippy::indexing_slicing, reason = "rustls discards no more bytes than it was given")]
    fn process(
        &mut self,
        bytes: &mut [u8],
        plain: &mut impl FnMut(&[u8]),
        traffic: impl FnOnce(&mut WriteTraffic<'_, S::Data>),
    ) -> Result<usize, Fault> {
        let mut done = 0;
        loop {
            let UnbufferedStatus { discard, state, .. } = self.side.process(&mut bytes[done..]);
            done += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(|error| Fault::from(&error))?;
                        done += record.discard;
                        plain(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.output),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.progress = Progress::Ended,
                Ok(ConnectionState::WriteTraffic(mut writer)) => {
                    traffic(&mut writer);
                    return Ok(done);
                }
                Ok(_) => return Ok(done),
                Err(error) => {
                    self.collect_alert(&mut bytes[done..]);
                    return Err(Fault::from(&error));
                }
            }
        }
    }

    /// After an error: collects what is to be sent before the connection ends. The last of it is the alert for the peer.
    fn collect_alert(&mut self, rest: &mut [u8]) {
        while self.side.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(data)) = self.side.process(rest).state else { return };
            encode(data, &mut self.output);
        }
    }

    /// After bytes were taken: notes a completed handshake, and refuses one that did not agree on what it had to.
    fn check(&mut self) -> Result<(), Fault> {
        if self.handshake.is_none() && !self.side.is_handshaking() {
            let offered = self.sessions.as_ref().is_some_and(|sessions| sessions.take_offered());
            if self.needs_alpn && self.side.alpn_protocol().is_none() {
                return Err(Fault::NoAlpn);
            }
            self.handshake = Handshake::of(&self.side, offered);
        }
        Ok(())
    }

    fn fail(&mut self, fault: Fault) -> Result<(), Fault> {
        self.progress = Progress::Failed(fault);
        self.pending = Vec::new();
        Err(fault)
    }

    /// Lets `act` write.
    fn write(
        &mut self,
        act: impl FnOnce(&mut WriteTraffic<'_, S::Data>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut pending = std::mem::take(&mut self.pending);
        let mut result = Err(Fault::UsedUp);
        // What waits was processed before, so that this comes to the traffic at once.
        let processed = self.process(&mut pending, &mut |_| {}, |traffic| result = act(traffic));
        self.pending = pending;
        processed.and(result).or_else(|fault| self.fail(fault))
    }
}

impl<S: Side> fmt::Debug for Channel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.fault();
        f.debug_struct("Channel")
            .field("handshake", &self.handshake)
            .field("fault", &fault)
            .finish_non_exhaustive()
    }
}

/// The length of the record that begins here, with its header.
fn record_length(record: &[u8]) -> Option<usize> {
    let [_, _, _, high, low] = *record.first_chunk::<HEADER>()?;
    Some(HEADER + usize::from(u16::from_be_bytes([high, low])))
}

/// How many of these bytes are whole records.
fn whole(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(behind) = record_length(rest).and_then(|length| rest.get(length..)) {
        rest = behind;
    }
    bytes.len() - rest.len()
}

#[expect(clippy::indexing_slicing, reason = "the output has just got this room")]
fn encode<D>(mut data: EncodeTlsData<'_, D>, output: &mut Vec<u8>) {
    let from = output.len();
    let mut room = 0;
    while let Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) = {
        output.resize(from + room, 0);
        data.encode(&mut output[from..]).map(|written| room = written)
    } {
        room = required_size;
    }
    output.truncate(from + room);
}

/// Appends what `act` writes into the room that it gets: `most` bytes, or as many as it asks for.
#[expect(clippy::indexing_slicing, reason = "the output has just got this room")]
fn append(
    out: &mut Vec<u8>,
    most: usize,
    mut act: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), Fault> {
    let from = out.len();
    let mut room = most;
    loop {
        out.resize(from + room, 0);
        let written = act(&mut out[from..]);
        out.truncate(from + *written.as_ref().unwrap_or(&0));
        match written {
            Ok(_) => return Ok(()),
            Err(EncryptError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size
            }
            Err(_) => return Err(Fault::UsedUp),
        }
    }
}
