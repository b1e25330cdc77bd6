"""The routes: those that change nothing, and those that do."""
