"""Storage options by name: endpoints, credentials, limits, and the coordinator of the tables.

    options = StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000", "s3.secret_access_key": "..."})

One set serves all stores, because a table may name files in more than one. It is sent to executors with the state of reads and
writes. Values of secrets appear in no `repr`, and `hide` removes them from the texts of other programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from delta_py.errors import InvalidOptionError
from delta_py.remote_requests import without_secrets
from delta_py.storage.option_aliases import SECRETS_WITHOUT_EQUIVALENT, options_named, renamed_options
from delta_py.types.similar_names import unknown_option_error


@dataclass(frozen=True, slots=True)
class OptionName:
    """An option that exists. is_secret: anybody who knows the value can act as the user, so no message shows it."""

    name: str
    is_secret: bool = False


_S3 = (
    OptionName("s3.access_key_id"),
    OptionName("s3.secret_access_key", is_secret=True),
    OptionName("s3.session_token", is_secret=True),
    OptionName("s3.profile"),
    OptionName("s3.region"),
    OptionName("s3.endpoint"),
    OptionName("s3.path_style"),
    OptionName("s3.anonymous"),
    OptionName("s3.requester_pays"),
    OptionName("s3.dynamodb_table"),
    OptionName("s3.dynamodb_region"),
    OptionName("s3.dynamodb_endpoint"),
)
_GCS = (
    OptionName("gcs.service_account_file"),
    OptionName("gcs.service_account_json", is_secret=True),
    OptionName("gcs.access_token", is_secret=True),
    OptionName("gcs.project"),
    OptionName("gcs.user_project"),
    OptionName("gcs.endpoint"),
    OptionName("gcs.anonymous"),
)
_AZURE = (
    OptionName("azure.account_name"),
    OptionName("azure.account_key", is_secret=True),
    OptionName("azure.sas_token", is_secret=True),
    OptionName("azure.connection_string", is_secret=True),
    OptionName("azure.tenant_id"),
    OptionName("azure.client_id"),
    OptionName("azure.client_secret", is_secret=True),
    OptionName("azure.managed_identity"),
    OptionName("azure.endpoint"),
    OptionName("azure.anonymous"),
)
_ALL_STORES = (
    OptionName("storage.request_timeout"),
    OptionName("storage.retry_timeout"),
    OptionName("storage.max_requests"),
)
_COORDINATOR = (
    OptionName("coordinator", is_secret=True),  # its URL may hold a password
    OptionName("coordinator.transaction"),
)
_UNITY = (
    OptionName("unity.uri"),
    OptionName("unity.token", is_secret=True),
    OptionName("unity.oauth_uri"),
    OptionName("unity.client_id"),
    OptionName("unity.client_secret", is_secret=True),
    OptionName("unity.subject_token", is_secret=True),
    OptionName("unity.subject_token_file"),
    OptionName("unity.share_token"),
    OptionName("unity.location"),
)
OPTION_NAMES: tuple[OptionName, ...] = (*_S3, *_GCS, *_AZURE, *_ALL_STORES, *_COORDINATOR, *_UNITY)

_BY_NAME = {option.name: option for option in OPTION_NAMES}
_PREFIXES = ("s3.", "gcs.", "azure.", "storage.", "coordinator.", "unity.")


def is_storage_option(name: str) -> bool:
    """Whether an option of a read or a write is a storage option, by the beginning of its name."""
    return name.lower().startswith(_PREFIXES) or name.lower() == "coordinator"


def is_secret_option(name: str) -> bool:
    """Whether the value of an option, by any of its names, must not be shown."""
    options = (_BY_NAME.get(target) for target in options_named(name))
    return name.lower() in SECRETS_WITHOUT_EQUIVALENT or any(option is not None and option.is_secret for option in options)


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """The storage options of a table. values: by lower-case name. Equal options open the same connections."""

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Checked options. options: by pydelta's names or by those of option_aliases.py, in any case of letters. Raises
        InvalidOptionError (DELTA_UNKNOWN_OPTION) for a name that no store knows, and as renamed_options."""
        renamed = renamed_options(options)
        for name in renamed:
            if name not in _BY_NAME:
                raise unknown_option_error(name, _BY_NAME, f"No store knows the option {name!r}.", "Correct the name.")
        return cls(tuple(sorted(renamed.items())))

    def get(self, name: str) -> str | None:
        """The value of an option as text; None if it is not set."""
        assert name in _BY_NAME, name
        return next((value for stored_name, value in self.values if stored_name == name), None)

    def flag(self, name: str) -> bool:
        """An option that is true or false; False if it is not set. Raises InvalidOptionError."""
        value = (self.get(name) or "false").lower()
        if value not in ("true", "false"):
            raise InvalidOptionError(
                f"Invalid value {value!r} for option {name!r}: it must be 'true' or 'false'.", option=name, value=value
            )
        return value == "true"

    def number(self, name: str, default: float) -> float:
        """An option that is a number; `default` if it is not set. Raises InvalidOptionError for a value that is not a number
        above 0."""
        text = self.get(name)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            raise InvalidOptionError(
                f"Invalid value {text!r} for option {name!r}: it must be a number above 0.", option=name, value=text
            )
        return number

    def hide(self, text: str) -> str:
        """The text without the secret values."""
        return without_secrets(text, (value for name, value in self.values if _BY_NAME[name].is_secret))

    def __repr__(self) -> str:
        shown_values = (f"{name}={'...' if _BY_NAME[name].is_secret else repr(value)}" for name, value in self.values)
        return f"StorageOptions({', '.join(shown_values)})"


NO_OPTIONS = StorageOptions()
