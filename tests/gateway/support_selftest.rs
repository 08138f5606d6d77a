//! The test support itself: each thing a script can do, seen by the raw client.
