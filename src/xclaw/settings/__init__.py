"""Settings: TOML files, environment and flags become each room's own small settings class.

Precedence: flag > environment > project `xclaw.toml` > user `config.toml` > default. Above: `app`
and the command line. Below: the settings classes of the rooms; no room reads any of this itself.
"""

from xclaw.settings.loading import Explained, Overrides, Settings, load_settings

__all__ = ["Explained", "Overrides", "Settings", "load_settings"]
