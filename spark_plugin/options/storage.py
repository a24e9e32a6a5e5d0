"""Options of object stores, from all places where users of Spark set them.

    session = session_storage(confs, hadoop, path)     # the session's settings for a path's store, by pydelta's names
    storage_options(options, session)                  # StorageOptions of a read or write

An option of the read or write takes precedence, then the session's `spark.pydelta.<option>`, then the settings of Hadoop's
connectors (`spark.hadoop.fs.s3a.*`, `fs.gs.*`, `fs.azure.*`) and of delta-spark's log store in DynamoDB, so that sessions that
were set up for these need no more settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from delta_py.errors import InvalidOptionError
from delta_py.storage.addresses import Address, StoreKind, address_of, azure_host, is_name_in_catalog, kind_of, scheme_of
from delta_py.storage.option_aliases import options_named, renamed_options
from delta_py.storage.store_options import StorageOptions, is_secret_option, is_storage_option
from spark_plugin.options.unity_settings import unity_storage, without_other_servers

_PYDELTA = "spark.pydelta."
_HADOOP = "spark.hadoop."
_DYNAMODB = "io.delta.storage.S3DynamoDBLogStore"
_SETTINGS_OF_DYNAMODB = {"ddb.tableName": ("s3.dynamodb_table", "delta_log"), "ddb.region": ("s3.dynamodb_region", "us-east-1")}


def session_storage(confs: Mapping[str, str], hadoop: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the session's settings for the store of a path, by the names of StorageOptions. confs: the session's settings.
    hadoop: additional settings of Hadoop's file systems. path: a URL."""
    hadoop_confs = {name.removeprefix(_HADOOP): value for name, value in confs.items() if name.startswith(_HADOOP)}
    hadoop_settings = {**hadoop_confs, **hadoop}
    if is_name_in_catalog(path):
        return unity_storage(confs, _service_options(hadoop_settings), path)
    pydelta_confs = {name.removeprefix(_PYDELTA): value for name, value in confs.items() if name.startswith(_PYDELTA)}
    pydelta_options = {name: value for name, value in pydelta_confs.items() if is_storage_option(name)}
    return {**of_hadoop(hadoop_settings, path), **_of_log_store(confs, path), **pydelta_options}


def storage_options(options: Mapping[str, str], session: Mapping[str, str]) -> StorageOptions:
    """Return the storage options of a read or write. options: all its options; those that are not of stores are ignored, and the
    others take precedence over the session's. session: the result of session_storage.

    Raises InvalidOptionError (DELTA_UNKNOWN_OPTION).
    """
    call_options = renamed_options({name: value for name, value in options.items() if is_storage_option(name)})
    return StorageOptions.of({**without_other_servers(session, call_options), **call_options})


