"""Objects in S3 and compatible stores."""

from __future__ import annotations

import copy
import io
import logging
import posixpath
import threading
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import IO, TYPE_CHECKING, Any, cast

from botocore import exceptions as aws

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import HIDDEN
from airflow_bookmarks.files.concurrency import Concurrency
from airflow_bookmarks.files.filesystem import FileSystemError, Listed, PathPatternError
from airflow_bookmarks.files.input import Sieve, is_hidden
from airflow_bookmarks.files.s3.address import SCHEME, S3Address
from airflow_bookmarks.files.s3.client import clients_of, code_of, is_gone, telling
from airflow_bookmarks.files.s3.listing import list_folders, list_pages
from airflow_bookmarks.files.s3.page import PAGE_KEYS
from airflow_bookmarks.files.s3.requests import FolderDescents, InputColumns, PageRequests, joined, pages_of
from airflow_bookmarks.files.s3.settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

    from airflow_bookmarks.files.s3.page import Page

log = logging.getLogger(__name__)

_GLOB = frozenset("*?[]{}")
_REMOVED_AT_ONCE = 1000  # S3's own limit
_PROGRESS_EVERY_STATS = 10_000  # each is a request
_LARGEST_COPY_BYTES = 5 * 1024**3  # of one request
_PART_BYTES = 512 * 1024**2
_MOST_PARTS = 10_000
_KEPT_HEADERS = ("ContentType", "ContentEncoding", "ContentLanguage", "ContentDisposition", "CacheControl", "Metadata")
_KEPT_IN_BUCKET = ("ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled", "StorageClass")


