"""Micro-VMs: an image of Debian packages, QEMU without a network card, an agent in the guest."""
