//! A command at somebody's own terminal: it has this process's standard input, output and error.
