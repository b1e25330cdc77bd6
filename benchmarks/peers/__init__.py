"""Other tools that the same is measured with, each in an environment of its own that is made for it."""
