"""The app that the API server mounts under `/bookmarks`. Its data requires a login.

The static files of the page hold no data, and are public like those of Airflow's own page.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.staticfiles import StaticFiles

from airflow_bookmarks.airflow_compat import shows_plugin_pages
from airflow_bookmarks.plugin.auth import logged_in
from airflow_bookmarks.plugin.bundle import BUNDLE, STATIC
from airflow_bookmarks.plugin.dependencies import Backstage
from airflow_bookmarks.plugin.exception_handlers import install
from airflow_bookmarks.plugin.routes import backfill, export, ownership, quarantine, shards, waiting_requests
from airflow_bookmarks.plugin.routes import change as changing
from airflow_bookmarks.plugin.routes import read as with_files
from airflow_bookmarks.plugin.schemas.refusal import Refusal

log = logging.getLogger(__name__)


async def not_kept(response: Response) -> None:
    """Keep what one person may see out of shared caches."""
    response.headers["Cache-Control"] = "no-store"


_REFUSALS = {
    401: "nobody is logged in",
    403: "the user may not do this, or another site asked for it",
    404: "no such job, run or request",
    409: "it can't be done now; with `difference` where the job moved since it was looked at",
    422: "the request is invalid",
    500: "what the state store holds of the job is damaged, or an unexpected error",
    502: "what the job reads can't be looked at",
    503: "the state store is missing, can't be reached, throttles, refuses, or does not answer in time",
}


def _say_where_the_page_is_shown() -> None:
    if not shows_plugin_pages():
        log.warning(
            "bookmarks page: this Airflow shows no pages of plugins (3.1 and later do), so its UI has neither the page "
            "nor links to it. Jobs and routes are not affected; 'airflow-bookmarks' has the same verbs."
        )


def create_bookmarks_app(backstage: Backstage | None = None) -> FastAPI:
    """Make the app.

    Args:
        backstage: connection and gates; default: those of Airflow's configuration, opened by the first request.
    """
    shared = backstage or Backstage()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        shared.close()

    app = FastAPI(
        title="Bookmarks",
        version="1",
        description="Where Spark jobs stand in what they read, and changes of that.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=life,
    )
    app.state.backstage = shared
    router = APIRouter(
        prefix="/api/v1",
        dependencies=[Depends(logged_in), Depends(not_kept)],
        responses={status: {"model": Refusal, "description": why} for status, why in _REFUSALS.items()},
    )
    router.include_router(with_files.router)
    router.include_router(changing.router)
    router.include_router(ownership.router)
    router.include_router(shards.router)
    router.include_router(backfill.router)
    router.include_router(waiting_requests.router)
    router.include_router(quarantine.router)
    router.include_router(export.router)
    app.include_router(router)
    if BUNDLE.is_file():
        app.mount(STATIC, StaticFiles(directory=BUNDLE.parent), name="page")
        _say_where_the_page_is_shown()
    else:
        log.warning(
            "bookmarks page: %s is not there, so Airflow shows no page; the routes work. In a checkout of the project, "
            "`make page` builds it.",
            BUNDLE,
        )
    install(app)
    return app
