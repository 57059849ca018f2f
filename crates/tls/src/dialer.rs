//! The connections of clients.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::ClientConfig;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize, Serializer, ser};

use crate::channel::{Channel, ClientChannel};
use crate::clock::Clock;
use crate::error::TlsError;
use crate::fault::Fault;
use crate::parameters::Parameters;
use crate::pem::{self, Identity};
use crate::sessions::Sessions;
use crate::verifier::verifier;

/// Whose certificates a client accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// Those that lead to a root in this PEM file.
    Pem(Vec<u8>),
    /// Those that lead to one of these roots (DER). Roots that cannot be used are left out, because a system's own
    /// collection may have some.
    Roots(Vec<Vec<u8>>),
    /// Everybody's, whatever is in them. The server must still prove that it has the certificate's key.
    Anyone,
}

/// What the connections of a client are made from. A client's own certificate is not serialised, because its key is a secret:
/// serialising a `Dialing` with one is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialing {
    /// The server's name or IP address: its certificate must be for it. A DNS name is also sent to the server (SNI).
    pub name: String,
    /// Whose certificates are accepted.
    pub trust: Trust,
    /// The client's own certificate, if the server asks for one.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none", serialize_with = "secret")]
    pub identity: Option<Identity>,
    /// What to agree on.
    pub parameters: Parameters,
}

fn secret<S: Serializer>(_: &Option<Identity>, _: S) -> Result<S::Ok, S::Error> {
    Err(ser::Error::custom("a client's key is a secret, and stays on its machine"))
}

/// Makes the connections of clients that share everything but their sessions.
#[derive(Debug)]
pub struct Dialer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    clock: Arc<Clock>,
    sessions: bool,
}

/// One client: one connection after the other, and its own sessions.
#[derive(Debug)]
pub struct Line {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    clock: Arc<Clock>,
    sessions: Option<Arc<Sessions>>,
}

impl Dialer {
    /// Checks all values once.
    ///
    /// # Errors
    /// The value that no connection can be made from.
    pub fn new(dialing: &Dialing) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(dialing.name.clone()).map_err(|_| TlsError::Name(dialing.name.clone()))?;
        let provider = dialing.parameters.provider()?;
        let clock = Arc::new(Clock::default());
        let builder = ClientConfig::builder_with_details(Arc::clone(&provider), Arc::<Clock>::clone(&clock))
            .with_protocol_versions(&dialing.parameters.protocols())?
            .dangerous()
            .with_custom_certificate_verifier(verifier(&dialing.trust, provider)?);
        let mut config = match &dialing.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.read(pem::CLIENT)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| pem::CLIENT.refused(error))?
            }
        };
        config.alpn_protocols = dialing.parameters.alpn()?;
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), name, clock, sessions: dialing.parameters.sessions })
    }

    /// A new client, without sessions.
    pub fn line(&self) -> Line {
        let sessions = self.sessions.then(Arc::<Sessions>::default);
        let mut config = Arc::clone(&self.config);
        if let Some(sessions) = &sessions {
            Arc::make_mut(&mut config).resumption = Resumption::store(Arc::<Sessions>::clone(sessions));
        }
        Line { config, name: self.name.clone(), clock: Arc::clone(&self.clock), sessions }
    }
}

impl Line {
    /// Begins a connection. Certificates must be valid at the time `now`.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn open(&mut self, now: SystemTime) -> Result<ClientChannel, Fault> {
        self.clock.set(now);
        if let Some(sessions) = &self.sessions {
            // The previous connection may have failed before it asked.
            sessions.take_offered();
        }
        let side = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| Fault::from(&error))?;
        Channel::new(side, !self.config.alpn_protocols.is_empty(), self.sessions.clone())
    }
}
