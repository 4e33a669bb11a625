# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The routes of ``/v1/files``: media that is uploaded once and named by its id from then on.

The id stands for content that the server has seen, decoded and identified, so it is a safe answer
to who would rather not send a long video each turn; a name chosen by the caller would not be.
"""

from __future__ import annotations

import mimetypes
import time
import uuid
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import File, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.errors import LimitExceededError, RequestError
from tensorrt_llm.inputs.kept_media import KeptMedia
from tensorrt_llm.serve.access import owner_of, tenant_of
from tensorrt_llm.serve.chat_utils import FileLookup
from tensorrt_llm.serve.errors import UnknownIdError
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import Answer
from tensorrt_llm.serve.prompt_preparer import PromptPreparer, naming
from tensorrt_llm.serve.response_protocol import Deleted
from tensorrt_llm.serve.route_table import ERRORS, RouteTable
from tensorrt_llm.serve.tenant_store import TenantStore

_MODALITIES = ("image", "audio", "video")
_MAX_NAME = 255


class FileObject(Answer):
    """A file that was uploaded."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: str
    status: Literal["processed"]


class FileList(Answer):
    """Answer of ``GET /v1/files``."""

    object: Literal["list"]
    data: list[FileObject]
    has_more: Literal[False]


@dataclass(frozen=True)
class StoredFile:
    """A file and its media."""

    about: FileObject
    media: KeptMedia


class FileRoutes:
    """Takes files, and gives them to requests of the same tenant.

    Args:
        prepare: Reads media.
        store: Keeps files.
        seconds: Time that it keeps them.
    """

    def __init__(
        self,
        prepare: PromptPreparer,
        store: TenantStore[StoredFile],
        seconds: int,
    ) -> None:
        self._prepare = prepare
        self._store = store
        self._seconds = seconds

    def lookup(self, http: Request, cache_salt: str | None) -> FileLookup:
        """Gives the media of a request's tenant by id."""
        owner = owner_of(http, cache_salt)

        def find(file_id: str) -> KeptMedia | None:
            stored = self._store.get(owner, file_id)
            return None if stored is None else stored.media

        return find

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        one, errors = "/v1/files/{file_id}", (404, *ERRORS)
        table.add("POST", "/v1/files", self.create, FileObject, errors)
        table.add("GET", "/v1/files", self.listing, FileList)
        table.add("GET", one, self.retrieve, FileObject, errors)
        table.add(
            "GET",
            f"{one}/content",
            self.content,
            errors=errors,
            kinds=("application/octet-stream",),
        )
        table.add("DELETE", one, self.delete, Deleted, errors)

    @guarded
    async def create(
        self,
        http: Request,
        file: Annotated[UploadFile, File(description="An image, a sound or a video.")],
        purpose: Annotated[str, Form(description="Kept, and ignored.")] = "user_data",
        cache_salt: Annotated[
            str | None, Form(description="Only requests with the same salt find the file.")
        ] = None,
    ) -> Response:
        """Takes a file; what cannot be read is refused now."""
        name = (file.filename or "")[:_MAX_NAME]
        owner = owner_of(http, cache_salt)
        data = await file.read()
        tenant = tenant_of(http)
        scope = cache_salt if tenant is None else tenant.salted(cache_salt)
        with naming("file"):
            self._check_room(owner, len(data))
            media = KeptMedia(_modality(file.content_type, name), data)
            await self._prepare.check_kept(media, scope)
        now = int(time.time())
        about = FileObject(
            id=f"file-{uuid.uuid4().hex}",
            object="file",
            bytes=len(data),
            created_at=now,
            expires_at=now + self._seconds,
            filename=name,
            purpose=purpose[:_MAX_NAME],
            status="processed",
        )
        if not self._store.put(owner, about.id, StoredFile(about, media), len(data)):
            with naming("file"):
                self._check_room(owner, len(data))  # others came while it was read
        return _json(about)

    def _check_room(self, owner: str | None, nbytes: int) -> None:
        room = self._store.room(owner)
        if nbytes > room:
            raise LimitExceededError("max_stored_bytes", nbytes, room, "bytes")

    @guarded
    async def listing(self, http: Request, cache_salt: str | None = None) -> Response:
        """All files of whoever asks."""
        stored = self._store.list(owner_of(http, cache_salt))
        data = sorted((one.about for one in stored), key=lambda about: about.created_at)
        return _json(FileList(object="list", data=data, has_more=False))

    @guarded
    async def retrieve(
        self, http: Request, file_id: str, cache_salt: str | None = None
    ) -> Response:
        """What is known of a file."""
        return _json(self._found(http, file_id, cache_salt).about)

    @guarded
    async def content(self, http: Request, file_id: str, cache_salt: str | None = None) -> Response:
        """The bytes of a file."""
        # Never shown by a browser as a page of this server's.
        headers = {"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"}
        data = self._found(http, file_id, cache_salt).media.data
        return Response(data, headers=headers, media_type="application/octet-stream")

    @guarded
    async def delete(self, http: Request, file_id: str, cache_salt: str | None = None) -> Response:
        """Forgets a file at once."""
        if not self._store.delete(owner_of(http, cache_salt), file_id):
            raise _unknown(file_id)
        return _json(Deleted(id=file_id, object="file", deleted=True))

    def _found(self, http: Request, file_id: str, cache_salt: str | None) -> StoredFile:
        stored = self._store.get(owner_of(http, cache_salt), file_id)
        if stored is None:
            raise _unknown(file_id)
        return stored


def _modality(content_type: str | None, name: str) -> str:
    for kind in (content_type, mimetypes.guess_type(name)[0]):
        modality = (kind or "").partition("/")[0].lower()
        if modality in _MODALITIES:
            return modality
    raise RequestError(
        f"its content type or the end of its name must say that it is image, audio or video; got "
        f"{content_type!r:.80} and {name!r:.80}"
    )


def _unknown(file_id: str) -> UnknownIdError:
    return UnknownIdError(
        f"there is no file {file_id!r:.80}: it was never uploaded, has expired or was deleted, or "
        "had another cache_salt",
        part="file_id",
    )


def _json(answer: Answer) -> Response:
    return Response(answer.to_json(), media_type="application/json")
