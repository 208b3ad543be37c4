//! How fast this machine is at this moment.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

/// What [`pace`] measures takes this long on the machine of docs/performance.md: where it takes 12 ms, the `echo` of that page
/// takes 0.56 ms, and there 0.26 ms.
const THERE: Duration = Duration::from_millis(6);
/// A byte goes to another thread and back this many times.
const TURNS: usize = 1000;
/// The fastest one counts: another program may have had the processor in the others.
const TRIES: usize = 5;

/// How many times as long a fixed piece of work takes here, and now, as on the machine of docs/performance.md; 1 on a faster
/// one. The work is of the kind that sandboxes do: two threads that wake each other up. A bound in time that is meant for
/// that machine holds here when it is multiplied with this.
///
/// It takes 30 ms there.
///
/// # Panics
///
/// The system has no more threads or sockets.
#[must_use]
pub fn pace() -> f64 {
    let fastest = (0..TRIES).map(|_| turns()).min().unwrap();
    (fastest.as_secs_f64() / THERE.as_secs_f64()).max(1.0)
}

fn turns() -> Duration {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || {
        let mut byte = [0];
        for _ in 0..TURNS {
            there.read_exact(&mut byte).unwrap();
            there.write_all(&byte).unwrap();
        }
    });
    let mut byte = [1];
    let began = Instant::now();
    for _ in 0..TURNS {
        here.write_all(&byte).unwrap();
        here.read_exact(&mut byte).unwrap();
    }
    let took = began.elapsed();
    other.join().unwrap();
    took
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_machine_is_faster_than_the_one_of_the_document() {
        let pace = pace();
        println!("a turn takes {:?}; the pace is {pace:.2}", turns() / u32::try_from(TURNS).unwrap());
        assert!(pace.is_finite() && pace >= 1.0);
    }
}
