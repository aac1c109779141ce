"""Which names promise a secret: `DB_PASSWORD`, `apiKey`, `client-secret`; not `max_tokens`, `tokenizer`, `public_key`.

Only names are read here; what a value says is decided in `references.py`.
"""

from __future__ import annotations

from functools import lru_cache

from pytest_golden.redaction.rule import compile_late

_WORD = compile_late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT_ALNUM = compile_late(r"[^a-z0-9]+")

_ENDINGS = (
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "authorization",
    "pwd",
)
_KEY_KINDS = (
    "access",
    "account",
    "api",
    "app",
    "application",
    "auth",
    "client",
    "consumer",
    "crypt",
    "deploy",
    "encryption",
    "fernet",
    "function",
    "functions",
    "hmac",
    "jwt",
    "license",
    "master",
    "private",
    "secret",
    "service",
    "session",
    "shared",
    "signing",
    "ssh",
    "storage",
    "subscription",
    "webhook",
)
_KEY_ENDINGS = tuple(f"{kind}{key}" for kind in _KEY_KINDS for key in ("key", "keys"))
_PASS_OWNERS = frozenset(
    [
        "admin",
        "api",
        "auth",
        "db",
        "database",
        "email",
        "ftp",
        "http",
        "imap",
        "ldap",
        "login",
        "mail",
        "mysql",
        "pg",
        "postgres",
        "proxy",
        "redis",
        "root",
        "sftp",
        "smtp",
        "ssh",
        "sudo",
        "user",
        "vault",
    ]
)
# Words after the telling one that leave a value secret: PASSWORD_2, TOKEN_PROD, SECRET_KEY_BASE.
_NEUTRAL_TAILS = frozenset(
    [
        "base",
        "base64",
        "b64",
        "current",
        "dev",
        "encoded",
        "new",
        "old",
        "plain",
        "plaintext",
        "prod",
        "production",
        "raw",
        "stage",
        "staging",
        "string",
        "test",
        "text",
        "v",
        "value",
    ]
)
_COUNTERS = frozenset(
    [
        "count",
        "has",
        "is",
        "max",
        "maximum",
        "min",
        "minimum",
        "n",
        "no",
        "num",
        "number",
        "per",
        "require",
        "requires",
        "total",
        "use",
        "uses",
    ]
)
_FOLDER_VARIABLES = frozenset({"PWD", "OLDPWD"})


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a key, variable, header or option of this name holds a secret."""
    if name in _FOLDER_VARIABLES:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and (words[-1] in _NEUTRAL_TAILS or words[-1].isdigit()):
        words.pop()
    if not words or words[0] in _COUNTERS or "public" in words:
        return False
    return _ends_secretly("".join(words)) or _is_pass(words)


@lru_cache(maxsize=4096)
def is_weak_name(name: str) -> bool:
    """Tell whether a name holds a secret only when its value looks like one (`pass` is also a word of test reports)."""
    return name.endswith("_AUTH") or _NOT_ALNUM.sub("", name.lower()) == "pass"


def is_password_name(name: str) -> bool:
    """Tell whether a secret name is that of a password, which may be all digits; a token's digits are a count."""
    return any(stem in name.lower() for stem in ("passw", "pwd", "passphrase", "passcode"))


def is_authorization_name(name: str) -> bool:
    """Tell whether a name is that of an HTTP header whose value starts with a scheme."""
    return name.lower().endswith("authorization")


def is_access_token_name(name: str) -> bool:
    """Tell whether a secret name is that of a personal access token, `X_PAT`; with other values it is a pattern's."""
    return name.lower().endswith("_pat")


def _ends_secretly(compact: str) -> bool:
    return compact.endswith(_ENDINGS) or compact.endswith(_KEY_ENDINGS)


def _is_pass(words: list[str]) -> bool:
    if words[-1] == "pat":
        return len(words) > 1
    return words[-1] == "pass" and len(words) > 1 and words[-2] in _PASS_OWNERS
