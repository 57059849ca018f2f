//! The sessions of one line. rustls' own store is shared by all connections of a configuration and keeps 256 of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// How many tickets of TLS 1.3 a line keeps. Each is used once; servers usually give two with each connection.
const TICKETS: usize = 8;

/// The sessions of one client with one server.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    kept: Mutex<Kept>,
    offered: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    /// The last session of TLS 1.2.
    session: Option<Tls12ClientSessionValue>,
    /// Tickets of TLS 1.3, the newest last.
    tickets: Vec<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Whether a session was taken out in order to offer it, since this was last asked.
    pub(crate) fn take_offered(&self) -> bool {
        self.offered.swap(false, Ordering::Relaxed)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offers<T>(&self, session: Option<T>) -> Option<T> {
        if session.is_some() {
            self.offered.store(true, Ordering::Relaxed);
        }
        session
    }
}

impl ClientSessionStore for Sessions {
    // The first key is always of the first group that was asked for, so that all connections of a run begin alike.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().session = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let session = self.kept().session.clone();
        self.offers(session)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == TICKETS {
            kept.tickets.remove(0);
        }
        kept.tickets.push(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.kept().tickets.pop();
        self.offers(ticket)
    }
}
