"""Metadata: what is stored with plans and outputs and code decides on, each name of it typed."""
