//! Work that many want at once and one does: the leader works, the followers wait for its result (single flight).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The running flights.
pub struct SingleFlight<K, V>(Mutex<HashMap<K, watch::Sender<Flight<V>>>>);

/// The state of a flight.
#[derive(Clone)]
enum Flight<V> {
    Running,
    Landed(V),
    Released,
}

/// What a caller does for the flight of its key.
pub enum Role<K: Eq + Hash, V> {
    /// It works.
    Leader(FlightGuard<K, V>),
    /// It waits.
    Follower(Follower<V>),
}

/// The leader's right to work. Dropped without a result, it lets one of the followers be the next leader.
pub struct FlightGuard<K: Eq + Hash, V> {
    flights: Arc<SingleFlight<K, V>>,
    key: K,
}

/// A follower's place.
pub struct Follower<V>(watch::Receiver<Flight<V>>);

/// What a follower gets.
#[derive(Debug, Eq, PartialEq)]
pub enum Outcome<V> {
    Landed(V),
    /// The leader is gone, and left no result.
    Vacant,
    /// There will be no result for followers, or not in time.
    Alone,
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> SingleFlight<K, V> {
    /// Joins the flight of a key, or starts it.
    pub fn join(self: &Arc<Self>, key: &K) -> Role<K, V> {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(key) {
            return Role::Follower(Follower(flight.subscribe()));
        }
        flights.insert(key.clone(), watch::Sender::new(Flight::Running));
        Role::Leader(FlightGuard {
            flights: Arc::clone(self),
            key: key.clone(),
        })
    }
}

impl<K, V> SingleFlight<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<Flight<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> FlightGuard<K, V> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Gives the followers this result.
    pub fn land(self, result: V) {
        self.tell(Flight::Landed(result));
    }

    /// Tells the followers that there will be no result for them; the leader works on for itself.
    pub fn release(&self) {
        self.tell(Flight::Released);
    }

    fn tell(&self, state: Flight<V>) {
        if let Some(flight) = self.flights.lock().get(&self.key) {
            flight.send_replace(state);
        }
    }
}

impl<K: Eq + Hash, V> Drop for FlightGuard<K, V> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}

impl<V: Clone> Follower<V> {
    /// Waits for the leader until `deadline`.
    pub async fn wait(&mut self, deadline: Instant) -> Outcome<V> {
        let ended = self.0.wait_for(|flight| !matches!(flight, Flight::Running));
        match timeout_at(deadline, ended).await {
            Ok(Ok(flight)) => match &*flight {
                Flight::Landed(result) => Outcome::Landed(result.clone()),
                Flight::Running | Flight::Released => Outcome::Alone,
            },
            // The channel closes when the leader ends.
            Ok(Err(_)) => Outcome::Vacant,
            Err(_) => Outcome::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Flights = SingleFlight<&'static str, u32>;

    fn leader(flights: &Arc<Flights>) -> FlightGuard<&'static str, u32> {
        match flights.join(&"a") {
            Role::Leader(guard) => guard,
            Role::Follower(_) => unreachable!("nobody leads"),
        }
    }

    fn follower(flights: &Arc<Flights>) -> Follower<u32> {
        match flights.join(&"a") {
            Role::Leader(_) => unreachable!("somebody leads"),
            Role::Follower(follower) => follower,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn followers_get_the_result_or_learn_that_there_is_none() {
        let flights = Arc::new(Flights::default());
        let soon = || Instant::now() + Duration::from_secs(5);
        let guard = leader(&flights);
        let mut follower_of = follower(&flights);
        let started = Instant::now();
        assert_eq!(follower_of.wait(soon()).await, Outcome::Alone);
        assert_eq!(started.elapsed(), Duration::from_secs(5));
        guard.land(7);
        assert_eq!(follower_of.wait(soon()).await, Outcome::Landed(7));
        let guard = leader(&flights);
        let mut released = follower(&flights);
        guard.release();
        assert_eq!(released.wait(soon()).await, Outcome::Alone);
        drop(guard);
        let guard = leader(&flights);
        let mut vacant = follower(&flights);
        drop(guard);
        assert_eq!(vacant.wait(soon()).await, Outcome::Vacant);
        drop(leader(&flights));
    }

    #[tokio::test]
    async fn flights_of_other_keys_do_not_meet() {
        let flights = Arc::new(Flights::default());
        let _guard = leader(&flights);
        assert!(matches!(flights.join(&"b"), Role::Leader(_)));
    }
}
