"""Installs Debian packages, where this machine is Debian and we may."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess


def can_install() -> bool:
    """Whether this is Debian itself and we are root.

    Not its derivatives: Ubuntu's chromium package, for one, only points at a snap.
    """
    try:
        system = platform.freedesktop_os_release().get("ID")
    except OSError:
        return False
    return system == "debian" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> bool:
    """Install `packages` with apt-get; False when it fails. Its output is shown."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (["apt-get", "update"], ["apt-get", "install", "-y", *packages])
    return all(subprocess.run(command, env=environment).returncode == 0 for command in commands)
