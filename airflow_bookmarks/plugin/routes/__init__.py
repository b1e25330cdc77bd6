"""The routes: `read` changes nothing, `change` moves a bookmark, `ownership` says whose it is."""
