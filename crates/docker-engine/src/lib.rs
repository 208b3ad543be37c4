//! Which Docker engine is used, how it is reached, and its images.
