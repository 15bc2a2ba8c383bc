"""Task directories, delivery, the artifact store, path containment."""