def without_storage(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read or write without those of object stores, for parsers that know only the others."""
    return {name: value for name, value in options.items() if not is_storage_option(name)}


def refuse_secrets(options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for secrets in options that a catalog would store, where everybody can read them."""
    secret_names = sorted(name for name in options if is_secret_option(name))
    if secret_names:
        raise InvalidOptionError(
            f"The option {secret_names[0]} is a secret, and the catalog would keep it for all to see. Set it in the session, as "
            f"{_PYDELTA}{options_named(secret_names[0])[0]}, or let the store's SDK find it.",
            option=secret_names[0],
        )


# ---------------------------------------------------------------- Hadoop's names


def of_hadoop(settings: Mapping[str, str], path: str) -> dict[str, str]:
    """Return settings of Hadoop's connectors (`fs.s3a.access.key`) by the names of StorageOptions, if they apply to the path's
    store. Other settings of the connectors have no use here."""
    kind = kind_of(path)
    return {} if kind is None else _CONNECTORS[kind](settings, address_of(path))


def _service_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options that say where stores are, and no credentials: the catalog of the table names its store and
    gives credentials later. The bucket `any` stands for every bucket."""
    all_options = {**of_hadoop(settings, "s3://any"), **of_hadoop(settings, "gs://any")}
    return {name: value for name, value in all_options.items() if name in _SERVICE_OPTIONS}


_SERVICE_OPTIONS = (
    "s3.endpoint",
    "s3.region",
    "s3.path_style",
    "s3.requester_pays",
    "gcs.endpoint",
    "gcs.project",
    "gcs.user_project",
)
# Settings below `fs.s3a.`, and the storage options for them.
_S3A = {
    "access.key": "s3.access_key_id",
    "secret.key": "s3.secret_access_key",
    "session.token": "s3.session_token",
    "endpoint.region": "s3.region",
    "path.style.access": "s3.path_style",
    "requester.pays.enabled": "s3.requester_pays",
}
_AMAZON = re.compile(r"(?:https?://)?s3[.-](?:(?P<region>[a-z0-9-]+)\.)?amazonaws\.com(?:\.cn)?", re.IGNORECASE)


def _of_s3a(settings: Mapping[str, str], address: Address) -> dict[str, str]:
    """Return the storage options for S3. A bucket's own settings (`fs.s3a.bucket.<name>.*`) take precedence over the general
    ones."""

    def setting(name: str) -> str | None:
        return settings.get(f"fs.s3a.bucket.{address.container}.{name}") or settings.get(f"fs.s3a.{name}") or None

    options = {option: value for name, option in _S3A.items() if (value := setting(name)) is not None}
    endpoint = setting("endpoint")
    amazon_endpoint = None if endpoint is None else _AMAZON.fullmatch(endpoint)
    # An endpoint of Amazon itself only tells the region. Any other endpoint is another server with the same interface.
    if amazon_endpoint is not None and amazon_endpoint["region"]:
        options.setdefault("s3.region", amazon_endpoint["region"])
    elif endpoint is not None and amazon_endpoint is None:
        scheme = "http" if (setting("connection.ssl.enabled") or "true").lower() == "false" else "https"
        options["s3.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    # Hadoop tries a list of providers in order. Only the first counts here.
    if "AnonymousAWSCredentialsProvider" in (setting("aws.credentials.provider") or "").partition(",")[0]:
        options["s3.anonymous"] = "true"
    return options


# Settings below `fs.gs.`, and the storage options for them.
_GS = {
    "auth.service.account.json.keyfile": "gcs.service_account_file",
    "project.id": "gcs.project",
    "requester.pays.project.id": "gcs.user_project",
    "storage.root.url": "gcs.endpoint",
}


def _of_gs(settings: Mapping[str, str], address: Address) -> dict[str, str]:
    """Return the storage options for Google Cloud Storage. The connector's older name for the key file is known too."""
    older_key_file = settings.get("google.cloud.auth.service.account.json.keyfile")
    options = {} if older_key_file is None else {"gcs.service_account_file": older_key_file}
    options |= {option: value for name, option in _GS.items() if (value := settings.get(f"fs.gs.{name}"))}
    if settings.get("fs.gs.auth.type", "").upper() == "UNAUTHENTICATED":
        options["gcs.anonymous"] = "true"
    return options


def _of_azure(settings: Mapping[str, str], address: Address) -> dict[str, str]:
    """Return the storage options for Azure. The names of settings end in the account that they apply to:
    `fs.azure.account.key.<account>.dfs.core.windows.net`; a setting without an account applies to all."""
    hosts = [azure_host(address.account, service) for service in ("dfs", "blob")]

    def setting(name: str) -> str | None:
        values = (settings.get(f"{name}.{host}") for host in hosts)
        return next((value for value in values if value), None) or settings.get(name) or None

    # The endpoint is a URL such as https://login.microsoftonline.com/<tenant>/oauth2/token.
    sas_token = setting("fs.azure.sas.fixed.token") or setting(f"fs.azure.sas.{address.container}")
    tenant = urlsplit(setting("fs.azure.account.oauth2.client.endpoint") or "").path.strip("/").partition("/")[0]
    options = {
        "azure.account_key": setting("fs.azure.account.key"),
        "azure.sas_token": sas_token,
        "azure.client_id": setting("fs.azure.account.oauth2.client.id"),
        "azure.client_secret": setting("fs.azure.account.oauth2.client.secret"),
        "azure.tenant_id": setting("fs.azure.account.oauth2.msi.tenant") or tenant,
        "azure.managed_identity": "true" if "Msi" in (setting("fs.azure.account.oauth.provider.type") or "") else None,
    }
    return {name: value for name, value in options.items() if value}


_CONNECTORS: Mapping[StoreKind, Callable[[Mapping[str, str], Address], dict[str, str]]] = {
    "s3": _of_s3a,
    "gs": _of_gs,
    "az": _of_azure,
}


def _of_log_store(confs: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the options of the DynamoDB table in which delta-spark's log store decides commits, because pydelta must decide them
    there too. Empty if the session does not use that log store for the path."""
    if confs.get(f"spark.delta.logStore.{scheme_of(path)}.impl") != _DYNAMODB:
        return {}
    return {
        option: confs.get(f"spark.{_DYNAMODB}.{name}") or confs.get(f"{_DYNAMODB}.{name}") or default
        for name, (option, default) in _SETTINGS_OF_DYNAMODB.items()
    }
