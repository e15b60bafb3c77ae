//! Conversion of device times to the host's clock.
//!
//! An event is recorded on an idle stream and waited for, so that its time lies between two
//! readings of the host's clock; of several attempts, the one with the closest readings is used.
//! Later events are measured from it. The elapsed time is a number of milliseconds with 24
//! significant bits, so a new event is recorded every ten seconds, which keeps the error below a
//! microsecond.

use std::time::{Duration, Instant};

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::{Context, Error, Event, EventFlags, EventPool, PooledEvent, Result};

/// The traced contexts, and the points whose time was measured on both clocks.
#[derive(Default)]
pub(super) struct Clock {
    contexts: Vec<ContextClock>,
    origins: Vec<Origin>,
}

struct ContextClock {
    context: Context,
    events: EventPool,
    /// The index of the latest point of this context.
    origin: usize,
}

struct Origin {
    event: Event,
    time: Instant,
}

/// The time for which a measured point is valid.
const VALIDITY: Duration = Duration::from_secs(10);

/// The number of clock comparisons per point.
const ATTEMPTS: usize = 3;

impl Clock {
    /// Returns the index of a recent point of `context`, and two events to record.
    pub(super) fn events(
        &mut self,
        context: &Context,
    ) -> Result<(usize, PooledEvent, PooledEvent)> {
        let index = match self
            .contexts
            .iter()
            .position(|clock| clock.context == *context)
        {
            Some(index) => index,
            None => self.add_context(context)?,
        };
        if self.origins[self.contexts[index].origin].time.elapsed() > VALIDITY {
            self.contexts[index].origin = self.add_origin(context)?;
        }
        let ContextClock { events, origin, .. } = &self.contexts[index];
        Ok((*origin, events.take()?, events.take()?))
    }

    /// Returns the time of a completed event on the host's clock.
    pub(super) fn time(&self, origin: usize, event: &Event) -> Result<Instant> {
        let Origin { event: begin, time } = &self.origins[origin];
        Ok(*time + event.elapsed_since(begin)?)
    }

    fn add_context(&mut self, context: &Context) -> Result<usize> {
        let origin = self.add_origin(context)?;
        let events = EventPool::with_capacity(context, EventFlags::empty(), usize::MAX);
        self.contexts.push(ContextClock {
            context: context.clone(),
            events,
            origin,
        });
        Ok(self.contexts.len() - 1)
    }

    fn add_origin(&mut self, context: &Context) -> Result<usize> {
        let origin = with_relaxed_capture_mode(context.driver(), || Origin::compare(context))?;
        self.origins.push(origin);
        Ok(self.origins.len() - 1)
    }
}

impl Origin {
    fn compare(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let mut best: Option<(Duration, Self)> = None;
        for _ in 0..ATTEMPTS {
            let event = Event::new(context, EventFlags::empty())?;
            let before = Instant::now();
            event.record(&stream)?;
            event.synchronize()?;
            let uncertainty = before.elapsed();
            if best.as_ref().is_none_or(|(least, _)| uncertainty < *least) {
                best = Some((
                    uncertainty,
                    Self {
                        event,
                        time: before + uncertainty / 2,
                    },
                ));
            }
        }
        best.map(|(_, origin)| origin)
            .ok_or_else(|| Error::argument("Trace", "the clocks were not correlated"))
    }
}
