// Where what waits and grows ends.

/** Times are milliseconds. */
export const LIMITS = {
    /** In which a connection may come back before an operation fails. */
    patience: 10_000,
    /** After which an open connection counts as one that works. */
    lasting: 1_000,
    /** Without a byte after which a connection counts as broken. A stream of events has one every 15 s. */
    silence: 90_000,
    /** For an answer that is no stream, from its head to its end. */
    whole: 600_000,
    /** For giving something up, when its caller leaves. */
    leaving: 5_000,
    /** Bytes of an answer that is no stream. That of the largest directory is much smaller. */
    answer: 256 * 1024 * 1024,
    /** Bytes of an event of a stream. The largest ones are pictures that a cell displays. */
    event: 64 * 1024 * 1024,
    /** For making a connection to a terminal. */
    dialing: 10_000,
    /** Bytes of a message of a terminal. The server's are smaller. */
    message: 1024 * 1024,
    /** Bytes of such messages that wait for their reader. */
    inbox: 4 * 1024 * 1024,
};
