//! The connections of a server.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection, WebPkiClientVerifier};

use crate::channel::{Channel, ServerChannel};
use crate::clock::Clock;
use crate::error::TlsError;
use crate::fault::Fault;
use crate::parameters::Parameters;
use crate::pem::{self, Identity};

/// What the connections of a server are made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// The server's certificate and key.
    pub identity: Identity,
    /// If given, each client must have a certificate that leads to a root in this PEM file.
    pub clients: Option<Vec<u8>>,
    /// What to agree on. With `sessions` the server gives tickets, and keeps nothing itself.
    pub parameters: Parameters,
}

/// Makes the connections of a server.
#[derive(Debug)]
pub struct Listener {
    config: Arc<ServerConfig>,
    clock: Arc<Clock>,
}

impl Listener {
    /// Checks all values once.
    ///
    /// # Errors
    /// The value that no connection can be made from.
    pub fn new(serving: &Serving) -> Result<Self, TlsError> {
        let provider = serving.parameters.provider()?;
        let clock = Arc::new(Clock::default());
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::<Clock>::clone(&clock))
            .with_protocol_versions(&serving.parameters.protocols())?;
        let builder = match &serving.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let what = "the file of the clients' root certificates";
                let roots = Arc::new(pem::roots(what, pem)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| TlsError::Unusable { what, why: error.to_string() })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = serving.identity.read(pem::SERVER)?;
        let mut config = builder.with_single_cert(chain, key).map_err(|error| pem::SERVER.refused(error))?;
        config.alpn_protocols = serving.parameters.alpn()?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if serving.parameters.sessions {
            config.ticketer = Ticketer::new()?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(Self { config: Arc::new(config), clock })
    }

    /// Begins a connection that a client has opened. Its certificate, if there is one, must be valid at the time `now`.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn accept(&self, now: SystemTime) -> Result<ServerChannel, Fault> {
        self.clock.set(now);
        let side =
            UnbufferedServerConnection::new(Arc::clone(&self.config)).map_err(|error| Fault::from(&error))?;
        // A client that offers no application protocol gets none.
        Channel::new(side, false, None)
    }
}