class S3FileSystem:
    """Objects of S3 by their keys; a folder is what keys up to a slash have in common. Safe between threads.

    Canonical paths begin with `s3a://`, whether a path was given with that, `s3://` or `s3n://`: a job that changes
    from one to another reads nothing twice.

    Args:
        settings: how S3 is reached.
        scheme: with which Spark reads and writes, where the settings don't say; Hadoop has no `s3n` any more.
    """

    def __init__(self, settings: S3Settings | None = None, scheme: str = SCHEME) -> None:
        self._settings = settings or S3Settings()
        self._without: frozenset[str] = frozenset()
        self._clients = clients_of(self._settings)
        self.concurrency = Concurrency(self._settings.connections, PAGE_KEYS)
        # Large files are copied by parts, several of them at a time: their parts together are no more than this.
        self._parts_at_once = threading.BoundedSemaphore(self._settings.connections)
        self._spark_scheme = self._settings.scheme or ("s3" if scheme == "s3" else SCHEME)

    def without_classes(self, classes: Collection[str]) -> S3FileSystem:
        """Return the same store, whose listings leave out objects in these storage classes and count them."""
        other = copy.copy(self)
        other._without = frozenset(each.upper() for each in classes)
        return other

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        """List the input files at `root` by one request for each 1,000 keys; see `FileSystem.list`.

        A root that is a key and a folder as well is listed as the folder. Empty objects that stand for folders are
        counted as `marker`. With `enters` each folder takes a request of its own, unless nothing below it is pruned
        (`Pruning`): then all that is below it is listed by one request for each 1,000 keys again.
        """
        at = S3Address.parse(root)
        columns = InputColumns(at, Sieve(recursive), saw, self._without)
        with telling(f"{root!r} can't be listed"):
            fetch = PageRequests(self._clients.of(at.bucket), at.bucket)
            pages = fetch, at.inside, self._settings.connections, columns.of
            descents = None if enters is None else FolderDescents(at, columns.sieve, enters)
            parts = list_pages(*pages) if descents is None else list_folders(*pages, descents.into)
            if columns.is_nothing_seen and at.key:
                return self._list_file(at, fetch(at.key, "", max_keys=1))
        return Listed(joined(parts), columns.sieve.counts, 0 if descents is None else descents.pruned)

    def _list_file(self, at: S3Address, page: Page) -> Listed:
        if not page.keys or page.keys[0] != at.key:
            raise SourceMissingError(
                f"{str(at)!r} does not exist: the bucket has neither this key nor one below it. Nothing was read or "
                "changed. Check the path; a folder that is only empty so far exists in S3 as an empty object whose key "
                "ends in '/'."
            )
        if is_hidden(posixpath.basename(at.key)):  # Spark reads no row of it, also when it is named
            return Listed(Listing.of([]), {HIDDEN: 1})
        return Listed(Listing([str(at)], page.sizes[:1], page.times_ms[:1], page.etags[:1]))

    def stat(self, paths: Sequence[str]) -> Sequence[FileInfo | None]:
        """Return each file as it is now, by one request for each; see `FileSystem.stat`."""
        if len(paths) < 2:
            return [self._stat(path) for path in paths]
        found: dict[int, FileInfo | None] = {}

        def note(at: int, info: FileInfo | None) -> None:
            found[at] = info
            if len(found) % _PROGRESS_EVERY_STATS == 0:
                log.info("bookmark: looked at %d of %d files", len(found), len(paths))

        self.concurrency.each(lambda at: self._stat(paths[at]), range(len(paths)), note)
        return [found[at] for at in range(len(paths))]

    def _stat(self, path: str) -> FileInfo | None:
        at = S3Address.parse(path)
        head = self._head(at)
        if head is None:
            return None
        etag = head.get("ETag")
        modified_ms = int(head["LastModified"].timestamp() * 1000)
        return FileInfo(path, head["ContentLength"], modified_ms, None if etag is None else etag.strip('"'))

    def _head(self, at: S3Address, **part: Any) -> HeadObjectOutputTypeDef | None:
        with telling(f"{str(at)!r} can't be looked at"):
            try:
                return self._clients.of(at.bucket).head_object(Bucket=at.bucket, Key=at.key, **part)
            except aws.ClientError as error:
                if is_gone(error):
                    return None
                raise

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading.

        Raises:
            FileNotFoundError: it is gone. FileSystemError: S3 refuses, here or at a later read.
        """
        at = S3Address.parse(path)
        with telling(f"{path!r} can't be read"):
            try:
                answer = self._clients.of(at.bucket).get_object(Bucket=at.bucket, Key=at.key)
            except aws.ClientError as error:
                if is_gone(error):
                    raise FileNotFoundError(f"{path!r} is gone. Nothing was changed.") from error
                raise
        return cast("IO[bytes]", io.BufferedReader(_Body(path, answer["Body"])))

    def move(self, source: str, target: str) -> bool:
        """Copy one file in S3, then delete the source; see `FileSystem.move`.

        The copy keeps the etag: one of several parts is copied by the same parts. (Under SSE-KMS each copy has another,
        whatever one does.) Within a bucket it keeps encryption and storage class as well.
        """
        here, there = S3Address.parse(source), S3Address.parse(target)
        head = self._head(here)
        if head is None:
            return False
        with telling(f"{source!r} can't be moved to {target!r}"):
            client = self._clients.of(there.bucket)
            try:
                is_copied = self._copy(client, here, there, head)
            except aws.ClientError as error:
                if code_of(error) == "NoSuchKey":  # another publisher was faster
                    return False
                raise
            if is_copied:
                self._delete(here)
        return is_copied

    def _delete(self, at: S3Address) -> None:
        """Delete an object. S3 takes one that is gone for deleted; some stores that speak S3 say that it is gone."""
        try:
            self._clients.of(at.bucket).delete_object(Bucket=at.bucket, Key=at.key)
        except aws.ClientError as error:
            if code_of(error) != "NoSuchKey":
                raise

    def _copy(self, client: S3Client, here: S3Address, there: S3Address, head: HeadObjectOutputTypeDef) -> bool:
        """Copy an object; False where the source went meanwhile, and nothing was made of it."""
        part_bytes = self._part_bytes(here, head)
        kept = _kept(head, _KEPT_IN_BUCKET) if here.bucket == there.bucket else {}
        if part_bytes is None:
            source: Any = {"Bucket": here.bucket, "Key": here.key}
            client.copy_object(Bucket=there.bucket, Key=there.key, CopySource=source, **kept)
            return True
        return self._copy_parts(client, here, there, head, part_bytes, kept | _kept(head, _KEPT_HEADERS))

    def _copy_parts(
        self,
        client: S3Client,
        here: S3Address,
        there: S3Address,
        head: HeadObjectOutputTypeDef,
        part_bytes: int,
        kept: dict[str, Any],
    ) -> bool:
        upload = client.create_multipart_upload(Bucket=there.bucket, Key=there.key, **kept)["UploadId"]
        of_upload: dict[str, Any] = {"Bucket": there.bucket, "Key": there.key, "UploadId": upload}

        def copy_part(number: int, first: int, last: int) -> dict[str, Any]:
            with self._parts_at_once:
                answer = client.upload_part_copy(
                    **of_upload,
                    PartNumber=number,
                    CopySource={"Bucket": here.bucket, "Key": here.key},
                    CopySourceIfMatch=head["ETag"],  # parts of two contents are none
                    CopySourceRange=f"bytes={first}-{last}",
                )
            return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

        is_whole = False
        try:
            parts = self._each_part(copy_part, head["ContentLength"], part_bytes)
            # The last step needs no source. A publisher that slept here while another one moved the file, and a later
            # run replaced it, would bring it back.
            if self._is_still(here, head):
                client.complete_multipart_upload(**of_upload, MultipartUpload=cast("Any", {"Parts": parts}))
                is_whole = True
        finally:
            if not is_whole:
                _abort(client, of_upload)
        return is_whole

    def _is_still(self, at: S3Address, head: HeadObjectOutputTypeDef) -> bool:
        """Whether an object that is about to be copied exists.

        Raises:
            FileSystemError: another one has its name.
        """
        now = self._head(at)
        if now is not None and now.get("ETag") != head.get("ETag"):
            raise FileSystemError(
                f"{str(at)!r} was replaced while it was copied. It was left where it is, and no copy was made. Run the "
                "job again."
            )
        return now is not None

    def _each_part(
        self, copy_part: Callable[[int, int, int], dict[str, Any]], size: int, part_bytes: int
    ) -> Sequence[dict[str, Any]]:
        starts = range(0, size, part_bytes)
        lasts = [min(start + part_bytes, size) - 1 for start in starts]
        with ThreadPoolExecutor(min(len(starts), self._settings.connections), "bookmark-s3-copy") as pool:
            try:
                return [*pool.map(copy_part, range(1, len(starts) + 1), starts, lasts)]
            finally:
                pool.shutdown(cancel_futures=True)

    def _part_bytes(self, here: S3Address, head: HeadObjectOutputTypeDef) -> int | None:
        """Return the part size for copying an object; None for one request."""
        size = head["ContentLength"]
        if "-" in head.get("ETag", ""):  # it was written in parts, and its etag is a digest of theirs
            first = self._head(here, PartNumber=1)
            if first is not None and first["ContentLength"] > 0:
                part_bytes = first["ContentLength"]
                if ceil(size / part_bytes) == first.get("PartsCount"):  # else they differ, and nothing keeps the etag
                    return part_bytes
        return max(_PART_BYTES, ceil(size / _MOST_PARTS)) if size > _LARGEST_COPY_BYTES else None

    def delete(self, path: str) -> bool:
        """Delete one file; True, because S3 does not say whether it was there; see `FileSystem.delete`."""
        at = S3Address.parse(path)
        with telling(f"{path!r} can't be deleted"):
            self._delete(at)
        return True

    def folders(self, root: str) -> Sequence[str]:
        """Return the names of the folders directly in `root`; none if its bucket is gone; see the protocol."""
        at = S3Address.parse(root)
        with telling(f"{root!r} can't be listed"):
            fetch = PageRequests(self._clients.of(at.bucket), at.bucket)
            try:
                pages = [*pages_of(fetch, at.inside, delimiter="/")]
            except aws.ClientError as error:
                if code_of(error) == "NoSuchBucket":
                    return []
                raise
        names = [folder[len(at.inside) : -1] for page in pages for folder in page.folders]
        return [name for name in names if name]

    def remove(self, root: str) -> None:
        """Remove all objects below `root`, 1,000 by a request; see `FileSystem.remove`."""
        at = S3Address.parse(root)
        with telling(f"{root!r} can't be removed"):
            client = self._clients.of(at.bucket)
            for page in pages_of(PageRequests(client, at.bucket), at.inside, max_keys=_REMOVED_AT_ONCE):
                if page.keys:
                    doomed: Any = {"Objects": [{"Key": key} for key in page.keys], "Quiet": True}
                    _check_removed(root, client.delete_objects(Bucket=at.bucket, Delete=doomed))

    def canonical(self, path: str) -> str:
        """Return `s3a://bucket/key` without needless slashes, as Hadoop reads it; see `FileSystem.canonical`."""
        at = S3Address.parse(path)
        key = posixpath.normpath(f"/{at.key}").strip("/")
        found = S3Address(at.bucket, key)
        if _GLOB & set(key) and not self._is_there(found):
            raise PathPatternError(
                f"{path!r} is a pattern, and here one folder or file is named. Nothing was read or changed. "
                "Name the folder, or several folders as a list."
            )
        return str(found)

    def _is_there(self, at: S3Address) -> bool:
        with telling(f"{str(at)!r} can't be listed"):
            fetch = PageRequests(self._clients.of(at.bucket), at.bucket)
            inside, same = fetch(at.inside, "", max_keys=1), fetch(at.key, "", max_keys=1)
        return bool(inside.keys) or list(same.keys) == [at.key]

    def uri(self, path: str) -> str:
        """Return the path with the scheme that Spark is to use; see `FileSystem.uri`."""
        return f"{self._spark_scheme}{path.removeprefix(SCHEME)}"

    def pattern(self, path: str) -> str:
        """Return the path with the scheme that Spark is to use, and escapes; see `FileSystem.pattern`."""
        return "".join("\\" + c if c in _GLOB or c == "\\" else c for c in self.uri(path))

    def write(self, path: str, content: IO[bytes]) -> None:
        """Write one object by one request, 5 GB at most; see `FileSystem.write`."""
        at = S3Address.parse(path)
        with telling(f"{path!r} can't be written"):
            self._clients.of(at.bucket).put_object(Bucket=at.bucket, Key=at.key, Body=content)


def _kept(head: HeadObjectOutputTypeDef, names: Sequence[str]) -> dict[str, Any]:
    return {name: head[name] for name in names if head.get(name)}  # type: ignore[literal-required]


def _abort(client: S3Client, of_upload: Mapping[str, Any]) -> None:
    """Abort an upload: its parts would be paid for, and invisible."""
    try:
        client.abort_multipart_upload(**of_upload)
    except (aws.ClientError, aws.BotoCoreError) as error:  # report what ended the upload, not this
        log.warning(
            "bookmark: the unfinished upload %(UploadId)s of s3a://%(Bucket)s/%(Key)s is left, and paid for until a "
            "rule of the bucket's lifecycle ends it: %(error)s",
            {**of_upload, "error": error},
        )


def _check_removed(root: str, answer: Mapping[str, Any]) -> None:
    errors = [each for each in answer.get("Errors", []) if each.get("Code") != "NoSuchKey"]  # gone is what was asked
    if errors:
        raise FileSystemError(
            f"{root!r} can't be removed: S3 refused {len(errors)} keys, the first: {errors[0].get('Key')!r} "
            f"({errors[0].get('Code')}: {errors[0].get('Message')}). Others were removed. Give these credentials "
            "s3:DeleteObject; a later sweep removes what is left."
        )


class _Body(io.RawIOBase):
    """The content of an object as a stream whose errors say what it is of."""

    def __init__(self, path: str, body: Any) -> None:
        self._path, self._body = path, body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with telling(f"{self._path!r} can't be read to its end"):
            content = self._body.read(len(buffer))  # botocore before 1.35 has no `readinto`
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._body.close()
        super().close()
