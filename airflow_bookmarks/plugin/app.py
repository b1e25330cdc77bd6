"""The app that the API server mounts under `/bookmarks`. Nothing in it is served to who is not logged in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI

from airflow_bookmarks.plugin import changing, looking
from airflow_bookmarks.plugin.answer import Refusal
from airflow_bookmarks.plugin.auth import logged_in
from airflow_bookmarks.plugin.refusal import install
from airflow_bookmarks.plugin.visit import Backstage

_REFUSALS = {
    401: "nobody is logged in",
    403: "the user may not do this, or another site asked for it",
    404: "no such job, run or request",
    409: "it can't be done now; with `difference` where the job moved since it was looked at",
    422: "the request is not as it has to be",
    503: "the state store can't be reached, refuses, or does not answer in time",
}


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
        lifespan=life,
    )
    app.state.backstage = shared
    router = APIRouter(
        prefix="/api/v1",
        dependencies=[Depends(logged_in)],
        responses={status: {"model": Refusal, "description": why} for status, why in _REFUSALS.items()},
    )
    router.include_router(looking.router)
    router.include_router(changing.router)
    app.include_router(router)
    install(app)
    return app
