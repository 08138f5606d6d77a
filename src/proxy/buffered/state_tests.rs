use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn sent(now: Instant) -> AttemptState {
    let timeouts = Timeouts {
        first_event: HOUR,
        idle: HOUR,
        attempt: HOUR,
        request: HOUR,
        keepalive: HOUR,
    };
    let state = AttemptState::new(true, timeouts, now);
    let pieces = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    state.begin_attempt(pieces.map(BodyPiece::Bytes).into(), now);
    state.set_bills_after_disconnect(true);
    state
}

#[test]
fn a_reply_is_drained_for_thirty_seconds_at_most() {
    let now = Instant::now();
    let state = sent(now);
    state.next_bytes().unwrap();
    state.record_sent();
    assert!(state.disconnect(now + Duration::from_secs(7)));
    // An event does not postpone the end.
    state.record_event(now + Duration::from_secs(20));
    let end = now + Duration::from_secs(37);
    assert_eq!(state.next_wake(), (end, Wake::Abort));
}

#[test]
fn patience_ends_an_attempt_early_unless_it_was_heard() {
    let now = Instant::now();
    let state = sent(now);
    state.set_patience(Duration::from_secs(5));
    let end = now + Duration::from_secs(5);
    assert_eq!(state.next_wake(), (end, Wake::Abort));
    state.record_event(now);
    assert!(state.next_wake().0 > end);
    state.set_patience(Duration::from_secs(5));
    state.begin_attempt(Vec::new(), now);
    assert!(state.next_wake().0 > end);
}

#[test]
fn a_hedge_is_due_once_beside_a_request_that_was_sent() {
    let now = Instant::now();
    let race = Arc::new(Race::new(Duration::from_secs(2)));
    let state = sent(now).with_race(Some(Arc::clone(&race)));
    let late = (now + HOUR, Wake::Abort);
    assert_eq!(state.next_wake(), late);
    state.next_bytes().unwrap();
    state.record_sent();
    let due = (now + Duration::from_secs(2), Wake::Hedge);
    assert_eq!(state.next_wake(), due);
    // An event without content changes nothing.
    state.record_event(now + Duration::from_secs(1));
    assert_eq!(state.next_wake(), due);
    race.cancel();
    assert_ne!(state.next_wake().1, Wake::Hedge);
}

#[test]
fn no_hedge_is_due_behind_content_a_refusal_or_a_client_that_has_left() {
    let now = Instant::now();
    for end in [
        |state: &AttemptState, now| drop(state.commit(now)),
        |state: &AttemptState, now| state.record_refusal(now),
        |state: &AttemptState, now| assert!(state.disconnect(now)),
    ] {
        let race = Arc::new(Race::new(Duration::ZERO));
        let state = sent(now).with_race(Some(race));
        state.next_bytes().unwrap();
        state.record_sent();
        assert_eq!(state.next_wake().1, Wake::Hedge);
        end(&state, now);
        assert_ne!(state.next_wake().1, Wake::Hedge);
    }
}

#[test]
fn a_call_of_the_session_is_no_piece_of_the_body() {
    let state = sent(Instant::now());
    state.next_bytes().unwrap();
    assert!(state.is_body_done());
    state.call_exchange();
    assert!(!state.is_body_done());
    assert!(!state.record_sent() && !state.is_sent());
    assert!(state.record_sent() && state.is_sent());
}

#[test]
fn a_request_is_sent_with_its_last_piece_and_not_drained_before() {
    let now = Instant::now();
    let state = sent(now);
    state.record_sent();
    assert!(!state.is_sent() && !state.disconnect(now));
    state.next_bytes().unwrap();
    state.record_sent();
    assert!(state.is_sent());
    state.begin_attempt(Vec::new(), now);
    assert!(!state.is_sent());
}

#[test]
fn the_end_of_the_process_ends_a_request_and_leaves_no_time_for_another_attempt() {
    let now = Instant::now();
    let state = sent(now);
    let drain = Drain::default();
    state.set_drain(drain.clone());
    assert!(state.next_wake().0 > now + HOUR / 2);
    let end = now + Duration::from_secs(5);
    drain.set_deadline(end);
    assert_eq!(state.next_wake(), (end, Wake::Abort));
    assert!(!state.is_expired(now) && state.is_expired(end));
}
