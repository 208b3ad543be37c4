//! Actions executed by this process and confined to one directory (local-and-cli-runtime B).
