# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The keys that open the server, and the tenant that each one stands for.

Keys are kept as digests, so no log, traceback or dump of this object tells one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from tensorrt_llm.errors import ConfigurationError


@dataclass(frozen=True)
class Tenant:
    """Who asks. What one tenant's requests leave in the caches, no other tenant's find.

    Attributes:
        salt: Stands for the tenant in the keys of blocks and in cache events.
    """

    salt: str

    def salted(self, cache_salt: str | None) -> str:
        """The salt of a request of this tenant that names ``cache_salt``, or none.

        The length in front keeps one tenant's salts apart from those of a tenant whose salt begins
        alike.
        """
        return f"{len(self.salt)}:{self.salt}{'' if cache_salt is None else f':{cache_salt}'}"

    def owns(self, salted: str) -> bool:
        """Whether a request with this salt, a result of ``salted``, was this tenant's."""
        own = self.salted(None)
        return salted == own or salted.startswith(f"{own}:")


@dataclass(frozen=True)
class ApiKeys:
    """Keys and their tenants; none means that no key is asked for.

    Attributes:
        entries: Digest of each key, and the tenant that it stands for.
    """

    entries: tuple[tuple[bytes, Tenant], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> ApiKeys:
        """Reads keys as an operator writes them.

        Args:
            lines: Each a key, or a key and its tenant's salt with a space between. Keys with the
                same salt are one tenant; a key without is a tenant of its own. Blank lines, and
                those that begin with ``#``, are left out.

        Raises:
            ConfigurationError: If a line has another form, or a key stands twice. Does not tell
                the key.
        """
        entries: dict[bytes, Tenant] = {}
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            key, *salt = words
            if len(salt) > 1 or not (key.isascii() and key.isprintable()):
                raise ConfigurationError(
                    f"entry {number} is no key of printable ASCII characters, with at most a salt "
                    "after it"
                )
            digest = _digest(key.encode())
            if digest in entries:
                raise ConfigurationError(f"entry {number} repeats a key")
            # Drawn anew in each process: derived from the key, it would give the key away to
            # whoever reads cache events and can guess.
            entries[digest] = Tenant(salt[0] if salt else f"key-{secrets.token_hex(8)}")
        return cls(tuple(entries.items()))

    def __bool__(self) -> bool:
        """Whether a key is asked for."""
        return bool(self.entries)

    def __len__(self) -> int:
        """Number of keys."""
        return len(self.entries)

    def tenant(self, key: bytes) -> Tenant | None:
        """Whose key this is, or None.

        Takes the same time whichever key it is like: each is compared, in constant time.
        """
        digest, found = _digest(key), None
        for known, tenant in self.entries:
            if hmac.compare_digest(digest, known):
                found = tenant
        return found


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
