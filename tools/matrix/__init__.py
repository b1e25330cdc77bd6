"""Run the tests on each combination of versions that the package supports: `make matrix`."""
