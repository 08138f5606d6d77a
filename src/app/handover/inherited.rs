//! Listeners that another process has bound: the predecessor, or the service manager (socket activation).

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

/// The most sockets that are taken from a service manager. Our choice: far more than there are addresses.
const MAX_SOCKETS: usize = 64;

/// Bound listeners that wait for their configured address.
#[derive(Default)]
pub struct InheritedListeners(Vec<InheritedListener>);

/// One bound listener.
struct InheritedListener {
    /// The configuration key of its address, or the name that a service manager gave.
    name: String,
    address: SocketAddr,
    listener: TcpListener,
}

impl InheritedListeners {
    /// Takes the listeners that a service manager has passed (`LISTEN_FDS`, `LISTEN_PID`, `LISTEN_FDNAMES`). Call it once,
    /// before the process has other threads, because it removes the variables.
    pub fn from_service_manager() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut passed = ListenFd::from_env();
        let mut inherited = Self::default();
        for index in 0..passed.len().min(MAX_SOCKETS) {
            let name = names.next().unwrap_or_default();
            match passed.take_tcp_listener(index) {
                Ok(Some(listener)) => inherited.add_or_warn(name, listener),
                Ok(None) => {}
                Err(error) => {
                    log::warn!("the socket `{name}` of the service manager is not used: {error}")
                }
            }
        }
        inherited
    }

    /// Adds a listener under the key of its address.
    ///
    /// Errors: it is no bound socket that listens.
    pub fn add(&mut self, name: &str, listener: TcpListener) -> io::Result<()> {
        if !socket_acceptconn(&listener)? {
            return Err(io::Error::other("the socket does not listen"));
        }
        self.0.push(InheritedListener {
            name: name.to_owned(),
            address: listener.local_addr()?,
            listener,
        });
        Ok(())
    }

    fn add_or_warn(&mut self, name: &str, listener: TcpListener) {
        if let Err(error) = self.add(name, listener) {
            log::warn!("the socket `{name}` of the service manager is not used: {error}");
        }
    }

    /// Takes the listener of a configured address. With port 0, any port will do, and the name decides.
    pub fn take(&mut self, key: &str, address: SocketAddr) -> Option<TcpListener> {
        let is_meant = |it: &InheritedListener| match address.port() {
            0 => it.name == key && it.address.ip() == address.ip(),
            _ => it.address == address,
        };
        let index = self.0.iter().position(is_meant)?;
        Some(self.0.swap_remove(index).listener)
    }

    /// Closes the listeners that no configured address wants, each with a warning.
    pub fn close_rest(&mut self) {
        for rest in self.0.drain(..) {
            log::warn!(
                "the inherited listener at {} is closed: no address of the configuration is that one",
                rest.address
            );
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn bound() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn a_listener_is_found_by_its_address_once() {
        let ((first, at_first), (second, at_second)) = (bound(), bound());
        let mut inherited = InheritedListeners::default();
        inherited.add("unknown", first).unwrap();
        inherited.add("connections", second).unwrap();
        let taken = inherited.take("listen.address", at_second).unwrap();
        assert_eq!(taken.local_addr().unwrap(), at_second);
        assert!(inherited.take("listen.address", at_second).is_none());
        assert!(inherited.take("admin.address", at_first).is_some());
    }

    #[test]
    fn with_port_0_the_name_decides() {
        let ((first, _), (second, at_second)) = (bound(), bound());
        let mut inherited = InheritedListeners::default();
        inherited.add("listen.address", first).unwrap();
        inherited.add("admin.address", second).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let taken = inherited.take("admin.address", any).unwrap();
        assert_eq!(taken.local_addr().unwrap(), at_second);
        assert!(inherited.take("admin.address", any).is_none());
        let elsewhere: SocketAddr = "[::1]:0".parse().unwrap();
        assert!(inherited.take("listen.address", elsewhere).is_none());
    }

    #[test]
    fn what_no_address_wants_is_closed() {
        let (listener, address) = bound();
        let mut inherited = InheritedListeners::default();
        inherited.add("listen.address", listener).unwrap();
        inherited.close_rest();
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}
