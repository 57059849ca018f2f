//! TLS around the protocol of one connection. Pure: bytes in, plaintext and bytes out.

use tls::ServerChannel;

/// A connection's TLS.
pub(crate) struct Secure {
    channel: Box<ServerChannel>,
    /// Whether the peer knows that the server will send nothing more.
    said_goodbye: bool,
}

impl Secure {
    pub(crate) fn new(channel: ServerChannel) -> Self {
        Self { channel: Box::new(channel), said_goodbye: false }
    }

    /// Decrypts bytes that arrived, and calls `plain` with each piece of plaintext. Returns whether the connection goes on. If
    /// not, [`seal`](Self::seal) has an alert for the peer.
    pub(crate) fn open(&mut self, bytes: &[u8], plain: impl FnMut(&[u8])) -> bool {
        self.channel.receive(&mut bytes.to_vec(), plain).is_ok()
    }

    /// Whether both sides agreed on HTTP/2.
    pub(crate) fn agrees_on_http2(&self) -> bool {
        self.channel.alpn() == Some(tls::HTTP2)
    }

    /// Whether they did, and may send now.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.channel.ready() && self.agrees_on_http2()
    }

    /// Whether the peer has said that it will send nothing more.
    pub(crate) fn ended(&self) -> bool {
        self.channel.ended()
    }

    /// Appends what TLS itself has to send, and `plain` in encrypted form. Before the handshake is complete there is nothing
    /// to answer, so `plain` is empty then.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        self.channel.take_output(out);
        if !plain.is_empty() {
            // If the keys are used up, the peer sees the connection end.
            let _ = self.channel.send(plain, out);
        }
    }

    /// Says once that nothing more will be sent.
    pub(crate) fn say_goodbye(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.said_goodbye, true) {
            self.channel.close_notify(out);
        }
    }
}
