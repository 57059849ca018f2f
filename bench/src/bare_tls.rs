//! TLS of the floors: rustls' interface without buffers, and nothing around it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{ClientConfig, RootCertStore};

/// What all connections share: certificates must lead to the root in this file, and no session is offered again.
pub fn config(root: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root).with_context(|| root.display().to_string())?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// One connection.
pub struct Client {
    side: UnbufferedClientConnection,
    /// The beginning of what is not complete.
    pending: Vec<u8>,
}

impl Client {
    pub fn new(config: &Arc<ClientConfig>) -> anyhow::Result<Self> {
        let name = ServerName::try_from("127.0.0.1")?;
        let side = UnbufferedClientConnection::new(Arc::clone(config), name)?;
        Ok(Self { side, pending: Vec::new() })
    }

    /// Takes bytes that arrived. When data can be sent, calls `say` with the number of plaintext bytes among them, and encrypts
    /// what it returns. Returns how many bytes are to be sent, which are at the start of `out`.
    pub fn turn<'a>(
        &mut self,
        arrived: &mut [u8],
        out: &mut [u8],
        say: impl FnOnce(usize) -> &'a [u8],
    ) -> anyhow::Result<usize> {
        if self.pending.is_empty() {
            let (done, written) = process(&mut self.side, arrived, out, say)?;
            self.pending.extend_from_slice(&arrived[done..]);
            return Ok(written);
        }
        self.pending.extend_from_slice(arrived);
        let (done, written) = process(&mut self.side, &mut self.pending, out, say)?;
        self.pending.drain(..done);
        Ok(written)
    }
}

/// Returns how many bytes rustls is done with, and how many are to be sent.
fn process<'a>(
    side: &mut UnbufferedClientConnection,
    bytes: &mut [u8],
    out: &mut [u8],
    say: impl FnOnce(usize) -> &'a [u8],
) -> anyhow::Result<(usize, usize)> {
    let (mut done, mut written, mut plain) = (0, 0, 0);
    loop {
        let UnbufferedStatus { discard, state, .. } = side.process_tls_records(&mut bytes[done..]);
        done += discard;
        match state? {
            ConnectionState::ReadTraffic(mut records) => {
                while let Some(record) = records.next_record() {
                    let record = record?;
                    done += record.discard;
                    plain += record.payload.len();
                }
            }
            ConnectionState::WriteTraffic(mut writer) => {
                let sealed = writer.encrypt(say(plain), &mut out[written..]);
                return Ok((done, written + sealed.map_err(|error| anyhow!("{error}"))?));
            }
            ConnectionState::EncodeTlsData(mut data) => {
                written += data.encode(&mut out[written..]).map_err(|error| anyhow!("{error}"))?;
            }
            ConnectionState::TransmitTlsData(data) => data.done(),
            // It may follow the answer. Data can still be sent.
            ConnectionState::PeerClosed => {}
            ConnectionState::BlockedHandshake => return Ok((done, written)),
            _ => bail!("the server closed a connection too early"),
        }
    }
}
