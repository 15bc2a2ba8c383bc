"""Containers of podman: one for each command, from the same Debian packages as the virtual machines."""
