"""The pages of operators and administrators, and what all pages load."""

from __future__ import annotations

from fastapi import APIRouter

from dtef_pipeline.api.pages import (
    board_page,
    health_pages,
    login_pages,
    new_evaluation_page,
    persona_pages,
    queue_pages,
    run_pages,
    scenario_pages,
    static_files,
    vote_pages,
)


def page_routers() -> tuple[APIRouter, ...]:
    """Their routes."""
    return (
        static_files.router,
        login_pages.router,
        queue_pages.router,
        run_pages.router,
        new_evaluation_page.router,
        persona_pages.router,
        scenario_pages.router,
        vote_pages.router,
        board_page.router,
        health_pages.pages_of_health,
    )
