//! The port for TLS.

use std::os::fd::AsRawFd;
use std::path::Path;

use tls::{Listener, Parameters, Serving};

use super::{Conn, Server, Then, Tls};
use crate::{certificate, net};

/// Listens, with the certificate in this folder.
pub fn tls(port: u16, folder: &Path) -> anyhow::Result<Tls> {
    let parameters = Parameters { sessions: true, ..Parameters::default() };
    let serving = Serving { identity: certificate::read(folder)?, clients: None, parameters };
    Ok(Tls { port: net::listener(port)?, listener: Listener::new(&serving)? })
}

impl Server {
    /// Takes encrypted bytes, and sends what the connection has to say in return.
    pub fn opened(&mut self, conn: &mut Conn, bytes: &mut [u8]) -> Then {
        let Some(mut channel) = conn.channel.take() else { return Then::Close };
        let was_ready = channel.ready();
        let mut then = Then::Keep;
        let taken = channel.receive(bytes, |plain| {
            if then == Then::Keep {
                then = self.received(conn, plain);
            }
        });
        self.connections += u64::from(!was_ready && channel.ready());
        self.sealed.clear();
        channel.take_output(&mut self.sealed);
        let answers = conn.answers.as_mut().filter(|answers| !answers.is_empty());
        let answered = answers.map_or(Ok(()), |answers| {
            let sealed = channel.send(answers, &mut self.sealed);
            answers.clear();
            sealed
        });
        if then == Then::Close {
            channel.close_notify(&mut self.sealed);
        }
        let over = then == Then::Close || taken.and(answered).is_err() || channel.ended();
        conn.channel = Some(channel);
        // The FIN is sent in the same segment, as without TLS.
        let flags = if over { libc::MSG_MORE } else { 0 };
        let sent = self.sealed.is_empty()
            || net::send(conn.fd.as_raw_fd(), &self.sealed, flags)
                .is_ok_and(|count| count == self.sealed.len());
        if sent && !over { Then::Keep } else { Then::Close }
    }
}
