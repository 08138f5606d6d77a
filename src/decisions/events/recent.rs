//! The events that were queued last, for people who look. The task that sends events copies them, so requests pay nothing
//! for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use filters::decisions::event::EventHead;

use crate::decisions::mutex::lock;

/// The maximum number of events.
pub const MAX_EVENTS: usize = 256;
/// The maximum length of an event that is kept, so that all take 2 MiB at most.
const MAX_EVENT_BYTES: usize = 8 << 10;

/// The events that were queued last, since the process has started.
#[derive(Default)]
pub struct RecentEvents(Mutex<EventRing>);

#[derive(Default)]
struct EventRing {
    events: VecDeque<Arc<RecentEvent>>,
    count: u64,
    oversized: u64,
}

/// An event as it was queued.
#[derive(Debug, Eq, PartialEq)]
pub struct RecentEvent {
    /// The id of the project in its datafile.
    pub project_id: Arc<str>,
    /// As the backend gets it.
    pub visitor: Box<[u8]>,
}

/// Recent events, the newest first.
#[derive(Debug, Default)]
pub struct RecentList {
    pub events: Vec<Arc<RecentEvent>>,
    /// How many were queued in all.
    pub count: u64,
    /// How many of all were too long to be kept.
    pub oversized: u64,
}

impl RecentEvents {
    /// Keeps a queued event in place of the oldest one. Cost: a copy.
    pub(super) fn record(&self, head: &EventHead, visitor: &[u8]) {
        let mut ring = lock(&self.0);
        ring.count += 1;
        if visitor.len() > MAX_EVENT_BYTES {
            ring.oversized += 1;
            return;
        }
        let last = ring.events.back();
        let last = last.filter(|last| *last.project_id == *head.project_id());
        let project_id = match last {
            Some(last) => Arc::clone(&last.project_id),
            None => head.project_id().into(),
        };
        if ring.events.len() >= MAX_EVENTS {
            ring.events.pop_front();
        }
        ring.events.push_back(Arc::new(RecentEvent {
            project_id,
            visitor: visitor.into(),
        }));
    }

    /// Returns at most `max` events of a project, or of all projects.
    pub fn list(&self, project_id: Option<&str>, max: usize) -> RecentList {
        let ring = lock(&self.0);
        let newest = ring.events.iter().rev();
        let wanted = newest.filter(|event| project_id.is_none_or(|id| *event.project_id == *id));
        RecentList {
            events: wanted.take(max).map(Arc::clone).collect(),
            count: ring.count,
            oversized: ring.oversized,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::decisions::Project;
    use filters::decisions::protocol::{Document, Protocol};

    use super::*;

    fn head(project_id: &str) -> EventHead {
        let text = format!(r#"{{"version":"4","projectId":"{project_id}"}}"#);
        let project = Project::parse(text.as_bytes(), Document.rules()).unwrap();
        EventHead::new(&project, Document.event_client())
    }

    fn visitors(list: &RecentList) -> Vec<&str> {
        let visitors = list.events.iter().map(|event| &*event.visitor);
        visitors
            .map(|it| std::str::from_utf8(it).unwrap())
            .collect()
    }

    #[test]
    fn the_newest_come_first_and_each_project_has_its_own() {
        let recent = RecentEvents::default();
        for (project, visitor) in [("a", "1"), ("b", "2"), ("a", "3")] {
            recent.record(&head(project), visitor.as_bytes());
        }
        assert_eq!(visitors(&recent.list(None, 9)), ["3", "2", "1"]);
        assert_eq!(visitors(&recent.list(Some("a"), 9)), ["3", "1"]);
        assert_eq!(visitors(&recent.list(None, 1)), ["3"]);
        assert!(recent.list(Some("c"), 9).events.is_empty());
    }

    #[test]
    fn number_and_length_have_a_bound_and_the_list_says_what_it_lacks() {
        let recent = RecentEvents::default();
        let head = head("a");
        recent.record(&head, &vec![b'x'; MAX_EVENT_BYTES + 1]);
        for number in 0..MAX_EVENTS + 44 {
            recent.record(&head, number.to_string().as_bytes());
        }
        let list = recent.list(None, usize::MAX);
        assert_eq!(list.events.len(), MAX_EVENTS);
        assert_eq!((list.count, list.oversized), (301, 1));
        assert_eq!(visitors(&list).last(), Some(&"44"));
    }
}
